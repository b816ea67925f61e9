//! Decides by the content of a volume. Pure.

use super::decision::{Making, Ruling, Wish};
use super::doubt::Doubt;
use super::encrypted;
use super::facts::{Content, Facts};
use super::filesystem::{claimed, make, of_filesystem, require_for_mkfs, unreadable};
use super::reason::Reason;
use crate::fs::TINY;
use crate::lvm::Volume;
use crate::names::FsType;

/// Decides by the content, from the strongest doubt to the last permission: mkfs is the very last arm.
pub fn of_content(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Ruling {
    if let Some(decision) = encrypted::of_content(facts, content, volume, wish)? {
        return Ok(decision);
    }
    match content {
        Content::Failed(words) => Err(Reason::Failed(words.clone())),
        Content::Unreadable { at, error } => Err(unreadable(*at, error)),
        Content::Claimed(found) => claimed(facts, found.as_ref(), volume, wish),
        Content::Several => Err(Reason::Several),
        Content::Other(what) if volume.record.new => Err(Reason::NewNotBlank(what.to_string())),
        Content::Other(what) => Err(Reason::Other {
            what: what.clone(),
            wanted: wish.fs,
        }),
        Content::Luks(header) => Err(encrypted::foreign(header, wish)),
        Content::Damaged(fs) => Err(Reason::Damaged(*fs)),
        Content::Filesystem(found) => of_filesystem(facts, found, volume, wish),
        Content::Blank { doubts, .. } => of_blank(facts, doubts.clone(), volume, wish),
    }
}

/// Decides for a volume that looks blank. `doubts` and the tag are signs that it held data.
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
    make(facts, fs, Making::Plain { again: false })
}

/// Whether a killed mke2fs may have left this. It writes backups first and its superblock last. Below 512 MiB
/// it chooses small blocks, and its group descriptors are at 2 KiB. mkfs.xfs writes its superblock first, and
/// mkfs.btrfs nothing before its own, so blkid names what they leave. In a volume of up to [`TINY`] all bytes
/// count as data, and some may be somebody's. Source: mke2fs.conf(5), "small"; seen with a kill at each write.
fn is_left_by_mke2fs(doubt: &Doubt, volume: &Volume) -> bool {
    match doubt {
        Doubt::Backup(_) => true,
        Doubt::Data(at) => *at >= 2048 && (TINY + 1..512 << 20).contains(&volume.size.get()),
        Doubt::Recorded(..) | Doubt::Mark(_) => false,
    }
}
