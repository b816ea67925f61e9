//! A disk that fails when it is told to, and tells whether anything was written to it.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Whence, lseek};

use crate::prelude::*;

/// Where LVM begins its first extent on a disk (`pe_start`), in bytes.
const FIRST_EXTENT: u64 = 1 << 20;
/// How many bytes of the loop device are before the disk. LVM finds no label at the beginning of the loop device, so it
/// does not see the same disk twice.
const HIDDEN: u64 = 1 << 20;
const SECTOR: u64 = 512;
const BLANK: [u8; 4096] = [0; 4096];

/// A device-mapper device over a loop device over a sparse file in memory.
pub struct Disk {
    name: String,
    size: u64,
    file: PathBuf,
    /// The loop device.
    pub below: String,
}

impl Disk {
    pub fn new(name: &str, size: u64) -> Self {
        let file = PathBuf::from(format!("/run/{name}.disk"));
        let below = looped(&file, HIDDEN + size);
        let disk = Self {
            name: name.to_owned(),
            size,
            file,
            below,
        };
        let table = disk.table(None);
        run("dmsetup", &["create", name, "--table", table.trim_end()]);
        disk
    }

    /// Makes `count` disks of `size` bytes, and a group on them. The caller's variables are dropped in reverse order:
    /// the group before its disks.
    #[track_caller]
    pub fn several(name: &str, count: usize, size: u64) -> (Vec<Self>, Group) {
        let disk = |number| Self::new(&format!("{name}-{number}"), size);
        let disks: Vec<Self> = (0..count).map(disk).collect();
        let paths: Vec<String> = disks.iter().map(Self::path).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let group = Group::on(name, &paths);
        (disks, group)
    }

    /// A disk with a group `name`, and in the group a blank volume `data` of `mib` MiB.
    #[track_caller]
    pub fn with_data(name: &str, fs: &str, mib: u64) -> (Self, Group, Volume) {
        let disk = Self::new(&format!("{name}-disk"), (mib + 8) << 20);
        let group = Group::on(name, &[&disk.path()]);
        let volume = group.linear("data", &format!("{mib}m")).fs(fs);
        (disk, group, volume)
    }

    pub fn path(&self) -> String {
        format!("/dev/mapper/{}", self.name)
    }

    /// From now on these bytes of the first volume on the disk can be neither read nor written.
    pub fn fail(&self, bad: Range<u64>) {
        run("sh", &["-c", &self.failing(Some(bad))]);
    }

    /// From now on nothing on the disk can be read or written, not even LVM's metadata. To LVM the disk is missing.
    pub fn fail_wholly(&self) {
        self.shows(&format!("0 {} error", self.size / SECTOR));
    }

    /// From now on the disk has only so many bytes, whatever LVM's metadata says.
    pub fn becomes_smaller(&self, bytes: u64) {
        let (sectors, below, start) = (bytes / SECTOR, &self.below, HIDDEN / SECTOR);
        self.shows(&format!("0 {sectors} linear {below} {start}"));
    }

    fn shows(&self, table: &str) {
        run("dmsetup", &["load", &self.name, "--table", table]);
        run("dmsetup", &["resume", &self.name]);
    }

    /// From now on each read takes this long, and a write no longer than before.
    pub fn slow(&self, delay: Duration) {
        let (sectors, below, start) = (self.size / SECTOR, &self.below, HIDDEN / SECTOR);
        let delay = delay.as_millis();
        self.shows(&format!(
            "0 {sectors} delay {below} {start} {delay} {below} {start} 0"
        ));
    }

    /// Suspends the disk, which then holds every access until the returned value is dropped.
    pub fn suspended(&self) -> Finally {
        suspended(&self.name)
    }

    /// Resumes the disk when the returned value is dropped, however the disk was suspended.
    pub fn resumed(&self) -> Finally {
        Finally(format!("dmsetup resume {}", self.name))
    }

    pub fn heal(&self) {
        run("sh", &["-c", &self.failing(None)]);
    }

    /// Lines for a shell that make the bytes `bad` of the first volume fail, and no others. `None`: no byte fails.
    pub fn failing(&self, bad: Option<Range<u64>>) -> String {
        let name = &self.name;
        format!(
            "dmsetup load {name} <<'end' && dmsetup resume {name}\n{}end\n",
            self.table(bad)
        )
    }

