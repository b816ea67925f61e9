//! Whether the kernel's table of a volume and LVM's metadata lead to the same disks.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::mapped::DEEPEST;
use super::report::{ask, read};
use super::wait::explain;
use crate::host::{Host, Kernel};
use crate::names::VgName;

/// The device of a disk, as LVM has it. `-1`: LVM has none.
#[derive(Deserialize)]
struct Numbered {
    pv_major: String,
    pv_minor: String,
}

/// The disks below a device of this group, as the kernel calls them, that are no disks of the group by LVM's metadata:
/// a disk was pulled out, and has come back under another name. `below`: the device's `slaves` in /sys.
pub fn astray(host: &Host, vg: &VgName, below: &Path) -> Result<BTreeSet<String>> {
    let command = ask("vgs", "pv_major,pv_minor", host.limits.query).operand(vg.as_str());
    let rows: Vec<Numbered> = read(host, &command, |report| report.rows("vg"))
        .map_err(|error| explain(host, Some(vg), error))
        .with_context(|| format!("asking LVM for the disks of {vg}"))?;
    let known = rows
        .iter()
        .map(|row| format!("{}:{}", row.pv_major, row.pv_minor));
    let mut disks = BTreeSet::new();
    collect(host.kernel, below, DEEPEST, &known.collect(), &mut disks);
    Ok(disks)
}

fn collect(
    kernel: &Kernel,
    below: &Path,
    deepest: usize,
    known: &BTreeSet<String>,
    disks: &mut BTreeSet<String>,
) {
    let Some(deepest) = deepest.checked_sub(1) else {
        return;
    };
    for name in kernel.list(below).unwrap_or_default() {
        let dir = below.join(&name);
        let read = |entry| kernel.read(&dir.join(entry)).unwrap_or_default();
        // LVM's own devices have such a UUID. Any other is a disk to LVM, whatever is below.
        if read("dm/uuid").starts_with("LVM-") {
            collect(kernel, &dir.join("slaves"), deepest, known, disks);
        } else if !known.contains(read("dev").trim_end()) {
            // One that was pulled out has no number any more. udev has `/` for `!`: Linux' `block/genhd.c`.
            disks.insert(name.replace('!', "/"));
        }
    }
}
