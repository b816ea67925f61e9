//! The kinds of volumes in LVM that a content may be on.

use crate::prelude::*;

use crate::data::contents::Content;

/// How a volume of this kind comes to have a content.
pub struct Kind {
    pub name: &'static str,
    /// Makes the volume `lv` with what is in the file.
    make: fn(&Group, &str, &Content, &str),
}

#[rustfmt::skip] // a row is a line
pub const KINDS: &[Kind] = &[
    Kind { name: "copied", make: |g, lv, c, f| { of(g, lv, c, "--type linear"); fill(g, lv, f); } },
    Kind { name: "striped", make: |g, lv, c, f| { of(g, lv, c, "--type striped -i 2"); fill(g, lv, f); } },
    Kind { name: "raid1", make: |g, lv, c, f| { of(g, lv, c, "--type raid1 -m 1 --nosync"); fill(g, lv, f); } },
    Kind { name: "thin", make: thin },
    Kind { name: "snapshot", make: snapshot },
    Kind { name: "thin-snapshot", make: thin_snapshot },
    Kind { name: "orphan", make: orphan },
    Kind { name: "split", make: split },
    Kind { name: "converted", make: converted },
    Kind { name: "thin-origin", make: thin_origin },
];

impl Kind {
    pub fn make(&self, group: &Group, lv: &str, content: &Content, file: &str) {
        (self.make)(group, lv, content, file);
    }
}

fn lvm(line: &str) {
    bash(&format!("{line} > /dev/null"));
}

fn of(group: &Group, lv: &str, content: &Content, kind: &str) {
    let (vg, size) = (&group.name, content.size());
    lvm(&format!(
        "lvcreate -qq -y -Wy -n {lv} -L {size}b {kind} {vg}"
    ));
}

/// Copies a sparse file to a volume that reads as zeroes.
pub fn fill(group: &Group, lv: &str, file: &str) {
    let device = device(&group.name, lv);
    bash(&format!(
        "dd if='{file}' of={device} bs=64K conv=sparse,notrunc,fsync status=none"
    ));
}

fn thin(group: &Group, lv: &str, content: &Content, file: &str) {
    let (vg, size) = (&group.name, content.size());
    lvm(&format!(
        "lvcreate -qq -y -n {lv} -V {size}b --thinpool {vg}/pool"
    ));
    fill(group, lv, file);
}

/// Makes a snapshot of a volume with this content.
fn snapshot(group: &Group, lv: &str, content: &Content, file: &str) {
    let origin = format!("origin-{lv}");
    of(group, &origin, content, "--type linear");
    fill(group, &origin, file);
    let vg = &group.name;
    lvm(&format!("lvcreate -qq -y -s -L 8m -n {lv} {vg}/{origin}"));
}

fn thin_snapshot(group: &Group, lv: &str, content: &Content, file: &str) {
    let origin = format!("origin-{lv}");
    thin(group, &origin, content, file);
    let vg = &group.name;
    lvm(&format!("lvcreate -qq -y -s -kn -n {lv} {vg}/{origin}"));
}

/// A thin snapshot whose origin is gone.
fn orphan(group: &Group, lv: &str, content: &Content, file: &str) {
    thin_snapshot(group, lv, content, file);
    group.lv("lvremove", &[], &format!("origin-{lv}"));
}

/// An image of a raid1.
fn split(group: &Group, lv: &str, content: &Content, file: &str) {
    let raid = format!("raid-{lv}");
    of(group, &raid, content, "--type raid1 -m 1 --nosync");
    fill(group, &raid, file);
    group.lv("lvconvert", &["--splitmirrors", "1", "--name", lv], &raid);
}

/// A linear volume that has become a raid1.
fn converted(group: &Group, lv: &str, content: &Content, file: &str) {
    of(group, lv, content, "--type linear");
    fill(group, lv, file);
    group.lv("lvconvert", &["--type", "raid1", "-m", "1"], lv);
    let copied = format!(
        "lvs --noheadings -o sync_percent,lv_health_status {}",
        group.path(lv)
    );
    eventually("the copy", || {
        let state = sh(&copied);
        let is_well = !state.contains(char::is_alphabetic);
        assert!(is_well, "{} on {lv} is not copied: {state}", content.name);
        state == "100.00"
    });
}

/// A linear volume that has become the external origin of a thin one.
fn thin_origin(group: &Group, lv: &str, content: &Content, file: &str) {
    of(group, lv, content, "--type linear");
    fill(group, lv, file);
    let (pool, origin) = (group.path("pool"), format!("origin-{lv}"));
    let to_thin = [
        "--type",
        "thin",
        "--thinpool",
        &pool,
        "--originname",
        &origin,
    ];
    group.lv("lvconvert", &to_thin, lv);
}
