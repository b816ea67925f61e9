//! Devices, locks and daemons that do not answer, and a driver that is told to stop. Every call ends by itself and says
//! what it waited for. It leaves nothing that stops the next call.

use std::fs::{self, File};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::prelude::*;

/// The limit of an activation that waits in vain.
const SHORT: &str = "[limits]\nactivate = 8\n";

#[test]
fn a_suspended_volume_is_neither_mounted_nor_unmounted() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("asleep");
    group.pool();
    // The volume itself, and what is below one in a pool.
    for (volume, dm_name) in [
        (group.linear("data", "32m"), "asleep-data"),
        (group.thin("thin", "32m"), "asleep-pool-tpool"),
    ] {
        let resume = format!("dmsetup resume {dm_name}");
        let words = [dm_name, "suspended", &resume];
        {
            let _until = suspended(dm_name);
            node.mount("pod", &volume).is_failure(&words);
        }
        assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);
        let dir = node.up("pod", &volume);
        fs::write(dir.join("page"), "not on the disk yet").unwrap();
        {
            let _until = suspended(dm_name);
            node.call(&["unmount", text(&dir)]).is_failure(&words);
            node.grow("pod", &volume, 50 << 20).is_failure(&words);
            assert!(mount_at(&dir).is_some());
        }
        node.down("pod", &volume);
        let page = read(&node.up("pod", &volume).join("page"));
        assert_eq!(page, "not on the disk yet");
        node.down("pod", &volume);
    }
    // A device that a killed lvextend left suspended is resumed.
    let name = "asleep-data";
    bash(&format!(
        "dmsetup table {name} | dmsetup load {name}; dmsetup suspend {name}"
    ));
    node.visit(&Volume::new(&group, "data"));
}

#[test]
fn a_disk_that_does_not_answer_ends_no_call_late() {
    // The disk is a file on a filesystem that is frozen: nothing that is written comes back, and
    // device-mapper knows nothing of it.
    let mut node = Node::new(Mode::MountOnly);
    run("truncate", &["-s", "300M", "/run/outer.disk"]);
    run("mkfs.ext4", &["-q", "/run/outer.disk"]);
    fs::create_dir_all("/run/outer").unwrap();
    run("mount", &["-o", "loop", "/run/outer.disk", "/run/outer"]);
    let group = Group::on_file("stuck", "/run/outer/disk", 128 << 20);
    let volume = group.linear("data", "32m");
    let dir = node.up("pod", &volume);
    write_synced(&dir.join("page"), "kept");
    fs::write(dir.join("later"), "not on the disk yet").unwrap();

    node.configure(Mode::MountOnly, "[limits]\nmount = 3\n");
    run("fsfreeze", &["--freeze", "/run/outer"]);
    let reply = node.call(&["unmount", text(&dir)]);
    run("fsfreeze", &["--unfreeze", "/run/outer"]);
    reply.is_failure(&["unmounting", text(&dir), "3 s", "SIGKILL"]);

    // The tool that hung goes on by itself.
    let stuck = reply.message.split_once("process ").unwrap().1;
    let stuck = stuck.split_once(' ').unwrap().0;
    eventually("the end of the unmount", || !runs(stuck));
    node.configure(Mode::MountOnly, "");
    node.down("pod", &volume);
    let dir = node.up("pod", &volume);
    assert_eq!(read(&dir.join("page")), "kept");
    assert_eq!(read(&dir.join("later")), "not on the disk yet");
    node.down("pod", &volume);
    drop(group);
    eventually("the end of the disk", || {
        let mut umount = assert_cmd::Command::new("umount");
        umount.arg("/run/outer").ok().is_ok()
    });
}

