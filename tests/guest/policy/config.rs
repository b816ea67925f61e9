//! The permissions that the node's config gives, and who may change the config.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::prelude::*;

/// Every call-out that would bring the volume up is refused for this reason, and changes nothing.
fn never_up(node: &Node, volume: &Volume, reasons: &[&str]) {
    let (json, device) = (volume.json(), volume.device());
    let global = precreated(node.global_dir(volume));
    let dir = precreated(node.pod_dir("pod", volume));
    let before = Snapshot::take(node.kubelet_dir());
    let larger = (1_u64 << 30).to_string();
    let (dir, global, pod) = (text(&dir), text(&global), volume.json_for("pod"));
    let calls: [&[&str]; 6] = [
        &["attach", &json, &host_name()],
        &["waitforattach", &device, &json],
        &["mountdevice", global, &device, &json],
        &["mount", dir, &pod],
        &["expandvolume", &json, global, &larger, "0"],
        &["expandfs", &json, &device, global, &larger, "0"],
    ];
    for call in calls {
        node.call(call).is_failure(reasons);
    }
    assert_eq!(Snapshot::take(node.kubelet_dir()), before);
}

#[test]
fn only_groups_in_the_config_may_be_used() {
    let allowed = Group::new("allowed");
    let other = Group::new("other");
    for mode in BOTH_MODES {
        let lv = mode.lv();
        let node = Node::with_config(mode, "[volume_group.allowed]\ncreate = true\n");
        other.linear(lv, "32m");
        let reason = ["this node's config does not allow the volume group other"];
        never_up(&node, &Volume::new(&other, lv), &reason);
        // A volume that does not exist is not created there either.
        never_up(&node, &Volume::new(&other, "missing"), &reason);
        allowed.linear(lv, "32m");
        let volume = Volume::new(&allowed, lv);
        node.visit(&volume);
        node.down_globally(&volume);
    }
}

#[test]
fn no_volume_gets_larger_than_the_config_allows() {
    let group = Group::new("largest");
    group.pool();
    for mode in BOTH_MODES {
        let lines = "[volume_group.largest]\ncreate = true\nmax_size = \"64m\"\n";
        let (node, lv) = (Node::with_config(mode, lines), mode.lv());
        let volume = Volume::new(&group, lv);
        let host = &host_name();
        for size in ["65m", "67108865b", "1e9g"] {
            let large = volume.clone().with("size", size).json();
            let word = if size == "1e9g" { "size" } else { "max_size" };
            node.call(&["attach", &large, host]).is_failure(&[word]);
        }
        // In a thin pool it would take nothing, and is too large all the same.
        let thin = volume.clone().with("size", "0.1t").with("thinpool", "pool");
        node.refuses(&["attach", &thin.json(), host], &["64 MiB", "max_size"]);
        let dir = node.up("pod", &volume.clone().with("size", "64m"));
        assert_eq!(group.size(lv), 64 << 20);
        for bytes in [(64 << 20) + 1, u64::MAX] {
            node.grow("pod", &volume, bytes).is_failure(&["max_size"]);
        }
        let (json, larger) = (volume.json(), (68 << 20).to_string());
        let args = ["expandvolume", &json, text(&dir), &larger, "0"];
        node.call(&args).is_failure(&["64 MiB", "max_size"]);
        assert_eq!(group.size(lv), 64 << 20);
        node.all_down(&["pod"], &volume);
    }
}

#[test]
fn no_pod_undoes_the_mount_options_of_the_node() {
    let group = Group::new("kept");
    for mode in BOTH_MODES {
        let log = format!("/run/kept-{}.log", mode.lv());
        let lines = format!(
            "log = '{log}'\n[filesystem.ext4]\nmount_options = 'nosuid,noatime'\n\
             [volume_group.kept.filesystem.ext4]\nmount_options = 'nodev,noexec'\n"
        );
        let node = Node::with_config(mode, &lines);
        let words = "dev,exec,suid,defaults,atime";
        let volume = group.linear(mode.lv(), "32m");
        let volume = volume.with("mountoptions", words);
        let reader = volume.clone().read_only();
        for (pod, volume) in [("pod", &volume), ("second", &volume), ("reader", &reader)] {
            let options = mount_at(&node.up(pod, volume)).unwrap().options;
            let all: Vec<&str> = options.split([',', ' ']).collect();
            for option in ["nosuid", "nodev", "noexec"] {
                assert!(all.contains(&option), "{pod}: {option} in {options}");
            }
            assert!(!all.contains(&"noatime"), "{pod}: {options}");
        }
        let said = read(Path::new(&log));
        let overruled = r#""mountoptions-overruled":"dev,exec,suid""#;
        assert_eq!(said.matches(overruled).count(), 1, "{said}");
        node.all_down(&["pod", "second", "reader"], &volume);
    }
}

