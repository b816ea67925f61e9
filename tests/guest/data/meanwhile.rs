//! Changes between the driver's look and its next step: the names of volumes are swapped, a backup is restored while
//! the driver waits, a disk ceases to answer.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::data::foreign::bytes;
use crate::prelude::*;

/// Runs the driver, which must end by itself, with every process that it waits for.
pub fn ends(node: &Node, args: &[&str]) -> Output {
    let limit = Duration::from_secs(600);
    let mut command = Command::new(node.exe());
    let command = command.args(args).stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, begun) = (command.spawn().unwrap(), Instant::now());
    while child.try_wait().unwrap().is_none() {
        let waits = || fs::read_to_string(format!("/proc/{}/stack", child.id()));
        assert!(begun.elapsed() < limit, "{args:?} waits in {:?}", waits());
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Bytes that no tool knows.
pub fn noise(length: usize) -> Vec<u8> {
    bytes("/dev/urandom", 0, length)
}

/// Whether the volume still begins with these.
pub fn assert_begins_with(volume: &Volume, with: &[u8]) {
    let device = volume.device();
    let found = bytes(&device, 0, with.len());
    assert!(found == with, "{device} was written to");
}

/// Copies one volume over another that is blank, as whoever restores a backup does. It need not be
/// on the disk yet, but whoever reads the device sees it.
fn restore(from: &Volume, to: &Volume) {
    let [from, to] = [from, to].map(Volume::device);
    let from = File::open(from).unwrap();
    let to = File::options().write(true).open(to).unwrap();
    let mut chunk = vec![0; 1 << 20];
    // Without lseek(2), for which Linux waits behind who reads.
    for at in (0..).step_by(chunk.len()) {
        if from.read_at(&mut chunk, at).unwrap() == 0 {
            break;
        }
        if chunk.iter().any(|byte| *byte != 0) {
            to.write_all_at(&chunk, at).unwrap();
        }
    }
}

/// A volume with a filesystem of this page that was copied while it was mounted: who mounts or
/// checks it has to write to it.
fn with_a_log(node: &Node, group: &Group, lv: &str, page: &str) -> Volume {
    let [source, copy] = ["source", lv].map(|lv| group.linear(lv, "32m"));
    write_synced(&node.up("source", &source).join("page"), page);
    restore(&source, &copy);
    node.down("source", &source);
    group.lv("lvremove", &[], "source");
    copy
}

#[test]
fn a_name_that_changes_hands_before_a_tool_runs_leads_it_to_no_other_volume() {
    let plain = Node::new(Mode::MountOnly);
    // After a long step the driver looks again.
    for (number, (tool, holds, recorded, seconds)) in [
        ("mkfs.ext4", false, false, 0),
        ("mkfs.ext4", false, false, 3),
        ("lvchange", false, false, 0),
        ("e2fsck", true, true, 0),
        ("e2fsck", true, true, 3),
        ("mount", true, true, 0),
        ("mount", true, false, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let case = format!("{tool}, recorded: {recorded}, takes {seconds} s more");
        println!("{case}");
        let vg = format!("gap{number}");
        let group = Group::new(&vg);
        let data = group.linear("data", "32m");
        if holds {
            plain.write("pod", &data, "mine");
        }
        if holds && !recorded {
            group.forget("data");
        }
        let other = with_a_log(&plain, &group, "other", "other");
        let (its, before) = (other.uuid(), writes(&other.device()));

        let swaps = format!(
            "[ -e $HERE/{tool}.runs ] || {{ lvrename -qq {vg}/data away; lvrename -qq {vg}/other data; }} >&2\n\
             echo >> $HERE/{tool}.runs\nsleep {seconds}\nexec $REAL \"$@\""
        );
        let (tools, node) = Tools::new().put(tool, &swaps).node();
        let reply = node.mount("pod", &data);
        assert!(!tools.runs(tool).is_empty(), "{case}: {reply:?}");
        // From here on, `data` is the name of the other one.
        let dir = node.pod_dir("pod", &data);
        if mount_at(&dir).is_some() {
            let page = std::fs::read_to_string(dir.join("page")).ok();
            let mine = holds.then(|| "mine".to_owned());
            assert_eq!(page, mine, "{case}: {reply:?}");
            node.does(&["unmount", text(&dir)]);
        } else {
            reply.is_failure(&[&group.path("data")]);
        }
        assert_eq!(writes(&data.device()), before, "{case}: {reply:?}");
        assert_eq!(group.tags("data"), "", "{case}: {reply:?}");
        assert_eq!(data.uuid(), its);
        plain.finds(&data, "other");
        if holds {
            plain.finds(&Volume::new(&group, "away"), "mine");
        }
    }
}

#[test]
fn raw_data_that_gets_the_name_of_a_blank_volume_is_not_formatted_by_the_repeated_call() {
    let group = Group::new("gapraw");
    let [data, other] = ["data", "other"].map(|lv| group.linear(lv, "32m"));
    let bytes = noise(1 << 20);
    put(&other.device(), 0, &bytes);
    let swaps = "[ -e $HERE/lvchange.runs ] || {\n lvrename -qq gapraw/data away\n \
        lvrename -qq gapraw/other data\n} >&2\necho >> $HERE/lvchange.runs\nexec $REAL \"$@\"";
    let (tools, node) = Tools::new().put("lvchange", swaps).node();
    for _ in 0..2 {
        node.mount("pod", &data);
        assert!(!tools.runs("lvchange").is_empty());
        assert_begins_with(&data, &bytes);
    }
    assert_eq!(group.tags("data"), "");
    node.refuses_mount(&data, &["allow-format gapraw/data"]);
}

/// Data that somebody writes to a blank volume while a call is about to make a filesystem there. It must
/// be there in the end.
enum Restored {
    Filesystem(Volume, String),
    Raw(Vec<u8>),
}

impl Restored {
    fn is_written_to(&self, data: &Volume) {
        match self {
            Self::Raw(bytes) => {
                let device = File::options().write(true).open(data.device());
                device.unwrap().write_all_at(bytes, 0).unwrap();
            }
            Self::Filesystem(source, _) => {
                restore(source, data);
                // btrfs must not see two devices of one filesystem.
                run("wipefs", &["-qa", &source.device()]);
            }
        }
    }

    /// The call has refused it, or mounted it: it was not overwritten, and the repeated call finds
    /// it.
    fn is_kept(&self, reply: &Reply, data: &Volume, vg: &str) {
        let node = Node::new(Mode::MountOnly);
        match self {
            Self::Raw(bytes) => {
                reply.is_failure(&[&format!("{vg}/data")]);
                assert_begins_with(data, bytes);
                let advice = format!("allow-format {vg}/data");
                node.refuses_mount(data, &[&advice]);
                assert_begins_with(data, bytes);
            }
            Self::Filesystem(_, its) => {
                assert_eq!(data.uuid(), *its, "{reply:?}");
                // To another node's kubelet, what the call has mounted is the host's.
                if reply.status == "Success" {
                    run("umount", &["--all-targets", &data.device()]);
                }
                assert_eq!(read(&node.up("again", data).join("page")), "restored");
            }
        }
    }
}

/// A mount, during which something happens when it has looked, found nothing, and has that recorded.
fn when_it_records(data: &Volume, vg: &str, happens: impl FnOnce()) -> Reply {
    // Who only asks LVM may go on.
    let lock = format!("/run/lock/lvm/V_{vg}");
    let lock = File::options().append(true).create(true).open(lock);
    let lock = lock.unwrap();
    lock.lock_shared().unwrap();
    let (tools, node) = Tools::new().counting("lvchange").node();
    let call = node.start_mount("pod", data);
    tools.wait_for("lvchange");
    happens();
    drop(lock);
    call.reply()
}

#[test]
fn data_restored_while_lvms_lock_is_awaited_is_not_overwritten() {
    let plain = Node::new(Mode::MountOnly);
    for (fs, size) in FILESYSTEMS {
        for raw in [false, true] {
            println!("{fs}, raw: {raw}");
            let vg = format!("awaited{fs}{raw}");
            let group = Group::new(&vg);
            let [source, data] = ["source", "data"].map(|lv| group.linear(lv, size).fs(fs));
            let restored = if raw {
                Restored::Raw(noise(1 << 20))
            } else {
                plain.write("pod", &source, "restored");
                let its = source.uuid();
                Restored::Filesystem(source, its)
            };
            let reply = when_it_records(&data, &vg, || restored.is_written_to(&data));
            restored.is_kept(&reply, &data, &vg);
        }
    }
}

/// What is far from all marks is not read again after a short wait: the kernel's count of writes tells.
#[test]
fn a_write_where_nothing_is_read_again_is_counted() {
    let disk = Disk::new("faraway", 40 << 30);
    let group = Group::on("faraway-vg", &[&disk.path()]);
    let volume = group.linear("data", "39g");
    let device = volume.device();
    let make = "mkfs.ext4 -q -b 1024 -O ^has_journal -E nodiscard,lazy_itable_init=1";
    sh(&format!("{make} {device}"));
    // The place of the backup superblock in group 5⁵.
    let at = 3125 * 8 * MIB;
    let backup = bytes(&device, at, 4096);
    run("blkdiscard", &["-f", &device]);
    let reply = when_it_records(&volume, "faraway-vg", || put(&device, at, &backup));
    reply.is_failure(&["an ext backup superblock"]);
}

#[test]
fn data_restored_during_a_slow_look_is_not_overwritten() {
    let plain = Node::new(Mode::MountOnly);
    for raw in [false, true] {
        println!("raw: {raw}");
        let vg = format!("slowly{raw}");
        let (disk, _group, data) = Disk::with_data(&vg, "ext4", 64);
        let sources = Group::new(&format!("quick{raw}"));
        let source = sources.linear("source", "64m");
        let restored = if raw {
            Restored::Raw(noise(4096))
        } else {
            // Blocks of 4 KiB: so few are one group, without a backup that could be seen.
            run("mkfs.ext4", &["-q", "-b", "4096", &source.device()]);
            plain.write("pod", &source, "restored");
            let its = source.uuid();
            Restored::Filesystem(source, its)
        };
        let node = Node::with_config(Mode::MountOnly, "[limits]\nquery = 100\n");
        disk.slow(Duration::from_millis(50));
        let before = bytes_read(&data.device());
        let call = node.start_mount("pod", &data);
        // Of the beginning and the end 8 MiB each are looked at.
        eventually("a look at the beginning", || {
            bytes_read(&data.device()) - before > 9 * MIB
        });
        {
            let _until = disk.suspended();
            restored.is_written_to(&data);
        }
        let reply = call.reply();
        disk.heal();
        restored.is_kept(&reply, &data, &vg);
    }
}

#[test]
fn a_disk_that_stops_just_after_mkfs_holds_up_no_call() {
    const SHORT: &str = "[limits]\nquery = 10\nactivate = 10\nmount = 10\n";
    for (fs, size) in [("ext4", 32), ("xfs", 300), ("btrfs", 128)] {
        println!("{fs}");
        let name = format!("stops{fs}");
        let (disk, group, volume) = Disk::with_data(&name, fs, size);
        // Nothing of it stays in memory, as where mkfs has written past the cache, nor what udev read; and
        // when the driver ends, nobody else has the volume open.
        let tool = format!("mkfs.{fs}");
        let stops = format!(
            "$REAL \"$@\" || exit\n[ ! -e $HERE/go ] || exit 0\n\
             {{ udevadm settle; blockdev --flushbufs {}; dmsetup suspend --nolockfs {name}-disk; }} >&2\n\
             echo 1 > /proc/sys/vm/drop_caches\n\
             echo >> $HERE/{tool}.runs",
            volume.device()
        );
        let tools = Tools::new().put(&tool, &stops);
        let mut node = Node::with_config(Mode::MountOnly, &(tools.config() + SHORT));
        let dir = precreated(node.pod_dir("pod", &volume));
        let args = ["mount", text(&dir), &volume.json_for("pod")];
        {
            let _until = disk.resumed();
            let reply = Reply::of(args, &ends(&node, &args));
            assert!(!tools.runs(&tool).is_empty(), "{reply:?}");
            reply.is_failure(&[&name, "within 10 s"]);
            assert_eq!(mount_at(&dir), None);
        }
        tools.let_go();
        node.configure(Mode::MountOnly, &tools.config());
        node.write("pod", &volume, "kept");
        group.assert_recorded("data", fs);
        node.finds(&volume, "kept");
    }
}