#[test]
fn mkfs_that_is_stuck_in_the_kernel_keeps_the_lock() {
    let suspends = "echo $$ >> $HERE/mkfs.ext4.runs\n\
        [ -e $HERE/go ] || dmsetup suspend --nolockfs wedged-data\nexec $REAL \"$@\"";
    let tools = Tools::new().put("mkfs.ext4", suspends);
    let config = format!("{}[limits]\nmake = 3\nlock = 1\n", tools.config());
    let mut node = Node::with_config(Mode::MountOnly, &config);
    let (group, volume) = Group::with_data("wedged");

    // mkfs runs into a device that holds every access, and cannot even be killed.
    let reply = node.mount("pod", &volume);
    let mkfs = tools.wait_for("mkfs.ext4");
    reply.is_failure(&["making ext4 on wedged/data", "`mkfs.ext4 ", "within 3 s"]);
    let alive = format!("process {mkfs} does not even die of SIGKILL");
    reply.is_failure(&["unfinished", &alive]);
    assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);
    assert!(runs(&mkfs), "{reply:?}");

    let words = ["locking wedged/data", "mkfs.ext4", &format!("pid {mkfs}")];
    node.mount("pod", &volume).is_failure(&words);

    run("dmsetup", &["resume", "wedged-data"]);
    eventually("the end of mkfs", || !runs(&mkfs));
    tools.let_go();
    node.configure(Mode::MountOnly, &tools.config());
    node.up("pod", &volume);
    group.assert_recorded("data", "ext4");
    node.down("pod", &volume);
}

#[test]
fn a_held_lvm_lock_is_named_with_its_holder() {
    const LOCK: &str = "/run/lock/lvm/V_locked";
    let mut node = Node::with_config(Mode::MountOnly, "[limits]\nquery = 3\n");
    let (group, volume) = Group::with_data("locked");
    let own = format!("pid {}", std::process::id());
    let file = File::options().append(true).create(true).open(LOCK);
    let file = file.unwrap();
    let locked = ["LVM is locked by", &own, "V_locked", "3 s"];

    file.lock().unwrap();
    let reply = node.mount("pod", &volume);
    reply.is_failure(&["asking LVM for locked/data", "`lvs"]);
    reply.is_failure(&locked);

    // A shared lock lets commands read the group, and not change it. So the call fails before mkfs.
    node.configure(Mode::MountOnly, "[limits]\nactivate = 3\n");
    file.unlock().unwrap();
    file.lock_shared().unwrap();
    let reply = node.mount("pod", &volume);
    reply.is_failure(&["tagging locked/data", "`lvchange"]);
    reply.is_failure(&locked);
    file.unlock().unwrap();
    assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);
    assert_eq!(group.tags("data"), "");

    node.configure(Mode::MountOnly, "");
    node.visit(&volume);
}

#[test]
fn without_udevd_an_activation_ends_and_udev_is_named() {
    let mut node = Node::with_config(Mode::MountOnly, SHORT);
    let (group, volume) = Group::with_data("unheard");
    group.lv("lvchange", &["-an"], "data");

    // Processes that udev has started hold LVM's locks, too.
    run("udevadm", &["settle"]);
    let udevd = processes_named("udevd");
    assert!(!udevd.is_empty());
    let tell = |signal| {
        for pid in &udevd {
            kill(Pid::from_raw(*pid), signal).unwrap();
        }
    };
    tell(Signal::SIGSTOP);
    let reply = node.mount("pod", &volume);
    tell(Signal::SIGCONT);
    reply.is_failure(&["activating unheard/data", "LVM waits for udev"]);
    reply.is_failure(&["`lvchange --activate y", "within 8 s"]);
    assert_eq!(mount_at(&node.pod_dir("pod", &volume)), None);

    node.configure(Mode::MountOnly, "");
    node.visit(&volume);
}

#[test]
fn a_suspended_device_that_lvm_waits_for_is_named() {
    let mut node = Node::with_config(Mode::MountOnly, "[limits]\nquery = 20\nactivate = 8\n");
    let disk = Disk::new("halted", 64 << 20);
    let group = Group::on("halting", &[&disk.path()]);
    let volume = group.linear("data", "32m");
    group.lv("lvchange", &["-an"], "data");
    let held = disk.suspended();
    let reply = node.call(&["attach", &volume.json(), &host_name()]);
    drop(held);
    reply.is_failure(&["halted, which is suspended", "`dmsetup resume halted`"]);
    node.configure(Mode::MountOnly, "");
    node.visit(&volume);
}

