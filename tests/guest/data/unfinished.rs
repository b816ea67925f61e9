//! The record that mkfs is at work stays when mkfs is killed. With this record, the remains of that mkfs may be
//! formatted, but nothing that somebody has put there since.

use crate::crypt;
use crate::data::foreign::bytes;
use crate::data::meanwhile::noise;
use crate::prelude::*;

#[test]
fn raw_data_on_a_volume_with_an_old_record_of_mkfs_is_not_formatted() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("stale");
    for (fs, size) in FILESYSTEMS {
        let ours = format!("flexvolume.making={fs}:{UUID}");
        // Older drivers let mkfs choose the UUID, so nothing tells what that mkfs has left.
        let older = format!("flexvolume.making={fs}");
        // A disk's worth of it, and one sector.
        for (making, at, length) in [(&ours, 0, 1 << 20), (&ours, 0, 512), (&older, 4096, 512)] {
            println!("{making}, {length} bytes");
            let volume = group.linear("data", size).fs(fs);
            group.lv("lvchange", &["--addtag", making], "data");
            let raw = noise(length);
            put(&volume.device(), at, &raw);
            let advice = "allow-format stale/data";
            node.refuses_mount(&volume, &[advice]);
            // With any type that is asked for now.
            node.refuses_mount(&volume.clone().fs("ext3"), &[advice]);
            node.prints(&["check", "stale/data"], advice, 1);
            let given_up = format!("data at byte {at}");
            node.prints(&["allow-format", "stale/data"], &given_up, 1);
            assert_eq!(bytes(&volume.device(), at, length), raw);
            assert_eq!(group.tags("data"), *making);

            let allow = ["allow-format", "stale/data", "--yes"];
            node.prints(&allow, &format!("Given up: {given_up}"), 0);
            node.visit(&volume);
            group.assert_recorded("data", fs);
            let is_given_up = group.tags("data").contains(UUID);
            assert!(!is_given_up, "the UUID of what was given up");
            run("blkdiscard", &["-f", &volume.device()]);
            group.lv("lvremove", &[], "data");
        }
    }
}

#[test]
fn an_ext_with_data_is_not_formatted_whatever_e2fsck_or_an_old_record_says() {
    /// The highest byte of the features without which nobody may look at it.
    const FEATURES: u64 = 1024 + 0x63;
    let group = Group::new("populated");
    std::fs::create_dir_all("/run/populated").unwrap();
    std::fs::write("/run/populated/page", "kept").unwrap();
    // e2fsck does not know one, finds errors that it repairs before the mount, or is killed for the
    // memory that it takes.
    for (case, tool) in [
        ("feature", ""),
        ("errors", ""),
        ("killed", "case \"$*\" in *-n*) kill -KILL $$;; esac"),
    ] {
        println!("{case}");
        let volume = group.linear("data", "32m");
        let device = volume.device();
        let make = format!("mke2fs -q -t ext4 -U {UUID} -O ^metadata_csum -d /run/populated");
        sh(&format!("{make} {device}"));
        match case {
            "feature" => put(&device, FEATURES, &[0x40]),
            "errors" => drop(run("debugfs", &["-w", "-R", "clri lost+found", &device])),
            _ => {}
        }
        let making = ["--addtag", &format!("flexvolume.making=ext4:{UUID}")];
        group.lv("lvchange", &making, "data");
        let tool = format!("{tool}\nexec $REAL \"$@\"");
        let (_, node) = Tools::new().put("e2fsck", &tool).node();
        let reply = node.mount("pod", &volume);
        if case == "feature" {
            reply.is_failure(&["checking the filesystem of populated/data"]);
            assert_eq!(group.tags("data"), making[1]);
            put(&device, FEATURES, &[0]);
        } else {
            reply.is_success();
            group.assert_recorded("data", "ext4");
            node.down("pod", &volume);
        }
        let page = run("debugfs", &["-R", "cat page", &device]);
        assert_eq!(page, "kept", "{case}");
        run("blkdiscard", &["-f", &device]);
        group.lv("lvremove", &[], "data");
    }
}