#[test]
fn the_nodes_restrictions_hold_beside_a_csi_drivers_mount() {
    let lines = "[filesystem.ext4]\nmount_options = 'nosuid,nodev'\n";
    let group = Group::new("csimade");
    for mode in BOTH_MODES {
        let node = Node::with_config(mode, lines);
        let volume = group.linear(mode.lv(), "32m");
        run("mkfs.ext4", &["-q", &volume.device()]);
        let csi = "pods/1-2/volumes/kubernetes.io~csi/a/mount";
        let dir = precreated(node.kubelet_dir().join(csi));
        run("mount", &[&volume.device(), text(&dir)]);
        let _mounted = Finally(format!("umount {}", dir.display()));
        let options = mount_at(&node.up("pod", &volume)).unwrap().options;
        assert!(options.contains("nosuid,nodev"), "{options}");
        node.all_down(&["pod"], &volume);
    }
}

#[test]
fn where_the_node_names_a_thin_pool_pods_get_no_other() {
    let group = Group::new("pools");
    group.pool();
    sh("lvcreate -qq -y --type thin-pool -Z n -n other -L 600m pools");
    let pool_of = |lv| run("lvs", &["--noheadings", "-o", "pool_lv", &group.path(lv)]);
    for mode in BOTH_MODES {
        let lines = "[volume_group.pools]\ncreate = true\nthin_pool = 'pool'\n";
        let (mut node, lv) = (Node::with_config(mode, lines), mode.lv());
        let volume = Volume::new(&group, lv);
        let other = volume.clone().with("thinpool", "other");
        let words = ["none is made in the thin pool other"];
        node.refuses(&["attach", &other.json(), &host_name()], &words);
        node.up("pod", &volume.clone().with("thinpool", "pool"));
        assert_eq!(pool_of(lv), "pool");
        // An existing volume stays where it is.
        node.up("second", &other);
        node.all_down(&["pod", "second"], &volume);
        group.lv("lvremove", &[], lv);
        node.configure(mode, "[volume_group.pools]\ncreate = true\n");
        node.up("pod", &other);
        assert_eq!(pool_of(lv), "other");
        node.all_down(&["pod"], &volume);
    }
}

#[test]
fn how_a_volume_is_made_is_the_nodes_to_say() {
    let group = Group::new("made");
    let lines = |create: bool, reserve: &str| {
        format!(
            "default_fs = 'ext3'\n[filesystem.ext4]\nmkfs_options = ['-L', 'nodes']\n\
             [volume_group.made]\ncreate = {create}\nreserve = '{reserve}'\n"
        )
    };
    let mut node = Node::with_config(Mode::MountOnly, &lines(false, "0"));
    // Options of the config's names are none of a pod's.
    let volume = Volume::new(&group, "data")
        .with("create", "true")
        .with("reserve", "0")
        .with("max_size", "1t")
        .with("mkfsoptions", "-L pods");
    node.refuses_mount(&volume, &["there is no logical volume made/data"]);
    node.configure(Mode::MountOnly, &lines(true, "2g"));
    node.refuses_mount(&volume, &["the node's config keeps 2 GiB"]);
    assert!(!group.has("data"));
    node.configure(Mode::MountOnly, &lines(true, "0"));
    node.up("pod", &volume);
    let label = "blkid -p -o value -s LABEL";
    assert_eq!(sh(&format!("{label} {}", volume.device())), "nodes");
    node.down("pod", &volume);
    node.refuses_mount(&volume.fs("xfs"), &["Set fsType to ext4"]);

    let any = Volume::new(&group, "any").fs("");
    node.up("pod", &any);
    group.assert_recorded("any", "ext3");
}

