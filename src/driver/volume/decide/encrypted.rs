//! Decides for a volume that is encrypted, or is to be encrypted, or whose encryption was cut short. Pure. Such a
//! volume has two layers: a LUKS2 header, and the filesystem inside.
//!
//! A fresh LUKS2 volume holds noise inside, so no rule asks whether the inside is blank. mkfs runs in two cases:
//! - The same call made the LUKS2 header just before.
//! - The volume's tag says that an earlier call was cut short between header and filesystem. The volume is open, and
//!   inside there is no known signature, or only what a killed mkfs left.
//!
//! Once a filesystem is recorded, nothing here leads to mkfs.

use super::decision::{Decision, Level, Making, Ruling};
use super::doubt::Doubt;
use super::facts::{Content, Decrypted, Facts};
use super::filesystem::{
    for_claimed, for_filesystem, permit_make, require_encryption_as_asked, require_for_mkfs,
    require_type, require_writable,
};
use super::luks::{require_cipher, require_no_reencryption, require_table, tells_too_much};
use super::reason::Reason;
use super::well::unreadable;
use super::wish::Wish;
use crate::crypt::{DmTable, HEADER_SIZE, Header, Segment};
use crate::host::DeviceNumber;
use crate::lvm::Volume;
use crate::names::{Bytes, Filesystem, FsType, Shown};
use crate::volume::device::Device;
use crate::volume::inside::Inside;

/// Decides by the content of a volume with a LUKS2 header, or with a record of one. `None`: the rules of other volumes
/// decide.
pub fn for_encrypted(
    facts: &Facts,
    content: &Content,
    volume: &Volume,
    wish: &Wish,
) -> Result<Option<Decision>, Reason> {
    let record = &volume.record;
    let is_open = facts.inside().is_some();
    match (&record.luks, record.making_in_luks(), content) {
        (_, _, Content::Failed(_) | Content::Unreadable { .. }) => Ok(None),
        (Some(uuid), ..) => for_recorded(facts, uuid, content, volume, wish).map(Some),
        // Nothing is recorded yet: luksFormat or its mkfs was killed, or somebody restored LVM's metadata of then.
        (None, Some((_, uuid)), Content::Luks(header))
            if record.made.is_none() && is_usable_as(header, uuid) && header.has_keys() =>
        {
            open(facts, header, volume, wish).map(Some)
        }
        (None, Some((_, uuid)), Content::Luks(header))
            if record.made.is_none() && is_usable_as(header, uuid) && !is_open =>
        {
            made_again(facts, Some(uuid), volume, wish).map(Some)
        }
        // The volume is open, and its header is gone: somebody wiped the header.
        (None, Some((_, uuid)), _) if is_open => Err(another_header(uuid, content)),
        (None, _, Content::Filesystem(_)) if wish.encrypted == Some(true) => {
            Err(Reason::NotEncrypted)
        }
        (
            None,
            _,
            Content::Blank { .. }
            | Content::Filesystem(_)
            | Content::Luks(_)
            | Content::Damaged(_)
            | Content::Other(_)
            | Content::Several
            | Content::Claimed(_),
        ) => Ok(None),
    }
}

/// Decides for a volume whose record names the header with this UUID.
fn for_recorded(
    facts: &Facts,
    uuid: &str,
    content: &Content,
    volume: &Volume,
    wish: &Wish,
) -> Ruling {
    match content {
        Content::Claimed(_) => for_claimed(facts, None, volume, wish),
        Content::Luks(header) if is_usable_as(header, uuid) && header.has_keys() => {
            open(facts, header, volume, wish)
        }
        Content::Luks(_)
        | Content::Blank { .. }
        | Content::Filesystem(_)
        | Content::Damaged(_)
        | Content::Other(_)
        | Content::Several
        | Content::Unreadable { .. }
        | Content::Failed(_) => Err(another_header(uuid, content)),
    }
}

fn another_header(recorded: &str, content: &Content) -> Reason {
    Reason::Header {
        recorded: recorded.to_owned(),
        found: instead(content, None),
    }
}

/// Fails if the header is not the recorded one, or does not encrypt as the driver does.
pub fn require_header(recorded: &str, header: Option<&Header>) -> Result<(), Reason> {
    match header {
        Some(header) if is_usable_as(header, recorded) && header.has_keys() => {
            require_no_reencryption(header)?;
            require_cipher(header)
        }
        found => Err(Reason::Header {
            recorded: recorded.to_owned(),
            found: found.map_or("none".to_owned(), in_words),
        }),
    }
}

