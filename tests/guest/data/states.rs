//! The states of a volume that LVM can report. All of them are in docs/developers/lvm-states.md, and those that need a
//! case of their own have it here.

use std::collections::BTreeSet;
use std::fs;

use crate::prelude::*;
use crate::refusals::agreed::agreed;

const PAGE: &str = include_str!("../../../docs/developers/lvm-states.md");

/// What the first cells of the page's tables name.
fn on_the_page() -> BTreeSet<&'static str> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

/// The fields that LVM on this Debian lists.
fn fields() -> BTreeSet<String> {
    let lists = ["lvs", "lvs --segments", "vgs", "pvs"];
    // Some versions print the list on standard error.
    let all = lists.map(|list| bash(&format!("{list} -o help 2>&1 || true")));
    let names = all.iter().flat_map(|list| list.lines());
    let names = names.filter_map(|line| Some(line.trim().split_once(" - ")?.0.trim_end()));
    // `lv_all` and its like stand for all of a section, and `?` for help.
    let names = names.filter(|name| !name.ends_with("_all") && *name != "?");
    names.map(str::to_owned).collect()
}

/// The letters of an attribute by its page of the manual, each as `lv_attr 5 a`. A letter stands there in parentheses,
/// in bold on some Debians.
fn letters(manual: &str, attr: &str) -> BTreeSet<String> {
    let manual = manual.replace("\\fB", "").replace("\\fP", "");
    let (_, bits) = manual.split_once(&format!("The {attr} bits are:")).unwrap();
    let (bits, _) = bits.split_once(".SH ").unwrap();
    let mut at = String::new();
    let mut found = BTreeSet::new();
    for line in bits.lines() {
        if let Some(number) = line
            .strip_prefix(".IP ")
            .and_then(|ip| ip.split(' ').next())
        {
            number.clone_into(&mut at);
        }
        for (before, rest) in line.match_indices('(').map(|(at, _)| line.split_at(at)) {
            let mut rest = rest.chars().skip(1);
            let (letter, end) = (rest.next(), rest.next());
            // `.BR pvmove (8)` names another page.
            let is_letter = letter.is_some_and(char::is_alphabetic) && end == Some(')');
            if is_letter && !before.starts_with(".BR") {
                found.insert(format!("{attr} {at} {}", letter.unwrap()));
            }
        }
    }
    found
}

#[test]
fn each_field_and_each_letter_that_lvm_can_report_is_on_the_page() {
    let mut known = fields();
    assert!(known.len() > 200, "{known:?}");
    for (tool, attr, least) in [
        ("lvs", "lv_attr", 60),
        ("vgs", "vg_attr", 10),
        ("pvs", "pv_attr", 5),
    ] {
        let page = format!("/usr/share/man/man8/{tool}.8.gz");
        // A container's files may have no manual.
        if fs::exists(&page).unwrap() {
            let its = letters(&sh(&format!("zcat {page}")), attr);
            assert!(its.len() >= least, "{its:?}");
            known.extend(its);
        } else {
            println!("{page} is not here");
        }
    }
    let page = on_the_page();
    let missing: Vec<&String> = known
        .iter()
        .filter(|one| !page.contains(one.as_str()))
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
}

/// What a pod writes while LVM copies is on the disk that LVM copies to.
#[test]
fn what_lvm_rebuilds_keeps_what_is_written() {
    let node = Node::new(Mode::MountOnly);
    // What begins it, how it is seen, and what lets it end. LVM looks after 100 s whether a pvmove has ended.
    let cases = [
        (
            "moving",
            "pvmove -qq -b -i +100 -n data $a $b",
            "lvs --noheadings -a -o move_pv $vg | grep /dev",
            "pvmove -qq -i 1",
        ),
        (
            "rebuilt",
            "lvconvert -qq -y --type raid1 -m1 $vg/data $b
            lvchange -qq --maxrecoveryrate 1k --minrecoveryrate 1k $vg/data
            lvchange -qq --syncaction repair $vg/data || true",
            "lvs --noheadings -o raid_sync_action $vg/data | grep -v idle",
            "lvchange -qq --maxrecoveryrate 0 --minrecoveryrate 0 $vg/data",
        ),
        (
            "mirrored",
            "lvconvert -qq -y -b -i +100 --type mirror --mirrorlog core -m1 $vg/data $b",
            "lvs --noheadings -a -o lv_converting,lv_attr $vg | grep -E 'converting|^ *c| m'",
            "lvconvert -qq -i 1 $vg/data || true",
        ),
    ];
    for (name, begins, shows, ends) in cases {
        println!("{name}");
        let (disks, group) = Disk::several(name, 2, 200 * MIB);
        let [a, b] = [0, 1].map(|number| disks[number].path());
        let run = |lines: &str| bash(&format!("vg={name} a={a} b={b}; {lines}"));
        run("lvcreate -qq -y -W y -L 32m -n data $vg $a");
        let volume = Volume::new(&group, "data");
        node.write("pod", &volume, "before");
        run(begins);
        run(shows);
        node.finds(&volume, "before");
        node.write("pod", &volume, "meanwhile");
        run(shows);
        run(ends);
        eventually("the end", || {
            let all = run("lvs --noheadings -a -o lv_attr,sync_percent,move_pv $vg");
            !all.contains("/dev/") && (name == "moving" || all.contains("100.00"))
        });
        disks[0].fail_wholly();
        node.finds(&volume, "meanwhile");
    }
}

