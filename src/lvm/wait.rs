use std::time::{Duration, Instant};

use anyhow::Error;

use super::words::words;
use crate::holders;
use crate::host::{Command, Effect, Host, Output, ToolError};
use crate::names::VgName;

/// How often a command is run at most that waits in a queue.
const TURNS: usize = 5;
/// How long LVM's lock is watched for another holder, which is longer than a change takes.
const WATCH: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(250);

/// Runs an LVM command that may be run twice. When very many pods start at once, each command waits
/// for LVM's lock behind those of the others. That is no failure: one that reaches its limit so is
/// run again, as long as the lock goes from hand to hand. Its limit is for a lock that is stuck.
pub(super) fn run_in_turn(
    host: &Host,
    vg: &VgName,
    command: &Command,
) -> Result<Output, ToolError> {
    let command = &command.clone().words(words);
    for _ in 1..TURNS {
        match host.run(command) {
            Err(ToolError::TimedOut { stuck: None, .. }) if queue_moves(host, vg) => {}
            done => return done,
        }
    }
    host.run(command)
}

/// Whether those who hold LVM's lock just now let go of it.
fn queue_moves(host: &Host, vg: &VgName) -> bool {
    let holders = || {
        let holders = holders::of_lvm_lock(host.kernel, Some(vg)).into_iter();
        holders.map(|holder| holder.pid).collect::<Vec<_>>()
    };
    let before = holders();
    let started = Instant::now();
    while !before.is_empty() && started.elapsed() < WATCH && !host.kernel.pause(LOOK) {
        if holders() != before {
            return true;
        }
    }
    false
}

/// If an LVM command had to be stopped at its limit, adds what it was waiting for: whoever holds
/// the lock of the volume group, or what else makes LVM wait. `vg` is None for a command on all.
pub(super) fn explain(host: &Host, vg: Option<&VgName>, error: ToolError) -> Error {
    if let (ToolError::Failed { stderr, .. }, Some(vg)) = (&error, vg)
        && stderr.contains("is exported")
    {
        let advice = format!("the volume group {vg} is exported; run `vgimport {vg}` to use it");
        return Error::from(error).context(advice);
    }
    let ToolError::TimedOut { effect, .. } = error else {
        return error.into();
    };
    let holders = holders::of_lvm_lock(host.kernel, vg);
    let cause = if !holders.is_empty() {
        format!("LVM is locked by {}", holders::name_them(&holders))
    } else if effect == Effect::Reads {
        "LVM waits, perhaps for a disk: check that each answers (`pvs`, `dmesg`)".to_owned()
    } else {
        "LVM waits for udev or for a disk: check that udevd runs (`udevadm settle`, `dmsetup \
         udevcookies`) and that each disk answers (`pvs`, `dmesg`)"
            .to_owned()
    };
    Error::from(error).context(cause)
}
