//! Which processes each call starts, and why it needs each of them. Their number is the same on every machine, unlike
//! times.

use std::time::{Duration, Instant};

use crate::crypt::with_key;
use crate::prelude::*;

/// Runs before anything is done to a volume. Only LVM knows the volume's record, health, kind and time of creation.
pub const ASK: &str = "lvs";
/// Names the content of the device. If blkid cannot read the device, it also reports nothing. So the driver itself
/// reads a volume that may be blank. If all of it is zero, blkid does not run.
pub const PROBE: &str = "blkid";
/// The driver itself (/proc/self/exe), in a process that can be left behind. This process makes all reads of devices
/// for the call, since a broken disk may never answer.
pub const EXAMINE: &str = "exe";
/// Checks that nobody else has the device open, just before mkfs. A process, a storage target or a loop device could
/// write to the device, and an exclusive open does not prevent this.
pub const ALONE: &str = "dmsetup";
/// The driver itself, for an unmount. The last unmount of a filesystem writes to the disk what is not there yet, and no
/// table says for certain whether an unmount is the last.
const UNMOUNT: &str = EXAMINE;
/// The driver itself, for a bind mount with other flags than the mount that it is bound from. To set the flags waits
/// for whoever freezes the filesystem.
const RESTRICT: &str = EXAMINE;
/// Changes the record, and activates: only LVM changes LVM's metadata. The record is written before and after mkfs, so
/// that an interrupted mkfs is known.
pub const CHANGE: &str = "lvchange";
/// Mounts. It knows the options of every filesystem, and the helpers of some.
pub const MOUNT: &str = "mount";

/// Calls the driver, which must succeed and start exactly these programs, in this order. Returns its answer.
#[track_caller]
pub fn starts(node: &Node, args: &[&str], expected: &[&str]) -> String {
    let found = programs(&node.exe(), args);
    let is_success = found.stdout.contains("\"Success\"");
    assert!(is_success, "{args:?}: {}", found.stdout);
    let mut programs = found.programs;
    // A call that mounts after 2 s, as on a busy machine, first asks once more who has the device open.
    let asked = programs
        .windows(2)
        .position(|two| *two == [ALONE, MOUNT])
        .filter(|_| found.took >= Duration::from_secs(2));
    if let Some(at) = asked {
        programs.remove(at);
    }
    assert_eq!(programs, expected, "{args:?}");
    // mkfs.btrfs has threads of its own; a call that starts nothing must have none.
    assert!(found.others == 0 || !expected.is_empty(), "{args:?} forked");
    found.stdout
}

#[test]
fn a_mount_that_is_there_is_answered_without_a_process() {
    let (node, _group, volume) = Node::with_data(Mode::Attach, "standing");
    let pod = node.up("pod", &volume);
    let global = node.global_dir(&volume);
    let (json, device, host) = (volume.json(), volume.device(), host_name());
    let other = precreated(node.pod_dir("other", &volume));
    let (pod, global, other) = (text(&pod), text(&global), text(&other));
    let calls: &[&[&str]] = &[
        &["init"],
        &["isattached", &json, &host],
        &["isattached", &json, "another-node"],
        &["attach", &json, &host],
        &["attach", &json, "another-node"],
        &["waitforattach", &device, &json],
        &["mountdevice", global, &device, &json],
        &["mount", pod, &json],
        // Bound from the global mount.
        &["mount", other, &json],
        &["detach", &volume.name, &host],
        &["detach", &device, &host],
    ];
    for args in calls {
        starts(&node, args, &[]);
    }
    let reader = precreated(node.pod_dir("reader", &volume));
    let (reader, json) = (text(&reader), volume.clone().read_only().json());
    starts(&node, &["mount", reader, &json], &[RESTRICT]);
    starts(&node, &["mount", reader, &json], &[]);
    for dir in [reader, other, pod] {
        starts(&node, &["unmount", dir], &[UNMOUNT]);
        starts(&node, &["unmount", dir], &[]);
    }
    starts(&node, &["unmountdevice", global], &[UNMOUNT]);
    starts(&node, &["unmountdevice", global], &[]);
}

#[test]
fn in_mount_only_mode_too_what_stands_starts_no_process() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "upright");
    let first = node.up("first", &volume);
    let second = precreated(node.pod_dir("second", &volume));
    let (json, first, second) = (volume.json(), text(&first), text(&second));
    starts(&node, &["mount", first, &json], &[]);
    starts(&node, &["mount", second, &json], &[]);
    starts(&node, &["unmount", first], &[UNMOUNT]);
    starts(&node, &["unmount", second], &[UNMOUNT]);
}

