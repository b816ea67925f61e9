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

/// The numbers of a group's disks, as LVM has them.
pub fn numbers_of_disks(host: &Host, vg: &VgName) -> Result<BTreeSet<String>> {
    let command = ask("vgs", "pv_major,pv_minor", host.limits.query).operand(vg.as_str());
    let rows: Vec<Numbered> = read(host, &command, |report| report.rows("vg"))
        .map_err(|error| explain(host, Some(vg), error))
        .with_context(|| format!("asking LVM for the disks of {vg}"))?;
    let numbers = rows
        .iter()
        .map(|row| format!("{}:{}", row.pv_major, row.pv_minor));
    Ok(numbers.collect())
}

/// The disks below a device, as the kernel calls them, that have none of the numbers `known`, which are those of its
/// group by LVM's metadata: a disk was pulled out, and has come back under another name. `below`: the device's `slaves`
/// in /sys. `images`: also those of RAID and of a mirror, of which others have a copy.
pub fn astray(
    kernel: &Kernel,
    known: &BTreeSet<String>,
    below: &Path,
    images: bool,
) -> BTreeSet<String> {
    let mut disks = BTreeSet::new();
    collect(kernel, (below, DEEPEST), (known, images), &mut disks);
    disks
}

fn collect(
    kernel: &Kernel,
    (below, deepest): (&Path, usize),
    (known, images): (&BTreeSet<String>, bool),
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
            if images || !is_image(read("dm/name").trim_end()) {
                collect(
                    kernel,
                    (&dir.join("slaves"), deepest),
                    (known, images),
                    disks,
                );
            }
        } else if !known.contains(read("dev").trim_end()) {
            // One that was pulled out has no number any more. udev has `/` for `!`: Linux' `block/genhd.c`.
            disks.insert(name.replace('!', "/"));
        }
    }
}

/// Whether a device of this name is an image of RAID or of a mirror, or the metadata of one: `…_rimage_1`.
fn is_image(name: &str) -> bool {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let kinds = ["_rimage_", "_rmeta_", "_mimage_"];
    kinds.iter().any(|end| kind.ends_with(end))
}
