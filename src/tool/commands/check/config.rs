//! `flexvolume-lvm check --config`: finds mistakes in a config, without asking LVM.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::files::read_or_stdin;
use crate::output::{Printed, printed};
use driver::config::{Config, Loaded};
use driver::host::Host;
use driver::names::Shown;

#[derive(Serialize)]
struct ConfigReport<'a> {
    file: &'a str,
    mistakes: Vec<String>,
}

/// Names the first mistake in `file`, or without `file`, in the config that the driver reads. The exit code is 1 if
/// there is a mistake.
pub fn mistakes(host: &Host, loaded: &Loaded, file: Option<&Path>, json: bool) -> Result<Printed> {
    let own = Path::new(&loaded.config.file);
    let file = file.unwrap_or(own);
    let is_own = file == own;
    let shown = file.shown().to_string();
    let read = read_or_stdin(host.kernel, file);
    let (mistake, is_there) = match (read, &loaded.problem) {
        (Ok(bytes), _) => (Config::from_bytes(&bytes, &shown).err(), true),
        // The driver's own config may be missing, or be /dev/null, which the driver takes for none.
        (Err(_), None) if is_own => (None, false),
        (Err(_), Some(problem)) if is_own => bail!("{problem}"),
        (Err(e), _) => return Err(e).with_context(|| format!("reading {shown}")),
    };
    // The driver may refuse to read its own config, for example because another user may write to the file.
    let mistake = mistake.or_else(|| loaded.problem.clone().filter(|_| is_own));
    let said = match &mistake {
        Some(mistake) => format!("{mistake}\n"),
        None if is_there => format!("{shown} has no mistakes\n"),
        None => format!("{shown} is not there: all keys have their defaults\n"),
    };
    let code = u8::from(mistake.is_some());
    let report = ConfigReport {
        file: &shown,
        mistakes: Vec::from_iter(mistake),
    };
    printed(&report, said, json, code)
}
