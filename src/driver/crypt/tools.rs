//! Runs cryptsetup(8). cryptsetup gets the passphrase on its standard input, and inherits the volume's lock as another
//! descriptor.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result};

use super::header::Header;
use super::mapping::name_of;
use super::{CIPHER, anew};
use crate::config::Luks;
use crate::failed_step::FailedStep;
use crate::fs::{Opened, ask_child};
use crate::host::trust::require_secret;
use crate::host::{
    Command, DeviceNumber, Host, Kernel, Lock, Node, ToolError, leave_no_core, own_path,
};
use crate::lvm::resume_if_failed;
use crate::names::{LvId, LvUuid, Shown, VgName};
use crate::options::{LONGEST_PASSPHRASE, Passphrase};
use crate::volume::Permit;

/// cryptsetup(8), "RETURN CODES": no permission, which means a wrong passphrase.
const WRONG_PASSPHRASE: i32 = 2;
/// cryptsetup(8), "RETURN CODES": the name exists already, or the device is busy.
const EXISTS_OR_BUSY: i32 = 5;

/// Reads the LUKS2 header of a device. `None`: the device has no LUKS2 header.
pub fn header_of(host: &Host, device: Opened) -> Result<Option<Header>> {
    ask_child(host, device, super::HEADER, None)
}

/// Fails if this file of the node cannot be used for a passphrase. Does not read the file.
pub fn require_key_file(file: &Path) -> Result<(), String> {
    require_secret(file, LONGEST_PASSPHRASE)
}

/// Reads a passphrase from a file of the node. From now on this process and its tools leave no core.
pub fn read_key_file(host: &Host, file: &Path) -> Result<Passphrase> {
    leave_no_core().context("keeping this process from leaving a core")?;
    passphrase_in(host.kernel, file).map_err(|error| {
        FailedStep::Unlock.of(
            host,
            error,
            format!("reading the key_file {}", file.shown()),
        )
    })
}

fn passphrase_in(kernel: &Kernel, file: &Path) -> Result<Passphrase> {
    require_key_file(file).map_err(Error::msg)?;
    Passphrase::of(kernel.read_secret(file, LONGEST_PASSPHRASE)?)
}

fn cryptsetup(limit: Duration, lock: &Lock) -> Command {
    Command::writes("cryptsetup", limit).holds(lock.file())
}

fn with_passphrase(command: Command, passphrase: &Passphrase) -> Result<Command> {
    command
        .args(["--key-file=-"])
        .secret(passphrase.bytes())
        .context("making a pipe for the passphrase")
}

/// Makes a LUKS2 header with this UUID on a device that holds nothing. Returns the permit, for the filesystem inside.
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

/// An encrypted volume that is to be opened.
pub struct Closed<'a> {
    pub id: &'a LvId,
    pub uuid: &'a LvUuid,
    pub node: &'a Node,
    pub device: Opened<'a>,
    /// The volume's header, which was judged before.
    pub header: &'a Header,
}

/// A header in memory for cryptsetup: written anew from the volume's own header, with the encrypted keys copied from
/// the disk. So nobody who writes to the disk meanwhile can change what was judged.
fn private_header(host: &Host, closed: &Closed) -> Result<File> {
    let layout = closed.header.newest();
    let (layout, uuid) = layout.context("the LUKS2 header cannot be read")?;
    let both = anew::both_copies(uuid, layout).context("the LUKS2 header has no room")?;
    let size = layout.end().context("the LUKS2 header has no end")?;
    let file = host.kernel.unnamed_file()?;
    file.set_len(size)?;
    file.write_all_at(&both, 0)?;
    let mut words = vec![own_path(&file)];
    for key in anew::keys(layout) {
        words.extend([key.start, key.end].map(|number| number.to_string()));
    }
    let () = ask_child(host, closed.device, super::KEYS, words)?;
    Ok(file)
}

/// Opens an encrypted volume. `source`: the passphrase's source, as messages name it.
///
/// The volume's key is in the table of the device, not in the kernel's keyring. With the keyring, `cryptsetup resize`
/// would need a passphrase, which kubelet gives to no call that grows a volume.
///
/// Only the passphrase opens the volume. A token of the header (a key in the kernel's keyring, a TPM) would open it
/// with any passphrase, so the header for cryptsetup has no tokens.
pub fn open(
    host: &Host,
    config: &Luks,
    closed: &Closed,
    read_only: bool,
    (passphrase, source): (&Passphrase, &str),
    lock: &Lock,
) -> Result<()> {
    let Closed { id, node, .. } = closed;
    let name = &name_of(closed.uuid);
    let header = private_header(host, closed)
        .map_err(|error| FailedStep::Unlock.of(host, error, format!("opening {id}")))?;
    let command = cryptsetup(host.limits.activate, lock)
        .args(["open", "--type", "luks2", "--tries=1"])
        // Passphrases of several calls are checked one after the other, so that `pbkdf_memory` is needed only once.
        .args(["--serialize-memory-hard-pbkdf", "--disable-keyring"])
        .args(read_only.then_some("--readonly"))
        .args(config.allow_discards.then_some("--allow-discards"))
        .hands_on("--header", header);
    let command = with_passphrase(command, passphrase)?;
    let opened = host.run(&command.device(node).operand(name)).map(drop);
    opened.map_err(|error| not_opened(host, closed, source, error))
}

/// The error of a volume that cryptsetup has not opened, with what helps. `source`: see [`open`].
fn not_opened(host: &Host, closed: &Closed, source: &str, error: ToolError) -> Error {
    let Closed { id, node, .. } = closed;
    let name = name_of(closed.uuid);
    match error {
        ToolError::Failed {
            code: WRONG_PASSPHRASE,
            ..
        } => FailedStep::Unlock.error(format!(
            "{source} does not open {id}: give the passphrase that {id} was encrypted with, or one that was added \
             since (`cryptsetup luksDump {}` lists how many there are). If it is one of them, its key slot is damaged, or the \
             header is an older one: docs/encryption.md says how to restore the newest without losing this one",
            node.name.shown(),
        )),
        error => {
            let is_left =
                matches!(&error, ToolError::Failed { code, .. } if *code == EXISTS_OR_BUSY);
            let advice = if is_left {
                format!(
                    " (a killed cryptsetup leaves its device without a table: if no cryptsetup runs, and \
                     `dmsetup table {name}` prints nothing or `error`, run `dmsetup remove {name}`; else a volume with the same \
                     UUID is open, as in a group that vgimportclone made: close that first)"
                )
            } else {
                String::new()
            };
            let doing = format!("opening the encrypted volume {id}{advice}");
            FailedStep::Unlock.of(host, error.into(), doing)
        }
    }
}

/// Closes an encrypted volume, after which the kernel has forgotten its key. Fails while somebody has it open.
pub fn close(host: &Host, name: &str, lock: &Lock) -> Result<(), ToolError> {
    let command = cryptsetup(host.limits.activate, lock).args(["close"]);
    host.run(&command.operand(name)).map(drop)
}

/// Resizes the device inside a volume of `vg` to the volume's size less the header. The device may be in use.
pub fn resize(
    host: &Host,
    vg: &VgName,
    (name, inside): (&str, DeviceNumber),
    lock: &Lock,
) -> Result<()> {
    let command = cryptsetup(host.limits.resize, lock).args(["resize"]);
    let resized = host.run(&command.operand(name)).map(drop);
    resume_if_failed(host, vg, inside, resized.map_err(Error::from))
}
