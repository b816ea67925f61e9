//! A sign that a volume held data, though it looks blank.

use std::fmt;
use std::path::Path;

use crate::fs::{Backup, Data, Mark, REPAIR_FIRST};
use crate::lvm::{Record, Unfinished, Volume};
use crate::names::{Filesystem, LvName, Shown};

/// A sign that a volume held data, though no filesystem is found on it now. An operator may overrule it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// A tag says that this filesystem was here.
    Recorded(Filesystem<String>),
    /// The volume is a snapshot of another volume, or a thin volume over one.
    Copy {
        origin: LvName,
        /// The filesystem that the origin's tag records.
        held: Option<Filesystem<String>>,
    },
    /// A thin volume has blocks of its own, so somebody has written to it. The number is how much of it LVM says that
    /// it has, in percent.
    Blocks(String),
    /// A mark of content, though blkid has not named that content.
    Mark(Mark),
    Backup(Backup),
    /// What is not zero.
    Data(Data),
}

impl Doubt {
    /// The doubts about a volume that LVM itself raises: a copy of another volume holds that volume's data, and a thin
    /// volume that nobody has written to has no blocks. `of_origin`: the record of the volume's origin.
    pub fn of_lvm(volume: &Volume, of_origin: Option<&Record>) -> Vec<Self> {
        let copy = volume.copy_of().map(|origin| Self::Copy {
            origin: origin.lv().clone(),
            held: of_origin.and_then(|record| record.made.clone()),
        });
        let blocks = volume.own_blocks().map(Self::Blocks);
        copy.into_iter().chain(blocks).collect()
    }

    /// The names of these doubts, for the tag `flexvolume.mayformat`, which permits mkfs despite these doubts and no
    /// others. Has only characters that LVM allows in a tag: lvm(8), "TAGS".
    pub fn names(doubts: &[Self]) -> String {
        let names = doubts.iter().map(|doubt| match doubt {
            Self::Recorded(Filesystem { fs, uuid }) => format!("record-{fs}-{uuid}"),
            Self::Copy { origin, .. } => format!("copy-of-{origin}"),
            Self::Blocks(percent) => format!("blocks-{percent}"),
            Self::Mark(Mark { what, offset, .. }) => format!("mark-{what}-{offset}"),
            Self::Backup(backup) => format!("backup-{}-{}", backup.uuid, backup.offset),
            Self::Data(Data { offset, sum }) => format!("data-{offset}-{sum}"),
        });
        // The checksum comes first, since the tag is cut to the length that LVM allows.
        let mut names: Vec<String> = names.collect();
        names.reverse();
        let fits = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        names
            .join("+")
            .replace(|c| !fits(c), "-")
            .chars()
            .take(900)
            .collect()
    }

    /// These doubts in words. Where data is, is left out if the data has a name.
    pub fn in_words(doubts: &[Self]) -> String {
        let is_named = |doubt: &Self| matches!(doubt, Self::Mark(_) | Self::Backup(_));
        let has_name = doubts.iter().any(is_named);
        let shown = doubts.iter();
        let shown = shown.filter(|doubt| !has_name || !matches!(doubt, Self::Data(_)));
        let shown: Vec<String> = shown.map(ToString::to_string).collect();
        shown.join(", and ")
    }

    /// The signs by which an ext can be repaired: its first superblock, or else the backup of the `recorded` UUID, or else
    /// every backup.
    pub fn repairable<'a>(doubts: &'a [Self], recorded: Option<&str>) -> Vec<&'a Self> {
        let places = doubts
            .iter()
            .filter_map(|doubt| doubt.place_in_repair(recorded));
        let Some(best) = places.min() else {
            return Vec::new();
        };
        let is_best = |doubt: &&Self| doubt.place_in_repair(recorded) == Some(best);
        doubts.iter().filter(is_best).collect()
    }

    /// How well this sign serves to repair an ext: the lowest number is the best.
    fn place_in_repair(&self, recorded: Option<&str>) -> Option<u8> {
        match self {
            Self::Mark(mark) => mark.is_first_of_ext().then_some(0),
            Self::Backup(backup) if Some(&*backup.uuid) == recorded => Some(1),
            Self::Backup(_) => Some(2),
            Self::Recorded(_) | Self::Copy { .. } | Self::Blocks(_) | Self::Data(_) => None,
        }
    }

    /// The commands that repair the ext of this sign on `device`. `None`: this is no sign of an ext alone.
    pub fn repair(&self, device: &Path) -> Option<String> {
        match self {
            Self::Mark(mark) => mark.is_first_of_ext().then(|| {
                let command = REPAIR_FIRST.replace("DEVICE", &device.shown().to_string());
                format!("`{command}` repairs a wrong checksum")
            }),
            Self::Backup(backup) => Some(backup.repair(device)),
            Self::Recorded(_) | Self::Copy { .. } | Self::Blocks(_) | Self::Data(_) => None,
        }
    }

    /// Whether this mkfs, whose end was not recorded, may have left this. The volume was blank when mkfs began, and
    /// nobody but the driver knew the UUID, so a superblock with that UUID is the work of this mkfs. No mkfs leaves
    /// other data in the first 2 KiB: mke2fs writes group descriptors at 2 KiB if blocks are small, and its superblock
    /// last. Everything else that a mkfs writes is at 4 KiB or behind. Seen with a kill at each write.
    pub fn is_left_by(&self, mkfs: &Unfinished) -> bool {
        match self {
            Self::Backup(backup) => mkfs.made(&backup.uuid),
            Self::Data(data) => data.offset >= 2048,
            Self::Recorded(..) | Self::Copy { .. } | Self::Blocks(_) | Self::Mark(_) => false,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded(filesystem) => write!(f, "the record of {filesystem}"),
            Self::Copy { origin, held: None } => {
                write!(f, "its origin {origin}, of which it is a copy")
            }
            Self::Copy {
                origin,
                held: Some(held),
            } => {
                write!(
                    f,
                    "its origin {origin}, of which it is a copy, and which has the record of {held}"
                )
            }
            Self::Blocks(percent) if percent == "unknown" => write!(
                f,
                "perhaps data in its thin pool: LVM does not tell how many of its blocks were written"
            ),
            Self::Blocks(percent) => write!(
                f,
                "data in its thin pool: {percent} % of its blocks were written"
            ),
            Self::Mark(Mark { what, offset, .. }) => write!(f, "{what} at byte {offset}"),
            Self::Backup(backup) => backup.fmt(f),
            Self::Data(Data { offset, .. }) => write!(f, "data at byte {offset}"),
        }
    }
}