#[test]
fn in_an_ipc_namespace_of_its_own_the_driver_names_that() {
    let mut node = Node::with_config(Mode::MountOnly, SHORT);
    let (group, volume) = Group::with_data("unanswered");
    let (dir, exe) = (precreated(node.pod_dir("pod", &volume)), node.exe());
    let (dir, exe, json) = (text(&dir), text(&exe), volume.json_for("pod"));
    let calls: [&[&str]; 2] = [&["attach", &json, &host_name()], &["mount", dir, &json]];
    for call in calls {
        group.lv("lvchange", &["-an"], "data");
        let args = [&["--ipc", exe], call].concat();
        let output = assert_cmd::Command::new("unshare").args(args).output();
        let reply = Reply::of(call, &output.unwrap());
        reply.is_failure(&[
            "activating unanswered/data",
            "LVM waits for udev",
            "hostIPC: true",
        ]);
        // Ends the waits of LVM for udev.
        run("dmsetup", &["udevcomplete_all", "-y"]);
    }
    let doctor = run("sh", &["-c", &format!("unshare --ipc {exe} doctor; true")]);
    assert!(doctor.contains("IPC namespace of its own"), "{doctor}");

    node.configure(Mode::MountOnly, "");
    let doctor = node.says(&["doctor"]).0;
    assert!(!doctor.contains("IPC namespace"), "{doctor}");
    node.visit(&volume);
}

#[test]
fn sigterm_in_mkfs_or_mount_leaves_neither_mount_nor_lock() {
    // The limits are the defaults, minutes away: only the signal ends these calls. This mount(8)
    // has mounted already when it hangs.
    let late = "echo $$ >> $HERE/mount.runs\n$REAL \"$@\"\n\
        while [ ! -e $HERE/go ]; do sleep 0.1; done";
    let making = "making ext4 on stopped/mkfs.ext4";
    let mounting = "mounting stopped/mount on";
    let cases = [
        (Tools::new().held("mkfs.ext4"), "mkfs.ext4", making),
        (Tools::new().put("mount", late), "mount", mounting),
    ];
    let group = Group::new("stopped");
    for (tools, tool, step) in cases {
        let mut node = Node::with_config(Mode::MountOnly, &tools.config());
        let volume = group.linear(tool, "32m");
        let dir = node.pod_dir("pod", &volume);
        let before = mounts();

        let call = node.start_mount("pod", &volume);
        let process = tools.wait_for(tool);
        if tool == "mount" {
            eventually("the mount", || mount_at(&dir).is_some());
        }
        // Another call waits behind it, and is told to stop there.
        let waiting = node.start_mount("second", &volume);
        waiting.listens();
        let words = ["locking stopped/", "told to stop while it waited"];
        waiting.stop().is_failure(&words);

        let words = [step, "because the driver was told to stop"];
        call.stop().is_failure(&words);
        assert!(!runs(&process));
        assert_eq!(mounts(), before);

        node.configure(Mode::MountOnly, "[limits]\nlock = 1\n");
        node.up("pod", &volume);
        group.assert_recorded(tool, "ext4");
        node.down("pod", &volume);
    }
}

/// Where lvmlockd runs, the driver asks LVM whether nodes share the group. It need not know that for a pod to end.
#[test]
fn a_pod_of_a_local_group_ends_while_lvm_is_silent() {
    let socket = "/run/lvm/lvmlockd.socket";
    let tools = Tools::new().put("lvs", "exec sleep 600");
    let mut node = Node::new(Mode::MountOnly);
    let (_group, volume) = Group::with_data("local");
    let dir = node.up("pod", &volume);
    node.configure(
        Mode::MountOnly,
        &format!("{}[limits]\nquery = 2\n", tools.config()),
    );
    let _away = Finally(format!("rm -f {socket}"));
    fs::write(socket, "").unwrap();
    // The second call finds nothing mounted.
    for _ in 0..2 {
        node.call(&["unmount", text(&dir)]).is_success();
        assert_eq!(mount_at(&dir), None);
    }
}
