//! The messages about a volume that has other content than a filesystem, or than its record says, and about what is lost.

use std::path::Path;

use super::doubt::Doubt;
use super::encrypted::{DAMAGED_LUKS2, NOISE, WHOLE_LUKS2};
use crate::fs::Family;
use crate::host::own_name;
use crate::names::{Filesystem, FsType, LvId, Shown};

/// Says what there is instead of a filesystem, and what to do. `recorded`: the filesystem that was there. A tool that
/// wrote over its beginning, as mkswap does, has left the copies of its superblock.
pub fn other(
    id: &LvId,
    what: &str,
    wanted: Option<FsType>,
    recorded: Option<&Filesystem<String>>,
) -> String {
    let (device, me) = (id.device(), own_name());
    let device = device.shown();
    let wanted = wanted.map(|fs| fs.to_string());
    let wanted = wanted.unwrap_or_else(|| "a filesystem of this driver".to_owned());
    let (is, that) = match recorded {
        Some(recorded) => (
            format!("should hold {recorded} according to its tag, but holds {what}"),
            "the data of both",
        ),
        None => (format!("holds {what}, which is not {wanted}"), "that data"),
    };
    let keep = keep_other(id, what, recorded.is_some());
    format!(
        "{id} {is}; it is left as it is. {keep}. If {that} may be destroyed, run `wipefs --all {device} && {me} \
         allow-format {id}`"
    )
}

/// What to do if the data matters, where there is `what` instead of a filesystem.
fn keep_other(id: &LvId, what: &str, is_recorded: bool) -> String {
    let (device, me) = (id.device(), own_name());
    let device = device.shown();
    if what == "crypto_LUKS" {
        // cryptsetup-convert(8): a crash during the conversion can destroy the header. So a backup comes first.
        format!(
            "It is LUKS1, which the driver does not open: close it, and `cryptsetup luksHeaderBackup \
             --header-backup-file FILE {device} && cryptsetup convert --type luks2 {device}` makes it LUKS2"
        )
    } else if what == DAMAGED_LUKS2 {
        "If there is a backup of its header, restore that first, as docs/encryption.md says"
            .to_owned()
    } else if what.starts_with(WHOLE_LUKS2) {
        format!(
            "To give pods what is inside, open it (`cryptsetup open {device} NAME`) and run `{me} adopt {id}`"
        )
    } else if is_recorded {
        format!(
            "If somebody wrote that by mistake, run `wipefs --backup --all {device}`, which removes its marks and keeps \
             their bytes in your home directory: the next mount says what is left of the filesystem"
        )
    } else {
        format!(
            "If a read-only mount shows files of an ext, xfs or btrfs there, `wipefs --backup --offset OFFSET \
             {device}` removes the other mark (`wipefs {device}`)"
        )
    }
}

/// Says why a volume with these doubts is not formatted, and what to do.
pub fn signs_of_data(id: &LvId, doubts: &[Doubt]) -> String {
    let allow = format!("`{} allow-format {id}`", own_name());
    let device = id.device();
    let recorded = doubts.iter().find_map(|doubt| match doubt {
        Doubt::Recorded(filesystem) => Some(&*filesystem.uuid),
        Doubt::Copy { .. }
        | Doubt::Blocks(_)
        | Doubt::Mark(_)
        | Doubt::Backup(_)
        | Doubt::Data(_) => None,
    });
    let repairable = Doubt::repairable(doubts, recorded).into_iter();
    let repairs = repairable
        .filter_map(|ext| Some(format!(" Copy the volume first: {}.", ext.repair(&device)?)));
    let looks = doubts.iter().filter_map(|doubt| match doubt {
        Doubt::Mark(mark) => Some(format!(" {} shows more.", mark.shown_by(&device)?)),
        Doubt::Recorded(_)
        | Doubt::Copy { .. }
        | Doubt::Blocks(_)
        | Doubt::Backup(_)
        | Doubt::Data(_) => None,
    });
    let looks: String = looks.chain(repairs).collect();
    let all = Doubt::in_words(doubts);
    match doubts.split_first() {
        Some((Doubt::Recorded(filesystem), more)) => {
            let back = from_a_copy(filesystem, &device).unwrap_or(looks);
            let also = match Doubt::in_words(more) {
                more if more.is_empty() => more,
                more => format!(" There is also {more}."),
            };
            format!(
                "{id} should hold {filesystem} according to its tag, but nothing is found on it. It is not \
                 formatted.{also}{back} Restore it; or, if its data may be destroyed, run {allow}"
            )
        }
        Some((Doubt::Copy { .. } | Doubt::Blocks(_), _)) => format!(
            "{id} is not blank: there is {all}. It is not formatted. If that may be destroyed, run {allow}.{looks}"
        ),
        Some((Doubt::Mark(_) | Doubt::Backup(_) | Doubt::Data(_), _)) | None => format!(
            "{id} is not blank: there is {all}, which blkid does not recognise; if a removed volume left that, or if it \
             may be destroyed, run {allow}. It is not formatted until then.{looks}"
        ),
    }
}

