//! Volumes that the host uses for itself: no pod gets them, whatever its author writes.

use std::fs;
use std::path::Path;

use crate::prelude::*;

/// The host mounts a volume on this directory for as long as the value lives.
fn host_mount(volume: &Volume, dir: &Path) -> Finally {
    fs::create_dir_all(dir).unwrap();
    run("mount", &[&volume.device(), text(dir)]);
    run("sync", &[]);
    Finally(format!("umount {}", dir.display()))
}

#[test]
fn a_volume_that_the_host_has_mounted_is_no_pods_whatever_its_record_says() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "hostvar");
    node.write("pod", &volume, "kept");
    let var = host_mount(&volume, Path::new("/run/var-of-the-host"));
    let reason = ["mounted by the host itself at /run/var-of-the-host"];
    node.refuses_mount(&volume, &reason);
    node.refuses_mount(&volume.clone().read_only().fs(""), &reason);
    let grow = node.grow("pod", &volume, 1 << 30);
    grow.is_failure(&reason);
    drop(var);
    // Once the host has given it up, it is a volume like any other.
    node.finds(&volume, "kept");
    assert_eq!(group.size("data"), 32 << 20);
}

#[test]
fn a_host_mount_at_a_path_with_control_characters_is_unmounted_by_what_the_message_says() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "control");
    node.write("pod", &volume, "kept");
    let dir = Path::new("/run/of  the\n\u{1b}[2Jhost's");
    let mounted = host_mount(&volume, dir);
    let refused = node.refuses_mount(&volume, &["mounted by the host itself"]);
    bash(refused.command("umount ").unwrap());
    std::mem::forget(mounted);
    node.finds(&volume, "kept");
}

#[test]
fn a_host_mount_on_a_path_like_kubelets_is_no_pods() {
    let volume_dir = "pods/1-2/volumes/kubernetes.io~lvm/data";
    let global_dir = "plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/data";
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "hostshape");
    run("mkfs.ext4", &["-q", &volume.device()]);
    for below in [volume_dir, global_dir, "pods/1-2/volume-subpaths/data/c/0"] {
        let dir = Path::new("/run/restore").join(below);
        let _mounted = host_mount(&volume, &dir);
        let words = format!("mounted by the host itself at {}", dir.display());
        node.refuses_mount(&volume, &[&words]);
    }
    // Nor where the driver does not see the mount, in another namespace than that of process 1.
    node.write("pod", &volume, "kept");
    let dir = Path::new("/run/restore").join(volume_dir);
    let _mounted = host_mount(&volume, &dir);
    let pod = precreated(node.pod_dir("refused", &volume));
    let (at, exe, json) = (text(&dir), node.exe(), volume.json_for("refused"));
    let (exe, pod) = (text(&exe), text(&pod));
    let line = format!("umount {at}; {exe} mount {pod} '{json}'; true");
    let said = run("unshare", &["--mount", "sh", "-c", &line]);
    assert!(said.contains("Failure") && said.contains(at), "{said}");
}

#[test]
fn kubelets_directory_may_be_a_link_or_bound_from_another_disk() {
    for mode in BOTH_MODES {
        let group = Group::new(mode.lv());
        for (lv, make) in [
            ("linked", "rmdir $k && ln -s $disk/kubelet $k"),
            ("bound", "mount --bind $disk/kubelet $k"),
        ] {
            let node = Node::new(mode);
            let volume = group.linear(lv, "32m");
            let kubelet = text(node.kubelet_dir());
            let disk = precreated(format!("/run/disk-{lv}-{}", mode.lv()).into());
            // Below a mount that is shared, each one that kubelet makes is seen at both places.
            let share =
                "mount -t tmpfs none $disk && mount --make-shared $disk && mkdir $disk/kubelet";
            let (disk, line) = (text(&disk), format!("{share} && {make}"));
            let line = line.replace("$disk", disk).replace("$k", kubelet);
            run("sh", &["-c", &line]);
            let _unmounted = Finally(format!("umount -R {disk}"));
            let _unbound = (lv == "bound").then(|| Finally(format!("umount -R {kubelet}")));
            let (json, device) = (volume.json(), volume.device());
            let global = precreated(node.global_dir(&volume));
            for pod in ["first", "second"] {
                if mode == Mode::Attach {
                    node.does(&["mountdevice", text(&global), &device, &json]);
                }
                node.mount(pod, &volume).is_success();
            }
            let is_on_disk = |mount: &&Mount| Path::new(&mount.point).starts_with(disk);
            let all = mounts();
            assert!(all.iter().filter(is_on_disk).count() > 2, "{all:?}");
            for pod in ["first", "second"] {
                node.does(&["unmount", text(&node.pod_dir(pod, &volume))]);
            }
            node.does(&["unmountdevice", text(&global)]);
        }
    }
}