#[test]
fn activation_asks_lvm_once_and_changes_once() {
    let (node, group, volume) = Node::with_data(Mode::Attach, "counting");
    for args in [
        ["attach", &volume.json(), &host_name()],
        ["waitforattach", "", &volume.json()],
        ["waitforattach", &volume.device(), &volume.json()],
    ] {
        group.lv("lvchange", &["-an"], "data");
        let answer = starts(&node, &args, &[ASK, CHANGE]);
        assert!(answer.contains(&volume.device()), "{answer}");
        assert!(group.is_active("data"));
    }
    // Only LVM knows whether the group is on this host at all.
    group.lv("lvchange", &["-an"], "data");
    let answer = starts(&node, &["isattached", &volume.json(), &host_name()], &[ASK]);
    assert!(answer.contains("\"attached\":false"), "{answer}");
    assert!(!group.is_active("data"), "only asked");
    assert_eq!(group.tags("data"), "", "nothing was made yet");
}

#[test]
fn what_nothing_uses_is_deactivated_if_configured_and_changed_once() {
    let host = host_name();
    let node = Node::with_config(Mode::Attach, "deactivate = true");
    let (group, volume) = Group::with_data("released");
    node.up_globally(&volume);
    let dir = node.global_dir(&volume);
    starts(&node, &["detach", &volume.name, &host], &[ASK]);
    starts(&node, &["detach", &volume.device(), &host], &[]);
    assert!(group.is_active("data"), "it is mounted");
    // After a restart of kubelet no detach comes.
    starts(&node, &["unmountdevice", text(&dir)], &[UNMOUNT, CHANGE]);
    assert!(!group.is_active("data"));
    starts(&node, &["unmountdevice", text(&dir)], &[ASK]);
    starts(&node, &["detach", &volume.name, &host], &[ASK]);
    let attach = ["attach", &volume.json(), &host];
    node.does(&attach);
    starts(&node, &["detach", &volume.name, "another-node"], &[]);
    assert!(group.is_active("data"), "not for this node");
    starts(&node, &["detach", &volume.name, &host], &[ASK, CHANGE]);
    node.does(&attach);
    // kubelet gives a name, a person may give the device: then nobody need be asked.
    starts(&node, &["detach", &volume.device(), &host], &[CHANGE]);
    assert!(!group.is_active("data"));
}

/// Mounts the volume and unmounts it as often as there are lists of programs, which each mount starts.
#[track_caller]
pub fn mounts_start(node: &Node, volume: &Volume, lists: &[&[&str]]) {
    let (json, device) = (volume.json(), volume.device());
    let [pod, global] = [node.pod_dir("pod", volume), node.global_dir(volume)].map(precreated);
    let (mount, unmount) = match node.mode {
        Mode::Attach => (
            &["mountdevice", text(&global), &device, &json][..],
            ["unmountdevice", text(&global)],
        ),
        Mode::MountOnly => (&["mount", text(&pod), &json][..], ["unmount", text(&pod)]),
    };
    for programs in lists {
        starts(node, mount, programs);
        starts(node, &unmount, &[UNMOUNT]);
    }
}

#[test]
fn the_first_mount_makes_and_records_and_later_ones_only_mount() {
    // e2fsck replays the journal, which mount(2) would do too, and sees the mark that the kernel
    // leaves when it has met an error, which mount(2) passes over.
    let checked = &[ASK, EXAMINE, "e2fsck", MOUNT][..];
    let mounted = &[ASK, EXAMINE, MOUNT];
    for (fs, size, again) in [
        ("ext4", "32m", checked),
        ("ext3", "32m", checked),
        ("xfs", "300m", mounted),
        ("btrfs", "128m", mounted),
    ] {
        let group = Group::new("counted");
        let volume = group.linear("data", size).fs(fs);
        let make = format!("mkfs.{fs}");
        let blank = [ASK, EXAMINE, CHANGE, ALONE, &make, CHANGE, MOUNT];
        mounts_start(&Node::new(Mode::Attach), &volume, &[&blank, again]);
    }
}

/// What the page says of one mount, with the locks and what the driver's child reads.
#[test]
fn a_first_mount_has_the_steps_of_its_page() {
    let page = include_str!("../../../docs/developers/architecture.md");
    let (_, section) = page.split_once("## One mount, step by step").unwrap();
    let (_, rows) = section.split_once("|---|---|---|\n").unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    let steps = rows.filter_map(|row| row.split(['`', ' ']).nth(2));
    let mut programs = Vec::new();
    for step in steps {
        match step {
            "lock" => {}
            "examine" | "superblock" if programs.contains(&EXAMINE) => {}
            "examine" | "superblock" => programs.push(EXAMINE),
            tool => programs.push(tool),
        }
    }
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "stepping");
    let dir = precreated(node.pod_dir("pod", &volume));
    starts(&node, &["mount", text(&dir), &volume.json()], &programs);
}

