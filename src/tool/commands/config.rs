//! `flexvolume-lvm config check`: all mistakes of a config at once, without LVM.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::output::{Printed, counted};
use driver::config::{Config, Loaded};
use driver::host::Host;
use driver::names::Shown;

#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Name all mistakes in a config, with file, line and key
    ///
    /// Needs neither root nor LVM. The exit code is 0 if there is none, and 1 if there are.
    Check {
        /// The file, - for standard input; none: the one that this driver reads
        file: Option<PathBuf>,
    },
}

pub fn run(host: &Host, loaded: &Loaded, subcommand: &Subcommand) -> Result<Printed> {
    let Subcommand::Check { file } = subcommand;
    let own = Path::new(&loaded.config.file);
    let file = file.as_deref().unwrap_or(own);
    let is_own = file == own;
    let shown = file.shown().to_string();
    let read = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        host.kernel.read_bytes(file)
    };
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
