//! The content that each volume must have, and the messages that may be given about it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::player::Ill;

/// The content of a volume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Holds {
    Blank,
    /// A mkfs was cut short, or perhaps not.
    Perhaps,
    Fs(&'static str),
    Raw,
}

/// The tags about that content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record {
    None,
    Right,
    /// The record of what it held before.
    Old,
    Perhaps,
}

/// A logical volume, as long as it is there, whatever it is called.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub struct Lv {
    /// Without hyphens, as device-mapper has it.
    pub uuid: String,
    pub holds: Holds,
    pub record: Record,
    /// The data that pods have synced. It must be there.
    pub files: BTreeMap<String, String>,
    /// Other data that may be there.
    pub unsure: BTreeMap<String, String>,
    /// An operator has said that it may be formatted.
    pub permitted: bool,
    /// Its disk failed while it was mounted.
    pub scarred: bool,
    /// A call that worked on it was killed.
    pub killed: bool,
    /// The first volume in its line of snapshots.
    pub first: Option<usize>,
    /// It is a snapshot outside a thin pool: its space is beside its origin's.
    pub thick: bool,
    /// It is such a snapshot, and its disk failed: LVM may have given its content up.
    pub lost: bool,
}

impl Lv {
    pub fn new(uuid: String) -> Self {
        Self {
            uuid,
            holds: Holds::Blank,
            record: Record::None,
            files: BTreeMap::new(),
            unsure: BTreeMap::new(),
            permitted: false,
            scarred: false,
            killed: false,
            first: None,
            thick: false,
            lost: false,
        }
    }

    /// Its content was replaced.
    pub fn now_holds(&mut self, holds: Holds) {
        self.holds = holds;
        self.record = match self.record {
            Record::Right | Record::Old => Record::Old,
            record => record,
        };
        self.files.clear();
        self.unsure.clear();
    }
}

/// The facts of a pod's volume that matter to a mount.
#[allow(clippy::struct_excessive_bools)]
pub struct Asked<'a> {
    /// None: there is no volume of this name.
    pub lv: Option<&'a Lv>,
    pub fs: &'static str,
    pub read_only: bool,
    /// The node may create it.
    pub creatable: bool,
    pub disk: Ill,
    pub thin: bool,
    pub pool_full: bool,
    pub pool_scarred: bool,
    /// It is mounted, and only to be read.
    pub read_only_mount: bool,
    pub mounted: bool,
    /// Another mount namespace has it mounted, read-only if this is true, and this one does not.
    pub kept: Option<bool>,
    /// The kernel has met errors in its filesystem, which is still mounted somewhere.
    pub failed: bool,
    /// A snapshot of it is there, or that of which it is one.
    pub twin: bool,
    /// Another volume is mounted under its name in kubelet's directories.
    pub renamed: bool,
}

/// The possible results of a mount.
#[derive(Debug, Default)]
pub struct Expected {
    /// The words of refusals that are true.
    pub words: BTreeSet<&'static str>,
    /// It has to be refused.
    pub refused: bool,
}

/// A broken disk's possible effects: they depend on what the kernel and LVM had read before.
const GONE: &str = "unreadable lvm-silent no-group no-volume no-pool unknown partial failed pool-unwell \
    filesystem-failed mounted-read-only there-read-only fsck mkfs activating mounting checking making tagging \
    not-looked-at in-use still-mounted suspended no-size create-read-only creating growing";
const READ_ONLY: &str = "read-only-disk activating tagging making mounting checking creating read-only-volume \
    mkfs unreadable";
const FAILED: &str = "filesystem-failed mounted-read-only there-read-only";
const POOL: &str = "pool-unwell activating unreadable failed mounting checking";

impl Asked<'_> {
    pub fn expected(&self) -> Expected {
        let mut all = Expected::default();
        let mut may = |words: &'static str| all.words.extend(words.split_whitespace());
        match self.disk {
            Ill::Gone => may(GONE),
            Ill::ReadOnly => may(READ_ONLY),
            Ill::No | Ill::Slow => {}
        }
        if self.renamed {
            may("another-is-there");
        }
        if self.read_only_mount && !self.read_only {
            may("mounted-read-only there-read-only");
        }
        if self.thin && self.pool_scarred {
            may(POOL);
            may(FAILED);
        }
        if self.thin && self.pool_full && !self.read_only {
            may("pool-full");
        }
        let Some(lv) = self.lv else {
            may(match (self.creatable, self.read_only) {
                (false, _) => "no-volume",
                (true, true) => "create-read-only no-size",
                (true, false) => "",
            });
            all.refused = !self.creatable || self.read_only;
            return all;
        };
        if lv.scarred && (self.mounted || self.kept.is_some()) {
            may(FAILED);
        }
        if lv.lost {
            may(GONE);
            may("snapshot-full");
        }
        if self.kept.is_some() && lv.record != Record::Right {
            may("in-use still-mounted");
        }
        // The kernel mounts it the one way or the other.
        let is_other = |read_only| read_only != self.read_only;
        if self.kept.is_some_and(is_other) {
            may("mounting");
        }
        if self.fs == "btrfs" && self.twin {
            may("twin");
        }
        if self.failed && (!self.read_only || self.fs == "xfs") {
            may(FAILED);
            all.refused = true;
            return all;
        }
        if lv.killed && lv.files.is_empty() {
            may("new-not-blank");
        }
        let mut refused = true;
        may(match (lv.holds, lv.record) {
            (Holds::Blank | Holds::Raw, _) if self.read_only => "blank-read-only",
            (Holds::Raw, _) if !lv.permitted => "signs-of-data",
            (Holds::Fs(fs), Record::Old) if fs != self.fs => "wrong-type swapped",
            (Holds::Fs(fs), _) if fs != self.fs => "wrong-type",
            (Holds::Fs(_), Record::Old) => "swapped",
            _ => {
                refused = false;
                match lv.holds {
                    Holds::Perhaps if self.read_only => "blank-read-only",
                    Holds::Fs(_) if lv.record == Record::Perhaps => "swapped",
                    _ => "",
                }
            }
        });
        all.refused = refused;
        all
    }
}
