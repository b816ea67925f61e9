//! Compares the disks in the kernel's table of a volume with the disks in LVM's metadata.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::mapped::{Mapped, group_of};
use super::report::{ask, read};
use super::wait::explain;
use crate::host::{Host, Kernel};
use crate::names::VgName;

/// The number of a disk's device, by LVM. `-1`: LVM finds no device.
#[derive(Deserialize)]
struct Numbered {
    pv_major: String,
    pv_minor: String,
}

/// The numbers of a group's disks, by LVM.
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

/// The disks that a device is on by the kernel's table, but that are no disks of its group by LVM: such a disk was
/// pulled out, and came back under another name. Returns their names in /dev. `known`: the numbers of the group's disks,
/// by LVM. `images`: whether to look also below the images of a RAID or mirror, whose data other images have, too.
pub fn astray(
    kernel: &Kernel,
    known: &BTreeSet<String>,
    device: &Mapped,
    images: bool,
) -> BTreeSet<String> {
    let uuid = device.uuid(kernel).unwrap_or_default();
    let Some(group) = group_of(&uuid) else {
        return BTreeSet::new();
    };
    let uuid = |one: &Mapped| one.uuid(kernel).unwrap_or_default();
    // Any other device is a disk of the group, also a volume of another group.
    let is_of_group = |one: &Mapped| uuid(one).starts_with(group);
    let is_image = |one: &Mapped| is_image(&one.name(kernel).unwrap_or_default());
    let into = |one: &Mapped| is_of_group(one) && (images || !is_image(one));
    let stack = device.stack_into(kernel, &into).into_iter();
    // A disk that was pulled out has no number.
    let number = |one: &Mapped| one.number(kernel).map(|number| number.to_string());
    let is_known = |one: &Mapped| number(one).is_some_and(|number| known.contains(&number));
    let astray = stack.filter(|one| !is_of_group(one) && !is_known(one));
    astray.map(|one| one.in_dev()).collect()
}

/// Whether a device of this name is an image of RAID or of a mirror, or the metadata of one: `…_rimage_1`.
fn is_image(name: &str) -> bool {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let kinds = ["_rimage_", "_rmeta_", "_mimage_"];
    kinds.iter().any(|end| kind.ends_with(end))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A directory of a device as in /sys. `uuid`: the device-mapper UUID, empty for a disk.
    fn device(dir: &Path, (name, number, uuid): (&str, &str, &str)) {
        fs::create_dir_all(dir.join("dm")).unwrap();
        fs::create_dir_all(dir.join("slaves")).unwrap();
        for (entry, text) in [("dm/name", name), ("dm/uuid", uuid), ("dev", number)] {
            fs::write(dir.join(entry), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn a_volume_of_another_group_is_a_disk_of_the_inner_group() {
        let top = tempfile::tempdir().unwrap();
        let volume = top.path();
        let [inner, outer] = ["i", "o"].map(|letter| format!("LVM-{}", letter.repeat(64)));
        device(volume, ("inner-data", "254:3", &inner));
        let image = volume.join("slaves/dm-2");
        device(
            &image,
            ("inner-data_rimage_0", "254:2", &format!("{inner}-1")),
        );
        let disk = image.join("slaves/dm-1");
        device(&disk, ("outer-disk", "254:1", &outer));
        device(&disk.join("slaves/cciss!c0d0"), ("", "104:0", ""));

        let kernel = Kernel::new().unwrap();
        let found = |known: &[&str], images| {
            let known = known.iter().map(|&number| number.to_owned()).collect();
            let found = astray(&kernel, &known, &volume.join("slaves"), images);
            found.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found(&["254:1"], true), "");
        assert_eq!(found(&["104:0"], true), "dm-1");
        // What other images have, too.
        assert_eq!(found(&["104:0"], false), "");
        fs::write(disk.join("dm/uuid"), "").unwrap();
        assert_eq!(found(&["104:0"], true), "dm-1");
    }
}
