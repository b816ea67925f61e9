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

/// A volume is created where a removed one held an xfs. Each of these calls is killed before or
/// after it runs a tool, and then the power goes. After that a call must refuse it with these words,
/// if any, until it is removed, and make an xfs of its own.
fn create_without_power(name: &str, killed: &[(&str, &str)], refused: &[&str]) {
    let next = PathBuf::from(format!("/run/{name}.next"));
    let stop = format!(
        "next=$(cat {})\n\
         [ \"$next\" = \"before ${{0##*/}}\" ] || $REAL \"$@\" || exit\n\
         [ \"${{next#* }}\" != \"${{0##*/}}\" ] || kill -KILL $PPID",
        text(&next)
    );
    let tools = killed.iter();
    let tools = tools.fold(Tools::new(), |tools, (_, tool)| tools.put(tool, &stop));
    let lines = format!("{}[volume_group.{name}]\ncreate = true\n", tools.config());
    let node = Node::with_config(Mode::MountOnly, &lines);
    // LVM's metadata is on a disk without such a cache.
    let sure = Disk::new(&format!("{name}-sure"), 16 << 20);
    let mut disk = CachedDisk::new(&format!("{name}-disk"), 1 << 30);
    run("pvcreate", &["-qq", "--metadatacopies", "0", &disk.path()]);
    let group = Group::on(name, &[&sure.path(), &disk.path()]);
    run("pvchange", &["-qq", "-x", "n", &sure.path()]);
    group.leave_behind("320m", "xfs", THEIRS);

    let volume = Volume::new(&group, "data").fs("xfs").with("size", "320m");
    let dir = precreated(node.pod_dir("pod", &volume));
    let args = ["mount", text(&dir), &volume.json_for("pod")];
    for (when, tool) in killed {
        fs::write(&next, format!("{when} {tool}")).unwrap();
        node.start(&args).dies();
    }
    let tags = group.tags("data");
    run("vgchange", &["-qq", "-an", name]);
    disk.loses_its_cache();
    run("vgchange", &["-qq", "-ay", name]);
    fs::write(&next, "").unwrap();
    if !refused.is_empty() {
        node.fails(&args, refused);
        group.lv("lvremove", &[], "data");
    }
    let reply = node.call(&args);
    assert_eq!(reply.status, "Success", "{tags}: {reply:?}");
    assert!(!dir.join(THEIRS).exists(), "{tags}");
    write_synced(&dir.join("ours"), "ours");
    node.down("pod", &volume);
    let dir = node.up("pod", &volume);
    assert_eq!(read(&dir.join("ours")), "ours");
    node.down("pod", &volume);
}

#[test]
fn what_was_wiped_stays_so_when_a_disk_loses_its_cache() {
    // When lvcreate has ended, and nothing of the volume was read yet.
    let words = ["holds xfs", "lvremove lost-wipe/data"];
    create_without_power("lost-wipe", &[("after", "lvcreate")], &words);
    // When mkfs is recorded as begun.
    create_without_power("lost-making", &[("before", "mkfs.xfs")], &[]);
}
