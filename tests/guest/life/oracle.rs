//! The content that each volume must have, and the results that a mount may have.

use std::collections::BTreeMap;

use super::player::Ill;

/// The content of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Holds {
    #[default]
    Blank,
    /// A mkfs was perhaps cut short.
    Perhaps,
    Fs(&'static str),
    Raw,
}

/// The tags about that content.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Record {
    #[default]
    None,
    Right,
    /// The record of what it held before.
    Old,
    Perhaps,
}

/// A logical volume while it exists, whatever its name is.
#[derive(Clone, Debug, Default)]
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
    /// The same, and no mount has checked its filesystem since.
    pub unchecked: bool,
    /// A call that worked on it was killed.
    pub killed: bool,
    /// The first volume in its line of snapshots.
    pub first: Option<usize>,
    /// It is a snapshot outside a thin pool: its space is beside its origin's.
    pub thick: bool,
    /// It is a snapshot outside a thin pool, and its disk failed: LVM may have given up the snapshot's content.
    pub lost: bool,
}

impl Lv {
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
    /// The node keeps most of the group's space.
    pub reserve: bool,
    pub disk: Ill,
    pub thin: bool,
    pub pool_scarred: bool,
    /// It is mounted, and only to be read.
    pub read_only_mount: bool,
    pub mounted: bool,
    /// The kernel has met errors in its filesystem, which is still mounted somewhere.
    pub failed: bool,
    /// A snapshot of the volume exists, or the origin of which the volume is a snapshot.
    pub twin: bool,
    /// Another volume is mounted under its name in kubelet's directories.
    pub renamed: bool,
    /// How often kubelet has it mounted for all pods.
    pub globals: usize,
}

/// The expected result of a mount.
#[derive(Debug, PartialEq)]
pub enum Expected {
    Mounted,
    /// The mount may succeed or be refused.
    Either,
    Refused,
}

impl Asked<'_> {
    pub fn expected(&self) -> Expected {
        let is_hindered = matches!(self.disk, Ill::Gone | Ill::ReadOnly)
            || self.renamed
            || self.read_only_mount && !self.read_only
            || self.thin && self.pool_scarred;
        let Some(lv) = self.lv else {
            return match (
                self.creatable && !self.read_only,
                is_hindered || self.reserve,
            ) {
                (true, true) => Expected::Either,
                (true, false) => Expected::Mounted,
                (false, _) => Expected::Refused,
            };
        };
        let is_refused = match (lv.holds, lv.record) {
            _ if self.failed && (!self.read_only || self.fs == "xfs") => true,
            (Holds::Blank | Holds::Raw, _) if self.read_only => true,
            (Holds::Raw, _) => !lv.permitted,
            (Holds::Fs(fs), record) => fs != self.fs || record == Record::Old,
            _ => false,
        };
        if is_refused {
            return Expected::Refused;
        }
        let may_be_refused = is_hindered
            || lv.lost
            || lv.scarred && self.mounted
            || self.fs == "btrfs" && self.twin
            || lv.killed && lv.files.is_empty()
            || lv.holds == Holds::Perhaps && self.read_only
            || lv.record == Record::Perhaps && matches!(lv.holds, Holds::Fs(_));
        if may_be_refused {
            Expected::Either
        } else {
            Expected::Mounted
        }
    }

    /// Whether a finding of `doctor` about the volume may be true. If its disk is well, its content and its record are
    /// right, and no killed call has touched it, a finding is a false alarm.
    pub fn may_be_found(&self, check: &str) -> bool {
        let Some(lv) = self.lv else {
            return matches!(self.disk, Ill::Gone | Ill::ReadOnly);
        };
        let is_hurt = matches!(self.disk, Ill::Gone | Ill::ReadOnly)
            || self.thin && self.pool_scarred
            || lv.scarred
            || lv.lost
            || lv.killed;
        is_hurt
            || match check {
                "next-mount" => self.expected() != Expected::Mounted,
                "may-be-formatted" => lv.permitted,
                "mkfs-unfinished" => lv.holds == Holds::Perhaps || lv.record == Record::Perhaps,
                // The kernel keeps its note in the filesystem, also over a power cut.
                "filesystem-errors" => lv.unchecked,
                // The volume was renamed while pods had it.
                "two-global-mounts" => self.globals > 1,
                "unused-global-mount" => self.globals == 1,
                _ => false,
            }
    }
}