/// The commands that bring a recorded filesystem back from a copy of its superblock, whatever its first bytes are now. An
/// ext is repaired with what was found of it. Source: btrfs-select-super(8).
fn from_a_copy(recorded: &Filesystem<String>, device: &Path) -> Option<String> {
    let device = device.shown();
    let commands = match Family::of(FsType::parse(&recorded.fs).ok()?) {
        Family::Ext => return None,
        Family::Xfs => format!(
            "`xfs_repair -n {device}` shows what is left of the xfs, and `xfs_repair {device}` repairs the xfs"
        ),
        Family::Btrfs => {
            format!(
                "`btrfs-select-super -s 1 {device}` puts back the superblock of the btrfs from its copy at 64 MiB"
            )
        }
    };
    Some(format!(
        " Copy the volume first: {commands}, if no other data was written since."
    ))
}

/// The commands that restore a header. The bytes at the header's place may be the only header that opens the volume, or
/// somebody's data. So the first command copies them.
pub fn restore_header(id: &LvId) -> String {
    let device = id.device();
    let device = device.shown();
    format!(
        "copy what is there (`dd if={device} of=COPY bs=1M count=16`), and then restore the header from its newest \
         backup (`cryptsetup luksHeaderRestore --header-backup-file FILE {device}`)"
    )
}

/// Says what an encrypted volume holds instead of its header, and what to do. A header that can be opened may be the
/// right one: then the operator adopts it.
pub fn another_header(id: &LvId, recorded: &str, found: &str) -> String {
    let (device, me) = (id.device(), own_name());
    let keep = if found.starts_with(WHOLE_LUKS2) {
        format!(
            "If that is the right one, open it (`cryptsetup open {} NAME`) and run `{me} adopt {id}`. Else restore the \
             header from its newest backup (docs/encryption.md has what to copy before)",
            device.shown()
        )
    } else {
        let restore = restore_header(id);
        format!(
            "Without its header nobody can read it: {restore} or from its second copy (docs/encryption.md)"
        )
    };
    format!(
        "{id} should have the LUKS2 header {recorded} according to its tag, but there is {found}. Nothing was \
         written. {keep}, or restore the volume. If the data may go, run `lvremove {id}` and make the volume anew"
    )
}

/// Says what an encrypted volume holds instead of its filesystem, and what to do.
pub fn another_inside(id: &LvId, recorded: &str, found: &str, ext: Option<&Doubt>) -> String {
    let device = id.device();
    let device = device.shown();
    let keep = match ext.and_then(|ext| ext.repair(Path::new("/dev/mapper/NAME"))) {
        Some(repair) => format!(
            "Open it (`cryptsetup open {device} NAME`), and copy it first: e2fsck may take the noise inside for files. \
             {repair}; then run `cryptsetup close NAME`. Or restore it"
        ),
        None if found == NOISE => format!(
            "Open it (`cryptsetup open --readonly {device} NAME`) to see what can be saved, or restore it"
        ),
        None => format!(
            "Open it (`cryptsetup open --readonly {device} NAME`) to see what is there. If that is the right content, run \
             `{} adopt {id}` while it is open. Else restore it",
            own_name()
        ),
    };
    let older = if found == NOISE {
        " A header from before a `cryptsetup reencrypt` opens it too, and shows noise: if it was encrypted anew, \
         restore the header from its newest backup."
    } else {
        ""
    };
    format!(
        "{id} was opened, and should have {recorded} inside according to its tag, but there is {found}. Nothing was \
         written.{older} {keep}. If the data may go, run `lvremove {id}` and make the volume anew"
    )
}