/// A number of a device's table, of sectors, in bytes.
pub fn sectors(device: &str, column: usize) -> u64 {
    let table = sh(&format!("dmsetup table {device}"));
    let number = table.split(' ').nth(column - 1).unwrap();
    number.parse::<u64>().unwrap() * 512
}

#[test]
fn a_thin_volume_whose_pool_has_failed_is_neither_written_nor_read() {
    let node = Node::new(Mode::MountOnly);
    let disk = Disk::new("given-up-disk", 200 * MIB);
    let group = Group::on("given-up", &[&disk.path()]);
    sh("lvcreate -qq -y --type thin-pool -Z n -L 100m --poolmetadataspare n -n pool given-up");
    let volume = group.thin("data", "64m");
    node.write("pod", &volume, "kept");
    let first = sectors("given--up-pool_tmeta", 5) - MIB;
    let length = sectors("given--up-pool_tmeta", 2);
    disk.fail(first..first + length);
    bash(
        "dd if=/dev/urandom of=/dev/mapper/given--up-data bs=64k count=32 seek=600 conv=notrunc,fsync || true",
    );
    eventually("a fault", || {
        sh("lvs --noheadings -o lv_attr given-up/data").contains("t-F-")
    });
    let words = "of given-up/pool, the thin pool of given-up/data";
    agreed(&node, &volume, &group, "unwell", words);
    node.refuses_mount(&volume.clone().read_only(), &[words]);
    disk.heal();
    let refused = node.refuses_mount(&volume, &[words]);
    agreeing(refused.command("lvchange -an").unwrap());
    node.finds(&volume, "kept");
}

#[test]
fn images_that_differ_are_told() {
    let node = Node::new(Mode::MountOnly);
    let (disks, group) = Disk::several("differ", 2, 200 * MIB);
    sh("lvcreate -qq -y -W y --type raid1 -m1 --nosync -L 32m -n data differ");
    let volume = Volume::new(&group, "data");
    node.write("pod", &volume, "kept");
    // Beneath LVM, where the filesystem has nothing.
    bash(&format!(
        "dd if=/dev/urandom of={} bs=1M seek=30 count=1 conv=notrunc,fsync
        lvchange --syncaction check differ/data",
        disks[1].path()
    ));
    eventually("a difference", || {
        sh("lvs --noheadings -o lv_health_status differ/data").contains("mismatches exist")
    });
    node.prints(&["doctor"], "LVM says \"mismatches exist\"", 3);
    let reply = node.mount("pod", &volume);
    reply.is_success();
    assert!(reply.message.contains("mismatches exist"), "{reply:?}");
    node.down("pod", &volume);
    node.finds(&volume, "kept");

    // One image may be blank, and the other not.
    group.forget("data");
    run("blkdiscard", &["-z", "-f", &volume.device()]);
    let refused = node.refuses_mount(&volume, &["mismatches exist", "[degraded]"]);
    let is_idle = || sh("lvs --noheadings -o raid_sync_action differ/data") == "idle";
    bash(refused.command("lvchange --syncaction repair").unwrap());
    eventually("the repair", is_idle);
    bash(refused.command("lvchange --syncaction check").unwrap());
    eventually("the check", is_idle);
    node.visit(&volume);
}

#[test]
fn an_image_whose_disk_failed_for_a_while_is_filled_again() {
    let node = Node::new(Mode::MountOnly);
    let (disks, group) = Disk::several("refreshed", 2, 200 * MIB);
    sh("lvcreate -qq -y -W y --type raid1 -m1 --nosync -L 32m -n data refreshed");
    let volume = Volume::new(&group, "data");
    let dir = node.up("pod", &volume);
    disks[1].fail_wholly();
    write_synced(&dir.join("page"), "kept");
    disks[1].heal();
    let health = || sh("lvs --noheadings -o lv_health_status refreshed/data");
    eventually("LVM's wish", || health() == "refresh needed");
    let (said, code) = node.says(&["doctor"]);
    assert_eq!(code, 3, "{said}");
    bash(told(&said, "lvchange --refresh"));
    eventually("two images", || {
        health().is_empty() && sh("lvs --noheadings -o copy_percent refreshed/data") == "100.00"
    });
    // The other image alone has what was written meanwhile.
    node.down("pod", &volume);
    sh("lvchange -an refreshed/data");
    disks[0].fail_wholly();
    let activated = node.mount("pod", &volume);
    activated.is_success();
    assert_eq!(read(&dir.join("page")), "kept");
    node.down("pod", &volume);
    disks[0].heal();
}

