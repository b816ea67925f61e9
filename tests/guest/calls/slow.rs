//! Tools that take three seconds each, as on a node where many pods start at once. A call must not start more tools
//! because they are slow: each further process makes all other calls slower.

use std::fs;

use crate::crypt;
use crate::prelude::*;

/// Every tool that these calls run.
const ALL: &str =
    "lvs lvchange dmsetup blkid mkfs.ext4 mkfs.xfs mkfs.btrfs e2fsck cryptsetup mount";

/// Runs a call that must succeed, and start exactly these tools in this order.
#[track_caller]
fn starts(node: &Node, tools: &Tools, args: &[&str], expected: &[&str]) {
    let before = tools.runs("all").len();
    node.does(args);
    assert_eq!(tools.runs("all")[before..], *expected, "{args:?}");
}

/// Tools that write down that they ran. These are slow.
fn slow_tools(slow: &str) -> Tools {
    ALL.split(' ').fold(Tools::new(), |tools, tool| {
        let is_slow = slow.split(' ').any(|one| one == tool);
        let seconds = if is_slow { 3 } else { 0 };
        let body = format!("echo {tool} >> $HERE/all.runs\nsleep {seconds}\nexec $REAL \"$@\"");
        tools.put(tool, &body)
    })
}

fn a_life(fs: &str, size: &str, make: &[&str], check: &[&str]) {
    let tools = slow_tools(ALL);
    let node = Node::with_config(Mode::Attach, &tools.config());
    let group = Group::of_size(&format!("slow{fs}"), 1 << 30);
    let volume = group.linear("data", size).fs(fs);
    let (json, device) = (volume.json(), volume.device());
    group.lv("lvchange", &["-an"], "data");
    let attach = ["attach", &json, &host_name()];
    starts(&node, &tools, &attach, &["lvs", "lvchange"]);
    let dir = precreated(node.global_dir(&volume));
    let mount = ["mountdevice", text(&dir), &device, &json];
    let first = [&["lvs", "lvchange", "dmsetup"], make, &["lvchange"]].concat();
    let later = [&["lvs"], check].concat();
    // Who has it open is asked once more: a slow step leaves time for another user.
    for steps in [first, later] {
        let steps = [&steps[..], &["dmsetup", "mount"]].concat();
        starts(&node, &tools, &mount, &steps);
        starts(&node, &tools, &["unmountdevice", text(&dir)], &[]);
    }
    group.lv("lvchange", &["-an"], "data");
}

#[test]
fn a_call_starts_no_more_tools_where_each_takes_three_seconds() {
    std::thread::scope(|scope| {
        scope.spawn(|| a_life("ext4", "32m", &["mkfs.ext4"], &["e2fsck"]));
        scope.spawn(|| a_life("xfs", "300m", &["mkfs.xfs"], &[]));
        scope.spawn(|| a_life("btrfs", "128m", &["mkfs.btrfs"], &[]));
        scope.spawn(an_inactive_volume);
        scope.spawn(an_encrypted_volume);
    });
}

fn an_inactive_volume() {
    // LVM alone is slow, as beside a crowd: who has the volume open is asked after that.
    let tools = slow_tools("lvs lvchange");
    let node = Node::with_config(Mode::MountOnly, &tools.config());
    let (group, volume) = Group::with_data("slowinactive");
    node.visit(&volume);
    let later = ["lvs", "lvchange", "dmsetup", "e2fsck", "mount"];
    // On a busy machine e2fsck may be slow, too: then dmsetup runs twice. So this is true of three mounts out of five.
    let (mut right, mut wrong) = (0, 0);
    while right < 3 {
        group.lv("lvchange", &["-an"], "data");
        let before = tools.runs("all").len();
        node.visit(&volume);
        let is_right = tools.runs("all")[before..] == later;
        *(if is_right { &mut right } else { &mut wrong }) += 1;
        assert!(wrong < 3, "{:?}", tools.runs("all"));
    }
}

/// LVM's metadata changes after the driver has asked, and just before the driver activates the volume.
#[test]
fn what_changes_before_the_activation_is_seen() {
    let group = Group::new("meanwhile");
    let volume = group.linear("data", "32m");
    let tools = Tools::new().put(
        "lvchange",
        "case \"$*\" in *activate*) $REAL $(cat /run/meanwhile) ;; esac\nexec $REAL \"$@\"",
    );
    let node = Node::with_config(Mode::MountOnly, &tools.config());
    let id = format!("{}/data", group.name);
    fs::write("/run/meanwhile", "--version").unwrap();
    node.visit(&volume);
    let tag = group.tags("data");
    let (swapped, luks) = ("flexvolume.fs=ext4:another", "flexvolume.luks=another");
    for (change, undo, words) in [
        (
            format!("--deltag {tag} --addtag {swapped}"),
            format!("--deltag {swapped} --addtag {tag}"),
            "[swapped]",
        ),
        // An additional tag is a difference, too.
        (
            format!("--addtag {luks}"),
            format!("--deltag {luks}"),
            "[encrypted]",
        ),
    ] {
        group.lv("lvchange", &["-an"], "data");
        fs::write("/run/meanwhile", format!("{change} {id}")).unwrap();
        node.mount("pod", &volume).is_failure(&[words]);
        let undo: Vec<&str> = undo.split(' ').collect();
        group.lv("lvchange", &undo, "data");
    }
    // Tags that are not the driver's do no harm, but the answer is no longer the same.
    group.lv("lvchange", &["-an"], "data");
    fs::write("/run/meanwhile", format!("--addtag operators {id}")).unwrap();
    node.visit(&volume);
    // A tag with each character that LVM allows is compared, too.
    group.lv("lvchange", &["-an", "--addtag", "a&b#c!=:/."], "data");
    fs::write("/run/meanwhile", "--version").unwrap();
    node.visit(&volume);
}

fn an_encrypted_volume() {
    let tools = slow_tools(ALL);
    let file = crypt::key_file("slow");
    let node = Node::with_config(Mode::MountOnly, &(tools.config() + &crypt::config(&file)));
    let group = Group::new("slowcrypt");
    let volume = group.linear("data", "48m").encrypted();
    node.visit(&volume);
    let dir = precreated(node.pod_dir("pod", &volume));
    let args = ["mount", text(&dir), &volume.json()];
    // One dmsetup for who has it open, one for the kernel's table of the device inside.
    let later = "lvs cryptsetup lvs dmsetup dmsetup e2fsck dmsetup mount";
    starts(&node, &tools, &args, &later.split(' ').collect::<Vec<_>>());
}
