//! lvcreate is killed before it has wiped what a removed volume left on the disk. No pod may see these remains, and
//! data that somebody has put on the new volume must not be lost.

use crate::data::foreign::bytes;
use crate::prelude::*;
use crate::signatures::md0;

/// lvcreate as it leaves a volume if it is killed, with the driver, after its change of LVM's
/// metadata and before its wipe.
const KILLED: &str = r#"[ -e $HERE/go ] && exec $REAL "$@"
set -- $(echo "$*" | sed "s/--wipesignatures y --zero y/--wipesignatures n --zero n/")
$REAL "$@"
kill -KILL $PPID"#;

/// A file of the removed volume's.
const THEIRS: &str = "theirs";

/// Where a removed volume held this filesystem, a call makes a new one and is killed with lvcreate.
fn cut_short(name: &str, left: &str) -> (Node, Group, Volume) {
    let tools = Tools::new().put("lvcreate", KILLED);
    let lines = format!("{}[volume_group.{name}]\ncreate = true\n", tools.config());
    let node = Node::with_config(Mode::MountOnly, &lines);
    let group = Group::new(name);
    let volume = Volume::new(&group, "data").with("size", "320m");
    group.leave_behind("320m", left, THEIRS);
    node.start_mount("pod", &volume).dies();
    assert_eq!(group.tags("data"), "flexvolume.new");
    tools.let_go();
    (node, group, volume)
}

/// Checks that each call and command refuses the new volume, and that nothing formats it.
fn is_refused(node: &Node, group: &Group, volume: &Volume, held: &str) {
    let id = format!("{}/data", group.name);
    let words = [&*format!("lvremove {id}"), &format!("adopt {id}")];
    for fs in ["ext4", "xfs", ""] {
        for volume in [volume.clone().fs(fs), volume.clone().fs(fs).read_only()] {
            node.refuses_mount(&volume, &words);
        }
    }
    let kind = sh(&format!("blkid -p -o value -s TYPE {}", volume.device()));
    assert_eq!(kind, held);
    assert_eq!(group.tags("data"), "flexvolume.new");
}

#[test]
fn a_created_volume_shows_no_data_of_a_removed_one() {
    for left in ["ext4", "xfs"] {
        let name = format!("tenants{left}");
        let (node, group, volume) = cut_short(&name, left);
        // As after a reboot.
        group.lv("lvchange", &["-an"], "data");
        is_refused(&node, &group, &volume, left);
        group.lv("lvremove", &[], "data");
        let dir = node.up("pod", &volume);
        assert!(!dir.join(THEIRS).exists());
        group.assert_recorded("data", "ext4");
    }
}

/// A disk is free to keep what is written in a cache of its own, and to lose that when the power goes, until it is told
/// to flush. What the wipe has written over would come back.
#[test]
fn a_wipe_is_flushed_before_mkfs_is_recorded() {
    let lines = "[volume_group.flushed]\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, lines);
    let group = Group::new("flushed");
    group.leave_behind("320m", "xfs", THEIRS);
    let volume = Volume::new(&group, "data").with("size", "320m");
    let (dir, exe) = (precreated(node.pod_dir("pod", &volume)), node.exe());
    let strace = "strace -f -y -o /run/flushed.trace -e trace=execve,fsync,fdatasync";
    let (dir, json) = (text(&dir), volume.json_for("pod"));
    bash(&format!("{strace} {} mount {dir} '{json}'", text(&exe)));
    let trace = read("/run/flushed.trace".as_ref());
    let (_, made) = trace.split_once("/lvcreate\"").unwrap();
    // The driver's own process reads the volume before mkfs is recorded.
    let (meanwhile, _) = made.split_once("/lvchange\"").unwrap();
    let (_, after) = meanwhile.split_once("/proc/self/exe\"").unwrap();
    let is_flush = |line: &str| line.contains("sync(") && line.contains("</dev/dm-");
    assert!(after.lines().any(is_flush), "{meanwhile}");
    node.down("pod", &volume);
}

#[test]
fn the_log_of_a_removed_volume_is_not_replayed() {
    for (name, fs, options) in [
        ("unsummed", "ext4", "'-O', '^metadata_csum'"),
        ("summed", "ext4", ""),
        ("log-of-ext3", "ext3", ""),
    ] {
        let lines = format!("[filesystem.{fs}]\nmkfs_options = [{options}]\n");
        let node = Node::with_config(Mode::MountOnly, &lines);
        let group = Group::new(name);
        let made = || {
            let volume = group.linear("data", "64m").fs(fs);
            let id = group.path("data");
            node.prints(&["allow-format", &id, "--yes"], "The next mount", 0);
            let dir = node.up("pod", &volume);
            write_synced(&dir.join("page"), name);
            (volume, dir)
        };
        let (volume, dir) = made();
        // Each of them is in a transaction of its own, after the page's.
        for n in 0..20 {
            std::fs::create_dir(dir.join(format!("{THEIRS}{n}"))).unwrap();
            run("sync", &["-f", text(&dir)]);
        }
        node.down("pod", &volume);
        group.lv("lvremove", &[], "data");
        Group::wait_for_the_next_second();

        let (volume, _) = made();
        let copy = group.linear("copy", "64m").fs(fs);
        // As a power cut leaves it.
        volume.copy_to(&copy);
        node.down("pod", &volume);
        let dir = node.up("pod", &copy);
        assert_eq!(read(&dir.join("page")), name);
        let all = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = all.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["lost+found", "page"], "{name}");
    }
}

