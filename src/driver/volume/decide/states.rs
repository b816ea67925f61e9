//! What LVM says of a volume, as a table: letters of `lv_attr`, `lv_health_status` and `lv_merge_failed`. What is not
//! in the table is refused.

use crate::lvm::Volume;
use crate::names::{Bytes, LvId};

/// What may be done with a volume of which LVM says this. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum May {
    Nothing,
    Read,
    Write,
    /// A filesystem may be made, too: the volume is exactly well.
    Make,
}

/// What helps first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// To see which disk LVM means, and what the kernel says of it.
    Look,
    /// A disk that comes back.
    Disk,
    /// `lvchange --refresh`, when the disk works.
    Refresh,
    /// `lvconvert --repair`.
    Repair,
    /// `lvchange --syncaction repair`.
    Resync,
    /// To remove the snapshot.
    Remove,
    /// To let LVM merge the snapshot.
    Merge,
    /// To activate the volume again, when its disk works.
    Again,
    /// The same with a thin pool, or a repair of the pool.
    AgainPool,
    /// More room for the thin pool: a repair would give it none.
    Room,
}

/// The field of LVM's report in which the text of a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Health,
    /// `lv_merge_failed`, of a volume into which a snapshot is to be merged.
    Merge,
    /// A letter of `lv_attr`, by its place, counted from 1 as in lvs(8).
    Attr(usize),
}

use Field::{Attr, Health, Merge};
use May::{Make, Nothing, Read, Write};

/// The field, what it says, what may be done, the word for people, and what helps.
type Row = (Field, &'static str, May, &'static str, Help);

/// All that LVM can say. Sources: lvm2 lib/metadata/lv.c, `lv_attr_dup_with_info_and_seg_status`; lib/report/report.c,
/// `_lvhealthstatus_disp` and `_lvmergefailed_disp`.
#[rustfmt::skip] // a row is a line
const ROWS: &[Row] = &[
    (Health, "", Make, "", Help::Look),
    // But see `has_all`.
    (Health, "partial", Nothing, "partial", Help::Disk),
    (Health, "refresh needed", Write, "refresh needed", Help::Refresh),
    // These two are of LVM 2.03.39.
    (Health, "repair needed", Write, "repair needed", Help::Repair),
    (Health, "refresh or repair needed", Write, "refresh or repair needed", Help::Refresh),
    (Health, "mismatches exist", Write, "mismatches exist", Help::Resync),
    (Health, "writemostly", Write, "writemostly", Help::Look),
    // A pool or a cache that has failed answers nothing. The next three refuse writes, or may lose them.
    (Health, "failed", Nothing, "failed", Help::Again),
    (Health, "metadata_read_only", Read, "metadata_read_only", Help::Again),
    (Health, "out_of_data", Read, "out_of_data", Help::Room),
    (Health, "error", Read, "error", Help::Again),
    (Health, "unknown", Write, "unknown", Help::Refresh),

    // What is written before the merge is lost by it.
    (Merge, "unknown", Read, "merge waits", Help::Merge),
    (Merge, "", Make, "", Help::Look),
    (Merge, "merge failed", Read, "merge failed", Help::Again),

    // The kind. `v` is also VDO, `c` is converted, and `O` is judged by `Merge`.
    (Attr(1), "-CMOVRcgmorsv", Make, "", Help::Look),
    // Pools, which no pod can name.
    (Attr(1), "dt", Make, "", Help::Look),
    // Parts of a volume, which LVM lists only with `--all`.
    (Attr(1), "DISTeilp", Nothing, "part of another volume", Help::Look),

    // The state. The kernel's tables show what is suspended or has no table.
    (Attr(5), "-adis", Make, "", Help::Look),
    (Attr(5), "Cc", Read, "check needed", Help::Again),
    (Attr(5), "IS", Nothing, "snapshot invalid", Help::Remove),
    (Attr(5), "Mm", Read, "merge failed", Help::Again),
    // As after a killed lvextend, the kernel's table is not as long as LVM's. `larger-device` refuses the dangerous
    // case.
    (Attr(5), "X", Write, "unknown", Help::Refresh),
    (Attr(5), "h", Nothing, "historical", Help::Look),

    // The health. `s` is reshaped, and `R` was.
    (Attr(9), "-Rs", Make, "", Help::Look),
    (Attr(9), "p", Nothing, "partial", Help::Disk),
    (Attr(9), "r", Write, "refresh needed", Help::Refresh),
    (Attr(9), "m", Write, "mismatches exist", Help::Resync),
    (Attr(9), "w", Write, "writemostly", Help::Look),
    (Attr(9), "F", Nothing, "failed", Help::Again),
    (Attr(9), "M", Read, "metadata_read_only", Help::Again),
    (Attr(9), "D", Read, "out_of_data", Help::Room),
    (Attr(9), "E", Read, "error", Help::Again),
    (Attr(9), "X", Write, "unknown", Help::Refresh),
];

