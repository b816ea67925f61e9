//! A volume whose content is not the recorded one is neither mounted nor formatted, until an operator permits it on the
//! node.

use crate::prelude::*;

/// Brings a volume up once, with a page in it.
fn filled(node: &Node, group: &Group, lv: &str) -> Volume {
    let volume = Volume::new(group, lv);
    node.write("pod", &volume, lv);
    volume
}

#[test]
fn content_of_another_volume_is_refused_until_it_is_adopted() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("restored");
    let [mine, other] = ["mine", "other"].map(|lv| {
        group.linear(lv, "32m");
        filled(&node, &group, lv)
    });
    let (was, is) = (mine.uuid(), other.uuid());
    other.copy_to(&mine);

    let words = [was.as_str(), is.as_str(), "lvm adopt restored/mine"];
    node.refuses_mount(&mine, &words);
    // Nobody who writes a pod can give the word.
    for option in ["adopt", "mayformat", "allow-format", "force", "format"] {
        node.refuses_mount(&mine.clone().with(option, "true"), &["[swapped]"]);
    }
    node.prints(&["allow-format", "restored/mine"], "holds ext4", 1);

    node.prints(&["adopt", "restored/mine"], "", 0);
    assert_eq!(group.tags("mine"), format!("flexvolume.fs=ext4:{is}"));
    node.finds(&mine, "other");
}

#[test]
fn a_volume_rolled_back_to_before_its_filesystem_is_refused() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("rolled");
    group.linear("thick", "32m");
    group.lv("lvcreate", &["-s", "-n", "blank", "-L", "32m"], "thick");
    let volume = filled(&node, &group, "thick");
    let tag = group.tags("thick");
    merge(&group, "blank");
    assert!(!group.has("blank"));
    let was = &tag["flexvolume.fs=ext4:".len()..];
    node.refuses_mount(&volume, &[was, "lvm allow-format rolled/thick"]);
    node.prints(&["adopt", "rolled/thick"], "nothing is found", 1);
    assert_eq!(group.tags("thick"), tag);

    // The word is for one mkfs.
    node.prints(&["allow-format", "rolled/thick", "--yes"], "", 0);
    let volume = filled(&node, &group, "thick");
    group.assert_recorded("thick", "ext4");
    assert_ne!(group.tags("thick"), tag);

    // Back to an earlier state of the same filesystem: that is what snapshots are for.
    group.lv("lvcreate", &["-s", "-n", "early", "-L", "32m"], "thick");
    node.write("pod", &volume, "late");
    merge(&group, "early");
    node.finds(&volume, "thick");
}

/// Merges a snapshot back into its origin and waits for the end of it.
fn merge(group: &Group, snapshot: &str) {
    group.lv("lvconvert", &["-i", "1", "--merge"], snapshot);
}

#[test]
fn the_word_to_format_is_gone_once_the_volume_is_in_use() {
    let sees = "lvs --noheadings -o lv_tags worded/data > $HERE/mount.runs\nexec $REAL \"$@\"";
    let (tools, node) = Tools::new().put("mount", sees).node();
    let group = Group::new("worded");
    group.linear("data", "32m");
    let volume = filled(&node, &group, "data");
    // Given while the content could not be seen, say; the content is back.
    let word = ["--addtag", "flexvolume.mayformat=data-0:1"];
    group.lv("lvchange", &word, "data");
    node.finds(&volume, "data");
    // Not later than there can be new data.
    assert_eq!(tools.runs("mount")[0].trim(), group.tags("data"));
    group.assert_recorded("data", "ext4");
    run("wipefs", &["-qa", &volume.device()]);
    let held = "worded/data should hold ext4 ";
    node.refuses_mount(&volume, &[held, "lvm allow-format worded/data"]);
}

#[test]
fn a_volume_that_lost_its_filesystem_is_never_formatted_again() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("wiped");
    for (fs, size) in FILESYSTEMS {
        let volume = group.linear(fs, size).fs(fs);
        let advice = format!("lvm allow-format wiped/{fs}");
        node.visit(&volume);
        run("wipefs", &["-q", "--all", &volume.device()]);
        let held = format!("wiped/{fs} should hold {fs} ");
        node.refuses_mount(&volume, &[&held, &advice]);

        // When the tags are gone too, the rest of its superblock speaks. That of btrfs lies where
        // lvcreate leaves what a removed volume had.
        group.forget(fs);
        if fs != "btrfs" {
            node.refuses_mount(&volume, &[&advice]);
        }
    }
}

/// What a person runs on the wrong volume, the filesystem that is there, its size, what repairs it, and the option with
/// which that asks nothing.
#[rustfmt::skip] // a row is a line
const MISTAKES: [(&str, &str, &str, &str, &str); 4] = [
    ("mkswap", "ext4", "64m", "e2fsck -b ", " -y"),
    ("echo start=2048 | sfdisk -q --no-reread --no-tell-kernel --label gpt --wipe always", "ext4", "64m", "e2fsck -b ", " -y"),
    ("pvcreate -qq -ff -y --config devices/scan_lvs=1", "xfs", "320m", "xfs_repair /dev/", ""),
    ("pvcreate -qq -ff -y --config devices/scan_lvs=1", "btrfs", "128m", "btrfs-select-super ", ""),
];

#[test]
fn a_filesystem_over_which_a_tool_wrote_comes_back_with_the_commands_of_the_messages() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("overwritten-by");
    for (mistake, fs, size, repairs, unasked) in MISTAKES {
        println!("{mistake} over {fs}");
        let volume = group.linear("data", size).fs(fs);
        node.write("pod", &volume, "kept");
        let (device, uuid) = (volume.device(), volume.uuid());
        bash(&format!("{mistake} {device} > /dev/null; udevadm settle"));
        let held = format!("overwritten-by/data should hold {fs} {uuid} ");
        let refused = node.refuses_mount(&volume, &[&held, "[other]"]);
        let wipe = refused.command("wipefs --backup --all ").unwrap();
        bash(&format!("export HOME=/run; {wipe}"));
        let refused = node.refuses_mount(&volume, &[&held, "[signs-of-data]"]);
        let repair = refused.command(repairs).unwrap();
        // e2fsck exits with 1 if it has repaired something.
        bash(&format!("{repair}{unasked} || [ $? = 1 ]"));
        node.finds(&volume, "kept");
        // The next volume gets its place.
        run("blkdiscard", &["-fz", &device]);
        group.lv("lvremove", &[], "data");
    }
}

#[test]
fn a_mkfs_that_refuses_leaves_the_record_of_an_earlier_one() {
    let refuses = "echo refused >&2; exit 1";
    let (_, node) = Tools::new().put("mkfs.ext4", refuses).node();
    let (group, volume) = Group::with_data("refusing");
    group.lv("lvchange", &["--addtag", "flexvolume.making=xfs"], "data");
    node.refuses_mount(&volume, &["refused"]);
}
