//! `lvm install` and `lvm uninstall`: put this executable where kubelet looks for it, and take it
//! away again.

mod answer;
mod follow;
mod place;
mod put;
mod undo;

use std::fmt::{Display, Write};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::cli::Printed;
use crate::host::{Host, files};
use crate::names::{Plugin, plugin};
use place::{Place, exists};

/// Where the driver goes.
#[derive(Debug, Args)]
pub struct Where {
    /// kubelet's --volume-plugin-dir
    #[arg(long, value_name = "DIR", value_parser = absolute,
          default_value = place::PLUGIN_DIR)]
    plugin_dir: PathBuf,
    /// First half of the name that pods use
    #[arg(long, value_name = "V", value_parser = plugin::vendor, default_value = place::VENDOR)]
    vendor: String,
    /// Second half of the name that pods use
    #[arg(long, value_name = "D", value_parser = plugin::driver, default_value = place::DRIVER)]
    driver: String,
}

/// What to install, and how.
#[derive(Debug, Args)]
pub struct Install {
    #[command(flatten)]
    place: Where,
    /// The mode: as it is now (and false where there is no driver yet), or this one
    #[arg(long, value_enum, default_value_t = Attach::Keep)]
    attach: Attach,
    /// The driver to install, if it is not this executable
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Stay, and install again when the file is missing or older, until SIGTERM
    #[arg(long)]
    follow: bool,
    /// Take back the last run that changed something
    #[arg(long, conflicts_with_all = ["attach", "binary", "follow"])]
    undo: bool,
}

/// Who attaches volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Attach {
    /// The control plane, which needs the driver too: the bash script's way
    True,
    /// kubelet on this node does everything
    False,
    /// As it is now, and false where there is no driver yet
    Keep,
}

impl Attach {
    fn wanted(self) -> Option<bool> {
        match self {
            Self::True => Some(true),
            Self::False => Some(false),
            Self::Keep => None,
        }
    }

    fn or(self, otherwise: bool) -> bool {
        self.wanted().unwrap_or(otherwise)
    }
}

/// What was done, a line each, and what a person may do next.
#[derive(Debug, Default)]
pub struct Report {
    done: String,
    next: String,
}

impl Report {
    fn say(&mut self, what: &str, text: impl Display) {
        let _ = writeln!(self.done, "{what:<10} {text}");
    }

    /// Says what outlives its place: a path, and why.
    fn kept(&mut self, kept: impl IntoIterator<Item = String>) {
        for line in kept {
            self.say("kept", line);
        }
    }

    fn next(&mut self, text: impl Display) {
        let _ = writeln!(self.next, "{:<10} {text}", "next");
    }
}

/// `lvm install`.
///
/// # Errors
/// Why nothing was installed; what was there before is there still.
pub fn install(host: &Host, options: &Install) -> Result<Printed> {
    let place = options.place.place();
    if options.undo {
        let _lock = lock_if_there(host, &place)?;
        return Ok(printed(undo::undo(host, &place)?));
    }
    let source = options.binary.as_deref();
    let driver = executable(source.unwrap_or(Path::new("/proc/self/exe")))?;
    files::make_dirs(&place.plugin_dir)
        .with_context(|| format!("making {}", place.plugin_dir.display()))?;
    let put = || {
        let _lock = lock(host, &place)?;
        put::put(host, &place, &driver, options.attach)
    };
    if options.follow {
        follow::follow(host, &place, &driver, put)
    } else {
        let mut report = put()?;
        report.next(format_args!(
            "to take this back: {}",
            place.command("install --undo")
        ));
        Ok(printed(report))
    }
}

/// `lvm uninstall`.
///
/// # Errors
/// Why the driver is still there.
pub fn uninstall(host: &Host, options: &Where) -> Result<Printed> {
    let place = options.place();
    let _lock = lock_if_there(host, &place)?;
    Ok(printed(undo::uninstall(host, &place)?))
}

impl Where {
    fn place(&self) -> Place {
        let plugin = Plugin::new(self.vendor.clone(), self.driver.clone());
        Place::new(&self.plugin_dir, plugin)
    }
}

fn printed(report: Report) -> Printed {
    Printed {
        stdout: report.done + &report.next,
        ..Printed::default()
    }
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if path.is_absolute() {
        Ok(path.to_owned())
    } else {
        Err("not an absolute path".to_owned())
    }
}

fn executable(path: &Path) -> Result<Vec<u8>> {
    let bytes = files::read(path).with_context(|| format!("reading {}", path.display()))?;
    if bytes.is_empty() {
        bail!("{} is empty", path.display());
    }
    Ok(bytes)
}

/// Who takes away makes no plugin directory, and where there is none, nothing needs a lock.
fn lock_if_there(host: &Host, place: &Place) -> Result<Option<File>> {
    if exists(&place.plugin_dir)? {
        lock(host, place)
    } else {
        Ok(None)
    }
}

/// One run at a time.
fn lock(host: &Host, place: &Place) -> Result<Option<File>> {
    const LIMIT: Duration = Duration::from_secs(60);
    const STEP: Duration = Duration::from_millis(100);
    let dir = place.plugin_dir.display();
    let started = Instant::now();
    loop {
        let locked =
            files::lock_dir(&place.plugin_dir).with_context(|| format!("locking {dir}"))?;
        if locked.is_some() {
            return Ok(locked);
        }
        if host.kernel.pause(STEP) {
            bail!("told to stop while another run is at work on {dir}");
        }
        if started.elapsed() > LIMIT {
            bail!("another run has been at work on {dir} for 60 s");
        }
    }
}