/// As a person leaves it who has made and used it by hand, or vgcfgrestore(8) with a record of an older driver.
#[test]
fn an_ext_that_lost_its_first_superblock_is_not_formatted_whatever_the_record_of_another_says() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("first-lost");
    // Filesystems with blocks of 1 KiB and of 4 KiB, which lose the superblock, the first page or the first MiB.
    for (fs, size) in [("ext4", "32m"), ("ext2", "32m"), ("ext4", "1g")] {
        let volume = group.linear("data", size).fs(fs);
        let device = volume.device();
        for lost in ["bs=1k seek=1 count=1", "bs=4k count=1", "bs=1M count=1"] {
            println!("{fs} of {size}, {lost}");
            node.write("pod", &volume, "kept");
            group.forget("data");
            let uuid = if fs == "ext4" { ":" } else { "" };
            let uuid = uuid.replace(':', &format!(":{UUID}"));
            let making = format!("flexvolume.making={fs}{uuid}");
            group.lv("lvchange", &["--addtag", &making], "data");
            sh(&format!(
                "dd if=/dev/zero of={device} {lost} conv=fsync status=none"
            ));
            let reply = node.refuses_mount(&volume, &["an ext backup superblock"]);
            assert_eq!(group.tags("data"), making);
            // With the first MiB the root directory may be lost, too.
            if !lost.starts_with("bs=1M") {
                agreeing(reply.command("e2fsck -b").unwrap());
                node.finds(&volume, "kept");
                group.assert_recorded("data", fs);
            }
        }
        run("blkdiscard", &["-f", &device]);
        group.lv("lvremove", &[], "data");
    }
}

/// So the driver takes an ext that has a superblock for complete.
#[test]
fn an_ext_gets_its_superblock_when_all_else_is_on_the_disk() {
    let group = Group::new("ordered");
    for (fs, size, more) in [
        ("ext2", "32m", ""),
        ("ext3", "32m", ""),
        ("ext4", "32m", "-O metadata_csum"),
        ("ext4", "1g", "-O quota,mmp"),
    ] {
        let device = group.linear("data", size).device();
        let trace = "-e trace=pwrite64,write,fsync -o /run/ordered.trace";
        sh(&format!("strace -f {trace} mkfs.{fs} -q {more} {device}"));
        let trace = read(std::path::Path::new("/run/ordered.trace"));
        // The first two clear what was there.
        let calls: Vec<&str> = trace.lines().filter(|line| line.contains(" = ")).collect();
        let at = |line: &&&str| line.contains(", 1024, 1024) = 1024");
        assert_eq!(calls.iter().filter(at).count(), 1, "{fs} of {size}");
        let [.., before, last, _] = &calls[..] else {
            panic!("{trace}");
        };
        assert!(before.contains("fsync(") && at(&last), "{before}, {last}");
        group.lv("lvremove", &[], "data");
    }
}

#[test]
fn a_mkfs_killed_at_one_of_its_writes_is_made_again() {
    let group = Group::new("cutshort");
    for (fs, size) in [
        ("ext2", "8m"), // one group, without a copy of its superblock
        ("ext3", "32m"),
        ("ext4", "32m"), // blocks of 1 KiB
        ("ext4", "1g"),  // of 4 KiB
        ("xfs", "300m"),
        ("btrfs", "128m"),
    ] {
        let tool = format!("mkfs.{fs}");
        for write in [1, 10, 60, 140] {
            let volume = group.linear("data", size).fs(fs);
            let inject = format!("inject=pwrite64,write:signal=KILL:when={write}");
            let killed = format!(
                "[ ! -e $HERE/go ] || exec $REAL \"$@\"\n\
                 exec strace -D -f -o /dev/null -e trace=pwrite64,write -e {inject} $REAL \"$@\""
            );
            let (tools, node) = Tools::new().put(&tool, &killed).node();
            let reply = node.mount("pod", &volume);
            println!("{fs} of {size}, killed at write {write}: {reply:?}");
            let mut begun = String::new();
            // mkfs ends before this write, or it is killed at it.
            if reply.status != "Success" {
                // Where nothing was written yet, the volume is as blank as it was.
                begun = group.tags("data");
                let making = format!("flexvolume.making={fs}:");
                assert!(begun.is_empty() || begun.starts_with(&making), "{begun}");
                tools.let_go();
            }
            node.write("pod", &volume, "kept");
            group.assert_recorded("data", fs);
            if !begun.is_empty() && fs != "btrfs" {
                assert_eq!(group.tags("data"), begun.replace("making=", "fs="));
            }
            node.finds(&volume, "kept");
            // The next case must not find its remains.
            run("blkdiscard", &["-f", &volume.device()]);
            group.lv("lvremove", &[], "data");
        }
    }
}