#[test]
fn an_encrypted_volume_is_opened_once_and_closed_after_the_last_pod() {
    const CRYPT: &str = "cryptsetup";
    let node = with_key(Mode::MountOnly, "sealed");
    let group = Group::new("sealed");
    let volume = group.linear("data", "48m").encrypted();
    let dirs = ["one", "two"].map(|pod| precreated(node.pod_dir(pod, &volume)));
    let [one, two] = dirs.each_ref().map(|dir| text(dir));
    let mount = ["mount", one, &volume.json()];
    let made = [
        &[ASK, EXAMINE, CHANGE, ALONE, CRYPT, CRYPT][..],
        // How the kernel encrypts it.
        &["dmsetup", "mkfs.ext4", CHANGE, MOUNT],
    ];
    starts(&node, &mount, &made.concat());
    starts(&node, &["mount", two, &volume.json()], &[]);
    starts(&node, &["unmount", two], &[UNMOUNT]);
    starts(&node, &["unmount", one], &[UNMOUNT, CRYPT]);
    // What is inside, and how the kernel encrypts it, is looked at after the wait for cryptsetup.
    let opened = [ASK, EXAMINE, CRYPT, ASK, ALONE, ALONE, "e2fsck", MOUNT];
    starts(&node, &mount, &opened);
}

#[test]
fn of_an_inactive_volume_lvm_is_asked_once_if_it_is_recorded_and_plain() {
    for (fs, size, check) in [("ext4", "32m", &["e2fsck"][..]), ("xfs", "300m", &[])] {
        let node = Node::new(Mode::MountOnly);
        let group = Group::new("dormant");
        let volume = group.linear("data", size).fs(fs);
        let make = format!("mkfs.{fs}");
        let blank = [
            ASK, CHANGE, ASK, EXAMINE, CHANGE, ALONE, &make, CHANGE, MOUNT,
        ];
        // LVM compares the volume with its answer when it activates the volume. What only the kernel knows of an
        // active volume, who has it open, is asked of dmsetup.
        let again = [&[ASK, CHANGE, ALONE, EXAMINE], check, &[MOUNT]].concat();
        // A permission to format must go before the mount.
        let permitted = [&[ASK, CHANGE, ASK, EXAMINE], check, &[CHANGE, MOUNT]].concat();
        let permission = ["-an", "--addtag", "flexvolume.mayformat=x:1"];
        for (change, programs) in [
            (&["-an"][..], &blank[..]),
            (&["-an"], &again),
            (&permission, &permitted),
        ] {
            group.lv("lvchange", change, "data");
            mounts_start(&node, &volume, &[programs]);
        }
    }
}

#[test]
fn what_only_some_volumes_need_is_asked_for_those_alone() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("peculiar");
    group.pool();
    let thin = group.thin("thin", "300m").fs("xfs");
    node.visit(&thin);
    // The second lvs is for the pool: how full it is, is no field of the volume's own row.
    mounts_start(&node, &thin, &[&[ASK, ASK, EXAMINE, MOUNT]]);
    // A filesystem of somebody else is recorded once.
    let foster = group.linear("foster", "32m");
    run("mkfs.ext4", &["-q", &foster.device()]);
    let recorded = [ASK, EXAMINE, PROBE, "e2fsck", MOUNT, CHANGE];
    mounts_start(
        &node,
        &foster,
        &[&recorded, &[ASK, EXAMINE, "e2fsck", MOUNT]],
    );
}

#[test]
fn growth_asks_extends_and_grows_and_does_not_extend_again() {
    let (node, _group, volume) = Node::with_data(Mode::Attach, "taller");
    let dir = node.up_globally(&volume);
    let (json, device) = (volume.json(), volume.device());
    let args = ["expandfs", &json, &device, text(&dir), "67108864", "0"];
    starts(&node, &args, &[ASK, "lvextend", "resize2fs"]);
    // The filesystem of an extended volume may still be small: only its own tool knows. If the tool has changed
    // nothing, the superblock is compared with the device.
    starts(&node, &args, &[ASK, "resize2fs", EXAMINE]);
}

#[test]
fn a_volume_made_on_demand_is_not_activated_a_second_time() {
    let lines = "[volume_group.ondemand]\ncreate = true\n";
    let node = Node::with_config(Mode::Attach, lines);
    let group = Group::new("ondemand");
    let volume = Volume::new(&group, "data");
    // That it is absent, only a list of the group tells, and how much is free, only the group. Asked
    // again under the lock of the group: another call may have made it meanwhile. What is cleaned is known by its UUID.
    let args = ["attach", &volume.json(), &host_name()];
    starts(
        &node,
        &args,
        &[ASK, ASK, ASK, ASK, "vgs", "lvcreate", ASK, EXAMINE],
    );
    assert!(group.is_active("data"));
}

#[test]
fn a_blank_volume_is_read_once_and_a_recorded_one_hardly() {
    for fs in ["ext4", "xfs", "btrfs"] {
        let node = Node::new(Mode::MountOnly);
        let group = Group::new("sparing");
        let volume = group.linear("data", "512m").fs(fs);
        let device = volume.device();
        // The driver reads both ends and the places of marks. mkfs and the mount read the rest.
        for most in [16 + 1 + 5, 4] {
            let (before, began) = (bytes_read(&device), Instant::now());
            node.up("pod", &volume);
            let (read, took) = (bytes_read(&device) - before, began.elapsed());
            println!("{fs}: {read} bytes in {took:?}");
            // After 2 s the driver looks once more.
            assert!(
                read <= most * MIB || took >= Duration::from_secs(2),
                "{fs}: {read} bytes"
            );
            node.down("pod", &volume);
        }
    }
}
