//! Disks that are gone or have a bad page, where what is left is enough for the volume; and where it
//! is not.

use std::ops::Range;

use crate::prelude::*;

const MIB: u64 = 1 << 20;

/// Disks of 200 MiB, and a group on them.
fn on_disks(name: &str, count: usize) -> (Group, Vec<Disk>) {
    let disk = |number| Disk::new(&format!("{name}-{number}"), 200 * MIB);
    let disks: Vec<Disk> = (0..count).map(disk).collect();
    let paths: Vec<String> = disks.iter().map(Disk::path).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    (Group::on(name, &paths), disks)
}

/// LVM has nothing in its way when it is taken away without its disks.
struct Lost(Group);

impl Drop for Lost {
    fn drop(&mut self) {
        lenient("vgchange", &["-qq", "-an", &self.0.name]);
    }
}

#[test]
fn a_raid_is_mounted_if_it_has_lost_no_more_disks_than_it_can() {
    let node = Node::new(Mode::MountOnly);
    // Of raid0 the third disk has nothing that anybody reads before a mount.
    let cases: [(&str, usize, &[usize], bool, bool); 7] = [
        ("raid0 -i4 -I4m", 4, &[2], true, false),
        ("raid0 -i4 -I4m", 4, &[2], false, false),
        ("raid1 -m1 --nosync", 2, &[1], true, true),
        ("raid5 -i2", 3, &[2], false, true),
        ("raid5 -i2", 3, &[1, 2], true, false),
        ("raid5 -i2", 3, &[1, 2], false, false),
        ("raid10 -i2 -m1 --nosync", 4, &[3], true, true),
    ];
    for (lvs, count, lost, active, holds) in cases {
        println!("{lvs} on {count} disks without {lost:?}, active: {active}");
        let kind = lvs.split(' ').next().unwrap();
        let name = format!("{kind}-{}-{active}", lost.len());
        let (group, disks) = on_disks(&name, count);
        let group = Lost(group);
        let group = &group.0;
        sh(&format!(
            "lvcreate -qq -y -W y --type {lvs} -L 64m -n data {name}"
        ));
        let volume = Volume::new(group, "data");
        // Only then can it do without a disk.
        eventually("all of its parts", || {
            let parts = sh(&format!("lvs --noheadings -o sync_percent {name}/data"));
            kind == "raid0" || parts == "100.00"
        });
        node.write("pod", &volume, "kept");
        if !active {
            group.lv("lvchange", &["-an"], "data");
        }
        let tags = group.tags("data");
        for number in lost {
            disks[*number].fail_wholly();
        }
        if holds {
            let reply = node.mount("pod", &volume);
            reply.is_success();
            let words = format!("{name}/data is mounted, but");
            assert!(reply.message.contains(&words), "{reply:?}");
            let page = node.pod_dir("pod", &volume).join("page");
            assert_eq!(read(&page), "kept", "{lvs}");
            write_synced(&page, "goes on");
            node.down("pod", &volume);
        } else {
            let words: &[&str] = if kind == "raid0" { &["partial"] } else { &[] };
            if active {
                println!("{lvs}");
                node.refuses_mount(&volume, words);
                node.prints(&["check", &group.path("data")], &group.path("data"), 1);
            } else {
                node.mount("pod", &volume).is_failure(words);
                assert!(!group.is_active("data"), "{lvs}");
            }
            assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);
            assert_eq!(group.tags("data"), tags);
            for disk in &disks {
                disk.heal();
            }
        }
    }
}

/// Runs the command of a message that begins so, as an operator who agrees to all that it asks.
fn run_what_it_says(message: &str, begins: &str, disk: &str, uuid: &str) {
    let mut spans = message.split('`').skip(1).step_by(2);
    let command = spans.find(|span| span.starts_with(begins)).unwrap();
    let command = command.replace("DISK", disk).replace("UUID", uuid);
    run(
        "bash",
        &[
            "-c",
            &format!("yes | head -n 9 | script -qec {command:?} /dev/null"),
        ],
    );
}

