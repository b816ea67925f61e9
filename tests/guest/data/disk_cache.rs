//! A disk that keeps what is written to it in a cache of its own, and loses it when the power goes.
//! A disk is free to do so until it is told to flush.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::prelude::*;

/// LVM must not see the same disk twice: its own label is not where the device below begins.
const HIDDEN: u64 = 1 << 20;
const SECTOR: u64 = 512;
/// A file of the removed volume's.
const THEIRS: &str = "theirs";

/// dm-log-writes notes each write when the disk has been told to flush it. So what it has noted at
/// a time is what a disk with such a cache would have kept then.
struct CachedDisk {
    name: String,
    size: u64,
    file: PathBuf,
    log: PathBuf,
    below: Vec<String>,
}

impl CachedDisk {
    fn new(name: &str, size: u64) -> Self {
        let mut disk = Self {
            name: name.to_owned(),
            size,
            file: format!("/run/{name}.kept").into(),
            log: format!("/run/{name}.log").into(),
            below: Vec::new(),
        };
        let [file, log] = [disk.file.clone(), disk.log.clone()].map(|file| disk.loop_on(&file));
        let sectors = (HIDDEN + size) / SECTOR;
        let table = format!("0 {sectors} log-writes {file} {log}");
        run("dmsetup", &["create", &disk.cache(), "--table", &table]);
        disk.show(&format!("/dev/mapper/{}", disk.cache()));
        disk
    }

    fn path(&self) -> String {
        format!("/dev/mapper/{}", self.name)
    }

    fn cache(&self) -> String {
        format!("{}-cache", self.name)
    }

    fn loop_on(&mut self, file: &Path) -> String {
        self.below.push(looped(file, HIDDEN + self.size));
        self.below.last().unwrap().clone()
    }

    fn show(&self, below: &str) {
        let (sectors, start) = (self.size / SECTOR, HIDDEN / SECTOR);
        let table = format!("0 {sectors} linear {below} {start}");
        run("dmsetup", &["create", &self.name, "--table", &table]);
    }

    /// The power goes, and comes back. What was not flushed is gone. Nothing may use the disk now;
    /// from now on it loses nothing more.
    fn loses_its_cache(&mut self) {
        run("dmsetup", &["message", &self.cache(), "0", "mark", "power"]);
        run("dmsetup", &["remove", "--retry", &self.name]);
        run("dmsetup", &["remove", "--retry", &self.cache()]);
        let kept = PathBuf::from(format!("/run/{}.kept-then", self.name));
        let device = self.loop_on(&kept);
        replay(&self.log, &kept);
        fs::rename(&kept, &self.file).unwrap();
        self.show(&device);
    }
}

impl Drop for CachedDisk {
    fn drop(&mut self) {
        lenient("dmsetup", &["remove", "--retry", &self.name]);
        if fs::exists(format!("/dev/mapper/{}", self.cache())).unwrap() {
            lenient("dmsetup", &["remove", "--retry", &self.cache()]);
        }
        for device in &self.below {
            lenient("losetup", &["--detach", device]);
        }
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_file(&self.log);
    }
}

/// Makes the writes again that are in the log before the first mark. Its format: Linux
/// `drivers/md/dm-log-writes.c`, `struct log_write_super` and `struct log_write_entry`.
fn replay(log: &Path, onto: &Path) {
    const DISCARD: u64 = 4;
    const MARK: u64 = 8;
    let log = File::open(log).unwrap();
    let disk = File::options().write(true).open(onto).unwrap();
    let word = |at: u64| {
        let mut bytes = [0; 8];
        log.read_exact_at(&mut bytes, at).unwrap();
        u64::from_le_bytes(bytes)
    };
    assert_eq!(word(0), 0x006a_7366_7773_6872);
    let mut at = SECTOR;
    loop {
        let (from, length, flags) = (word(at) * SECTOR, word(at + 8) * SECTOR, word(at + 16));
        at += SECTOR;
        if flags & MARK != 0 {
            return;
        }
        if flags & DISCARD != 0 {
            let range = ["-o", &from.to_string(), "-l", &length.to_string()];
            run("fallocate", &[&["-p"], &range[..], &[text(onto)]].concat());
            continue;
        }
        let mut data = vec![0; usize::try_from(length).unwrap()];
        log.read_exact_at(&mut data, at).unwrap();
        disk.write_all_at(&data, from).unwrap();
        at += length;
    }
}

#[test]
fn a_wipe_outlasts_the_loss_of_a_disks_cache() {
    // The volume is created where a removed one held an xfs, the driver is killed when mkfs is
    // recorded as begun, and then the power goes.
    let killed = "[ -e $HERE/go ] || { kill -KILL $PPID; exit; }\nexec $REAL \"$@\"";
    let tools = Tools::new().put("mkfs.xfs", killed);
    let lines = format!("{}[volume_group.lost]\ncreate = true\n", tools.config());
    let node = Node::with_config(Mode::MountOnly, &lines);
    // LVM's metadata is on a disk without such a cache.
    let sure = Disk::new("lost-sure", 16 << 20);
    let mut disk = CachedDisk::new("lost-disk", 1 << 30);
    run("pvcreate", &["-qq", "--metadatacopies", "0", &disk.path()]);
    let group = Group::on("lost", &[&sure.path(), &disk.path()]);
    run("pvchange", &["-qq", "-x", "n", &sure.path()]);
    group.leave_behind("320m", "xfs", THEIRS);

    let volume = Volume::new(&group, "data").fs("xfs").with("size", "320m");
    node.start_mount("pod", &volume).dies();
    assert_eq!(group.tags("data"), "flexvolume.making=xfs");
    run("vgchange", &["-qq", "-an", "lost"]);
    disk.loses_its_cache();
    run("vgchange", &["-qq", "-ay", "lost"]);
    tools.let_go();
    assert!(!node.up("pod", &volume).join(THEIRS).exists());
    group.assert_recorded("data", "xfs");
    node.down("pod", &volume);
}
