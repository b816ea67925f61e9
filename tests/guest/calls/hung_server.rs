//! A filesystem whose server does not answer, and a disk that does not answer. Volumes that use neither go on.

use std::fs;
use std::path::Path;

use crate::data::lvm_conf::LvmConf;
use crate::data::meanwhile::ends;
use crate::prelude::*;

/// Every call-out of a volume's life, and what people ask, end well beside it.
fn lives_beside(group: &Group, node: &Node, lv: &str, page: Option<&str>) {
    let (volume, id) = (Volume::new(group, lv), group.path(lv));
    let dir = node.up("pod", &volume);
    if let Some(page) = page {
        assert_eq!(read(&dir.join("page")), page);
    }
    write_synced(&dir.join("page"), "goes on");
    node.up("second", &volume);
    for args in [&["status"][..], &["status", &id], &["check", &id]] {
        let output = ends(node, args);
        let said = String::from_utf8_lossy(&output.stdout);
        let is_shown = output.status.success() && said.contains(lv);
        assert!(is_shown, "{args:?}: {said}");
    }
    // What `doctor` finds on this machine does not matter here: it only has to end.
    ends(node, &["doctor"]);
    node.all_down(&["pod", "second"], &volume);
}

/// Mounts a filesystem of which nobody reads the requests. Who asks it for anything waits, until this is dropped.
fn without_an_answer(dir: &Path) -> (Process, Finally) {
    run("modprobe", &["fuse"]);
    fs::create_dir_all(dir).unwrap();
    let dir = text(dir);
    let options = "fd=5,rootmode=40000,user_id=0,group_id=0,allow_other";
    let line = format!(
        "exec 5<> /dev/fuse && mount -i -t fuse -o {options} server {dir} && exec sleep 6000"
    );
    let server = Process::new(&line, Path::new("/"));
    eventually("the mount", || mount_at(Path::new(dir)).is_some());
    bash(&format!(
        "timeout --signal=KILL 1 ls {dir} && exit 1 || [ $? = 137 ]"
    ));
    (server, Finally(format!("umount --lazy {dir}")))
}

/// A loop device over a file on a disk, and the disk.
fn looped_on_a_disk() -> (Disk, Finally, Finally) {
    let disk = Disk::new("hung-disk", 64 << 20);
    let path = disk.path();
    bash(&format!(
        "mkfs.ext4 -q {path}; mkdir -p /run/hung; mount {path} /run/hung
        dd if=/dev/zero of=/run/hung/disk bs=1M count=16 conv=fsync status=none"
    ));
    let mounted = Finally("umount /run/hung".to_owned());
    let name = run("losetup", &["--find", "--show", "/run/hung/disk"]);
    (disk, mounted, Finally(format!("losetup --detach {name}")))
}

#[test]
fn a_stopped_server_holds_up_no_other_volume() {
    const LIMITS: &str = "[limits]\nquery = 60\nactivate = 60\nmount = 60\nlock = 60\n";
    for mode in BOTH_MODES {
        println!("{mode:?}");
        let node = Node::with_config(mode, LIMITS);
        let group = Group::new("hung");
        for lv in ["blank", "data"] {
            group.linear(lv, "32m");
        }
        Node::new(Mode::MountOnly).write("pod", &Volume::new(&group, "data"), "kept");
        // LVM itself would read the loop device.
        let own = run("vgs", &["--noheadings", "-o", "pv_name", "hung"]);
        let _conf = LvmConf::new(&format!(
            "devices {{\n global_filter = [ \"a|^{own}$|\", \"r|.*|\" ]\n}}\n"
        ));
        let (disk, mounted, looped) = looped_on_a_disk();
        run("udevadm", &["settle"]);
        let volumes = "pods/other/volumes/kubernetes.io~csi/pv/mount";
        let server = without_an_answer(&node.kubelet_dir().join(volumes));
        let held = disk.suspended();
        // What was read of it is not in memory any more.
        fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
        lives_beside(&group, &node, "blank", None);
        lives_beside(&group, &node, "data", Some("kept"));
        drop((held, server, looped, mounted, disk));
    }
}
