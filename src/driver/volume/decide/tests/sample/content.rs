//! The content of a volume, and who has it open.

use std::path::PathBuf;

use crate::fs::Backup;
use crate::host::holders::Opener;
use crate::names::{FsType, Shown};
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

pub fn young() -> Doubt {
    Doubt::Backup(Backup {
        offset: 134_217_728,
        uuid: "u".to_owned(),
        block_size: 4096,
        written: NOW,
        is_unused: true,
    })
}

/// A backup superblock of an ext that somebody has used.
pub fn used() -> Doubt {
    let Doubt::Backup(backup) = young() else {
        unreachable!()
    };
    Doubt::Backup(Backup {
        is_unused: false,
        ..backup
    })
}

/// Remains of a removed volume, beyond the bytes that lvcreate wipes.
pub fn remains(facts: &mut Facts) {
    let mark = Doubt::Mark("md".to_owned());
    facts.content = Some(Content::Blank {
        zero: false,
        doubts: vec![mark, young(), Doubt::Data(4096)],
    });
}

pub fn data(facts: &mut Facts) {
    facts.content = Some(Content::Blank {
        zero: false,
        doubts: vec![Doubt::Data(0)],
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
