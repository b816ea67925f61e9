//! The commands for people, as clap's types.

use std::path::PathBuf;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use super::help;
use crate::commands::explain::{self, Topic};
use crate::commands::{check, doctor, log, metrics, status, vouch};
use crate::install;
use crate::output::Printed;
use driver::config::Loaded;
use driver::host::{Host, NAME, Writing};
use driver::names::LvId;

/// LVM logical volumes for Kubernetes pods; formats no volume that may hold data.
#[derive(Debug, Parser)]
#[command(name = NAME, version, max_term_width = 100, after_help = BELOW,
          after_long_help = format!("{}\n{MORE}", super::by_hand::call_outs()),
          subcommand_help_heading = "Commands for people")]
pub struct People {
    #[command(subcommand)]
    pub task: Task,
}

/// All commands for people as clap knows them. The help fits a terminal of 80 columns and 24 lines.
pub fn command() -> clap::Command {
    People::command().mut_subcommands(|command| {
        let examples = command.get_after_long_help().map(ToString::to_string);
        let below = examples.unwrap_or_default();
        if below.contains("Exit codes:") {
            return command;
        }
        command.after_long_help(format!("{below}{}", help::EXIT_CODES))
    })
}

const BELOW: &str = "\
`COMMAND --help` has options, examples and exit codes, `--help` all else, and
`help call-outs` how kubelet calls the driver. `check --config` reads a config.";

// At most 80 columns wide: clap does not wrap lines that are indented.
const MORE: &str = "\
Examples:
  flexvolume-lvm mount /mnt -o volumegroup=vg0 -o volumeID=data --verbose
      what kubelet does, by hand, step by step
  flexvolume-lvm unmount /mnt             and back

Exit codes:
  0  done; a call-out: Success, Not supported, or any answer to a call that
     holds a secret
  1  it failed; `check`: a volume would not mount, something has it (--idle),
     or the config has mistakes; `status -x`: something is unwell; `doctor`: a
     pod would fail
  2  the command line is wrong, or only root may do that
  3  `doctor`: warnings only

Environment:
  FLEXVOLUME_LVM_CONFIG   another config file (/dev/null: none)
  NO_COLOR                no colours

Files:
  config.toml             beside the executable; every key is explained in it
  /run/flexvolume-lvm     a lock for each volume
  /var/log/pods           the names of pods
The log is in the journal (`journalctl -t flexvolume-lvm`), unless `log` in
config.toml says otherwise.";

#[derive(Debug, Subcommand)]
pub enum Task {
    /// What is there: groups, pools, volumes, pods, and their health
    ///
    /// One volume is shown as a tree from its disk to its pods, with its last calls.
    #[command(after_long_help = help::STATUS)]
    Status(status::StatusArgs),
    /// What the driver did: its calls, and why one failed
    #[command(after_long_help = help::LOG)]
    Log(log::LogArgs),
    /// What the next mount of a volume would do, and why
    ///
    /// The command also runs e2fsck, so that it only reads. It cannot foresee an error that only mkfs finds, or the
    /// kernel when it mounts xfs or btrfs.
    #[command(after_long_help = help::CHECK)]
    Check(check::Check),
    /// What is wrong on this node, and the command that helps
    ///
    /// It looks at config, udev, kubelet, tools, LVM, and volumes that need help. A note names something that no
    /// command mends. With --json each finding has a `check`, a stable identifier.
    #[command(after_long_help = help::DOCTOR)]
    Doctor {
        /// Print only what is not well
        #[arg(short, long)]
        quiet: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// What a word in brackets, or in NEXT MOUNT, means, and what helps
    ///
    /// A refusal ends with such a word, such as [no-room], and NEXT MOUNT of `status` shows one, such as format. The
    /// text is that of docs/on-call.md. Without a word, the command lists all words.
    #[command(after_long_help = help::EXPLAIN)]
    Explain {
        /// The word, such as no-room
        #[arg(value_parser = Topic::parse)]
        word: Option<Topic>,
    },
    /// The facts of `status` and `log` for Prometheus
    ///
    /// With --textfile, the command writes them into a file for `node_exporter`'s textfile collector. Run it once a
    /// minute: `examples/monitoring` has a timer.
    #[command(after_long_help = help::METRICS)]
    Metrics {
        /// The directory that `node_exporter`'s --collector.textfile.directory names
        #[arg(long, value_name = "DIR")]
        textfile: Option<PathBuf>,
    },
    /// Accept the filesystem that is on a volume now as the right one
    ///
    /// For a volume that the driver refuses because its content was restored, swapped or replaced. Of a LUKS2
    /// volume it is the filesystem inside: open the volume first, with cryptsetup.
    #[command(after_long_help = help::ADOPT)]
    Adopt {
        /// The volume, as VG/LV or /dev/VG/LV
        #[arg(value_parser = LvId::named)]
        volume: LvId,
    },
    /// Let the next mount format a volume on which nothing is found
    ///
    /// For a volume that the driver refuses because its record, or remains on the volume, say that it held data. The
    /// command prints which data that is. The permission holds for a day, and the next mount destroys the data. A
    /// volume that cannot be read, is in use, or has known content gets no permission.
    #[command(after_long_help = help::ALLOW_FORMAT)]
    AllowFormat {
        /// The volume, as VG/LV or /dev/VG/LV
        #[arg(value_parser = LvId::named)]
        volume: LvId,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Put this executable where kubelet looks for it, or upgrade it
    ///
    /// kubelet never sees half of the driver. An existing config.toml stays, unless --config replaces it. The command
    /// can be repeated, also after it was interrupted. An older version is installed the same way.
    #[command(args_override_self = true, after_long_help = help::INSTALL)]
    Install(install::Install),
    /// Take the driver off this node
    ///
    /// Refused while the driver's volumes are mounted. Another driver that was there before, such as the
    /// bash script, comes back. An edited config.toml is kept for the next installation.
    #[command(args_override_self = true, after_long_help = help::UNINSTALL)]
    Uninstall(install::Where),
}

impl Task {
    /// Whether the command asks LVM, which only root may do.
    pub fn needs_root(&self) -> bool {
        match self {
            Self::Log(_) | Self::Explain { .. } | Self::Install(_) | Self::Uninstall(_) => false,
            Self::Check(check) => check.config.is_none(),
            _ => true,
        }
    }
}

/// Runs the command. Commands that get `host`, not `writing`, only look at volumes.
pub fn run(tool: &Task, host: &Host, writing: &Writing, loaded: &Loaded) -> Result<Printed> {
    match tool {
        Task::Status(args) => status::run(host, loaded, args),
        Task::Log(args) => log::run(host, &loaded.config, args),
        Task::Doctor { quiet, json } => doctor::run(host, loaded, *json, *quiet),
        Task::Check(args) => check::run(host, loaded, args),
        Task::Explain { word } => Ok(explain::run(*word)),
        Task::Metrics { textfile } => metrics::run(host, loaded, textfile.as_deref()),
        Task::Adopt { volume } => vouch::adopt(writing, loaded, volume),
        Task::AllowFormat { volume, yes } => vouch::allow_format(writing, loaded, volume, *yes),
        Task::Install(options) => install::install(host, options).map(|()| Printed::default()),
        Task::Uninstall(place) => install::uninstall(host, place).map(|()| Printed::default()),
    }
}
