//! The contents that a volume may have, and the records and permissions that fit them.

use std::sync::LazyLock;

use super::super::sample::*;
use super::sights::Permission;
use crate::lvm::Record;
use crate::names::{Bytes, FsType, Shown};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{Content, Facts, FilesystemState};

/// Blank with each set of doubts, each filesystem in each state, and each other content.
pub static CONTENTS: LazyLock<Vec<Content>> = LazyLock::new(contents);

fn contents() -> Vec<Content> {
    let single = [
        Doubt::Mark("an ext superblock".into()),
        backup(),
        other_backup(),
        data_at(0),
        data_at(4096),
    ];
    let mut all = vec![
        Content::Damaged(FsType::Ext4),
        Content::Other("LUKS".shown()),
        Content::Several,
        Content::Unreadable {
            at: 0,
            error: "EIO".into(),
        },
        Content::Failed("blkid".into()),
        Content::Claimed(None),
    ];
    for uuid in [LUKS, "another"] {
        all.extend([
            header(uuid, 2),
            keyless(uuid),
            half_keyless(uuid),
            says(uuid, |json| segment(json)["encryption"] = "null".into()),
            says(uuid, reencrypting),
            header(uuid, 1),
            header(uuid, 0),
        ]);
    }
    for fs in [FsType::Ext4, FsType::Xfs] {
        for uuid in ["u", "another"] {
            all.push(Content::Claimed(Some(filesystem(fs, uuid))));
        }
    }
    for set in 0..1_usize << single.len() {
        let is_in = |n: &usize| set >> n & 1 == 1;
        let doubts: Vec<Doubt> = (0..single.len())
            .filter(is_in)
            .map(|n| single[n].clone())
            .collect();
        let zero = doubts.is_empty();
        all.push(Content::Blank { zero, doubts });
    }
    all.push(Content::Blank {
        zero: false,
        doubts: Vec::new(),
    });
    for fs in [FsType::Ext2, FsType::Ext4, FsType::Xfs, FsType::Btrfs] {
        for covers in [GIB / 2, GIB, 2 * GIB] {
            for half in [false, true] {
                let covers = Bytes::new(covers);
                all.push(Content::Filesystem(FilesystemState {
                    covers,
                    half,
                    ..found(fs)
                }));
            }
        }
    }
    let mut large = found(FsType::Xfs);
    large.block = Bytes::new(65_536);
    all.push(Content::Filesystem(large));
    for fs in [FsType::Ext4, FsType::Xfs, FsType::Btrfs] {
        all.push(Content::Filesystem(FilesystemState {
            is_part: true,
            ..found(fs)
        }));
    }
    all
}

/// The doubts about formatting a volume with this record.
pub fn doubts(record: &Record, facts: &Facts) -> Vec<Doubt> {
    let volume = facts.volume().unwrap();
    let held = record.made.clone().map(Doubt::Recorded);
    let has_begun = begun(record).is_some();
    let is_thin = volume.layout == "thin,sparse";
    let origin = volume.origin.clone();
    let copy = origin.filter(|_| is_thin || volume.role.contains("snapshot"));
    let copy = copy.map(|origin| Doubt::Copy {
        origin,
        held: facts.origin.as_ref().and_then(|of| of.made.clone()),
    });
    let blocks = match volume.data_percent {
        Some(0.0) => None,
        Some(_) => Some("12.50"),
        None => Some("unknown"),
    };
    let blocks = blocks.filter(|_| is_thin);
    let blocks = blocks.map(|percent| Doubt::Blocks(percent.to_owned()));
    let by_lvm = copy.into_iter().chain(blocks).filter(|_| !has_begun);
    let seen = match facts.content.as_ref() {
        Some(Content::Blank { doubts, .. }) => doubts.clone(),
        _ => Vec::new(),
    };
    held.into_iter().chain(by_lvm).chain(seen).collect()
}

/// The UUID in the tag `flexvolume.making`, if the tag can be the driver's own: its type is known, and it has a UUID.
pub fn begun(record: &Record) -> Option<&str> {
    let mkfs = record.making.as_ref()?;
    (mkfs.fs != "zfs" && !mkfs.uuid.is_empty()).then_some(mkfs.uuid.as_str())
}

/// The record of these tags, with a permission for the doubts about a volume with these facts.
pub fn recorded(tags: &str, permission: Permission, facts: &Facts) -> Record {
    let record = Record::parse(tags.split(','));
    let tag = match permission {
        Permission::None => return record,
        Permission::Named(at) => {
            crate::lvm::permission_tag(&Doubt::names(&doubts(&record, facts)), at)
        }
        Permission::Others(at) => crate::lvm::permission_tag("something-else", at),
        Permission::Nothing => "flexvolume.mayformat".to_owned(),
    };
    Record::parse(tags.split(',').chain([tag.as_str()]))
}
