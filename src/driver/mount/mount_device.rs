//! Mounts a device with mount(8).

use std::path::Path;

use anyhow::{Error, Result};

use super::advice::{has_unknown_features, too_many_mounts, twin, without_data};
use super::mounted::require_mounted;
use super::source::Source;
use super::unmount::ensure_unmounted;
use crate::failed_step::FailedStep;
use crate::host::{Command, Host, KernelLog, Lock, ToolError};
use crate::names::{FsType, Shown};

/// Mounts a device with mount(8), and compares what is mounted with `source`. If mount(8) fails or is stopped, or
/// something else is mounted, undoes the mount.
pub fn mount_device(host: &Host, source: &Source, dir: &Path, lock: &Lock) -> Result<()> {
    let Source { id, node, .. } = *source;
    let fs = source.filesystem.fs;
    let mut command = Command::writes("mount", host.limits.mount)
        .stdin(lock.file())
        .args(["-t", fs.as_str()])
        // Always one of the two: without them, mount(8) mounts a device read-only if it cannot be written.
        .args([if source.read_only {
            "--read-only"
        } else {
            "--rw"
        }]);
    if let Some(options) = source.options.joined() {
        command = command.args(["-o".to_owned(), options]);
    }
    let log = KernelLog::from_now();
    let Err(error) = host.run(&command.device(node).operand(dir)) else {
        return require_mounted(host, source, dir);
    };
    let said = log.about(&format!("dm-{}", source.number.minor), fs.as_str());
    // Counted before the undo, which may end a mount.
    let too_many = is_full(&error).then(|| too_many_mounts(host.kernel));
    let advice = too_many.flatten().or_else(|| advice(source, &error, &said));
    let mut error = Error::from(error);
    if !said.is_empty() {
        error = error.context(format!("the kernel says \"{said}\""));
    }
    let error = host.after_undo(error, || ensure_unmounted(host, dir));
    let doing = format!("mounting {id} on {} (see also `dmesg`)", dir.shown());
    let error = FailedStep::Mount.of(host, error, doing);
    Err(match advice {
        Some(advice) => error.context(advice),
        None => error,
    })
}

fn is_full(error: &ToolError) -> bool {
    error.to_string().contains("No space left on device")
}

/// Advice for a mount that failed, if its cause is known by the words of mount(8) or of the kernel.
fn advice(source: &Source, error: &ToolError, said: &str) -> Option<String> {
    let Source { id, node, .. } = *source;
    let fs = source.filesystem.fs;
    if fs == FsType::Btrfs && error.to_string().contains("File exists") {
        return Some(twin(source));
    }
    if !has_unknown_features(said) {
        return None;
    }
    let helps = without_data(fs, id, node.name != id.device());
    Some(if source.is_new {
        format!(
            "this call has made {fs} on {id} with features that this node's kernel does not know. {helps}"
        )
    } else {
        format!(
            "{id} has a filesystem with features that this node's kernel does not know: mount it on a node with a newer \
             kernel. {helps}"
        )
    })
}
