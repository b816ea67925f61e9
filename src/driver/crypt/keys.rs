//! What a person does to the keys and to the header of an encrypted volume, by cryptsetup(8). No call-out uses it.
//!
//! The tool crate may call these: none of them changes what is inside. A key is added beside those that are there;
//! one is taken away only after another has opened the volume; a header is only read.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Error, Result, bail};

use super::keyslots::Keyslot;
use super::mapping::{name_of, path_of};
use super::tools::{
    close, cryptsetup, is_wrong_passphrase, open, opening, with_passphrase, with_pbkdf,
};
use crate::config::Luks;
use crate::host::{Command, Host, Lock, Node, Writing, pipe_of};
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

/// Whether this passphrase opens the device, by this slot if one is named. Opens nothing.
pub fn opens(
    host: &Host,
    device: &Node,
    slot: Option<u32>,
    passphrase: &Passphrase,
) -> Result<bool> {
    let command = Command::reads("cryptsetup", host.limits.activate);
    let command = opening(command, passphrase)?
        .args(["--test-passphrase"])
        .args(slot.map(|slot| format!("--key-slot={slot}")));
    match host.run(&command.device(device)) {
        Ok(_) => Ok(true),
        Err(error) if is_wrong_passphrase(&error) => Ok(false),
        Err(error) => Err(Error::from(error).context("trying a passphrase")),
    }
}

impl Writing<'_> {
    /// Adds `new` beside the passphrase `old`. The slots that are there stay as they are.
    pub fn add_key(
        &self,
        config: &Luks,
        (id, device): (&LvId, &Node),
        [old, new]: [&Passphrase; 2],
        lock: &Lock,
    ) -> Result<()> {
        // cryptsetup has one standard input. It opens the pipe of the second passphrase where this process has it.
        let pipe = pipe_of(new.bytes()).context("making a pipe for the passphrase")?;
        let second = format!("/proc/{}/fd/{}", std::process::id(), pipe.as_raw_fd());
        let command = cryptsetup(self.limits.activate, lock).args(["luksAddKey", "--batch-mode"]);
        let command = with_pbkdf(command, config).args(["--key-file=/proc/self/fd/0"]);
        let command = command
            .secret(old.bytes())
            .context("making a pipe for the passphrase")?;
        match self.run(&command.device(device).operand(second)) {
            Err(error) if is_wrong_passphrase(&error) => bail!(
                "the passphrase that was given does not open {id}, so none was added: give one that does with \
                 --key-file"
            ),
            done => done.map(drop).context("adding the passphrase"),
        }
    }

    /// Takes a slot away. cryptsetup does it only if `stays` opens another slot: without `--batch-mode` it tries
    /// that itself, in the same run.
    pub fn remove_key(
        &self,
        device: &Node,
        slot: u32,
        stays: &Passphrase,
        lock: &Lock,
    ) -> Result<()> {
        let command = cryptsetup(self.limits.activate, lock).args(["luksKillSlot"]);
        let command = with_passphrase(command, stays)?.device(device);
        let removed = self.run(&command.operand(slot.to_string())).map(drop);
        removed.with_context(|| format!("removing the key slot {slot}"))
    }

    /// Writes the header to a file that is not there yet: cryptsetup makes it, for root alone.
    pub fn back_up_header(&self, device: &Node, file: &Path, lock: &Lock) -> Result<()> {
        let command = cryptsetup(self.limits.activate, lock)
            .args(["luksHeaderBackup", "--batch-mode", "--header-backup-file"])
            .args([file]);
        let written = self.run(&command.device(device)).map(drop);
        written.context("writing the backup of the header")
    }

    /// Opens a device to be read only, has `see` look at the device inside, and closes it again. What is inside
    /// cannot be known otherwise. Nothing is written to the volume, nor to what is inside.
    pub fn look_inside<T>(
        &self,
        config: &Luks,
        volume: (&LvId, &LvUuid, &Node),
        passphrase: &Passphrase,
        lock: &Lock,
        see: impl FnOnce(&Node) -> Result<T>,
    ) -> Result<T> {
        let key = (passphrase, "the passphrase that was given");
        open(self, config, volume, true, key, lock)?;
        let (id, uuid, _) = volume;
        let path = path_of(uuid);
        let seen = see(&Node {
            name: path.clone(),
            path,
        });
        let closed = close(self, &name_of(uuid), lock);
        let seen = seen?;
        closed.with_context(|| format!("closing {id} again"))?;
        Ok(seen)
    }
}