#[test]
fn an_orphaned_lvcreate_is_waited_for() {
    let lines = "[limits]\nlock = 2\n[volume_group.orphans]\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, lines);
    let group = Group::new("orphans");
    let volume = Volume::new(&group, "data");
    node.does(&["attach", &volume.json(), &host_name()]);
    // `sleep` stands for an lvcreate whose driver was killed: it holds the lock of the group until it has wiped the
    // volume.
    let lock = "/run/flexvolume-lvm/group-orphans.lock";
    let orphan = holds(lock);
    node.refuses_mount(&volume, &["is held by sleep (pid "]);
    drop(orphan);
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
}

#[test]
fn a_call_that_has_made_a_volume_does_not_wait_for_one_that_waits_for_it() {
    let wait =
        "$REAL \"$@\"\necho $$ >> $HERE/lvcreate.runs\nwhile [ ! -e $HERE/go ]; do sleep 0.1; done";
    let tools = Tools::new().put("lvcreate", wait);
    let create = "[volume_group.meeting]\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, &(tools.config() + create));
    let group = Group::new("meeting");
    let volume = Volume::new(&group, "data");
    let first = node.start_mount("first", &volume);
    tools.wait_for("lvcreate");
    let second = node.start_mount("second", &volume);
    // The second call has the volume's lock, and waits for the group's.
    let uuid = sh("lvs --noheadings -o uuid meeting/data").replace(['-', ' '], "");
    let lock = std::path::PathBuf::from(format!("/run/flexvolume-lvm/{uuid}.lock"));
    eventually("the second call", || lock.exists());
    tools.let_go();
    for call in [first, second] {
        call.reply().is_success();
    }
    group.assert_recorded("data", "ext4");
}

#[test]
fn data_put_on_a_created_volume_is_kept() {
    for fs in ["ext4", "xfs", "btrfs"] {
        let name = format!("images{fs}");
        let lines = format!("[volume_group.{name}]\ncreate = true\n");
        let node = Node::with_config(Mode::MountOnly, &lines);
        let group = Group::new(&name);
        let volume = Volume::new(&group, "data").fs(fs).with("size", "320m");
        node.does(&["attach", &volume.json(), &host_name()]);
        let device = volume.device();
        bash(&format!(
            "mkfs.{fs} -q {device}; mount {device} /mnt; printf 'by hand' > /mnt/page; umount /mnt"
        ));
        is_refused(&node, &group, &volume, fs);
        node.prints(&["adopt", &format!("{name}/data")], "", 0);
        group.assert_recorded("data", fs);
        node.finds(&volume, "by hand");
    }
}

const MD: [u8; 4] = 0xA92B_4EFC_u32.to_le_bytes();

/// Makes a volume of 320 MiB, writes the marks of several things all over it, and removes it.
fn leave_marks(group: &Group) {
    const SIZE: u64 = 320 * MIB;
    let volume = group.linear("removed", "320m");
    let device = volume.device();
    // A copy of the superblock, of 2106, in group 27.
    run("mkfs.ext4", &["-q", "-b", "1024", &device]);
    let at = 27 * 8 * MIB + KIB;
    let mut copy = bytes(&device, at, 1024);
    copy[0x30..0x34].copy_from_slice(&[0xFF; 4]);
    run("blkdiscard", &["-f", &device]);
    put(&device, at, &copy);
    for at in [4 * KIB, SIZE - 8 * KIB, SIZE - 64 * KIB] {
        put(&device, at, &MD);
    }
    put(&device, 128 * KIB, &0x00BA_B10C_u64.to_le_bytes());
    // And one that lvcreate wipes.
    md0(&device, SIZE - 64 * KIB);
    group.lv("lvremove", &[], "removed");
    Group::wait_for_the_next_second();
}

