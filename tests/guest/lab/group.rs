//! A volume group for one case.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use crate::prelude::*;

/// A volume group on a loop device over a sparse file in memory. When the value is dropped, everything on the group is
/// unmounted, and the group and its disk are removed.
pub struct Group {
    pub name: String,
    /// The file and the loop device of this group. `None`: the group is on disks of somebody else.
    disk: Option<(PathBuf, String)>,
}

impl Group {
    /// A group of 2 GiB, which takes memory only for what is written.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        Self::of_size(name, 2 << 30)
    }

    #[track_caller]
    pub fn of_size(name: &str, bytes: u64) -> Self {
        Self::on_file(name, &format!("/run/{name}.disk"), bytes)
    }

    /// A group on a loop device over this file.
    #[track_caller]
    pub fn on_file(name: &str, file: &str, bytes: u64) -> Self {
        let file = PathBuf::from(file);
        let disk = looped(&file, bytes);
        let mut group = Self::on(name, &[&disk]);
        group.disk = Some((file, disk));
        group
    }

    /// A group on these disks. Whoever made the disks removes them after the group.
    #[track_caller]
    pub fn on(name: &str, disks: &[&str]) -> Self {
        run("vgcreate", &[&["-q", name], disks].concat());
        Self::found(name)
    }

    /// A group that exists already.
    pub fn found(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            disk: None,
        }
    }

    /// A group with one blank volume of 32 MiB, `data`.
    #[track_caller]
    pub fn with_data(name: &str) -> (Self, Volume) {
        let group = Self::new(name);
        let volume = group.linear("data", "32m");
        (group, volume)
    }

    /// Makes a linear volume, active and blank.
    #[track_caller]
    pub fn linear(&self, lv: &str, size: &str) -> Volume {
        let vg = &self.name;
        sh(&format!("lvcreate -qq -y -W y -n {lv} -L {size} {vg}"));
        Volume::new(self, lv)
    }

    /// Makes a thin pool of 600 MiB.
    #[track_caller]
    pub fn pool(&self) {
        let make = "lvcreate -qq -y --type thin-pool -Z n -n pool -L 600m";
        sh(&format!("{make} {}", self.name));
    }

    /// Makes a thin volume in the pool.
    #[track_caller]
    pub fn thin(&self, lv: &str, size: &str) -> Volume {
        let pool = self.path("pool");
        sh(&format!(
            "lvcreate -qq -y -n {lv} -V {size} --thinpool {pool}"
        ));
        Volume::new(self, lv)
    }

    /// Makes a volume with a filesystem and this file in it, and removes the volume. Waits for the next second, so that
    /// a volume that is made in its place is younger than the filesystem.
    pub fn leave_behind(&self, size: &str, fs: &str, file: &str) {
        self.linear("removed", size);
        let device = device(&self.name, "removed");
        run(&format!("mkfs.{fs}"), &["-q", &device]);
        let dir = PathBuf::from(format!("/run/{}-removed", self.name));
        fs::create_dir_all(&dir).unwrap();
        let point = dir.to_str().unwrap();
        run("mount", &[&device, point]);
        write_synced(&dir.join(file), "of a removed volume");
        run("umount", &[point]);
        self.lv("lvremove", &[], "removed");
        Self::wait_for_the_next_second();
    }

    /// Waits for the next second, since the times of LVM and of ext are whole seconds.
    pub fn wait_for_the_next_second() {
        let now = || UNIX_EPOCH.elapsed().unwrap().as_secs();
        let begun = now();
        while now() == begun {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs an LVM command on one volume.
    #[track_caller]
    pub fn lv(&self, command: &str, args: &[&str], lv: &str) {
        if command == "lvremove" {
            // udev looks at what was just written, and LVM waits no longer than five seconds for that.
            lenient("udevadm", &["settle"]);
        }
        run(command, &[&["-qq", "-y"], args, &[&self.path(lv)]].concat());
    }

    /// `<group>/<volume>`, as LVM writes it.
    pub fn path(&self, lv: &str) -> String {
        format!("{}/{lv}", self.name)
    }

    /// Whether LVM knows a volume of this name.
    pub fn has(&self, lv: &str) -> bool {
        let all = run("lvs", &["--noheadings", "-o", "lv_name", &self.name]);
        all.split_whitespace().any(|name| name == lv)
    }

    fn field(&self, field: &str, lv: &str) -> String {
        let args = ["--noheadings", "--nosuffix", "--units", "b", "-o", field];
        run("lvs", &[&args[..], &[&self.path(lv)]].concat())
    }

    /// The volume's size in bytes.
    #[track_caller]
    pub fn size(&self, lv: &str) -> u64 {
        self.field("lv_size", lv).parse().unwrap()
    }

    /// How much of a thin volume is in use, in percent.
    pub fn data_percent(&self, lv: &str) -> f64 {
        self.field("data_percent", lv).parse().unwrap()
    }

    /// How many bytes of the group belong to no volume.
    pub fn free(&self) -> u64 {
        let vgs = "vgs --noheadings --nosuffix --units b -o vg_free";
        sh(&format!("{vgs} {}", self.name)).parse().unwrap()
    }

    /// The volume's tags, separated by commas.
    #[track_caller]
    pub fn tags(&self, lv: &str) -> String {
        self.field("lv_tags", lv)
    }

    /// Removes all tags of the volume.
    #[track_caller]
    pub fn forget(&self, lv: &str) {
        for tag in self.tags(lv).split(',').filter(|tag| !tag.is_empty()) {
            self.lv("lvchange", &["--deltag", tag], lv);
        }
    }

    /// Checks that the volume's only tag says what the driver made: `flexvolume.fs=<fs>:<uuid of the filesystem>`.
    #[track_caller]
    pub fn assert_recorded(&self, lv: &str, fs: &str) {
        let device = device(&self.name, lv);
        let uuid = sh(&format!("blkid -p -o value -s UUID {device}"));
        assert_eq!(self.tags(lv), format!("flexvolume.fs={fs}:{uuid}"));
    }

    #[track_caller]
    pub fn is_active(&self, lv: &str) -> bool {
        fs::exists(device(&self.name, lv)).unwrap()
    }

    /// Unmounts, closes and deactivates all volumes of the group.
    pub fn deactivate(&self) {
        let prefix = device(&self.name, "");
        let open = opened(&self.name);
        let is_ours =
            |mount: &&Mount| mount.source.starts_with(&prefix) || open.contains(&mount.source);
        for mount in mounts().iter().rev().filter(is_ours) {
            lenient("umount", &["--lazy", &mount.point]);
        }
        for device in &open {
            lenient("cryptsetup", &["close", device]);
        }
        lenient("vgchange", &["-qq", "-an", &self.name]);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.deactivate();
        // Quicker than to remove all volumes: without its disk the group is gone as well.
        if let Some((file, disk)) = &self.disk {
            // udev may still look at the disk, which then stays for a while. It must not show LVM
            // a group whose name the next case takes.
            let blank = || {
                let file = fs::File::options().write(true).open(file)?;
                file.set_len(0).and_then(|()| file.set_len(1 << 20))
            };
            let _ = blank();
            lenient("losetup", &["--detach", disk]);
            let _ = fs::remove_file(file);
        }
    }
}

/// The devices inside the open encrypted volumes of a group.
fn opened(vg: &str) -> Vec<String> {
    let names = sh("ls /dev/mapper");
    let mut open = names
        .split_whitespace()
        .filter(|name| name.starts_with("flexvolume."))
        .peekable();
    if open.peek().is_none() {
        return Vec::new();
    }
    // The group may be broken, or gone.
    let args = ["--noheadings", "-o", "lv_uuid", vg];
    let output = assert_cmd::Command::new("lvs").args(args).output().unwrap();
    let uuids = String::from_utf8_lossy(&output.stdout).replace('-', "");
    let is_its = |name: &&str| uuids.split_whitespace().any(|uuid| name.ends_with(uuid));
    open.filter(is_its)
        .map(|name| format!("/dev/mapper/{name}"))
        .collect()
}

/// Runs a tool, and only prints its failure: cleaning up after a failed case must not hide why the case failed.
pub fn lenient(tool: &str, args: &[&str]) {
    let output = assert_cmd::Command::new(tool)
        .args(args)
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .output()
        .unwrap();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        println!("cleaning up: {tool} {args:?}: {stderr}");
    }
}
