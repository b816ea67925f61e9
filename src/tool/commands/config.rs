//! `flexvolume-lvm check --config`: all mistakes of a config at once, without LVM.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::files::read_or_stdin;
use crate::output::{Printed, counted};
use driver::config::{Config, Loaded};
use driver::host::Host;
use driver::names::Shown;

/// Names the mistakes of `file`, or of the config that the driver reads. The exit code is 1 if there are any.
pub fn mistakes(host: &Host, loaded: &Loaded, file: Option<&Path>) -> Result<Printed> {
    let own = Path::new(&loaded.config.file);
    let file = file.unwrap_or(own);
    let is_own = file == own;
    let shown = file.shown().to_string();
    let read = read_or_stdin(host.kernel, file);
    let bytes = match (read, &loaded.problem) {
        (Ok(bytes), _) => bytes,
        // It need not be there.
        (Err(e), None) if is_own && e.kind() == ErrorKind::NotFound => {
            let said = format!("{shown} is not there: all keys have their defaults\n");
            return Ok(Printed::text(said));
        }
        (Err(_), Some(problem)) if is_own => bail!("{problem}"),
        (Err(e), _) => return Err(e).with_context(|| format!("reading {shown}")),
    };
    let mut mistakes = Config::mistakes(&bytes, &shown);
    // Such as who may write it.
    mistakes.extend(
        loaded
            .problem
            .clone()
            .filter(|_| is_own && mistakes.is_empty()),
    );
    if mistakes.is_empty() {
        return Ok(Printed::text(format!("{shown} has no mistakes\n")));
    }
    let number = counted(mistakes.len(), "mistake");
    Ok(Printed {
        code: 1,
        ..Printed::text(format!("{}\n{number}\n", mistakes.join("\n")))
    })
}