/// Like [`require_header`], and also judges the kernel's table of the open device. `below`: the volume's own device.
pub fn require_opened(
    recorded: &str,
    header: Option<&Header>,
    table: &DmTable,
    below: Option<DeviceNumber>,
) -> Result<(), Reason> {
    require_header(recorded, header)?;
    header.map_or(Ok(()), |header| require_table(table, header, below))
}

fn is_usable_as(header: &Header, uuid: &str) -> bool {
    header.is_usable() && header.uuid.as_deref() == Some(uuid)
}

/// Decides to make again what a killed call left half made. With `uuid`: the header, with this UUID, and the
/// filesystem. Without `uuid`: only the filesystem, inside the open volume.
fn made_again(facts: &Facts, uuid: Option<&str>, volume: &Volume, wish: &Wish) -> Ruling {
    let making = volume.record.making_in_luks();
    let fs = making.and_then(|(fs, _)| FsType::parse(fs).ok());
    let fs = wish.fs.or(fs).unwrap_or(wish.default_fs);
    require_encryption_as_asked(true, wish)?;
    require_for_mkfs(facts, volume, wish)?;
    match uuid {
        Some(uuid) => encrypt(facts, fs, Some(uuid.to_owned()), wish),
        None => permit_make(facts, fs, Making::InOpenLuks),
    }
}

/// The last rule for a volume that is to be encrypted: permits luksFormat, then mkfs. `uuid`: see [`Making::InLuks`].
pub fn encrypt(facts: &Facts, fs: FsType, uuid: Option<String>, wish: &Wish) -> Ruling {
    let size = facts.volume().map(Volume::device_size);
    if let Some(size) = size.filter(|size| *size <= HEADER_SIZE) {
        return Err(Reason::TooSmall(size));
    }
    let made = permit_make(facts, fs, Making::InLuks { uuid })?;
    require_key(wish)?;
    Ok(made)
}

fn require_key(wish: &Wish) -> Result<(), Reason> {
    wish.has_key.then_some(()).ok_or(Reason::NoKey)
}

/// Decides for a volume whose header is the recorded one: whether to open the volume, or, if it is open, by what is
/// inside.
fn open(facts: &Facts, header: &Header, volume: &Volume, wish: &Wish) -> Ruling {
    let inside = facts.inside();
    let is_mounted = facts.is_mounted_here();
    require_encryption_as_asked(true, wish)?;
    require_no_reencryption(header)?;
    require_cipher(header)?;
    require_room_for_data(header, volume)?;
    if inside.is_none() && is_mounted {
        // The volume's own device is mounted, and no LUKS2 device is on top of it.
        return Err(Reason::InUse(Vec::new()));
    }
    // Even a mount for a pod that only reads may write: it writes the filesystem's log back.
    let to_write = Wish {
        read_only: false,
        ..wish.clone()
    };
    let may_be_written = require_writable(facts, volume, &to_write).is_ok();
    let is_to_be_opened = inside.is_none_or(|inside| inside.read_only && may_be_written);
    if is_to_be_opened && !is_mounted {
        require_writable(facts, volume, wish)?;
        return to_open(may_be_written, wish);
    }
    let Some(Decrypted { content, table }) = &facts.decrypted else {
        return Ok(Decision::Look(Level::Decrypted));
    };
    // cryptsetup was killed between loading the table and using it.
    if let Some(Inside { device, .. }) = inside.filter(|_| table.target.is_empty()) {
        return Err(Reason::Failed(without_table(device)));
    }
    require_table(
        table,
        header,
        facts.device.as_ref().map(|device| device.number),
    )?;
    let is_used = is_mounted || matches!(content, Content::Claimed(_));
    if !is_used && tells_too_much(table, wish.allow_discards) {
        // A person opened the volume with discards, or a killed call did so before the node's config was changed.
        return to_open(may_be_written, wish);
    }
    by_content_inside(facts, content, volume, wish)
}

fn without_table(inside: &Device) -> String {
    format!(
        "the device inside has no table, as a killed cryptsetup leaves it: if no cryptsetup runs, run `dmsetup remove {}`",
        inside.path.file_name().unwrap_or_default().quoted()
    )
}

fn to_open(may_be_written: bool, wish: &Wish) -> Ruling {
    require_key(wish)?;
    Ok(Decision::Open {
        read_only: !may_be_written,
    })
}

/// Fails if the header leaves no room for data: by the header, the data begins at the end of the volume or after it.
fn require_room_for_data(header: &Header, volume: &Volume) -> Result<(), Reason> {
    let layouts = header.layouts.iter().flatten();
    let segments = layouts.flat_map(|layout| layout.segments.values());
    let begins = segments.filter_map(Segment::begins).max().unwrap_or(0);
    let has = volume.device_size();
    if has.get() > begins {
        return Ok(());
    }
    // The smallest size with room for data: one sector more, since LVM's sizes are whole sectors.
    Err(Reason::Reduced {
        what: "LUKS2 header",
        has,
        covers: Bytes::new(begins.saturating_add(512)),
    })
}

