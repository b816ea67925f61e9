//! The content of a volume, and who has it open.

use std::path::PathBuf;

use crate::fs::{Backup, Data, Mark};
use crate::host::holders::Opener;
use crate::names::{Filesystem, FsType, Shown};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{Content, Facts};
use crate::volume::decide::uses::{Elsewhere, LoopDevice, Openers};

use super::*;

/// The device inside looks blank, with these doubts.
pub fn noise<const N: usize>(doubts: [Doubt; N]) -> Content {
    Content::Blank {
        zero: false,
        doubts: doubts.into_iter().collect(),
    }
}

/// A backup superblock of the ext that the samples have.
pub fn backup() -> Doubt {
    Doubt::Backup(Backup {
        offset: 134_217_728,
        uuid: "u".to_owned(),
        block_size: 4096,
        written: NOW,
    })
}

/// The first superblock of an ext, which blkid does not name.
pub fn first_of_ext() -> Doubt {
    Doubt::Mark(Mark {
        what: "an ext superblock".to_owned(),
        offset: 1024,
        look: String::new(),
    })
}

/// A backup superblock of another ext.
pub fn other_backup() -> Doubt {
    let Doubt::Backup(backup) = backup() else {
        unreachable!()
    };
    Doubt::Backup(Backup {
        uuid: "another".to_owned(),
        ..backup
    })
}

/// A sector that is not zero, at this offset.
pub fn data_at(offset: u64) -> Doubt {
    Doubt::Data(Data {
        offset,
        sum: "0b1c".to_owned(),
    })
}

/// A thin volume has these blocks, in percent.
pub fn blocks(percent: &str) -> Doubt {
    Doubt::Blocks(percent.to_owned())
}

/// The volume is a copy of one for which this filesystem is recorded.
pub fn copy(held: Option<Filesystem<String>>) -> Doubt {
    let origin = lv("origin").unwrap();
    Doubt::Copy { origin, held }
}

/// Remains of a removed volume, beyond the bytes that lvcreate wipes.
pub fn remains(facts: &mut Facts) {
    let mark = Doubt::Mark(Mark::from("md"));
    facts.content = Some(Content::Blank {
        zero: false,
        doubts: vec![mark, backup(), data_at(4096)],
    });
}

pub fn data(facts: &mut Facts) {
    facts.content = Some(Content::Blank {
        zero: false,
        doubts: vec![data_at(0)],
    });
}

pub fn claimed(facts: &mut Facts, hosts: bool) {
    let by = vec![Elsewhere {
        pid: 7,
        command: "app".shown(),
        at: PathBuf::from("/data"),
        hosts,
    }];
    openers(facts).elsewhere = by;
    facts.content = Some(Content::Claimed(Some(filesystem(FsType::Ext4, "u"))));
}

/// The openers of the volume. LVM says that somebody has it open.
pub fn openers(facts: &mut Facts) -> &mut Openers {
    volume(facts).open = true;
    facts.openers.get_or_insert_default()
}

pub fn process(writes: bool) -> Opener {
    Opener {
        pid: 7,
        command: "vm".shown(),
        writes,
    }
}

pub fn loops(writes: bool) -> Vec<LoopDevice> {
    let name = "loop0".to_owned();
    vec![LoopDevice { name, writes }]
}

pub fn is_claimed() -> Vec<Elsewhere> {
    let mut facts = blank();
    claimed(&mut facts, false);
    openers(&mut facts).elsewhere.clone()
}
