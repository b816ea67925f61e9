//! Decides by what a volume holds. Pure.

use super::decision::{Making, Ruling};
use super::doubt::Doubt;
use super::encrypted;
use super::facts::{Content, Facts};
use super::filesystem::{of_claimed, of_filesystem, permit_make, require_for_mkfs};
use super::reason::Reason;
use super::well::require_no_stand_in;
use super::wish::Wish;
use crate::lvm::Volume;
use crate::names::{FsType, Shown};

/// Decides by the content of the device. Every reason to refuse is checked before mkfs is permitted.
pub fn of_content(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Ruling {
    require_no_old_disk(facts)?;
    require_no_stand_in(facts, volume)?;
    if let Some(decision) = encrypted::of_luks(facts, content, volume, wish)? {
        return Ok(decision);
    }
    match content {
        Content::Failed(words) => Err(Reason::Failed(words.clone())),
        Content::Unreadable { at, error } => Err(Reason::Unreadable {
            at: *at,
            error: error.clone(),
        }),
        Content::Claimed(found) => of_claimed(facts, found.as_ref(), volume, wish),
        Content::Several => Err(Reason::Several),
        Content::Other(what) if volume.record.new => Err(Reason::NewNotBlank(what.to_string())),
        Content::Other(what) => Err(Reason::Other {
            what: what.clone(),
            wanted: wish.fs,
        }),
        Content::Luks(header) => Err(Reason::Other {
            what: encrypted::in_words(header).shown(),
            wanted: wish.fs,
        }),
        Content::Damaged(fs) => Err(Reason::Damaged(*fs)),
        Content::Filesystem(found) => of_filesystem(facts, found, volume, wish),
        Content::Blank { doubts, .. } => of_blank(facts, doubts, volume, wish),
    }
}

/// Decides for a volume on which nothing is named. `signs` is what is not zero on it. LVM's tags, the volume's origin
/// and the blocks of a thin volume are signs of data, too.
fn of_blank(facts: &Facts, signs: &[Doubt], volume: &Volume, wish: &Wish) -> Ruling {
    let record = &volume.record;
    require_for_mkfs(facts, volume, wish)?;
    if let Some(sign) = signs.first().filter(|_| record.new) {
        return Err(Reason::NewNotBlank(sign.to_string()));
    }
    let recorded = record.made.clone().map(Doubt::Recorded);
    let by_lvm = match record.making {
        // The driver's own mkfs has written.
        Some(_) => Vec::new(),
        None if record.new => Vec::new(),
        None => Doubt::of_lvm(volume, facts.origin.as_ref()),
    };
    let signs = signs.iter().filter(|sign| !is_left_by_mkfs(sign, volume));
    let doubts: Vec<Doubt> = recorded
        .into_iter()
        .chain(by_lvm)
        .chain(signs.cloned())
        .collect();
    if !doubts.is_empty() && !record.permits(&Doubt::names(&doubts), facts.now) {
        return Err(Reason::Doubts(doubts));
    }
    let fs = wish.fs.unwrap_or(wish.default_fs);
    let begun = record.making_in_luks();
    if wish.encrypted.unwrap_or(begun.is_some()) {
        let uuid = begun.map(|(_, uuid)| uuid.to_owned());
        return encrypted::encrypt(facts, fs, uuid, wish);
    }
    permit_make(facts, fs, Making::Plain { again: false })
}

/// Whether a killed mkfs may have left this sign of data, by the tag `flexvolume.making`. No mkfs leaves data in the
/// first 4 KiB and no superblock that blkid names, except mke2fs: in a volume of less than 512 MiB, it chooses small
/// blocks, and writes group descriptors at 2 KiB. In a volume of up to 8 MiB, it makes one block group and no backup, and
/// only a backup tells whether somebody has used an ext. blkid does not look for everything in a volume of up to 1440
/// KiB, so there any data is somebody's. Sources: mke2fs.conf(5), "small"; libblkid, `BLKID_FL_TINY_DEV`; seen with a
/// kill at each write.
fn is_left_by_mkfs(sign: &Doubt, volume: &Volume) -> bool {
    const TINY: u64 = 1440 << 10;
    const ONE_GROUP: u64 = 9 << 20;
    let making = volume.record.making.as_deref().map(FsType::parse);
    let is_of_mkfs = matches!(making, Some(Ok(_))) || volume.record.making_in_luks().is_some();
    let is_of_mke2fs = making.is_some_and(|fs| fs.is_ok_and(FsType::is_ext));
    let size = volume.device_size().get();
    match sign {
        Doubt::Data(data) => {
            (is_of_mkfs && data.offset >= 4096 && size > TINY)
                || (is_of_mke2fs && data.offset >= 2048 && (ONE_GROUP..512 << 20).contains(&size))
        }
        Doubt::Backup(_)
        | Doubt::Recorded(..)
        | Doubt::Copy { .. }
        | Doubt::Blocks(_)
        | Doubt::Mark(_) => is_of_mke2fs && sign.may_be_unfinished(),
    }
}

/// Fails if a part of the device is on a disk that LVM does not know any more. That part cannot be read. The look may
/// not have noticed that, since the places that it reads may all be on other disks.
fn require_no_old_disk(facts: &Facts) -> Result<(), Reason> {
    let Some(disk) = facts.astray.first() else {
        return Ok(());
    };
    let uses = facts.uses.as_ref();
    Err(Reason::OldDisk {
        disk: disk.clone(),
        pool: facts.volume().and_then(Volume::pool_id),
        inside: uses
            .and_then(|uses| uses.inside.as_ref())
            .map(|inside| inside.device.path.clone()),
    })
}
