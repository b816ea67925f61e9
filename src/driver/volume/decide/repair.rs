//! What to do with a volume that is not well, or whose device is not as LVM's metadata says.

use std::path::Path;

use super::reason::Flaw;
use crate::names::{LvId, Shown};

/// The commands that deactivate the volume and activate it again, so that its device follows LVM's metadata. They
/// deactivate a thin volume's whole pool, which is active as long as one of its volumes is.
pub fn anew(id: &LvId, pool: Option<&LvId>) -> String {
    match pool {
        None => format!("lvchange -an {id} && lvchange -ay {id}"),
        Some(pool) => format!(
            "lvchange -an -S pool_lv={} {} && lvchange -an {pool} && lvchange -ay {id}",
            pool.lv(),
            pool.vg()
        ),
    }
}

/// What to do before a filesystem is made or recorded on a volume that is not exactly well.
pub fn degraded(id: &LvId, flaw: &Flaw) -> String {
    let vg = id.vg();
    let why = "no filesystem is made or recorded on it: a disk that was away would lack that, and a later mount could \
               take the volume for blank";
    match flaw {
        Flaw::Missing(number) => format!(
            "the volume group of {id} lacks {number} of its disks (`pvs -a`), so {why}. Bring the disk back; if it was \
             away while the group was changed, run `vgextend --restoremissing {vg} DISK`; then run `lvchange --refresh \
             {id}`. If the disk is lost, run `lvconvert --repair VOLUME` for each RAID that had a part on it (`lvs -a -o \
             +devices {vg}`), and then `vgreduce --removemissing {vg}`"
        ),
        Flaw::Health(health) if health == MISMATCHES => format!(
            "LVM says \"{health}\" of {id}, so {why}. Its images differ: run `lvchange --syncaction repair {id}`, and when \
             that has ended (`lvs -o raid_sync_action {id}`), `lvchange --syncaction check {id}`"
        ),
        Flaw::Health(health) => format!(
            "LVM says \"{health}\" of {id}, so {why}. See which disk it means (`lvs -a -o +devices,lv_health_status {vg}`, \
             `dmesg`). When the disk works, run `lvchange --refresh {id}`"
        ),
        Flaw::Pool(pool, health) => format!(
            "LVM says \"{health}\" of {pool}, the thin pool of {id}, so {why}. See which disk it means (`lvs -a -o \
             +devices,lv_health_status {vg}`, `dmesg`)"
        ),
    }
}

/// LVM's health of a RAID whose images have different data. Source: lvm2 lib/report/report.c, `_lvhealthstatus_disp`.
const MISMATCHES: &str = "mismatches exist";

pub fn partly_active(id: &LvId, stand_in: &str, pool: Option<&LvId>) -> String {
    format!(
        "{id} was activated while one of its disks was away, and /dev/mapper/{stand_in} still stands in for that disk: \
         what the disk has is not read, and what is written there is lost. Nothing was written. When the disk is back \
         (`pvs -a`), end {}, and run `{}`",
        users_of(pool),
        anew(id, pool)
    )
}

/// What uses a volume, or all that keeps its thin pool active.
fn users_of(pool: Option<&LvId>) -> &'static str {
    match pool {
        None => "what uses it",
        Some(_) => "all that uses a volume of its thin pool",
    }
}

pub fn old_disk(id: &LvId, disk: &str, pool: Option<&LvId>, inside: Option<&Path>) -> String {
    let uses = users_of(pool);
    let close = inside.map_or_else(String::new, |inside| {
        format!(", close it (`cryptsetup close {}`)", inside.shown())
    });
    let vg = id.vg();
    format!(
        "the device of {id} cannot be read, since it is on {disk}, which is no disk of {vg} any more: LVM has the volume \
         on others (`lvs -a -o +devices {vg}`). A disk was away, and came back under another name. Nothing was written. End \
         {uses}{close}, and run `{}`",
        anew(id, pool)
    )
}

/// The commands that help a thin pool once nothing uses its volumes. A repair replaces the pool's metadata, so it runs
/// only if activation fails: LVM checks the metadata when it activates the pool. Source: lvmthin(7), "Metadata check
/// and repair".
pub fn repair_pool(pool: &LvId) -> String {
    let (vg, name) = (pool.vg(), pool.lv());
    format!(
        "lvchange -an -S pool_lv={name} {vg} && lvchange -an {pool} && (lvchange -ay {pool} || lvconvert --repair {pool})"
    )
}
