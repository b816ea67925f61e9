//! `flexvolume-lvm doctor` on thin pools and snapshots: whether anything extends them before they are full.

use std::path::Path;

use super::findings::Checks;
use crate::commands::survey::Walk;
use driver::lvm::{self, Settings, Volume};
use driver::names::Bytes;

const CHECK: &str = "autoextend";
/// Percentage from which a snapshot that nothing extends is named: a full one is lost for good.
const NEARLY_FULL: u8 = 80;

pub fn look_at(checks: &mut Checks, walk: &Walk) {
    let fills_up = |volume: &Volume| is_thin_pool(volume) || is_snapshot(volume);
    if !walk.volumes.iter().any(fills_up) {
        return;
    }
    let monitors = match lvm::monitors(walk.host) {
        Ok(monitors) => monitors,
        Err(error) => {
            checks.warning(CHECK, error.to_string());
            return;
        }
    };
    for monitor in &monitors {
        let Some(volume) = walk.volume(&monitor.id).filter(|one| fills_up(one)) else {
            continue;
        };
        let (threshold, why) = if is_snapshot(volume) {
            (monitor.settings.snapshot, "a snapshot that is full is lost")
        } else {
            (
                monitor.settings.pool,
                "when it is full, its pods cannot write",
            )
        };
        let (finding, command) = if threshold < 100 && monitor.is_watched == Some(false) {
            (
                format!("LVM is to extend it at {threshold} %, but dmeventd does not watch it"),
                watch(walk, volume, &monitor.settings),
            )
        } else if is_snapshot(volume)
            && threshold >= 100
            && let Some((_, percent)) = volume.filled_to(NEARLY_FULL).next()
        {
            (
                format!(
                    "it is {percent:.0} % full, and LVM does not extend it: snapshot_autoextend_threshold is 100"
                ),
                format!("lvextend --extents +20%ORIGIN {}", volume.id),
            )
        } else if volume.is_pool_filled_to(walk.config.thin_pool_limit) {
            continue; // It is named already, with what helps at once.
        } else if let Some(size) = size_of_all_in(walk, volume).filter(|all| *all > volume.size) {
            let id = &volume.id;
            let (why_not, command) = if threshold >= 100 {
                (
                    "thin_pool_autoextend_threshold is 100".to_owned(),
                    format!(
                        "lvextend --size {}b {id}, or set thin_pool_autoextend_threshold = 80 in the section activation \
                         of lvm.conf",
                        size.get()
                    ),
                )
            } else if volume.free.get() == 0 {
                (
                    format!("nothing is free in {}", id.vg()),
                    format!("vgextend {} DISK", id.vg()),
                )
            } else {
                continue;
            };
            (
                format!(
                    "its volumes can take {}, it has {}, and LVM does not extend it: {why_not}",
                    size.rounded(),
                    volume.size.rounded()
                ),
                command,
            )
        } else {
            continue;
        };
        let finding = checks.warning(CHECK, finding).on(&volume.id);
        finding.why(why).run(command);
    }
}

fn watch(walk: &Walk, volume: &Volume, settings: &Settings) -> String {
    let first = if !walk.host.kernel.exists(Path::new(&settings.executable)) {
        "install dmeventd (elsewhere than on Debian, device-mapper-event), then: "
    } else if settings.is_off {
        "set monitoring = 1, in the section activation of lvm.conf, then: "
    } else {
        ""
    };
    format!("{first}lvchange --monitor y {}", volume.id)
}

pub(super) fn is_thin_pool(volume: &Volume) -> bool {
    volume.is_pool() && volume.layout.split(',').any(|part| part == "thin")
}

/// A snapshot with space of its own, unlike a thin one.
fn is_snapshot(volume: &Volume) -> bool {
    volume.role.split(',').any(|part| part == "thicksnapshot")
}

/// The sum of the sizes of the volumes in a thin pool. `None` if it is no pool.
fn size_of_all_in(walk: &Walk, pool: &Volume) -> Option<Bytes> {
    let its = walk.volumes.iter().filter(|volume| volume.is_in(pool));
    let sizes = its.map(|volume| volume.size.get());
    is_thin_pool(pool).then(|| Bytes::new(sizes.fold(0, u64::saturating_add)))
}
