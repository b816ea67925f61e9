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
        Content::Blank { doubts, .. } => of_blank(facts, doubts.clone(), volume, wish),
    }
}

/// Decides for a volume that looks blank. `doubts`, and the record in a tag, are signs that it held data.
fn of_blank(facts: &Facts, mut doubts: Vec<Doubt>, volume: &Volume, wish: &Wish) -> Ruling {
    let record = &volume.record;
    require_for_mkfs(facts, volume, wish)?;
    let making = record.making.as_deref().map(FsType::parse);
    if making.is_some_and(|fs| fs.is_ok_and(FsType::is_ext)) {
        doubts.retain(|doubt| !is_left_by_mke2fs(doubt, volume));
    }
    if record.new && facts.untouched {
        doubts.retain(|doubt| !doubt.may_be_remains());
    }
    if let Some(doubt) = doubts.first().filter(|_| record.new) {
        return Err(Reason::NewNotBlank(doubt.to_string()));
    }
    if let Some(made) = &record.made {
        doubts.insert(0, Doubt::Recorded(made.clone()));
    }
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

/// Whether a killed mke2fs may have left this sign of data: see [`Doubt::may_be_unfinished`]. In a volume of less than
/// 512 MiB, mke2fs chooses small blocks, and writes group descriptors at 2 KiB. In a volume of up to 8 MiB, it makes
/// one block group and no backup. Data in such a volume is never taken for mke2fs's, since only a backup tells whether
/// somebody has used the filesystem. mkfs.xfs and mkfs.btrfs write their superblock first, so blkid names what they
/// leave. Source: mke2fs.conf(5), "small"; seen with a kill at each write.
fn is_left_by_mke2fs(doubt: &Doubt, volume: &Volume) -> bool {
    const ONE_GROUP: u64 = 9 << 20;
    match doubt {
        Doubt::Data(at) => {
            *at >= 2048 && (ONE_GROUP..512 << 20).contains(&volume.device_size().get())
        }
        Doubt::Backup(_) | Doubt::Recorded(..) | Doubt::Mark(_) => doubt.may_be_unfinished(),
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
