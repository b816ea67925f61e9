//! cryptsetup(8). The passphrase is its standard input; the volume's lock it inherits beside that.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};

use super::CIPHER;
use super::header::Header;
use super::mapping::name_of;
use crate::config::Luks;
use crate::fs::{Opened, asked};
use crate::host::trust::require_secret;
use crate::host::{Command, Host, Lock, Node, ToolError, leave_no_core};
use crate::names::{LvId, LvUuid, Shown};
use crate::options::{LONGEST_PASSPHRASE, Passphrase};
use crate::volume::Permit;

/// cryptsetup(8), "RETURN CODES": no permission, which is a wrong passphrase.
const WRONG_PASSPHRASE: i32 = 2;
/// The same: the name is taken already, or the device is busy.
const EXISTS_OR_BUSY: i32 = 5;

/// Reads the header of a device. `None`: it has none.
pub fn header_of(host: &Host, device: Opened) -> Result<Option<Header>> {
    asked(host, device, super::HEADER, None)
}

/// Reads a passphrase from a file of the node. From now on this process and its tools leave no core.
pub fn read_key_file(host: &Host, file: &Path) -> Result<Passphrase> {
    leave_no_core().context("keeping this process from leaving a core")?;
    let read = || {
        require_secret(file).map_err(Error::msg)?;
        Passphrase::of(host.kernel.read_secret(file, LONGEST_PASSPHRASE)?)
    };
    read().with_context(|| format!("reading the key_file {}", file.shown()))
}

fn cryptsetup(limit: Duration, lock: &Lock) -> Command {
    Command::writes("cryptsetup", limit).holds(lock.file())
}

fn with_passphrase(command: Command, passphrase: &Passphrase) -> Result<Command> {
    let command = command.args(["--key-file=-"]).secret(passphrase.bytes());
    command.context("making a pipe for the passphrase")
}

/// Makes a LUKS2 header with this UUID on a device that holds nothing. Gives the permit back, for what is made inside.
pub fn format(
    host: &Host,
    config: &Luks,
    permit: Permit,
    device: &Node,
    uuid: &str,
    passphrase: &Passphrase,
    lock: &Lock,
) -> Result<Permit> {
    let memory = config.pbkdf_memory.get() >> 10;
    let iterations = config.pbkdf_iterations;
    let command = cryptsetup(host.limits.make, lock)
        .args(["luksFormat", "--batch-mode", "--type", "luks2"])
        .args(["--cipher", CIPHER, "--uuid", uuid])
        .args(["--pbkdf", "argon2id", "--pbkdf-memory", &memory.to_string()])
        .args(iterations.map(|number| format!("--pbkdf-force-iterations={number}")));
    let command = with_passphrase(command, passphrase)?.device(device);
    host.run(&command)?;
    Ok(permit)
}

/// Opens an encrypted volume. `source`: the passphrase's source, as messages name it.
///
/// The volume's key is in the table of the device, and not in the kernel's keyring: there, `cryptsetup resize`
/// would ask for a passphrase, which kubelet gives to no call that grows a volume.
///
/// Only the passphrase counts. cryptsetup tries the header's tokens first (a key in the kernel's keyring, a TPM), and
/// they open the volume whatever the passphrase is; with the number of a token that no header can have it goes on to
/// the passphrase. Source: cryptsetup src/cryptsetup.c, `action_open_luks`; LUKS2 has 32 tokens.
pub fn open(
    host: &Host,
    config: &Luks,
    (id, volume, device): (&LvId, &LvUuid, &Node),
    read_only: bool,
    (passphrase, source): (&Passphrase, &str),
    lock: &Lock,
) -> Result<()> {
    let name = &name_of(volume);
    let command = cryptsetup(host.limits.activate, lock)
        .args(["open", "--type", "luks2", "--token-id=1000", "--tries=1"])
        // One after the other, so that the memory of `pbkdf_memory` is needed only once.
        .args(["--serialize-memory-hard-pbkdf", "--disable-keyring"])
        .args(read_only.then_some("--readonly"))
        .args(config.allow_discards.then_some("--allow-discards"));
    let command = with_passphrase(command, passphrase)?;
    match host.run(&command.device(device).operand(name)) {
        Ok(_) => Ok(()),
        Err(ToolError::Failed {
            code: WRONG_PASSPHRASE,
            ..
        }) => bail!(
            "{source} does not open {id}: give the passphrase that {id} was encrypted with, or one that was added \
             since (`cryptsetup luksDump {}` lists how many there are). If it is one of them, its key slot is damaged: \
             restore the header from its backup, see docs/encryption.md",
            device.name.shown(),
        ),
        Err(error) => {
            let is_left =
                matches!(&error, ToolError::Failed { code, .. } if *code == EXISTS_OR_BUSY);
            let advice = if is_left {
                format!(
                    " (a killed cryptsetup leaves its device without a table: if no cryptsetup runs, and \
                     `dmsetup table {name}` prints nothing, run `dmsetup remove {name}`; else a volume with the same \
                     UUID is open, as in a group that vgimportclone made: close that first)"
                )
            } else {
                String::new()
            };
            Err(error).with_context(|| format!("opening the encrypted volume {id}{advice}"))
        }
    }
}

/// Closes an encrypted volume; the kernel forgets its key. Fails while somebody has it open.
pub fn close(host: &Host, name: &str, lock: &Lock) -> Result<(), ToolError> {
    let command = cryptsetup(host.limits.activate, lock).args(["close"]);
    host.run(&command.operand(name)).map(drop)
}

/// Makes the device inside as large as its volume, also while it is in use.
pub fn resize(host: &Host, name: &str, lock: &Lock) -> Result<(), ToolError> {
    let command = cryptsetup(host.limits.resize, lock).args(["resize"]);
    host.run(&command.operand(name)).map(drop)
}
