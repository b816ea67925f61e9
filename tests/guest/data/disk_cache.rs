//! A disk that keeps what is written to it in a cache of its own, and loses it when the power goes.
//! A disk is free to do so until it is told to flush.

use std::fs::File;
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
    name: &'static str,
    size: u64,
}

impl CachedDisk {
    fn new(name: &'static str, size: u64) -> Self {
        let (whole, sectors) = (HIDDEN + size, (HIDDEN + size) / SECTOR);
        bash(&format!(
            "cd /run; truncate -s {whole} {name}.kept {name}.log
            below() {{ losetup --find --show $1; }}
            table=\"0 {sectors} log-writes $(below {name}.kept) $(below {name}.log)\"
            dmsetup create {name}-cache --table \"$table\""
        ));
        let disk = Self { name, size };
        disk.show(&format!("/dev/mapper/{name}-cache"));
        disk
    }

    fn path(&self) -> String {
        format!("/dev/mapper/{}", self.name)
    }

    fn show(&self, below: &str) {
        let (sectors, start) = (self.size / SECTOR, HIDDEN / SECTOR);
        let table = format!("0 {sectors} linear {below} {start}");
        run("dmsetup", &["create", self.name, "--table", &table]);
    }

    /// The power goes, and comes back. What was not flushed is gone. Nothing may use the disk now;
    /// from now on it loses nothing more.
    fn loses_its_cache(&self) {
        let (name, whole) = (self.name, HIDDEN + self.size);
        bash(&format!(
            "dmsetup message {name}-cache 0 mark power
            dmsetup remove --retry {name}; dmsetup remove --retry {name}-cache"
        ));
        let [log, then] = ["log", "then"].map(|end| PathBuf::from(format!("/run/{name}.{end}")));
        File::create(&then).unwrap().set_len(whole).unwrap();
        replay(&log, &then);
        self.show(&run("losetup", &["--find", "--show", text(&then)]));
    }
}

impl Drop for CachedDisk {
    fn drop(&mut self) {
        let name = self.name;
        let away = format!(
            "dmsetup remove --retry {name}; [ ! -e /dev/mapper/{name}-cache ] || dmsetup remove --retry {name}-cache
            for file in /run/{name}.*; do
                losetup --noheadings --output NAME --associated $file | xargs -r losetup --detach; rm $file
            done"
        );
        lenient("sh", &["-c", &away]);
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
    let disk = CachedDisk::new("lost-disk", 1 << 30);
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
