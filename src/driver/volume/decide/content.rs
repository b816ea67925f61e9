//! Decides by what a volume holds. Pure.

use super::decision::{Making, Ruling};
use super::doubt::Doubt;
use super::encrypted;
use super::facts::{Content, Facts};
use super::filesystem::{for_claimed, for_filesystem, permit_make, require_for_mkfs};
use super::reason::Reason;
use super::well::{require_no_stand_in, unreadable};
use super::wish::Wish;
use crate::lvm::Volume;
use crate::names::{Foreign, Shown};

/// Decides by the content of the device. Every reason to refuse is checked before mkfs is permitted.
pub fn by_content(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Ruling {
    require_no_old_disk(facts, volume)?;
    require_no_stand_in(facts, volume)?;
    if let Some(decision) = encrypted::for_encrypted(facts, content, volume, wish)? {
        return Ok(decision);
    }
    match content {
        Content::Failed(words) => Err(Reason::Failed(words.clone())),
        Content::Unreadable { at, error } => Err(unreadable(*at, error, volume)),
        Content::Claimed(found) => for_claimed(facts, found.as_ref(), volume, wish),
        Content::Several => Err(Reason::Several),
        Content::Other(what) if volume.record.new => Err(Reason::NewNotBlank(what.to_string())),
        Content::Other(what) => Err(other(what.clone(), volume, wish)),
        Content::Luks(header) => Err(other(encrypted::in_words(header).shown(), volume, wish)),
        Content::Damaged(fs) => Err(Reason::Damaged(*fs)),
        Content::Filesystem(found) => for_filesystem(facts, found, volume, wish),
        Content::Blank { doubts, .. } => for_blank(facts, doubts, volume, wish),
    }
}

fn other(what: Foreign, volume: &Volume, wish: &Wish) -> Reason {
    Reason::Other {
        what,
        wanted: wish.fs,
        recorded: volume.record.made.clone(),
    }
}

/// Decides for a volume on which nothing is named. `signs` is what is not zero on it. LVM's tags, the volume's origin
/// and the blocks of a thin volume are signs of data, too.
fn for_blank(facts: &Facts, signs: &[Doubt], volume: &Volume, wish: &Wish) -> Ruling {
    let record = &volume.record;
    require_for_mkfs(facts, volume, wish)?;
    if let Some(sign) = signs.first().filter(|_| record.new) {
        return Err(Reason::NewNotBlank(sign.to_string()));
    }
    let recorded = record.made.clone().map(Doubt::Recorded);
    let unfinished = record.own_making();
    let by_lvm = if unfinished.is_some() {
        // The driver's own mkfs has written.
        Vec::new()
    } else {
        Doubt::of_lvm(volume, facts.origin.as_ref())
    };
    // The driver has not written to a new volume: it sets another tag before its mkfs.
    if let Some(written) = by_lvm.first().filter(|_| record.new) {
        return Err(Reason::NewNotBlank(written.to_string()));
    }
    let is_left = |sign: &Doubt| unfinished.is_some_and(|mkfs| sign.is_left_by(mkfs));
    let signs = signs.iter().filter(|sign| !is_left(sign));
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
    // After a permission, the filesystem gets another UUID than what was given up.
    let again = unfinished.is_some() && doubts.is_empty();
    permit_make(facts, fs, Making::Plain { again })
}

/// Fails if a part of the device is on a disk that LVM does not know any more. That part cannot be read. The look may
/// not have noticed that, since the places that it reads may all be on other disks. A RAID that can be read can do
/// without some of its disks.
fn require_no_old_disk(facts: &Facts, volume: &Volume) -> Result<(), Reason> {
    let is_unreadable = matches!(facts.top_content(), Some(Content::Unreadable { .. }));
    let spare = volume.spare_disks().filter(|_| !is_unreadable);
    let mut old = facts.astray.iter();
    let Some(disk) = old.nth(spare.unwrap_or(0).into()) else {
        return Ok(());
    };
    Err(Reason::OldDisk {
        disk: disk.clone(),
        pool: facts.volume().and_then(Volume::pool_id),
        inside: facts.inside().map(|inside| inside.device.path.clone()),
    })
}
