//! Mounts that appear in other mount namespaces, as with a kubelet in a container.

use std::fs;
use std::path::Path;

use crate::prelude::*;

const FINAL: &str = "nosuid,nodev,noexec,nosymfollow";

/// Has mounts below kubelet's directory appear in other namespaces, until this is dropped.
fn shared(node: &Node) -> Finally {
    let kubelet = text(node.kubelet_dir());
    let line = format!("mount --bind {kubelet} {kubelet} && mount --make-rshared {kubelet}");
    run("sh", &["-c", &line]);
    Finally(format!("umount -R {kubelet}"))
}

/// A process in a mount namespace of its own, where mounts of kubelet's directory appear.
struct Outside(Process);

impl Outside {
    fn new(node: &Node, propagation: &str) -> Self {
        let ready = format!("/run/outside-{propagation}");
        let _ = fs::remove_file(&ready);
        let line = format!(
            "exec unshare --mount --propagation {propagation} sh -c 'touch {ready}; exec sleep 600'"
        );
        let outside = Self(Process::new(&line, node.kubelet_dir()));
        eventually("a namespace", || Path::new(&ready).exists());
        outside
    }

    fn options_at(&self, dir: &Path) -> Option<Vec<String>> {
        let table = read(&self.0.proc("mountinfo"));
        let mut rows = table.lines().map(|row| row.split(' ').collect::<Vec<_>>());
        let row = rows.rfind(|row| Path::new(row[4]) == dir)?;
        Some(row[5].split(',').map(str::to_owned).collect())
    }

    fn assert_has(&self, dir: &Path, wanted: &str) {
        let options = self.options_at(dir).expect("the mount outside");
        for option in wanted.split(',') {
            let has = options.iter().any(|one| one == option);
            assert!(has, "{option} in {options:?} of {}", dir.display());
        }
    }
}

fn options_at(dir: &Path) -> String {
    mount_at(dir).unwrap().options
}

#[test]
fn a_restriction_is_on_the_mount_wherever_it_appears() {
    let group = Group::new("propagated");
    for (fs, size) in FILESYSTEMS {
        for mode in BOTH_MODES {
            let (mut node, lv) = (Node::new(mode), format!("{fs}-{}", mode.lv()));
            let _shared = shared(&node);
            let outsides = ["unchanged", "slave"].map(|how| Outside::new(&node, how));
            let volume = group.linear(&lv, size).fs(fs);
            let reading = volume.clone().read_only();
            let own = volume.clone().with("mountoptions", "ro");

            let writer = node.up("writer", &volume.clone().with("mountoptions", "noatime"));
            let reader = node.up("reader", &reading);
            let by_option = node.up("option", &own);
            let lines = format!("[filesystem.{fs}]\nmount_options = '{FINAL}'\n");
            node.configure(mode, &lines);
            let later = node.up("later", &volume);
            let last = node.up("last", &reading);
            // A call that was killed before it restricted its bind is repeated.
            let killed = node.up("killed", &volume);
            let freed = "remount,bind,rw,suid,dev,exec,symfollow";
            run("mount", &["-o", freed, text(&killed)]);
            assert!(!options_at(&killed).contains("nosuid"));
            node.mount("killed", &volume).is_success();
            let options = options_at(&killed);
            let mut all = FINAL.split(',');
            assert!(all.all(|option| options.contains(option)), "{options}");
            assert!(!options_at(&writer).contains("nosuid"), "what runs stays");
            for outside in &outsides {
                outside.assert_has(&writer, "rw,noatime");
                outside.assert_has(&reader, "ro,noatime");
                outside.assert_has(&by_option, "ro,noatime");
                outside.assert_has(&later, &format!("rw,noatime,{FINAL}"));
                outside.assert_has(&last, &format!("ro,noatime,{FINAL}"));
            }
            // The node's config has changed since, and the call is repeated.
            node.mount("reader", &reading).is_success();
            node.mount("writer", &volume).is_success();
            // A writer beside readers only.
            node.down("writer", &volume);
            node.down("later", &volume);
            node.down("killed", &volume);
            let again = node.up("again", &volume);
            fs::write(again.join("page"), "kept").unwrap();
            for outside in &outsides {
                outside.assert_has(&reader, &format!("ro,{FINAL}"));
                outside.assert_has(&again, &format!("rw,{FINAL}"));
            }
            node.all_down(&["reader", "option", "last", "again"], &volume);
            // A filesystem that is mounted for the first time.
            let reader = node.up("reader", &reading);
            for outside in &outsides {
                outside.assert_has(&reader, &format!("ro,{FINAL}"));
            }
            node.all_down(&["reader"], &volume);
            for outside in &outsides {
                let left = read(&outside.0.proc("mountinfo"));
                assert!(!left.contains(&volume.device()), "{left}");
            }
        }
    }
}