#[test]
fn a_device_without_a_table_gets_one() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("notable");
    let volume = group.linear("data", "32m");
    node.write("pod", &volume, "kept");
    bash(
        "uuid=$(dmsetup info -c --noheadings -o uuid notable-data); lvchange -qq -an notable/data
        dmsetup create --notable -u $uuid notable-data",
    );
    node.finds(&volume, "kept");
}

#[test]
fn a_volume_that_keeps_nothing_is_not_mounted() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("nothing");
    for (kind, words) in [
        ("zero", "said that it succeeded"),
        ("error", "cannot be read"),
    ] {
        sh(&format!(
            "lvcreate -qq -y --type {kind} -L 32m -n {kind} nothing"
        ));
        let volume = Volume::new(&group, kind);
        let reply = node.mount("pod", &volume);
        reply.is_failure(&[words]);
    }
}

#[test]
fn a_disk_that_is_not_for_volumes_gives_no_room() {
    let node = Node::with_config(Mode::MountOnly, "[volume_group.closed]\ncreate = true\n");
    let (disks, group) = Disk::several("closed", 2, 200 * MIB);
    let volume = group.linear("data", "32m");
    node.up("pod", &volume);
    for disk in &disks {
        run("pvchange", &["-qq", "--allocatable", "n", &disk.path()]);
    }
    node.grow("pod", &volume, 64 * MIB)
        .is_failure(&["Insufficient free space", "(0 bytes free in closed)"]);
    let new = Volume::new(&group, "new").with("size", "32m");
    node.refuses_mount(&new, &["0 bytes free"]);
    run("pvchange", &["-qq", "--allocatable", "y", &disks[1].path()]);
    node.grow("pod", &volume, 64 * MIB).is_success();
    node.down("pod", &volume);
}

/// LVM gives the rest to the next volume, and each overwrites what is the other's.
#[test]
fn a_volume_that_is_larger_than_lvm_says_is_not_written_by_one_more_pod() {
    let node = Node::new(Mode::MountOnly);
    let (group, volume) = Group::with_data("restored");
    node.write("pod", &volume, "before");
    bash("vgcfgbackup -qq -f /run/restored.before restored");
    let dir = node.up("pod", &volume);
    node.grow("pod", &volume, 64 * MIB).is_success();
    bash(
        "vgcfgbackup -qq -f /run/restored.after restored
        vgcfgrestore -qq -y -f /run/restored.before restored",
    );
    write_synced(&dir.join("page"), "after");
    let before = filesystem_size(&dir);
    let words = "has 64 MiB, and by LVM's metadata restored/data has 32 MiB";
    // The pod that has it goes on, and all tell.
    let told = node.is_ill("larger-device", "restored/data", "vgcfgrestore --list ");
    bash(&told);
    node.prints(&["status", "-x"], "larger than LVM says", 1);
    // lvextend would make the device smaller.
    let grown = node.grow("pod", &volume, 48 * MIB);
    grown.is_failure(&[words]);
    assert_eq!(filesystem_size(&dir), before);
    node.down("pod", &volume);
    agreed(&node, &volume, &group, "larger-device", words);
    let reader = volume.clone().read_only();
    assert_eq!(read(&node.up("reader", &reader).join("page")), "after");
    node.down("reader", &reader);
    bash("vgcfgrestore -qq -y -f /run/restored.after restored");
    node.is_well("larger-device");
    node.finds(&volume, "after");
}

#[test]
fn a_volume_that_becomes_read_only_under_a_pod_takes_no_space_for_a_filesystem_that_cannot_grow() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "fixed");
    let dir = node.up("pod", &volume);
    group.lv("lvchange", &["--permission", "r"], "data");
    let grown = node.grow("pod", &volume, 64 * MIB);
    grown.is_failure(&["is a read-only logical volume", "[read-only-volume]"]);
    assert_eq!(group.size("data"), 32 * MIB);
    // A second pod would write, too.
    node.refuses_mount(&volume, &["is a read-only logical volume"]);
    node.up("reader", &volume.clone().read_only());
    node.down("reader", &volume);
    agreeing(grown.command("lvchange --permission rw").unwrap());
    node.up("second", &volume);
    node.down("second", &volume);
    node.grow("pod", &volume, 64 * MIB).is_success();
    assert!(filesystem_size(&dir) > 48 * MIB);
    node.down("pod", &volume);
}