/// The ways in which somebody else than root could change a file.
fn open_to_others(path: &Path, test: impl Fn(&[&str])) {
    let path = text(path);
    let writable = [path, "can be written by others", "chmod go-w"];
    let theirs = [path, "belongs to user 65534", "chown root"];
    for (changes, reasons) in [
        (&["chmod 757"][..], writable),
        (&["chmod 766"], writable),
        (&["chown :100", "chmod 775"], writable),
        (&["chown 65534"], theirs),
    ] {
        let _back = ["chown 0:0", "chmod 755"].map(|back| Finally(format!("{back} {path}")));
        for change in changes {
            sh(&format!("{change} {path}"));
        }
        test(&reasons);
    }
}

#[test]
fn files_that_others_can_change_bring_nothing_up() {
    let (node, group, up) = Node::with_data(Mode::MountOnly, "rights");
    let (volume, mounted) = (group.linear("down", "32m"), node.up("pod", &up));
    let link = node.exe().with_file_name("config.toml");
    let dir = PathBuf::from("/run/rights-config");
    let config = dir.join("real.toml");
    fs::create_dir(&dir).unwrap();
    fs::rename(&link, &config).unwrap();
    symlink(&config, &link).unwrap();
    let (exe, locks) = (node.exe(), Path::new("/run/flexvolume-lvm"));
    for path in [&link, &dir, &exe, exe.parent().unwrap()] {
        open_to_others(path, |reasons| {
            node.mount("pod", &volume).is_failure(reasons);
            // init only says it, and keeps its mode.
            let init = node.does(&["init"]);
            let says = |word: &&str| init.message.contains(*word);
            assert!(reasons.iter().all(says), "{init:?}");
            assert_eq!(init.capabilities.unwrap()["attach"], false);
        });
    }
    open_to_others(locks, |reasons| {
        node.mount("pod", &volume).is_failure(reasons);
        node.grow("pod", &up, 64 << 20).is_failure(reasons);
    });
    for path in [&config, locks] {
        let _back = Finally(format!("chmod 755 {}", path.display()));
        sh(&format!("chmod 777 {}", path.display()));
        if path != locks {
            never_up(&node, &volume, &["can be written by others"]);
        }
        // Mounted volumes can be unmounted.
        node.does(&["unmount", text(&mounted)]);
        node.does(&["detach", &up.name, &host_name()]);
    }
    // The same config, as the one that the environment names.
    open_to_others(&config, |reasons| {
        let dir = precreated(node.pod_dir("named", &volume));
        let args = ["mount", text(&dir), &volume.json_for("named")];
        let mut mount = assert_cmd::Command::new(node.exe());
        mount.env("FLEXVOLUME_LVM_CONFIG", &config);
        Reply::of(args, &mount.args(args).output().unwrap()).is_failure(reasons);
    });
    node.up("pod", &volume);
}

/// mkfs may be newer than the kernel, or the config may ask for what the kernel does not know.
#[test]
fn a_filesystem_that_the_kernel_refuses_is_not_blamed_on_the_volume_that_this_call_has_made() {
    let feature = "$REAL \"$@\" || exit; for device; do :; done
        xfs_db -x -c 'sb 0' -c 'write -d features_incompat 0x40000001' $device > /dev/null";
    let group = Group::new("refusing");
    let tools = Tools::new().put("mkfs.xfs", feature).config();
    let blocks = "[filesystem.xfs]\nmkfs_options = ['-b', 'size=65536']\n";
    let unknown = [
        "features that this node's kernel does not know",
        "the kernel says \"XFS (dm-",
    ];
    let large = ["blocks of 64 KiB"; 2];
    for (lv, config, first, later) in [
        ("feature", &*tools, "this call has made xfs on", unknown),
        ("blocks", blocks, "the kernel says", large),
    ] {
        let mut node = Node::with_config(Mode::MountOnly, config);
        let volume = group.linear(lv, "600m").fs("xfs");
        let wipe = format!("wipefs --all {} && ", volume.device());
        let (id, exe) = (group.path(lv), node.exe());
        let options = "`mkfs_options` of xfs in config.toml";
        node.mount("pod", &volume).is_failure(&["mounting ", first]);
        let reply = node.mount("pod", &volume);
        reply.is_failure(&[options, &wipe, "allow-format", later[0], later[1]]);
        if lv == "blocks" {
            node.prints(&["check", &id], later[0], 1);
        }
        // The commands as printed, and `--yes`, so that nothing is asked.
        bash(&format!("{wipe}{} allow-format --yes {id}", text(&exe)));
        node.configure(Mode::MountOnly, "");
        node.visit(&volume);
    }
}