/// As systemd-udevd and systemd-logind have copies of the host's mounts.
#[test]
fn a_copy_of_a_mount_that_ends_with_it_is_no_user() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "copied");
    let id = group.path("data");
    let _shared = shared(&node);
    for (how, stays) in [("unchanged", false), ("slave", false), ("private", true)] {
        let dir = node.up("pod", &volume);
        let outside = Outside::new(&node, how);
        let (json, _) = node.json(&["check", "--idle", &id]);
        let found = json["obstacles"].as_array().unwrap();
        let is_user = found.iter().any(|one| one["reason"] == "in-use");
        assert_eq!(is_user, stays, "{how}: {json}");
        assert!(found.iter().any(|one| one["reason"] == "mounted"), "{json}");
        node.does(&["unmount", text(&dir)]);
        assert_eq!(outside.options_at(&dir).is_some(), stays, "{how}");
        drop(outside);
        node.prints(&["check", "--idle", &id], "is ready", 0);
    }
}

/// The driver is run in a namespace whose mounts appear in the host's, as a kubelet in a container is.
#[test]
fn a_restriction_holds_for_a_kubelet_in_a_namespace_of_its_own() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "contained");
    let _shared = shared(&node);
    let outside = Outside::new(&node, "unchanged");
    let pid = outside.0.0.id().to_string();
    let mount = |pod: &str, volume: &Volume| {
        let dir = precreated(node.pod_dir(pod, volume));
        let exe = node.exe();
        let args = ["--mount", "--target", &pid, text(&exe), "mount", text(&dir)];
        let said = run("nsenter", &[&args[..], &[&volume.json_for(pod)]].concat());
        assert!(said.contains("Success"), "{said}");
        options_at(&dir)
    };
    assert!(mount("writer", &volume).starts_with("rw"));
    let options = mount("reader", &volume.clone().read_only());
    assert!(options.starts_with("ro"), "{options}");
    for pod in ["reader", "writer"] {
        node.down(pod, &volume);
    }
}

#[test]
fn a_mount_in_use_keeps_its_flags_and_its_users_are_named() {
    let (mut node, _group, volume) = Node::with_data(Mode::MountOnly, "inuse");
    let dir = node.up("pod", &volume);
    let user = Process::new("exec sleep 600", &dir);
    let lines = "[filesystem.ext4]\nmount_options = 'nosuid'\n";
    node.configure(Mode::MountOnly, lines);
    let in_use = "is in use by sleep (pid";
    let words = ["setting the flags of the mount at", in_use];
    node.mount("pod", &volume).is_failure(&words);
    assert!(!options_at(&dir).contains("nosuid"));
    drop(user);
    node.mount("pod", &volume).is_success();
    assert!(options_at(&dir).contains("nosuid"));
    node.down("pod", &volume);
}

#[test]
fn a_second_pod_has_the_restrictions_that_it_asks_for() {
    let group = Group::new("stricter");
    for mode in BOTH_MODES {
        let (node, volume) = (Node::new(mode), group.linear(mode.lv(), "32m"));
        let first = node.up("first", &volume);
        let own = volume.clone().with("mountoptions", "nosuid,noexec,noatime");
        let second = node.up("second", &own);
        let options = options_at(&second);
        assert!(
            options.contains("nosuid") && options.contains("noexec"),
            "{options}"
        );
        // What stands is as it is asked for.
        node.mount("second", &own).is_success();
        let first_has = options_at(&first);
        assert!(
            !first_has.contains("nosuid") && !first_has.contains("noexec"),
            "{first_has}"
        );
        // A third that asks for nothing gets nothing of the second's.
        let third = options_at(&node.up("third", &volume));
        assert!(!third.contains("nosuid"), "{third}");
        node.all_down(&["first", "second", "third"], &volume);
    }
}

#[test]
fn flags_are_set_anew_under_the_volumes_lock() {
    let (mut node, _group, volume) = Node::with_data(Mode::MountOnly, "relocked");
    let dir = node.up("pod", &volume);
    let lines = "[filesystem.ext4]\nmount_options = 'nosuid'\n";
    node.configure(Mode::MountOnly, &format!("[limits]\nlock = 1\n{lines}"));
    let uuid = sh("lvs --noheadings -o lv_uuid relocked/data").replace(['-', ' '], "");
    let other = holds(&format!("/run/flexvolume-lvm/{uuid}.lock"));
    node.mount("pod", &volume)
        .is_failure(&["locking relocked/data"]);
    assert!(!options_at(&dir).contains("nosuid"));
    drop(other);
    node.mount("pod", &volume).is_success();
    assert!(options_at(&dir).contains("nosuid"));
    node.down("pod", &volume);
}
