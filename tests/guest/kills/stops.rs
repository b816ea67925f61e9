//! What a call that was told to stop leaves: no more than a call that failed.

use super::scenes::{Call, Scene, Stage};
use super::steps::Steps;
use super::trial::{assert_unlocked, is_suspended};
use crate::crypt;
use crate::prelude::*;

impl Scene {
    /// Checks what must be true when a call has ended that was told to stop.
    pub fn check_stopped(self, group: &Group, stage: &Stage, tools: &[(String, i32)]) {
        let Stage { volume, dir, .. } = stage;
        Steps::wait_for_orphans(tools);
        assert_unlocked();
        if group.is_active(volume.lv()) {
            assert!(!is_suspended(volume), "it is left suspended");
        }
        let is_mounted = mounts()
            .iter()
            .any(|mount| mount.source == volume.mounted());
        if self.is_encrypted() {
            assert!(is_mounted || !crypt::is_open(volume), "left open");
        }
        // The one scene without a directory before the call.
        if self.call == Call::MountInactive {
            assert_eq!(dir.exists(), is_mounted, "{}", dir.display());
        }
    }
}

/// A volume that a tool of the driver has suspended, or opened, when the driver is told to stop.
struct Begun {
    kind: &'static str,
    tool: &'static str,
    /// What the tool does before it hangs.
    does: &'static str,
}

/// As lvextend does it: a new table is loaded, and the device is suspended.
const SUSPENDS: &str = "dmsetup table --showkeys taken-back-data | dmsetup load taken-back-data
    dmsetup suspend --noflush taken-back-data";

#[test]
fn what_a_stopped_call_has_begun_is_taken_back() {
    let all = [
        ("plain", "lvextend", SUSPENDS),
        ("encrypted", "lvextend", SUSPENDS),
        ("encrypted", "mount", ""),
    ];
    for (kind, tool, does) in all {
        let begun = Begun { kind, tool, does };
        begun.is_taken_back();
    }
}

impl Begun {
    fn is_taken_back(&self) {
        let Self { kind, tool, does } = self;
        let group = Group::new("taken-back");
        let key = crypt::config(&crypt::key_file("taken-back"));
        let mut volume = group.linear("data", "100m");
        if *kind == "encrypted" {
            volume = volume.encrypted();
        }
        let hangs = format!("{does}\necho $$ >> $HERE/{tool}.runs\nexec sleep 600");
        let tools = Tools::new().put(tool, &hangs);
        let mut node = Node::with_config(Mode::MountOnly, &key);
        let dir = node.up("pod", &volume);
        write_synced(&dir.join("page"), kind);
        let slow = format!("{}{key}", tools.config());
        let (json, new) = (volume.json(), (200 * MIB).to_string());
        let call = if *tool == "mount" {
            node.down("pod", &volume);
            node.configure(Mode::MountOnly, &slow);
            node.start_mount("pod", &volume)
        } else {
            node.configure(Mode::MountOnly, &slow);
            node.start(&["expandfs", &json, "", text(&dir), &new, "0"])
        };
        tools.wait_for(tool);
        let reply = call.stop();
        reply.is_failure(&["because the driver was told to stop"]);
        assert!(!is_suspended(&volume), "{kind}: {reply:?}");
        let is_open = *kind == "encrypted" && crypt::is_open(&volume);
        assert_eq!(
            is_open,
            *tool != "mount" && *kind == "encrypted",
            "{reply:?}"
        );
        node.configure(Mode::MountOnly, &key);
        if *tool == "lvextend" {
            node.grow("pod", &volume, 200 * MIB).is_success();
            node.down("pod", &volume);
        }
        node.finds(&volume, kind);
    }
}

#[test]
fn a_stopped_growth_resumes_no_device_of_another_group() {
    let outer = Group::new("outer");
    outer.linear("disk", "800m");
    let sectors = 800 * MIB / 512;
    let table = format!("0 {sectors} linear /dev/outer/disk 0");
    run("dmsetup", &["create", "between", "--table", &table]);
    let _away = Finally("dmsetup remove --retry between".into());
    let inner = Group::on("inner", &["/dev/mapper/between"]);
    // Another command of LVM has the outer volume suspended for a moment.
    let hangs = "dmsetup suspend outer-disk\necho $$ >> $HERE/lvextend.runs\nexec sleep 600";
    let tools = Tools::new().put("lvextend", hangs);
    let mut node = Node::new(Mode::MountOnly);
    let volume = inner.linear("data", "100m");
    let dir = node.up("pod", &volume);
    node.configure(Mode::MountOnly, &tools.config());
    let (json, new) = (volume.json(), (200 * MIB).to_string());
    let call = node.start(&["expandfs", &json, "", text(&dir), &new, "0"]);
    tools.wait_for("lvextend");
    let reply = call.stop();
    let suspended = bash("dmsetup info -c --noheadings -o suspended,name | grep Suspended");
    run("dmsetup", &["resume", "outer-disk"]);
    assert_eq!(suspended, "Suspended:outer-disk", "{reply:?}");
    assert!(!reply.message.contains("outer-disk"), "{reply:?}");
    node.configure(Mode::MountOnly, "");
    node.grow("pod", &volume, 200 * MIB).is_success();
    node.down("pod", &volume);
}
