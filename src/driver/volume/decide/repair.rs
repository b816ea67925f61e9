//! What to do with a volume that is not well, or whose device is not as LVM's metadata says.

use std::path::Path;

use super::advice::extend_pool;
use super::reason::Flaw;
use super::states::{Help, May, State};
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
        Flaw::Unwell(state) => format!("{}, so {why}. {}", said(id, state), what_helps(state)),
    }
}

/// Why no pod gets a volume of which LVM says this, or of whose thin pool, and what helps.
pub fn unwell(id: &LvId, state: &State) -> String {
    let (said, helps) = (said(id, state), what_helps(state));
    let to_write = match state.may {
        May::Read => " to write",
        May::Nothing | May::Write | May::Make => "",
    };
    format!("{said}, so no pod gets the volume{to_write}. {helps}")
}

/// What to do about a volume that cannot be read.
pub fn readable_again(id: &LvId, says: Option<&State>) -> String {
    match says {
        Some(state) => format!("{}. {}", said(id, state), what_helps(state)),
        None => {
            format!("Repair or replace its disk (`dmesg`, `pvs`, `lvs -a -o +devices {id}`)")
        }
    }
}

fn said(id: &LvId, State { id: of, says, .. }: &State) -> String {
    let its = if of == id {
        String::new()
    } else {
        format!(", the thin pool of {id}")
    };
    format!("LVM says \"{says}\" of {of}{its}")
}

/// What to do about what LVM says.
pub fn what_helps(state: &State) -> String {
    let (of, first) = (&state.id, first_command(state));
    let look = format!("See which disk it means (`{}`, `dmesg`)", look_at_disks(of));
    match state.help {
        Help::Look | Help::Disk | Help::Remove | Help::Merge => {
            format!("{look}. Once LVM no longer says that, the next mount works")
        }
        Help::Refresh => format!("{look}. When the disk works, run `{first}`"),
        Help::Repair => format!("{look}. If another disk has room, run `{first}`"),
        Help::Resync => format!(
            "Its images differ: run `{first}`, and when that has ended (`lvs -o raid_sync_action {of}`), `lvchange \
             --syncaction check {of}`"
        ),
        Help::Again => format!(
            "{look}. When the disk works, end what uses {of}, and run `{}`",
            anew(of, None)
        ),
        Help::AgainPool => format!(
            "End the pods of its volumes, and run `{first}`; lvmthin(7) describes the repair"
        ),
        Help::Room => format!("Extend it with `{first}`; if its group is full, add a disk first"),
    }
}

/// The command to run first. One that needs a person's decision is only in the message, and this one looks.
pub fn first_command(state: &State) -> String {
    let of = &state.id;
    match state.help {
        Help::Look | Help::Disk | Help::Remove | Help::Merge | Help::Again => look_at_disks(of),
        Help::Refresh => format!("lvchange --refresh {of}"),
        Help::Repair => format!("lvconvert --repair {of}"),
        Help::Resync => format!("lvchange --syncaction repair {of}"),
        Help::AgainPool => repair_pool(of),
        Help::Room => extend_pool(of, state.size, "data"),
    }
}

/// The command that shows the disks of a volume's group, and what LVM says of the volumes on them.
pub fn look_at_disks(id: &LvId) -> String {
    format!("lvs -a -o +devices,lv_health_status {}", id.vg())
}

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
