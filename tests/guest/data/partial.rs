//! Disks that are gone or have a bad page. Some volumes can be mounted without them, others cannot.

use crate::prelude::*;

#[test]
fn a_raid_is_mounted_if_it_has_lost_no_more_disks_than_it_can() {
    let node = Node::new(Mode::MountOnly);
    // Of raid0 the third disk has nothing that anybody reads before a mount.
    let cases: [(&str, usize, &[usize], bool, bool); 8] = [
        ("raid0 -i4 -I4m", 4, &[2], true, false),
        ("raid0 -i4 -I4m", 4, &[2], false, false),
        ("raid1 -m1 --nosync", 2, &[1], true, true),
        ("raid5 -i2", 3, &[2], false, true),
        ("raid5 -i2", 3, &[1, 2], true, false),
        ("raid5 -i2", 3, &[1, 2], false, false),
        ("raid10 -i2 -m1 --nosync", 4, &[3], true, true),
        ("raid10 -i2 -m1 --nosync", 4, &[2, 3], true, false),
    ];
    for (lvs, count, lost, active, holds) in cases {
        println!("{lvs} on {count} disks without {lost:?}, active: {active}");
        let kind = lvs.split(' ').next().unwrap();
        let name = format!("{kind}-{}-{active}", lost.len());
        let (disks, group) = Disk::several(&name, count, 200 * MIB);
        sh(&format!(
            "lvcreate -qq -y -W y --type {lvs} -L 64m -n data {name}"
        ));
        let volume = Volume::new(&group, "data");
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
            let words: &[&str] = &["partial"];
            if active {
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

#[test]
fn a_volume_whose_cache_is_lost_keeps_its_data_by_what_the_message_says() {
    let node = Node::new(Mode::MountOnly);
    let cases = [
        (
            "cachevol",
            "--type cache --cachemode writethrough --cachevol",
        ),
        ("behind", "--type cache --cachemode writeback --cachevol"),
        ("writecache", "--type writecache --cachevol"),
        (
            "cachepool",
            "--type cache --cachemode writethrough --cachepool",
        ),
    ];
    for (name, converts) in cases {
        println!("{name}");
        let (disks, group) = Disk::several(name, 2, 200 * MIB);
        let [slow, fast] = [0, 1].map(|number| disks[number].path());
        sh(&format!(
            "lvcreate -qq -y -W y -L 64m -n data {name} {slow}"
        ));
        let volume = Volume::new(&group, "data");
        node.write("pod", &volume, "kept");
        let kind = if converts.ends_with("pool") {
            "cache-pool"
        } else {
            "linear -an -Z n"
        };
        bash(&format!(
            "lvchange -qq -an {name}/data
            lvcreate -qq -y -L 32m --type {kind} -n fast {name} {fast}
            lvconvert -qq -y {converts} fast {name}/data"
        ));
        disks[1].fail_wholly();
        let refused = node.refuses_mount(&volume, &["only a cache"]);
        agreeing(refused.command("lvchange -an").unwrap());
        node.finds(&volume, "kept");
    }
}

/// LVM calls such a volume partial, and does not say whether another disk has all of it.
#[test]
fn a_thin_volume_whose_pool_lacks_a_disk_is_kept_and_gets_no_new_pod_until_the_pool_is_repaired() {
    let node = Node::new(Mode::MountOnly);
    let (disks, group) = Disk::several("thinraid", 2, 200 * MIB);
    for (lv, size) in [("pool", "100m"), ("meta", "8m")] {
        let raid = "--type raid1 -m1 --nosync";
        sh(&format!(
            "lvcreate -qq -y {raid} -L {size} -n {lv} thinraid"
        ));
    }
    let made_of = "--poolmetadata thinraid/meta --poolmetadataspare n thinraid/pool";
    sh(&format!("lvconvert -qq -y --type thin-pool {made_of}"));
    let volume = group.thin("data", "32m");
    let dir = node.up("pod", &volume);
    let tags = group.tags("data");
    disks[1].fail_wholly();
    write_synced(&dir.join("page"), "goes on");
    node.down("pod", &volume);
    let words = ["thinraid/data is partial", "an image of a RAID"];
    node.refuses_mount(&volume, &words);
    node.refuses_mount(&volume.clone().read_only(), &words);
    assert_eq!(group.tags("data"), tags);

    let (found, code) = node.json(&["doctor"]);
    let found = found.as_array().unwrap();
    let found = found.iter().filter(|one| one["severity"] != "ok");
    let told: Vec<String> = found.map(ToString::to_string).collect();
    let (of_group, of_volumes) = told.split_first().unwrap();
    assert!(
        of_group.contains("RAID below a pool") && code == 1,
        "{told:?}"
    );
    assert_eq!(of_volumes.len(), 2, "{told:?}");
    for one in of_volumes {
        // lvmthin(7) repairs a pool: with a disk away that costs the pool its metadata.
        let is_harmless = !one.contains("--repair thinraid/pool");
        assert!(one.contains("partial") && is_harmless, "{one}");
    }
    let spare = Disk::new("thinraid-spare", 200 * MIB);
    sh(&format!("vgextend -qq thinraid {}", spare.path()));
    for part in ["pool_tdata", "pool_tmeta"] {
        group.lv("lvconvert", &["--repair"], part);
    }
    run("vgreduce", &["-qq", "--removemissing", "thinraid"]);
    node.finds(&volume, "goes on");
    node.prints(&["doctor", "-q"], "", 0);
}

#[test]
fn a_bad_page_at_the_end_of_a_whole_filesystem_keeps_nobody_from_it() {
    for (fs, size) in [("ext4", 64), ("xfs", 300)] {
        let node = Node::new(Mode::MountOnly);
        let name = format!("badend{fs}");
        let (disk, group, volume) = Disk::with_data(&name, fs, size);
        node.write("pod", &volume, "kept");
        let (tag, id) = (group.tags("data"), group.path("data"));
        // The first two are read by blkid of util-linux 2.41 and 2.38, which then names nothing.
        for from_end in [MIB, 512 << 10, 100 << 10] {
            println!("{fs}, {from_end} bytes before the end");
            let end = size * MIB - from_end;
            disk.fail(end..end + 4096);
            // The filesystem is there, and a mount by hand succeeds.
            run("mount", &["-o", "ro", &volume.device(), "/mnt"]);
            run("umount", &["/mnt"]);

            group.forget("data");
            node.prints(&["check", &id], "mount", 0);
            node.finds(&volume.clone().read_only(), "kept");
            group.forget("data");
            node.prints(&["adopt", &id], "", 0);
            assert_eq!(group.tags("data"), tag, "adopted as what it is");
            group.forget("data");
            let dir = node.up("pod", &volume);
            assert_eq!(read(&dir.join("page")), "kept");
            write_synced(&dir.join("other"), "written");
            node.down("pod", &volume);
            assert_eq!(group.tags("data"), tag, "recorded as what it is");
            disk.heal();
        }
    }
}

#[test]
fn what_can_wait_is_not_written_into_a_group_that_lacks_a_disk() {
    let node = Node::with_config(Mode::Attach, "deactivate = true");
    let (disks, group) = Disk::several("lacking", 2, 200 * MIB);
    let [here, away] = [0, 1].map(|number| disks[number].path());
    for (lv, disk) in [("data", &here), ("blank", &here), ("other", &away)] {
        sh(&format!(
            "lvcreate -qq -y -W y -L 32m -n {lv} lacking {disk}"
        ));
    }
    let volume = Volume::new(&group, "data");
    sh(&format!("mkfs.ext4 -q {}", volume.device()));
    let given = "flexvolume.mayformat=data-0:1700000000"; // in 2023
    group.lv("lvchange", &["--addtag", given], "data");
    group.lv("lvchange", &["-an"], "other");
    // The number of the last change of LVM's metadata.
    let change = || sh("vgs --noheadings -o vg_seqno lacking");
    let before = (group.tags("data"), change());
    disks[1].fail_wholly();

    node.up("pod", &volume);
    write_synced(&node.pod_dir("pod", &volume).join("page"), "kept");
    node.all_down(&["pod"], &volume);
    assert_eq!((group.tags("data"), change()), before);
    disks[1].heal();
    sh("pvscan -qq --cache");
    let missing = || sh("vgs --noheadings -o vg_missing_pv_count lacking");
    assert_eq!(missing(), "0");
    // Its mount would become read-only when its disk fails, whenever the kernel next writes to it.
    let other = Volume::new(&group, "other");
    node.up("pod", &other);
    node.all_down(&["pod"], &other);
    node.finds(&volume, "kept");
    let tags = group.tags("data");
    assert!(
        tags.contains("flexvolume.fs=ext4:") && !tags.contains(given),
        "{tags}"
    );

    // What is made is recorded, so it is not made, and a tag that may not wait is not written either.
    disks[1].fail_wholly();
    let blank = Volume::new(&group, "blank");
    node.refuses_mount(&blank, &["lacks 1 of its disks", "[degraded]"]);
    group.lv("lvchange", &["--addtag", "noted"], "data");
    disks[1].heal();
    sh("pvscan -qq --cache");
    assert_eq!(missing(), "1");
    let (said, _) = node.says(&["doctor"]);
    agreeing(told(&said, "vgextend --restoremissing"));
    assert_eq!(missing(), "0");
}

#[test]
fn no_filesystem_is_to_be_repaired_while_lvm_says_that_its_raid_is_not_well() {
    let node = Node::new(Mode::MountOnly);
    let (disks, group) = Disk::several("unwell", 2, 200 * MIB);
    sh("lvcreate -qq -y -W y --type raid1 -m1 --nosync -L 64m -n data unwell");
    let volume = Volume::new(&group, "data");
    node.write("pod", &volume, "kept");
    let device = volume.device();
    bash(&format!(
        "debugfs -w -R 'clri <2>' {device}; debugfs -w -R 'set_super_value state 2' {device}"
    ));
    let advice = || {
        node.mount("refused", &volume)
            .command("e2fsck -f")
            .is_some()
    };
    assert!(advice());
    disks[1].fail_wholly();
    let failed = node.mount("refused", &volume);
    failed.is_failure(&[
        "checking the filesystem of unwell/data",
        "LVM says \"partial\"",
    ]);
    assert!(!advice());
    sh(failed.command("lvs ").unwrap());
    disks[1].heal();
}
