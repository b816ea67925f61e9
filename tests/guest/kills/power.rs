//! The power fails while pods write. This takes two boots on the same disk: the first ends by cutting the power, and in
//! the second kubelet brings all pods up again.

use std::fs;
use std::path::{Path, PathBuf};

use super::trial::assert_clean;
use crate::prelude::*;

const GROUP: &str = "writing";

/// A file that outlives the power-off, for what a pod has synced.
fn kept(pod: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("FLEXVOLUME_LVM_BOOT_AGAIN").unwrap()).with_extension(pod)
}

/// Ten pods, each with its filesystem and its mode.
fn pods() -> impl Iterator<Item = (String, &'static (&'static str, &'static str), Mode)> {
    // Eight pods have ext4. One pod for each other filesystem is enough.
    let [ext4, others @ ..] = &FILESYSTEMS;
    let all = others.iter().chain([ext4; 8]).enumerate();
    all.map(|(n, fs)| (format!("pod{n}"), fs, BOTH_MODES[n % 2]))
}

/// Appends numbers to a file in the volume for ever, and notes each in another file once it is on the disk.
fn writer(dir: &Path, noted: &Path) -> Process {
    let noted = text(noted);
    let line = format!(
        "n=0; while n=$((n + 1)); do echo $n >> numbers; sync numbers; echo $n >> {noted}
        echo unsynced > file$n; rm -f file$((n - 9)); sleep 1; done"
    );
    Process::new(&line, dir)
}

#[test]
fn when_the_power_goes_all_pods_write() {
    let group = Group::on(
        GROUP,
        &[&std::env::var("FLEXVOLUME_LVM_POWER_DISK").unwrap()],
    );
    for (pod, (fs, size), mode) in pods() {
        let volume = group.linear(&pod, size).fs(fs);
        let dir = Node::new(mode).up(&pod, &volume);
        std::mem::forget(writer(&dir, &kept(&pod)));
    }
    std::mem::forget(group);
    for (pod, ..) in pods() {
        eventually("what is synced", || {
            fs::read_to_string(kept(&pod)).is_ok_and(|noted| noted.contains('\n'))
        });
    }
}

#[test]
fn after_the_reboot_all_pods_come_up_at_once_with_what_was_synced() {
    let group = Group::found(GROUP);
    eventually("LVM sees the group", || {
        run("vgs", &["--noheadings", "-o", "vg_name"]).contains(GROUP)
    });
    let nodes = BOTH_MODES.map(Node::new);
    std::thread::scope(|scope| {
        for (pod, (fs, _), mode) in pods() {
            let node = nodes.iter().find(|node| node.mode == mode).unwrap();
            let volume = Volume::new(&group, &pod).fs(fs);
            scope.spawn(move || {
                let numbers = read(&node.up(&pod, &volume).join("numbers"));
                // The last line may be cut off.
                let noted = read(&kept(&pod));
                let synced = &noted[..=noted.rfind('\n').unwrap()];
                assert!(numbers.starts_with(synced), "{pod}: {numbers:?} {synced:?}");
                node.down(&pod, &volume);
                node.down_globally(&volume);
                assert_clean(fs, &volume.device());
            });
        }
    });
}