/// What LVM says of a volume: the worst, if it says several things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The volume of which LVM says it: for a thin volume whose pool has failed, the pool.
    pub id: LvId,
    pub may: May,
    /// In LVM's words. Empty if the volume is exactly well.
    pub says: String,
    pub help: Help,
    /// The space of the volume in its group.
    pub size: Bytes,
}

impl State {
    pub fn of(volume: &Volume) -> Self {
        // At these places, a letter is the kernel's word of an active volume. A merge waits for the activation.
        let is_active = volume.is_active();
        let places = [1, 5, 9].into_iter();
        let letters = places
            .filter(|place| *place == 1 || is_active)
            .map(|place| (Attr(place), volume.letter(place)));
        let is_origin = is_active && volume.letter(1) == "O";
        let merge = is_origin.then_some((Merge, &*volume.merge_failed));
        let all = [(Health, &*volume.health)].into_iter();
        let all = all.chain(merge).chain(letters);
        let judged = all.map(|(field, text)| judged(field, text, volume));
        let worst = judged.min_by_key(|(may, ..)| *may);
        let (may, says, help) = worst.unwrap_or((Nothing, String::new(), Help::Look));
        let own = || volume.id.clone();
        let (id, help) = match (help, volume.pool_id()) {
            (Help::Again, Some(pool)) => (pool, Help::AgainPool),
            (Help::Again, None) if volume.is_pool() => (own(), Help::AgainPool),
            (Help::Room, Some(pool)) => (pool, Help::Room),
            (help, _) => (own(), help),
        };
        Self {
            id,
            may,
            says,
            help,
            size: volume.takes(),
        }
    }
}

/// What may be done if a field says this, in LVM's words, and what helps.
fn judged(field: Field, text: &str, volume: &Volume) -> (May, String, Help) {
    let is_its = |(of, words, ..): &&Row| {
        *of == field
            && match field {
                Attr(_) => !text.is_empty() && words.contains(text),
                Health | Merge => *words == text,
            }
    };
    match ROWS.iter().find(is_its) {
        Some((_, _, _, says, Help::Disk)) if has_all(volume) => {
            (Write, (*says).to_owned(), Help::Disk)
        }
        Some((_, _, may, says, help)) => (*may, (*says).to_owned(), *help),
        None => {
            let says = match field {
                Health => text.to_owned(),
                Merge => format!("lv_merge_failed {text}"),
                Attr(place) => format!("lv_attr {place} {text}"),
            };
            (Nothing, says, Help::Look)
        }
    }
}

/// Whether the other disks of a volume that lacks one have all its data. Each image of a raid1 or a mirror has all
/// data; if all images are lost, the kernel fails each read. The others spread their data over images. If a part of it
/// is gone, a raid10 would be mounted with half of its files, and Linux 5.10 would try for ever to read a raid5. LVM
/// does not say how many disks a volume lacks, so the disks that its group lacks are counted.
fn has_all(volume: &Volume) -> bool {
    let spare = volume.spare_disks();
    let may_lack_data = spare.is_some_and(|spare| volume.group.missing > spare.into());
    (volume.keeps_copies() && !may_lack_data) || volume.layout == "mirror"
}