#[test]
fn a_volume_that_holds_kubelets_own_directory_is_no_pods() {
    let group = Group::new("hostkubelet");
    let volume = group.linear("kubelet", "32m");
    run("mkfs.ext4", &["-q", &volume.device()]);
    for below in ["", "pods", "plugins", "plugins/kubernetes.io"] {
        let node = Node::new(Mode::MountOnly);
        let dir = node.kubelet_dir().join(below);
        let _mounted = host_mount(&volume, &dir);
        node.refuses_mount(&volume, &["mounted by the host itself at"]);
    }
}

/// A process that has a mount which nobody else sees.
pub fn hidden_mount(volume: &Volume) -> Process {
    let device = volume.device();
    let line = format!("exec unshare --mount sh -c 'mount {device} /mnt && exec sleep 1000'");
    let hidden = Process::new(&line, Path::new("/"));
    eventually("the mount", || {
        read(&hidden.proc("mountinfo")).contains(&device)
    });
    hidden
}

#[test]
fn a_mount_elsewhere_is_a_pods_if_the_record_says_so() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "hosthidden");
    // With the record it is a pod's: a container that outlived kubelet's own mount, say.
    node.write("pod", &volume, "kept");
    let hidden = hidden_mount(&volume);
    let dir = node.up("pod", &volume);
    assert_eq!(read(&dir.join("page")), "kept");
    node.refuses_mount(&volume.clone().fs("xfs"), &["not xfs"]);
    drop(hidden);
    node.down("pod", &volume);
}

#[test]
fn a_filesystem_that_failed_and_lives_on_elsewhere_gets_no_more_pods() {
    let node = Node::new(Mode::MountOnly);
    for (fs, size, words) in [
        ("ext4", "32m", "the kernel met errors in its filesystem"),
        // Since util-linux 2.41 mount(8) itself fails, and the message is another one.
        ("xfs", "300m", "has failed"),
    ] {
        let group = Group::new(&format!("outlives{fs}"));
        let volume = group.linear("data", size).fs(fs);
        node.write("pod", &volume, "kept");
        let hidden = hidden_mount(&volume);
        let there = hidden.proc("root/mnt");
        let device = fs::canonicalize(volume.device()).unwrap();
        let name = device.file_name().unwrap().to_str().unwrap();
        match fs {
            "ext4" => fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "1").unwrap(),
            _ => drop(run("xfs_io", &["-x", "-c", "shutdown", text(&there)])),
        }
        let who = format!("sleep (pid {}) has it at /mnt", hidden.0.id());
        node.refuses_mount(&volume, &[words, &who]);
        drop(hidden);
        node.finds(&volume, "kept");
    }
}

/// The path may be on a network server that does not answer.
#[test]
fn a_mount_of_the_host_is_never_opened() {
    let (node, aside) = (Node::new(Mode::MountOnly), Path::new("/run/aside"));
    for (fs, size) in FILESYSTEMS {
        let group = Group::new(&format!("aside{fs}"));
        let volume = group.linear("data", size).fs(fs);
        node.write("pod", &volume, "kept");
        let _mounted = host_mount(&volume, aside);
        // This pod had the volume before the host.
        let pod = precreated(node.pod_dir("pod", &volume));
        run("mount", &[&volume.device(), text(&pod)]);
        let refused = precreated(node.pod_dir("refused", &volume));
        let (id, json) = (group.path("data"), volume.json_for("refused"));
        for args in [
            &["mount", text(&refused), &json][..],
            &["check", &id],
            &["status", &id],
            &["unmount", text(&pod)],
            &["check", &id],
            &["mount", text(&refused), &json],
        ] {
            let mut strace = assert_cmd::Command::new("strace");
            strace.args(["-f", "-qq", "-e", "trace=%file", "-o", "/run/opened.paths"]);
            let said = strace.arg(node.exe()).args(args).output().unwrap();
            let paths = read(Path::new("/run/opened.paths"));
            assert!(paths.contains("/proc/"), "{args:?}: {said:?}");
            let opened = paths.lines().find(|line| line.contains("\"/run/aside"));
            assert_eq!(opened, None, "{fs}: {args:?}");
        }
        assert_eq!(mount_at(&pod), None, "{fs}");
    }
}