#[test]
fn a_volume_whose_cache_is_lost_keeps_its_data_by_what_the_message_says() {
    let node = Node::new(Mode::MountOnly);
    let cases = [
        (
            "cachevol",
            "--type cache --cachemode writethrough --cachevol",
            "All data is on the other disks",
        ),
        (
            "behind",
            "--type cache --cachemode writeback --cachevol",
            "not yet written back",
        ),
        (
            "writecache",
            "--type writecache --cachevol",
            "not yet written back",
        ),
        (
            "cachepool",
            "--type cache --cachemode writethrough --cachepool",
            "All data is on the other disks",
        ),
        (
            "poolbehind",
            "--type cache --cachemode writeback --cachepool",
            "not yet written back",
        ),
    ];
    for (name, converts, words) in cases {
        println!("{name}");
        let (group, disks) = on_disks(name, 2);
        let spare = Disk::new(&format!("{name}-spare"), 200 * MIB);
        let (group, uuid) = (
            Lost(group),
            format!("pvs --noheadings -o pv_uuid {}", disks[1].path()),
        );
        let (group, uuid) = (&group.0, sh(&uuid).trim().to_owned());
        sh(&format!(
            "lvcreate -qq -y -W y -L 64m -n data {name} {}",
            disks[0].path()
        ));
        let volume = Volume::new(group, "data");
        node.write("pod", &volume, "kept");
        group.lv("lvchange", &["-an"], "data");
        let kind = if converts.ends_with("pool") {
            "cache-pool"
        } else {
            "linear -an -Z n"
        };
        sh(&format!(
            "lvcreate -qq -y -L 32m --type {kind} -n fast {name} {}",
            disks[1].path()
        ));
        sh(&format!("lvconvert -qq -y {converts} fast {name}/data"));
        sh(&format!("vgcfgbackup -qq -f /run/{name}.backup {name}"));
        disks[1].fail_wholly();
        let said = node
            .refuses_mount(&volume, &["the disk of its cache is missing", words])
            .message;
        let said = said
            .replace("/etc/lvm/backup", "/run")
            .replace(&format!("/run/{name} "), &format!("/run/{name}.backup "));
        if name == "poolbehind" {
            run_what_it_says(&said, "pvcreate --uuid", &spare.path(), &uuid);
        }
        run_what_it_says(&said, "lvchange -an", "", "");
        assert_eq!(
            read(&node.up("pod", &volume).join("page")),
            "kept",
            "{name}"
        );
        node.down("pod", &volume);
    }
}

#[test]
fn a_thin_volume_whose_pool_is_raid1_is_mounted_without_one_of_the_disks() {
    let node = Node::new(Mode::MountOnly);
    let (group, disks) = on_disks("thinraid", 2);
    let group = Lost(group);
    let group = &group.0;
    for (lv, size) in [("pool", "100m"), ("meta", "8m")] {
        let raid = "--type raid1 -m1 --nosync";
        sh(&format!(
            "lvcreate -qq -y {raid} -L {size} -n {lv} thinraid"
        ));
    }
    let made_of = "--poolmetadata thinraid/meta --poolmetadataspare n thinraid/pool";
    sh(&format!("lvconvert -qq -y --type thin-pool {made_of}"));
    let volume = group.thin("data", "32m");
    node.write("pod", &volume, "kept");
    let tags = group.tags("data");
    disks[1].fail_wholly();

    let reader = node.up("reader", &volume.clone().read_only());
    assert_eq!(read(&reader.join("page")), "kept");
    node.down("reader", &volume);
    let dir = node.up("pod", &volume);
    assert_eq!(read(&dir.join("page")), "kept");
    write_synced(&dir.join("page"), "goes on");
    node.down("pod", &volume);
    assert_eq!(read(&node.up("again", &volume).join("page")), "goes on");
    assert_eq!(group.tags("data"), tags);
}

fn page(at: u64) -> Range<u64> {
    at..at + 4096
}

#[test]
fn a_bad_page_at_the_end_of_a_whole_filesystem_keeps_nobody_from_it() {
    for (fs, size) in [("ext4", 64), ("xfs", 300)] {
        let node = Node::new(Mode::MountOnly);
        let name = format!("badend{fs}");
        let disk = Disk::new(&name, (size + 8) * MIB);
        let group = Group::on(&format!("{name}-vg"), &[&disk.path()]);
        let volume = group.linear("data", &format!("{size}m")).fs(fs);
        node.write("pod", &volume, "kept");
        let (tag, id) = (group.tags("data"), group.path("data"));
        let unrecorded = || group.lv("lvchange", &["--deltag", &tag], "data");
        // The first two are read by blkid of util-linux 2.41 and 2.38, which then names nothing.
        for from_end in [MIB, 512 << 10, 100 << 10] {
            println!("{fs}, {from_end} bytes before the end");
            let end = size * MIB - from_end;
            disk.fail(page(end));
            // It is there, and who mounts it by hand does not notice.
            run("mount", &["-o", "ro", &volume.device(), "/mnt"]);
            run("umount", &["/mnt"]);

            unrecorded();
            node.prints(&["check", &id], "mount", 0);
            let dir = node.up("reader", &volume.clone().read_only());
            assert_eq!(read(&dir.join("page")), "kept");
            node.down("reader", &volume);
            if group.tags("data") == tag {
                unrecorded();
            }
            node.prints(&["adopt", &id], "", 0);
            assert_eq!(group.tags("data"), tag, "adopted as what it is");
            unrecorded();
            let dir = node.up("pod", &volume);
            assert_eq!(read(&dir.join("page")), "kept");
            write_synced(&dir.join("other"), "written");
            node.down("pod", &volume);
            assert_eq!(group.tags("data"), tag, "recorded as what it is");
            disk.heal();
        }
    }
}