/// A call may be killed there, and another may come.
#[test]
fn a_tool_that_makes_or_mounts_begins_with_the_record_and_under_the_lock() {
    let tools = ["cryptsetup", "mkfs.ext4", "mount"];
    let stand_in = |tool: &&str| {
        let tags = "$(lvs -qq --noheadings -o tags begins/data)";
        let lock =
            "/run/flexvolume-lvm/$(lvs -qq --noheadings -o uuid begins/data | tr -d ' -').lock";
        let is_free = format!("flock -n {lock} echo free");
        format!(
            "echo {tool} {tags} $({is_free}) >> $HERE/all.runs\nexec $REAL \"$@\"",
            tool = *tool
        )
    };
    let tools = tools
        .iter()
        .fold(Tools::new(), |all, tool| all.put(tool, &stand_in(tool)));
    let file = crypt::key_file("begins");
    let node = Node::with_config(Mode::MountOnly, &(tools.config() + &crypt::config(&file)));
    let group = Group::new("begins");
    let mounted = || format!("mount {}", group.tags("data"));

    // The volume held a filesystem, and an operator allows to format it.
    let plain = Node::with_config(Mode::MountOnly, &tools.config());
    let volume = group.linear("data", "48m");
    plain.write("pod", &volume, "given up");
    run("blkdiscard", &["-f", "-z", &volume.device()]);
    plain.prints(&["allow-format", "begins/data", "--yes"], "Given up", 0);
    let (given, before) = (group.tags("data"), tools.runs("all").len());
    plain.up("pod", &volume);
    let (record, permission) = given.split_once(',').unwrap();
    group.assert_recorded("data", "ext4");
    let making = group.tags("data").replace(".fs=", ".making=");
    let making = format!("mkfs.ext4 {record},{making},{permission}");
    assert_eq!(tools.runs("all")[before..], [making, mounted()]);
    plain.down("pod", &volume);
    group.lv("lvremove", &[], "data");

    let volume = group.linear("data", "48m").encrypted();
    run("blkdiscard", &["-f", "-z", &volume.device()]);
    let before = tools.runs("all").len();
    node.up("pod", &volume);
    let luks = sh(&format!("cryptsetup luksUUID {}", volume.device()));
    let inside = sh(&format!("blkid -p -o value -s UUID {}", volume.mounted()));
    let making = |tool: &str| format!("{tool} flexvolume.making=luks2:ext4:{luks}:{inside}");
    let steps = ["cryptsetup", "cryptsetup", "mkfs.ext4"].map(making);
    assert_eq!(
        tools.runs("all")[before..],
        [&steps[..], &[mounted()]].concat()
    );
    node.down("pod", &volume);
}

#[test]
fn a_mkfs_that_was_ended_for_its_deadline_keeps_its_record() {
    let tools = Tools::new().held("mkfs.ext4");
    let config = tools.config() + "[limits]\nmake = 3\n";
    let node = Node::with_config(Mode::MountOnly, &config);
    let (group, volume) = Group::with_data("overdue");
    let reply = node.mount("pod", &volume);
    reply.is_failure(&["making ext4 on overdue/data", "within 3 s"]);
    // Only a mkfs that refused may have found the volume too small.
    assert!(!reply.message.contains("lvextend"), "{reply:?}");
    assert!(group.tags("data").starts_with("flexvolume.making=ext4:"));
    tools.let_go();
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
    node.down("pod", &volume);
}

#[test]
fn a_mkfs_that_made_another_filesystem_is_not_recorded() {
    let group = Group::new("another");
    for (lv, other) in [("kind", "mkfs.btrfs -q -f"), ("uuid", "$REAL -q")] {
        let other = format!("for last; do :; done\nexec {other} \"$last\"");
        let (_tools, node) = Tools::new().put("mkfs.ext4", &other).node();
        let reply = node.mount("pod", &group.linear(lv, "128m"));
        reply.is_failure(&["mkfs.ext4 said that it succeeded", "does not hold ext4"]);
        let tags = group.tags(lv);
        assert!(tags.starts_with("flexvolume.making=ext4:"), "{tags}");
    }
}