    fn table(&self, bad: Option<Range<u64>>) -> String {
        let mut table = String::new();
        let mut at = 0;
        let good = |from: u64, to: u64, table: &mut String| {
            if from < to {
                let (length, below) = (to - from, from + HIDDEN / SECTOR);
                writeln!(table, "{from} {length} linear {} {below}", self.below).unwrap();
            }
        };
        if let Some(range) = bad {
            let start = (FIRST_EXTENT + range.start) / SECTOR;
            let end = (FIRST_EXTENT + range.end) / SECTOR;
            good(at, start, &mut table);
            writeln!(table, "{start} {} error", end - start).unwrap();
            at = end;
        }
        good(at, self.size / SECTOR, &mut table);
        table
    }

    /// A hash of the disk's bytes outside LVM's own metadata. Bytes that were never written take no time to read.
    pub fn fingerprint(&self) -> u64 {
        run("sync", &[&self.path()]);
        let file = File::open(&self.file).unwrap();
        let mut hasher = DefaultHasher::new();
        let mut at = HIDDEN + FIRST_EXTENT;
        while let Ok(data) = lseek(&file, at.try_into().unwrap(), Whence::SeekData) {
            let hole = lseek(&file, data, Whence::SeekHole).unwrap();
            let mut bytes = vec![0; usize::try_from(hole - data).unwrap()];
            at = hole.try_into().unwrap();
            file.read_exact_at(&mut bytes, data.try_into().unwrap())
                .unwrap();
            // A page of zeroes is a hole to whoever reads the disk.
            for (page, bytes) in (data / 4096..).zip(bytes.chunks(4096)) {
                if !BLANK.starts_with(bytes) {
                    (page, bytes).hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }
}

/// Suspends a device of device-mapper, which then holds every access until the returned value is dropped.
pub fn suspended(name: &str) -> Finally {
    sh(&format!("dmsetup suspend --nolockfs {name}"));
    Finally(format!("dmsetup resume {name}"))
}

/// Makes a sparse file and a loop device over it. Returns the loop device.
pub fn looped(file: &Path, size: u64) -> String {
    File::create(file).unwrap().set_len(size).unwrap();
    run("losetup", &["--find", "--show", text(file)])
}

/// Like [`looped`], with sectors of this size in bytes. The kernel refuses the size while udev reads the new device,
/// and losetup before 2.37 does not try again.
pub fn looped_in(sector: &str, file: &Path, size: u64) -> String {
    File::create(file).unwrap().set_len(size).unwrap();
    let mut device = String::new();
    eventually("its loop device", || {
        let args = ["--find", "--show", "--sector-size", sector, text(file)];
        let output = assert_cmd::Command::new("losetup").args(args).output();
        let output = output.unwrap();
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .clone_into(&mut device);
        output.status.success()
    });
    device
}

impl Drop for Disk {
    fn drop(&mut self) {
        // As a group's own disk it may stay for a while, and must not show LVM a group meanwhile.
        let size = HIDDEN + self.size;
        let file = File::options().write(true).open(&self.file);
        let _ = file.and_then(|file| file.set_len(0).and_then(|()| file.set_len(size)));
        lenient("dmsetup", &["remove", "--retry", &self.name]);
        lenient("losetup", &["--detach", &self.below]);
        let _ = fs::remove_file(&self.file);
    }
}

/// How many sectors of a device were written or discarded since the device was made, with success or without.
pub fn writes(device: &str) -> u64 {
    counted(device, 6) + counted(device, 13)
}

/// How many bytes were read from a device since it was made.
pub fn bytes_read(device: &str) -> u64 {
    counted(device, 2) * SECTOR
}

/// A number from the device's file `stat`, by its column from 0. Source: the kernel's Documentation/block/stat.rst.
fn counted(device: &str, column: usize) -> u64 {
    let node = fs::canonicalize(device).unwrap();
    let stat = Path::new("/sys/block").join(node.file_name().unwrap());
    let stat = read(&stat.join("stat"));
    stat.split_whitespace()
        .nth(column)
        .unwrap()
        .parse()
        .unwrap()
}
