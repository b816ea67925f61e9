//! Checks of volumes that were not looked at: those that LVM does not know, and those for which there was no time.

use super::facts::{Facts, LONGEST, Lvm};
use crate::commands::survey::{Finding, Health, Verdict};
use driver::host::own_name;
use driver::volume::Reason;

pub fn lost(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let found = lvm.lost.iter().map(|id| {
        let finding = Finding::failed("mounts", Reason::Unknown.of(id)).on(id);
        finding.why("pods have it mounted").run("pvs -a")
    });
    found.collect()
}

pub fn left_out(_: &Facts, lvm: &Lvm) -> Vec<Finding> {
    let is_unread =
        |one: &&Health| one.is_ours && one.verdict.as_ref().is_some_and(Verdict::is_unread);
    let unread = lvm.volumes.iter().filter(is_unread);
    let names: Vec<String> = unread.map(|one| one.volume.id.to_string()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let finding = format!(
        "not looked at within {} s: {}; `{} check` looks at all",
        LONGEST.as_secs(),
        names.join(", "),
        own_name()
    );
    vec![Finding::warning("volumes", finding)]
}
