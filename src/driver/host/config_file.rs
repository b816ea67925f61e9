//! Finds and reads the config. Refuses the config if anybody but root could have written it or the driver's executable.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Kernel;
use super::trust::{require_roots, require_roots_on_the_way};
use crate::config::{Config, FILE_VARIABLE, Loaded};
use crate::names::Shown;

/// Reads the config of the driver `exe`: the file that the environment names (`variable`), which must exist. Without
/// `variable`, the file beside the driver, if there is one.
///
/// A problem is part of the result. Calls that bring a volume up fail with it. Calls that take a volume down go on with
/// the defaults, but with `attach` and `log` of the file.
pub fn load(kernel: &Kernel, exe: &Path, variable: Option<&OsStr>) -> Loaded {
    let named = variable.filter(|path| !path.is_empty());
    let file = named.map_or_else(|| exe.with_file_name("config.toml"), PathBuf::from);
    match read(kernel, exe, &file, named.is_some()) {
        Ok(config) => Loaded {
            config,
            problem: None,
        },
        // A mistake in another key, or wrong permissions of the file, must not switch a node without attach mode to
        // attach mode.
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
    // /dev/null is the usual way to name no file.
    if is_named && file == Path::new("/dev/null") {
        return Ok(none());
    }
    let is_link = fs::read_link(file).is_ok();
    let bytes = match kernel.read_bytes(file) {
        Ok(bytes) => bytes,
        // A dangling link must not count as a missing config: that would allow what the config forbids.
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
