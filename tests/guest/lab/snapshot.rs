//! The state that a failed call must leave as it was.

use std::fs;
use std::path::Path;

use crate::prelude::*;

/// One mount of this machine.
#[derive(Debug, PartialEq)]
pub struct Mount {
    pub point: String,
    pub source: String,
    /// The options of this mount and those of its filesystem.
    pub options: String,
}

/// All mounts, oldest first.
pub fn mounts() -> Vec<Mount> {
    let parse = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mount: Vec<_> = mount.split(' ').collect();
        let filesystem: Vec<_> = filesystem.split(' ').collect();
        Some(Mount {
            point: (*mount.get(4)?).to_owned(),
            source: named(filesystem.get(1)?),
            options: format!("{} {}", mount.get(5)?, filesystem.get(2)?),
        })
    };
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines().filter_map(parse).collect()
}

/// The source of a mount by its name in /dev/mapper. btrfs shows the name that it was told last, which may be
/// `/dev/dm-0`.
fn named(source: &str) -> String {
    let name = |number: &str| fs::read_to_string(format!("/sys/class/block/{number}/dm/name"));
    match source.strip_prefix("/dev/").map(name) {
        Some(Ok(name)) => format!("/dev/mapper/{}", name.trim()),
        _ => source.to_owned(),
    }
}

/// The mount on exactly this directory.
pub fn mount_at(dir: &Path) -> Option<Mount> {
    let is_here = |mount: &Mount| Path::new(&mount.point) == dir;
    mounts().into_iter().rfind(is_here)
}

/// The mounts, the directories below `top`, all logical volumes with their sizes and tags, and how much was written to
/// each volume that is not mounted. To a mounted volume the kernel writes by itself.
#[derive(Debug, PartialEq)]
pub struct Snapshot {
    mounts: Vec<Mount>,
    dirs: Vec<String>,
    volumes: String,
    written: Vec<(String, u64)>,
}

impl Snapshot {
    pub fn take(top: &Path) -> Self {
        let mut dirs = Vec::new();
        list(top, &mut dirs);
        let fields = "vg_name,lv_name,lv_size,lv_tags";
        Self {
            mounts: mounts(),
            dirs,
            volumes: run("lvs", &["--noheadings", "--units", "b", "-o", fields]),
            written: written(),
        }
    }
}

/// How much was written to each volume, for [`Snapshot`]. Parts of other volumes are left out, since LVM itself writes
/// to them. Volumes without a write are left out, since a refused call may have activated one.
fn written() -> Vec<(String, u64)> {
    let in_use = |name: &str| {
        let holders = fs::read_dir(format!("/sys/block/{name}/holders"));
        let mut btrfs = fs::read_dir("/sys/fs/btrfs")
            .into_iter()
            .flatten()
            .flatten();
        holders.is_ok_and(|mut all| all.next().is_some())
            || ["ext4", "xfs"]
                .map(|kind| Path::new("/sys/fs").join(kind).join(name).exists())
                .contains(&true)
            || btrfs.any(|one| one.path().join("devices").join(name).exists())
    };
    let of_lvm = |number: &String| {
        let dm = |file| fs::read_to_string(format!("/sys/block/{number}/dm/{file}"));
        let is_lvms = dm("uuid").is_ok_and(|uuid| uuid.starts_with("LVM-"));
        (is_lvms && !in_use(number))
            .then(|| (dm("name").unwrap(), writes(&format!("/dev/{number}"))))
    };
    let numbers = fs::read_dir("/sys/block").unwrap();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let written = numbers.filter_map(|number| of_lvm(&number));
    let mut written: Vec<(String, u64)> = written.filter(|(_, sectors)| *sectors > 0).collect();
    written.sort();
    written
}

fn list(dir: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        names.push(path.display().to_string());
        // Files in a volume are not compared.
        if path.is_dir() && mount_at(&path).is_none() {
            list(&path, names);
        }
    }
    names.sort();
}
