//! The commands for people, one file each. They print text, or JSON with `--json`.

mod check;
mod doctor;
mod kubelet;
mod log;
mod operator;
mod pods;
mod status;
mod story;
mod verdict;
mod volumes;
mod walk;

use anyhow::{Context, Result};
use clap::Subcommand;

use crate::config::Loaded;
use crate::host::Host;
use crate::install;
use crate::names::LvId;
use crate::output::Printed;

/// A command for people.
#[derive(Debug, Subcommand)]
pub enum Tool {
    /// Show what LVM, the kernel, the driver and the next mount know of volumes
    ///
    /// One volume is shown as a tree from its disk to its pods, with its last calls.
    Status(status::Status),
    /// Show the driver's calls, a line each
    Log(log::Log),
    /// Tell what the next mount of a volume would do, and why, and change nothing
    ///
    /// The exit code is 0 if every volume would mount, and 1 if not.
    Check {
        /// Volumes, groups, pods or paths, as `status` takes them; none: all
        names: Vec<String>,
        /// The fsType that the pod will ask for
        #[arg(long, value_name = "TYPE")]
        fs: Option<String>,
        /// The pod will ask for it read-only
        #[arg(long)]
        ro: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check this node: tools, LVM, udev, config, installation, volumes that need help
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Accept the filesystem that is on a volume now as the right one
    ///
    /// For a volume that the driver refuses because its content was restored, swapped or replaced.
    Adopt {
        /// The volume, as VG/LV or /dev/VG/LV
        volume: String,
    },
    /// Allow the next mount, within a day, to format a volume on which nothing can be found
    ///
    /// For a volume that the driver refuses because its record, or remains on it, say that it held
    /// data. What is given up is printed, and is lost. A volume that cannot be read, is in use or
    /// holds something is refused here as it is refused to a pod.
    AllowFormat {
        /// The volume, as VG/LV or /dev/VG/LV
        volume: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Put this executable where kubelet looks for it, or upgrade what is there
    ///
    /// kubelet never sees half of it, and an existing config.toml is never changed. Running it
    /// again, also after it was interrupted, is safe. An older version is installed the same way.
    #[command(args_override_self = true)]
    Install(install::Install),
    /// Take the driver off this node
    ///
    /// Refused while volumes of it are mounted. Another driver that was there before, such as the
    /// bash script, comes back. An edited config.toml is kept for the next installation.
    #[command(args_override_self = true)]
    Uninstall(install::Where),
}

/// Runs a command for people.
///
/// # Errors
/// Why it could not.
pub fn run(tool: &Tool, host: &Host, config: &Loaded) -> Result<Printed> {
    match tool {
        Tool::Status(asked) => status::run(host, config, asked),
        Tool::Log(asked) => log::run(host, config, asked),
        Tool::Doctor { json } => doctor::run(host, config, *json),
        Tool::Check {
            names,
            fs,
            ro,
            json,
        } => check::run(host, config, names, fs.as_deref(), *ro, *json),
        Tool::Adopt { volume } => operator::adopt(host, config, &named(volume)?),
        Tool::AllowFormat { volume, yes } => {
            operator::allow_format(host, config, &named(volume)?, *yes)
        }
        Tool::Install(options) => install::install(host, options).map(Printed::text),
        Tool::Uninstall(place) => install::uninstall(host, place).map(Printed::text),
    }
}

fn named(volume: &str) -> Result<LvId> {
    match LvId::from_device(volume) {
        Some(id) => Ok(id),
        None => LvId::parse(volume).context("reading the volume's name"),
    }
}
