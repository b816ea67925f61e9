//! Finds the config and makes sure that nobody but root could have written it, or the driver.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Kernel;
use crate::config::{Config, FILE_VARIABLE, Loaded};
use crate::names::Shown;

/// Reads the config of the driver `exe`: the file that the environment names (`variable`), which must
/// exist, or else the file beside the driver, if there is one.
///
/// A problem is part of the result: calls that bring a volume up fail with it, calls that take one
/// down go on with the defaults, in the mode and with the log that the file names.
pub fn load(kernel: &Kernel, exe: &Path, variable: Option<&OsStr>) -> Loaded {
    let variable = variable.filter(|path| !path.is_empty());
    let file = variable.map_or_else(|| exe.with_file_name("config.toml"), PathBuf::from);
    match read(kernel, exe, &file, variable.is_some()) {
        Ok(config) => Loaded {
            config,
            problem: None,
        },
        // A mistyped key elsewhere, or loose permissions, must not make kubelet attach the volumes
        // of a node that does not attach.
        Err(problem) => {
            let bytes = kernel.read_bytes(&file).unwrap_or_default();
            Loaded {
                config: Config::saved_from(&bytes, &file.to_string_lossy()),
                problem: Some(problem),
            }
        }
    }
}

fn read(kernel: &Kernel, exe: &Path, file: &Path, is_named: bool) -> Result<Config, String> {
    require_roots(exe)?;
    if let Some(dir) = exe.parent() {
        require_roots(dir)?;
    }
    let none = || Config {
        file: file.to_string_lossy().into_owned(),
        ..Config::default()
    };
    // The usual way to say "no file".
    if is_named && file == Path::new("/dev/null") {
        return Ok(none());
    }
    let is_link = fs::read_link(file).is_ok();
    let bytes = match kernel.read_bytes(file) {
        Ok(bytes) => bytes,
        // A dangling link must not mean "no config": that would allow what the config forbids.
        Err(e) if e.kind() == io::ErrorKind::NotFound && !is_link && !is_named => return Ok(none()),
        Err(e) => {
            let what = if is_named {
                format!(", which {FILE_VARIABLE} names,")
            } else {
                String::new()
            };
            return Err(format!("{}{what} cannot be read: {e}", file.shown()));
        }
    };
    require_roots(file)?;
    if is_link || is_named {
        require_roots_on_the_way(file)?;
    }
    Config::from_bytes(&bytes, &file.to_string_lossy())
}

/// Checks the directory of a file, and of every link that leads to it: a user who can write there
/// can put another file in its place.
fn require_roots_on_the_way(file: &Path) -> Result<(), String> {
    /// As many as the kernel follows: `path_resolution(7)`.
    const MOST_LINKS: usize = 40;
    let mut file = file.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(dir) = file.parent().map(Path::to_owned) else {
            break;
        };
        // A name without a directory is relative to the current one.
        let is_here = dir.as_os_str().is_empty();
        require_roots(if is_here { Path::new(".") } else { &dir })?;
        let Ok(target) = fs::read_link(&file) else {
            break;
        };
        // In a directory like /tmp others may add links.
        if fs::symlink_metadata(&file).is_ok_and(|link| link.uid() != 0) {
            let shown = file.display();
            return Err(format!(
                "{shown} is a symbolic link that root did not make; remove it"
            ));
        }
        file = dir.join(target);
    }
    Ok(())
}

/// Fails if anybody but root could read or change this file, or put another in its place; or if it has nothing in it,
/// or more than `most` bytes, or is no file.
pub fn require_secret(file: &Path, most: usize) -> Result<(), String> {
    const OTHERS: u32 = 0o077;
    require_roots_to_run(file)?;
    let metadata = fs::metadata(file).map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    if metadata.len() == 0 {
        return Err("it is empty".to_owned());
    }
    if metadata.len() > most as u64 {
        return Err(format!("it is longer than {} KiB", most >> 10));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(format!(
            "others than root may read it (mode {mode:04o}); run `chmod 600 {}`",
            file.quoted()
        ));
    }
    Ok(())
}

/// Fails if anybody but root could change what this file runs, or put another in its place.
pub fn require_roots_to_run(file: &Path) -> Result<(), String> {
    require_roots_on_the_way(file)?;
    require_roots(file)
}

/// Fails if anybody but root could change this file or directory.
pub fn require_roots(path: &Path) -> Result<(), String> {
    const GROUP_WRITES: u32 = 0o020;
    const OTHERS_WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let metadata =
        fs::metadata(path).map_err(|e| format!("{} cannot be looked at: {e}", path.shown()))?;
    let (uid, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if uid != 0 {
        let shown = path.shown();
        return Err(format!(
            "{shown} belongs to user {uid}, who could change what root runs here; run `chown root \
             {}`",
            path.quoted()
        ));
    }
    // A sticky directory, such as /tmp: others may add files, but not change those of root.
    if metadata.is_dir() && mode & STICKY != 0 {
        return Ok(());
    }
    let group_writes = mode & GROUP_WRITES != 0 && metadata.gid() != 0;
    if group_writes || mode & OTHERS_WRITE != 0 {
        let shown = path.shown();
        return Err(format!(
            "{shown} can be written by others than root (mode {mode:04o}), who could change what \
             root runs here; run `chmod go-w {}`",
            path.quoted()
        ));
    }
    Ok(())
}
