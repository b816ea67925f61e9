//! Volumes that are mounted read-only, or cannot be written.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::data::lvm_conf::LvmConf;
use crate::prelude::*;

fn assert_read_only(dir: &Path) {
    let error = fs::write(dir.join("page"), "changed").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
}

#[test]
fn a_read_only_volume_is_mounted_read_only() {
    let group = Group::new("readonly");
    for (fs, size) in FILESYSTEMS {
        for mode in BOTH_MODES {
            let (node, lv) = (Node::new(mode), format!("{fs}-{}", mode.lv()));
            let volume = group.linear(&lv, size).fs(fs);
            node.write("writer", &volume, "kept");
            node.down_globally(&volume);

            let volume = volume.read_only();
            let dir = node.up("reader", &volume);
            assert_eq!(read(&dir.join("page")), "kept");
            assert_read_only(&dir);
            node.all_down(&["reader"], &volume);
        }
    }
}

#[test]
fn a_writer_writes_though_only_readers_are_left() {
    in_both_modes(&Group::new("left"), |node, volume| {
        node.up("first", volume);
        let reader = node.up("reader", &volume.clone().read_only());
        node.all_down(&["first"], volume);
        let writer = node.up("writer", volume);
        fs::write(writer.join("page"), "kept").unwrap();
        assert_eq!(read(&reader.join("page")), "kept");
        assert_read_only(&reader);

        // A call that was killed before it made its bind writable is repeated.
        run("mount", &["-o", "remount,bind,ro", text(&writer)]);
        assert_read_only(&writer);
        node.mount("writer", volume).is_success();
        fs::write(writer.join("page"), "kept").unwrap();
        for pod in ["writer", "reader"] {
            node.down(pod, volume);
        }
    });
}

#[test]
fn mount_options_are_those_of_a_list_and_some_are_the_nodes_alone() {
    let group = Group::new("listed");
    let mut node = Node::new(Mode::MountOnly);
    #[rustfmt::skip] // a row has the options
    let of_pods = [
        ("ext4", "32m", "noatime,lazytime,iversion,sync,dirsync,commit=10,barrier=1,discard,acl,user_xattr,grpid,_netdev,\
            errors=continue,data_err=abort,data=ordered,journal_checksum,nodelalloc,noauto_da_alloc,dioread_lock,\
            max_dir_size_kb=64,minixdf", "commit=10"),
        ("xfs", "512m", "inode32,ikeep,largeio,allocsize=64k,filestreams,swalloc,wsync,logbufs=8,logbsize=256k,nodiscard,\
            sysvgroups,strictatime,nodiratime", "allocsize=64k"),
        ("btrfs", "128m", "compress-force=zstd:3,autodefrag,flushoncommit,notreelog,max_inline=1k,space_cache=v2,\
            ssd_spread,discard=async,noacl,commit=10,barrier,subvolid=5,nodatasum", "autodefrag"),
    ];
    for (fs, size, options, shown) in of_pods {
        let volume = group.linear(fs, size).fs(fs);
        let volume = volume.with("mountoptions", options);
        let given = mount_at(&node.up("pod", &volume)).unwrap().options;
        assert!(given.contains(shown), "{shown} in {given}");
        node.down("pod", &volume);
    }
    let volume = Volume::new(&group, "ext4");
    for (option, words) in [
        // A copy of its superblock, where a file could be as well.
        ("sb=8193", "it names another superblock"),
        ("nobarrier", "only mount_options in config.toml may set it"),
        ("nosuchoption", "nobody may set it"),
    ] {
        let volume = volume.clone().with("mountoptions", option);
        node.refuses_mount(&volume, &[option, words]);
    }
    let lines = "[filesystem.ext4]\nmount_options = 'nobarrier'\n";
    node.configure(Mode::MountOnly, lines);
    let options = mount_at(&node.up("pod", &volume)).unwrap().options;
    assert!(options.contains("nobarrier"), "{options}");
}

