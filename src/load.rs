//! Finds the config and makes sure that nobody but root could have written it, or the driver.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use crate::config::{Config, Loaded, config_path};
use crate::host::{Kernel, Owner};

/// Reads the config of the driver that is `exe`. `variable` is what the environment names instead
/// of the file beside it. No file is an empty one.
///
/// What is wrong is in the result: calls that bring a volume up refuse to go on with it, calls
/// that take one down go on with the defaults, in the mode that the file names.
#[must_use]
pub fn load(kernel: &dyn Kernel, exe: &Path, variable: Option<&OsStr>) -> Loaded {
    let file = config_path(exe, variable);
    match read(kernel, exe, &file) {
        Ok(config) => Loaded {
            config,
            problem: None,
        },
        Err(problem) => Loaded {
            config: in_mode_of(kernel, &file),
            problem: Some(problem),
        },
    }
}

/// The defaults, in the mode that the faulty file names if that much of it can be read: a mistyped
/// key elsewhere must not make kubelet attach the volumes of a node that does not attach.
fn in_mode_of(kernel: &dyn Kernel, file: &Path) -> Config {
    let bytes = require_roots(kernel, file)
        .ok()
        .and_then(|()| kernel.read_bytes(file).ok());
    Config::default_in_mode_of(&bytes.unwrap_or_default())
}

fn read(kernel: &dyn Kernel, exe: &Path, file: &Path) -> Result<Config, String> {
    require_roots(kernel, exe)?;
    if let Some(dir) = exe.parent() {
        require_roots(kernel, dir)?;
    }
    let bytes = match kernel.read_bytes(file) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(format!("{} cannot be read: {e}", file.display())),
    };
    if !bytes.is_empty() {
        require_roots(kernel, file)?;
    }
    Config::from_bytes(&bytes, &file.to_string_lossy())
}

/// Fails if anybody but root could change this file or directory.
///
/// # Errors
/// Who could, and how to mend it.
pub fn require_roots(kernel: &dyn Kernel, path: &Path) -> Result<(), String> {
    const GROUP_WRITES: u32 = 0o020;
    const OTHERS_WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let shown = path.display();
    let Owner { uid, gid, mode } = kernel
        .owner(path)
        .map_err(|e| format!("{shown} cannot be looked at: {e}"))?;
    if uid != 0 {
        return Err(format!(
            "{shown} belongs to user {uid}, who could change what root runs here; run `chown root \
             {shown}`"
        ));
    }
    // As in /tmp: others may add files there, but not touch those of root.
    if mode & STICKY != 0 {
        return Ok(());
    }
    let group_writes = mode & GROUP_WRITES != 0 && gid != 0;
    if group_writes || mode & OTHERS_WRITE != 0 {
        return Err(format!(
            "{shown} can be written by others than root (mode {mode:04o}), who could change what \
             root runs here; run `chmod go-w {shown}`"
        ));
    }
    Ok(())
}
