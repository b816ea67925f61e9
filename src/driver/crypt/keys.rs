//! What a person does to the keys and to the header of an encrypted volume, by cryptsetup(8). No call-out uses it.
//!
//! The tool crate may call these, each for its reason: none of them reaches what is inside. A key is added beside
//! those that are there; one is taken away only after another has opened the volume; a header is only read.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Error, Result};

use super::keyslots::Keyslot;
use super::mapping::{name_of, path_of};
use super::tools::{Opening, WRONG_PASSPHRASE, close, cryptsetup, open, with_passphrase};
use crate::config::Luks;
use crate::host::{Command, Host, Lock, Node, ToolError, Writing, pipe_of};
use crate::names::{LvId, LvUuid, Shown};
use crate::options::Passphrase;

/// Reads the key slots of a device's header in the process that reads devices. `None`: no copy of it is whole.
pub fn keyslots_of(
    host: &Host,
    (device, path): (&Arc<File>, &Path),
) -> Result<Option<Vec<Keyslot>>> {
    let command = Command::asks(super::KEYSLOTS, Arc::clone(device), host.limits.query);
    let reading = || format!("reading the key slots of {}", path.shown());
    let output = host.run(&command).with_context(reading)?;
    serde_json::from_slice(&output.stdout).with_context(reading)
}

/// Whether cryptsetup failed because of the passphrase.
pub fn is_wrong_passphrase(error: &ToolError) -> bool {
    matches!(
        error,
        ToolError::Failed {
            code: WRONG_PASSPHRASE,
            ..
        }
    )
}

/// Whether this passphrase opens the device, by this slot if one is named. Opens nothing.
pub fn opens(
    host: &Host,
    device: &Node,
    slot: Option<u32>,
    passphrase: &Passphrase,
) -> Result<bool> {
    let command = Command::reads("cryptsetup", host.limits.activate)
        .args(["open", "--test-passphrase", "--type", "luks2"])
        .args(["--serialize-memory-hard-pbkdf", "--tries=1"])
        .args(slot.map(|slot| format!("--key-slot={slot}")));
    match host.run(&with_passphrase(command, passphrase)?.device(device)) {
        Ok(_) => Ok(true),
        Err(error) if is_wrong_passphrase(&error) => Ok(false),
        Err(error) => Err(Error::from(error).context("trying a passphrase")),
    }
}

/// Adds `new` beside the passphrase `old`. The slots that are there stay as they are.
pub fn add_key(
    host: &Host,
    config: &Luks,
    device: &Node,
    [old, new]: [&Passphrase; 2],
    lock: &Lock,
) -> Result<()> {
    // cryptsetup has one standard input. It opens the pipe of the second passphrase where this process has it.
    let pipe = pipe_of(new.bytes()).context("making a pipe for the passphrase")?;
    let second = format!("/proc/{}/fd/{}", std::process::id(), pipe.as_raw_fd());
    let memory = config.pbkdf_memory.get() >> 10;
    let iterations = config.pbkdf_iterations;
    let command = cryptsetup(host.limits.activate, lock)
        .args(["luksAddKey", "--batch-mode"])
        .args(["--pbkdf", "argon2id", "--pbkdf-memory", &memory.to_string()])
        .args(iterations.map(|number| format!("--pbkdf-force-iterations={number}")))
        .args(["--key-file=/proc/self/fd/0"]);
    let command = command
        .secret(old.bytes())
        .context("making a pipe for the passphrase")?;
    host.run(&command.device(device).operand(second))?;
    Ok(())
}

/// Takes a slot away. cryptsetup does it only if `stays` opens another slot: without `--batch-mode` it tries that
/// itself, in the same run.
pub fn remove_key(
    host: &Host,
    device: &Node,
    slot: u32,
    stays: &Passphrase,
    lock: &Lock,
) -> Result<()> {
    let command = cryptsetup(host.limits.activate, lock).args(["luksKillSlot"]);
    let command = with_passphrase(command, stays)?.device(device);
    host.run(&command.operand(slot.to_string()))?;
    Ok(())
}

/// Writes the header to a file that is not there yet: cryptsetup makes it, for root alone.
pub fn back_up(host: &Host, device: &Node, file: &Path, lock: &Lock) -> Result<()> {
    let command = cryptsetup(host.limits.activate, lock)
        .args(["luksHeaderBackup", "--batch-mode", "--header-backup-file"])
        .args([file]);
    host.run(&command.device(device))?;
    Ok(())
}

/// Opens a device to be read only, has `see` look at the device inside, and closes it again. What is inside cannot
/// be known otherwise.
pub fn look_inside<T>(
    host: &Host,
    config: &Luks,
    (id, volume, device): (&LvId, &LvUuid, &Node),
    passphrase: &Passphrase,
    lock: &Lock,
    see: impl FnOnce(&Node) -> Result<T>,
) -> Result<T> {
    let name = &name_of(volume);
    let opening = Opening {
        id,
        device,
        name,
        read_only: true,
        source: "the passphrase that was given",
    };
    open(host, config, &opening, passphrase, lock)?;
    let path = path_of(volume);
    let seen = see(&Node {
        name: path.clone(),
        path,
    });
    let closed = close(host, name, lock);
    let seen = seen?;
    closed.with_context(|| format!("closing {id} again"))?;
    Ok(seen)
}

impl Writing<'_> {
    /// See [`look_inside`]. Nothing is written to the volume, nor to what is inside.
    pub fn look_inside<T>(
        &self,
        config: &Luks,
        volume: (&LvId, &LvUuid, &Node),
        passphrase: &Passphrase,
        lock: &Lock,
        see: impl FnOnce(&Node) -> Result<T>,
    ) -> Result<T> {
        look_inside(self, config, volume, passphrase, lock, see)
    }

    /// See [`add_key`].
    pub fn add_key(
        &self,
        config: &Luks,
        device: &Node,
        old_and_new: [&Passphrase; 2],
        lock: &Lock,
    ) -> Result<()> {
        add_key(self, config, device, old_and_new, lock).context("adding the passphrase")
    }

    /// See [`remove_key`].
    pub fn remove_key(
        &self,
        device: &Node,
        slot: u32,
        stays: &Passphrase,
        lock: &Lock,
    ) -> Result<()> {
        remove_key(self, device, slot, stays, lock)
            .with_context(|| format!("removing the key slot {slot}"))
    }

    /// See [`back_up`].
    pub fn back_up_header(&self, device: &Node, file: &Path, lock: &Lock) -> Result<()> {
        back_up(self, device, file, lock).context("writing the backup of the header")
    }
}
