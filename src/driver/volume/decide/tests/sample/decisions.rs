//! The decisions that rows expect.

use crate::names::{Bytes, FsType};
use crate::volume::Permit;
use crate::volume::decide::decision::{Decision, Making, Mount, When};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::reason::{Flaw, Reason};
use crate::volume::decide::states::{Help, May, State};

use super::*;

pub fn mount(fs: FsType, change: fn(&mut Mount)) -> Decision {
    let mut mount = Mount {
        filesystem: filesystem(fs, "u"),
        check: fs.is_ext(),
        grow: When::Not,
        record: When::After,
        alive: None,
    };
    change(&mut mount);
    Decision::Mount(mount)
}

pub fn making(fs: FsType, how: Making) -> Decision {
    let permit = Permit::of(fs);
    Decision::Make { permit, how }
}

pub fn make(fs: FsType) -> Decision {
    making(fs, Making::Plain { again: false })
}

/// The same where the driver's own mkfs was killed.
pub fn make_again(fs: FsType) -> Decision {
    making(fs, Making::Plain { again: true })
}

pub fn wrong(found: &str, wanted: FsType) -> Decision {
    let found = found.to_owned();
    Decision::Refuse(Reason::WrongType { found, wanted })
}

pub fn doubts<const N: usize>(doubts: [Doubt; N]) -> Decision {
    Decision::Refuse(Reason::Doubts(doubts.into_iter().collect()))
}

/// The volume's group lacks a disk.
pub fn lacks_a_disk() -> Decision {
    Decision::Refuse(Reason::Degraded(Flaw::Missing(1)))
}

pub fn partly_active() -> Reason {
    Reason::PartlyActive {
        stand_in: "vg-lv-missing_0_0".into(),
        pool: None,
    }
}

pub fn said(id: &str, may: May, says: &str, help: Help) -> State {
    State {
        id: LvId::parse(id).unwrap(),
        may,
        says: says.to_owned(),
        help,
        size: Bytes::new(64 << 20),
    }
}

pub fn unwell(may: May, says: &str, help: Help) -> Decision {
    Decision::Refuse(Reason::Unwell(said("vg/data", may, says, help)))
}

pub fn pool_unwell(says: &str, help: Help) -> Decision {
    Decision::Refuse(Reason::Unwell(said("vg/pool", May::Nothing, says, help)))
}