#[test]
fn the_remains_of_a_removed_volume_prevent_no_creation() {
    let group = Group::new("leftover");
    let config = "[volume_group.leftover]\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, config);
    for fs in ["ext4", "xfs", "btrfs"] {
        leave_marks(&group);
        let volume = Volume::new(&group, "data").fs(fs).with("size", "320m");
        node.write("pod", &volume, "kept");
        group.assert_recorded("data", fs);
        run("blkdiscard", &["-f", &volume.device()]);
        group.lv("lvremove", &[], "data");
    }
    // One call creates the volume, and another one formats it.
    leave_marks(&group);
    let volume = Volume::new(&group, "data").with("size", "320m");
    node.does(&["attach", &volume.json(), &host_name()]);
    node.write("pod", &volume, "kept");
    run("blkdiscard", &["-f", &volume.device()]);
    group.lv("lvremove", &[], "data");
    // A volume that a person makes waits.
    leave_marks(&group);
    let md = "an md superblock at byte 4096";
    let volume = group.linear("data", "320m");
    node.refuses_mount(&volume, &[md, "allow-format leftover/data"]);
}

#[test]
fn data_written_after_lvcreate_is_not_taken_for_remains() {
    let group = Group::new("quick");
    let volume = Volume::new(&group, "data").with("size", "320m");
    let device = volume.device();
    // As soon as the driver asks LVM for the volume that it has made and cleaned.
    let cleaned = "[ -e $HERE/asked ] || { touch $HERE/asked; exec $REAL \"$@\"; }";
    for (tool, first) in [("lvs", cleaned), ("lvchange", "")] {
        let writes = format!(
            "[ -e $HERE/written ] || [ ! -e {device} ] || {{\n {first}\n touch $HERE/written\n \
             printf '\\374\\116\\053\\251' | dd of={device} bs=4k seek=1 conv=fsync status=none\n}}\n\
             exec $REAL \"$@\""
        );
        let tools = Tools::new().put(tool, &writes);
        let config = format!("{}[volume_group.quick]\ncreate = true\n", tools.config());
        let node = Node::with_config(Mode::MountOnly, &config);
        let reply = node.mount("pod", &volume);
        reply.is_failure(&["quick/data holds an md superblock at byte 4096"]);
        assert_eq!(group.tags("data"), "flexvolume.new", "{tool}");
        run("blkdiscard", &["-f", &device]);
        group.lv("lvremove", &[], "data");
    }
}

/// A person gives the name of the new volume to another one, before the driver has asked for the new volume, or before
/// it has opened the device.
#[test]
fn a_volume_that_gets_the_name_of_a_new_one_is_not_cleaned() {
    const RENAMES: &str = "lvrename -qq renamed data mine && lvrename -qq renamed theirs data";
    let lvcreate = format!("$REAL \"$@\" && {RENAMES}");
    let lvs = format!(
        "$REAL \"$@\" || exit\n$REAL renamed/theirs renamed/data > /dev/null 2>&1 && {RENAMES}\nexit 0"
    );
    for (tool, script) in [("lvcreate", &lvcreate), ("lvs", &lvs)] {
        let group = Group::new("renamed");
        let theirs = group.linear("theirs", "64m");
        let device = theirs.device();
        run("mkfs.ext4", &["-q", &device]);
        let sum = |device: &str| bash(&format!("sha1sum < {device}"));
        let before = sum(&device);
        let tools = Tools::new().put(tool, script);
        let config = format!("{}[volume_group.renamed]\ncreate = true\n", tools.config());
        let mut node = Node::with_config(Mode::MountOnly, &config);
        let volume = Volume::new(&group, "data").with("size", "64m");
        let reply = node.mount("pod", &volume);
        assert_eq!(sum("/dev/renamed/data"), before, "{tool}: {reply:?}");
        reply.is_failure(&["somebody has renamed or removed", "Nothing was written"]);
        assert_eq!(group.tags("mine"), "flexvolume.new", "{tool}");
        node.configure(Mode::MountOnly, "");
        node.visit(&volume);
    }
}

/// kubelet's restart stops the call, and perhaps lvcreate, before the new volume is wiped and cleaned.
#[test]
fn a_volume_is_cleaned_though_the_driver_is_told_to_stop() {
    const UNWIPED: &str = r#"$REAL $(echo "$*" | sed "s/--wipesignatures y --zero y/--wipesignatures n --zero n/")
echo $$ >> $HERE/lvcreate.runs
exec sleep 600"#;
    let group = Group::new("halted");
    leave_marks(&group);
    let tools = Tools::new().put("lvcreate", UNWIPED);
    let config = "[volume_group.halted]\ncreate = true\n";
    let mut node = Node::with_config(Mode::MountOnly, &(tools.config() + config));
    let volume = Volume::new(&group, "data").with("size", "320m");
    let call = node.start_mount("pod", &volume);
    tools.wait_for("lvcreate");
    call.stop()
        .is_failure(&["because the driver was told to stop"]);
    assert_eq!(group.tags("data"), "flexvolume.new");
    node.configure(Mode::MountOnly, config);
    node.write("pod", &volume, "kept");
    group.assert_recorded("data", "ext4");
}
