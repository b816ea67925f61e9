//! Wrong clocks. Remains of an ext count as a removed volume's only if the times say so, and the times can be right.

use std::time::UNIX_EPOCH;

use crate::prelude::*;

const DAY: u64 = 86_400;

fn now() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_secs()
}

/// Sets the clock of the guest, and sets it right again when it is dropped.
struct Clock {
    right: u64,
    since: std::time::Instant,
}

impl Clock {
    fn new() -> Self {
        let (right, since) = (now(), std::time::Instant::now());
        Self { right, since }
    }

    fn right(&self) -> u64 {
        self.right + self.since.elapsed().as_secs()
    }

    fn set(&self, days_ahead: u64) {
        let time = self.right() + days_ahead * DAY;
        sh(&format!("date --set=@{time}"));
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A volume that was made while the clock was 40 days ahead, and an ext that was made on it when the clock was right,
/// without its first MiB.
fn from_the_future(group: &Group, clock: &Clock, lv: &str) -> Volume {
    clock.set(40);
    let volume = group.linear(lv, "64m");
    clock.set(0);
    loses_its_beginning(&volume, "");
    volume
}

fn loses_its_beginning(volume: &Volume, environment: &str) {
    let device = volume.device();
    bash(&format!(
        "{environment} mkfs.ext4 -q {device}
        dd if=/dev/zero of={device} bs=1M count=1 conv=fsync status=none; udevadm settle"
    ));
}

const BACKUP: &[&str] = &["an ext backup superblock", "e2fsck -b"];

#[test]
fn an_ext_on_a_volume_that_was_made_in_the_future_is_not_formatted() {
    let (group, node, clock) = (
        Group::new("future"),
        Node::new(Mode::MountOnly),
        Clock::new(),
    );
    let volume = from_the_future(&group, &clock, "data");
    node.refuses_mount(&volume, BACKUP);
    // The future has come: the device is older than the volume is said to be.
    clock.set(41);
    node.refuses_mount(&volume, BACKUP);
    // With another device LVM's archive tells.
    clock.set(0);
    group.lv("lvchange", &["--addtag", "mine"], "data");
    clock.set(41);
    group.lv("lvchange", &["-an"], "data");
    group.lv("lvchange", &["-ay"], "data");
    node.refuses_mount(&volume, BACKUP);
    assert_eq!(group.tags("data"), "mine");
}

#[test]
fn an_ext_that_was_made_by_a_clock_that_has_begun_anew_is_not_formatted() {
    let (group, node) = (Group::new("anew"), Node::new(Mode::MountOnly));
    let volume = group.linear("data", "64m");
    loses_its_beginning(&volume, "E2FSPROGS_FAKE_TIME=100000");
    node.refuses_mount(&volume, BACKUP);
}