#[test]
fn a_read_only_snapshot_of_a_volume_in_use_is_mounted_once_it_may_be_written() {
    let group = Group::new("inuse");
    let node = Node::new(Mode::MountOnly);
    for (fs, size) in [("ext4", "64m"), ("xfs", "320m")] {
        let (volume, lv) = (group.linear(fs, size).fs(fs), format!("{fs}-now"));
        write_synced(&node.up("pod", &volume).join("page"), "kept");
        sh(&format!("lvcreate -qq -y -s -pr -n {lv} -L 32m inuse/{fs}"));
        let now = Volume::new(&group, &lv).fs(fs);
        let snapshot = "snapshot of a volume in use";
        let words = ["is a read-only logical volume", snapshot];
        node.mount("writer", &now).is_failure(&words);
        let reader = node.mount("reader", &now.clone().read_only());
        // An ext4 that was frozen for the snapshot needs no log.
        if reader.status != "Success" {
            reader.is_failure(&["is read-only itself", "as of a snapshot"]);
            sh(reader.command("lvchange --permission rw").unwrap());
        }
        let dir = node.up("reader", &now.clone().read_only());
        assert_eq!(read(&dir.join("page")), "kept", "{fs}");
        for (pod, volume) in [("reader", &now), ("pod", &volume)] {
            node.down(pod, volume);
        }
    }
}

#[test]
fn the_external_origin_of_a_thin_volume_is_written_through_that_volume() {
    let (group, volume) = Group::with_data("external");
    let node = Node::new(Mode::MountOnly);
    node.write("pod", &volume, "kept");
    group.pool();
    sh("lvchange -an external/data");
    sh("lvconvert -qq -y --type thin --thinpool external/pool --originname origin external/data");
    sh("lvchange -ay external/origin");
    let origin = Volume::new(&group, "origin");
    let words = ["is a read-only logical volume", "external origin"];
    let refused = node.refuses_mount(&origin, &words);
    // LVM would refuse that.
    assert_eq!(refused.command("lvchange"), None);
    bash("! lvchange --permission rw external/origin");
    let listed = sh(refused.command("lvs ").unwrap());
    let is_named = |line: &str| line.split_whitespace().eq(["data", "origin"]);
    assert!(listed.lines().any(is_named), "{listed}");
    node.finds(&volume, "kept");
    node.finds(&origin.read_only(), "kept");
    // Nobody can change that, so it is no fault.
    let (said, _) = node.says(&["doctor", "-q"]);
    assert!(!said.contains("external/origin"), "{said}");
}

#[test]
fn a_volume_that_lvm_conf_makes_read_only_is_written_once_the_list_lacks_it() {
    let group = Group::new("listed");
    let node = Node::new(Mode::MountOnly);
    for blank in [false, true] {
        let volume = group.linear(if blank { "blank" } else { "data" }, "32m");
        if !blank {
            node.write("pod", &volume, "kept");
        }
        let id = group.path(volume.lv());
        run("lvchange", &["-qq", "-an", &id]);
        let list = format!("activation {{\n read_only_volume_list = [ \"{id}\" ]\n}}\n");
        let conf = LvmConf::new(&list);
        run("lvchange", &["-qq", "-ay", &id]);
        let reply = node.refuses_mount(&volume, &["read-only here", "`read_only_volume_list`"]);
        sh(reply.command("lvmconfig activation").unwrap());
        drop(conf);
        sh(reply.command("lvchange --refresh").unwrap());
        node.visit(&volume);
    }
    // Somebody's blockdev does the same.
    let volume = group.linear("set", "32m");
    run("blockdev", &["--setro", &volume.device()]);
    let reply = node.refuses_mount(&volume, &["read-only here"]);
    sh(reply.command("blockdev --setrw").unwrap());
    node.up("pod", &volume);
}

#[test]
fn a_filesystem_that_the_kernel_only_reads_is_not_given_to_a_pod_that_writes() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("kept-ro");
    let volume = group.linear("data", "32m");
    node.write("pod", &volume, "kept");
    sh(&format!("tune2fs -O read-only {}", volume.device()));
    let refused = node.mount("pod", &volume);
    refused.is_failure(&["cannot be written", "readOnly"]);
    assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);
    node.finds(&volume.clone().read_only(), "kept");
    sh(refused.command("tune2fs ").unwrap());
    node.write("pod", &volume, "again");

    let seed = group.linear("seed", "128m").fs("btrfs");
    node.visit(&seed);
    sh(&format!("btrfstune -S 1 {}", seed.device()));
    // mount(8) of some versions says so itself.
    let refused = node.mount("pod", &seed);
    assert_eq!(refused.status, "Failure", "{refused:?}");
    let says_so = ["cannot be written", "write-protected"];
    assert!(
        says_so.iter().any(|words| refused.message.contains(words)),
        "{refused:?}"
    );
    assert_eq!(mount_at(&node.pod_dir("pod", &seed)), None);
}