/// Decides by the content of the device inside. Leads to mkfs only if an earlier call was cut short.
fn by_content_inside(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Ruling {
    let record = &volume.record;
    let made = record.made.as_ref();
    let is_begun = made.is_none() && record.luks.is_none();
    let making = record.making.as_ref();
    let making = making.filter(|mkfs| is_begun && mkfs.luks.is_some());
    // What has no name may be the noise of a fresh LUKS2 device.
    let is_left = |doubt: &Doubt| {
        matches!(doubt, Doubt::Data(_)) || making.is_some_and(|mkfs| doubt.is_left_by(mkfs))
    };
    let is_its = |uuid: &str| match made {
        Some(made) => made.uuid == uuid,
        None => making.is_some(),
    };
    match content {
        Content::Failed(words) => Err(Reason::Failed(words.clone())),
        Content::Unreadable { at, error } => Err(unreadable(*at, error, volume)),
        Content::Claimed(found) => for_claimed(facts, found.as_ref(), volume, wish),
        Content::Filesystem(found) if is_its(&found.filesystem.uuid) && !found.half => {
            for_filesystem(facts, found, volume, wish)
        }
        Content::Filesystem(found)
            if making.is_some_and(|mkfs| mkfs.made(&found.filesystem.uuid)) =>
        {
            require_type(found.filesystem.fs.as_str(), wish)?;
            made_again(facts, None, volume, wish)
        }
        Content::Blank { doubts, .. } if making.is_some() && doubts.iter().all(is_left) => {
            made_again(facts, None, volume, wish)
        }
        other => {
            if let Some(made) = made {
                require_type(&made.fs, wish)?;
            }
            Err(another_inside(made, making.map(|mkfs| &*mkfs.fs), other))
        }
    }
}

/// `made`: the recorded filesystem. `making`: the type that a call was about to make.
fn another_inside(
    made: Option<&Filesystem<String>>,
    making: Option<&str>,
    found: &Content,
) -> Reason {
    Reason::Inside {
        recorded: match (made, making) {
            (Some(made), _) => made.to_string(),
            (None, Some(fs)) => format!("a new {fs}"),
            (None, None) => "a filesystem".to_owned(),
        },
        found: instead(found, made),
        ext: ext_in(found, made).cloned(),
    }
}

/// The words of a message for a header that can be opened. The header's UUID follows them.
pub const WHOLE_LUKS2: &str = "the LUKS2 header ";

/// The words of a message for a header that nobody can open.
pub const DAMAGED_LUKS2: &str = "a damaged LUKS2 header";

/// The words of a message for content without a known signature: noise, or zeros.
pub const NOISE: &str = "no known signature";

/// Names a header for a message. The volume's record may name another header, or none.
pub fn in_words(header: &Header) -> String {
    let uuid = header.uuid.as_deref();
    match (uuid, header.is_usable()) {
        (Some(uuid), true) if header.has_keys() => format!("{WHOLE_LUKS2}{uuid}"),
        (Some(uuid), true) => format!("a LUKS2 header {uuid} without a key slot"),
        _ => DAMAGED_LUKS2.to_owned(),
    }
}

/// The sign of an ext by which the ext can be repaired.
fn ext_in<'a>(content: &'a Content, made: Option<&Filesystem<String>>) -> Option<&'a Doubt> {
    let Content::Blank { doubts, .. } = content else {
        return None;
    };
    let recorded = made.map(|made| &*made.uuid);
    Doubt::repairable(doubts, recorded).first().copied()
}

fn instead(content: &Content, made: Option<&Filesystem<String>>) -> String {
    match content {
        Content::Blank { doubts, .. } => {
            let sign = |doubt: &Doubt| match doubt {
                Doubt::Mark(_) | Doubt::Recorded(_) | Doubt::Copy { .. } => Some(doubt.to_string()),
                Doubt::Backup(_) | Doubt::Data(_) | Doubt::Blocks(_) => None,
            };
            let ext = ext_in(content, made).map(ToString::to_string);
            let found = ext.or_else(|| doubts.iter().find_map(sign));
            found.unwrap_or_else(|| NOISE.to_owned())
        }
        Content::Filesystem(found) => found.filesystem.to_string(),
        Content::Damaged(fs) => format!("{fs}, damaged"),
        Content::Other(what) => what.to_string(),
        Content::Several => "several signatures at once".to_owned(),
        Content::Luks(header) => in_words(header),
        Content::Unreadable { .. } | Content::Claimed(_) | Content::Failed(_) => {
            "what cannot be read".to_owned()
        }
    }
}
