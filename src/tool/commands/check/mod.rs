//! `flexvolume-lvm check`: what the next mount would do, and why. Changes nothing.

mod config;
mod idle;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use serde_json::{Map, Value};

use super::survey::{Choice, Finding, Inventory, NodeHealth, Request};
use crate::output::{Printed, USAGE, printed, tell};
use config::mistakes;
use driver::config::Loaded;
use driver::host::Host;
use driver::names::{FsType, LvId, folded};
use driver::options::{FS_TYPE, GROUP, Options, READ_WRITE, VOLUME, by_hand};
use report::{CheckReport, Checked, count, in_steps, line_beside, line_of, widest};

/// How long to wait for a call that works on a volume.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub struct Check {
    /// Volumes, groups, pods or paths, as `status` takes them [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Rehearse a mount with this option, as a call-out takes it by hand: -o size=1g, -o thinpool=POOL,
    /// -o mountoptions=…, -o fsType=…; the volume need not be there yet
    #[arg(short, value_name = "KEY=VALUE", value_parser = by_hand)]
    options: Vec<(String, String)>,
    /// Name the first mistake in the config FILE, with line and key; - is standard input. Without FILE, check the
    /// config that this driver reads. Needs neither root nor LVM
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "options", "fs", "ro", "idle"])]
    #[allow(clippy::option_option)] // `None`: no --config; `Some(None)`: --config without FILE
    pub config: Option<Option<PathBuf>>,
    /// Say whether nothing uses a volume, so that it can be handed to a CSI driver, renamed or removed: it is
    /// active, and nothing has it mounted or open, in any mount namespace. If not, each line says who has it and
    /// what to do
    #[arg(long, conflicts_with_all = ["options", "fs", "ro"])]
    pub idle: bool,
    /// The fsType that the pod will ask for
    #[arg(long, value_name = "TYPE", value_parser = FsType::parse)]
    fs: Option<FsType>,
    /// The pod will ask for it read-only
    #[arg(long)]
    ro: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Checks volumes, a config, or whether nothing uses a volume.
pub fn run(host: &Host, config: &Loaded, args: &Check) -> Result<Printed> {
    if let Some(file) = &args.config {
        return mistakes(host, config, file.as_deref(), args.json);
    }
    if args.idle {
        return match args.only_volume() {
            Ok(id) => idle::check(host, config, &id, args.json),
            Err(error) => Ok(usage(&error)),
        };
    }
    match (!args.options.is_empty()).then(|| args.rehearsed()) {
        Some(Ok(options)) => rehearse(host, config, args, &options),
        Some(Err(error)) => Ok(usage(&error)),
        None => volumes(host, config, args),
    }
}

/// The answer to a wrong command line.
fn usage(error: &Error) -> Printed {
    Printed::failure(format!("{}\n", folded(&format!("{error:#}"))), USAGE)
}

/// Says what a mount with these options would do. The volume need not be there.
fn rehearse(host: &Host, config: &Loaded, args: &Check, options: &Options) -> Result<Printed> {
    config.require()?;
    let inventory = Inventory::take(host, config)?;
    let request = Request {
        options: Some(options),
        ..args.request()
    };
    let (verdict, _) = inventory.verdict(&options.id, request);
    let report = CheckReport::of(vec![Checked::unlisted(verdict)], Vec::new());
    printed(&report, in_steps(&report), args.json, report.code())
}

/// Checks the named volumes and groups, or all. The exit code is 0 if every volume is well and would mount, as far as a
/// look without writing can tell. Otherwise it is 1. It is also 1 if another call is at work on a volume. A volume that
/// is not the driver's (see [`Inventory::is_ours`]) counts only if it was named.
///
/// e2fsck may take long, so each line of a list is printed as soon as it is known.
fn volumes(host: &Host, config: &Loaded, args: &Check) -> Result<Printed> {
    config.require()?;
    let inventory = Inventory::take(host, config)?;
    let (choice, unknown) = inventory.choose(&args.names)?;
    let is_one = choice.one().is_some();
    let mut found = Vec::new();
    let widest = widest(&choice);
    for id in &choice.ids {
        if let Some(checked) = chosen(&inventory, &choice, args, id) {
            if !is_one && !args.json {
                tell(&line_of(&checked, widest));
            }
            found.push(checked);
        }
    }
    let report = CheckReport::of(found, beside_volumes(&inventory, &choice));
    let text = if is_one {
        in_steps(&report)
    } else {
        let findings = report.beside_volumes.iter();
        let lines: String = findings.map(|one| line_beside(one, widest)).collect();
        format!("{lines}{}\n", count(&report))
    };
    let code = report.code().max(u8::from(!unknown.is_empty()));
    Ok(Printed {
        stderr: format!("{}{unknown}", choice.notes),
        ..printed(&report, text, args.json, code)?
    })
}

/// Looks at a chosen volume. `None`: it is a pool that was not named itself.
fn chosen(inventory: &Inventory, choice: &Choice, args: &Check, id: &LvId) -> Option<Checked> {
    match inventory.volume(id) {
        Some(volume) if !choice.named.contains(id) => {
            let request = Request {
                read_only: args.ro || inventory.request(volume).read_only,
                ..args.request()
            };
            Checked::of_many(inventory, volume, request)
        }
        Some(_) | None => Some(Checked::named(inventory, id, args.request())),
    }
}

/// The faults of the chosen groups, and of volumes that LVM has lost. If all were chosen, also those of the node.
fn beside_volumes(inventory: &Inventory, choice: &Choice) -> Vec<Finding> {
    let node = NodeHealth::of_choice(inventory, choice);
    let mut all = node.findings();
    for group in &inventory.groups {
        if choice.groups.contains(&group.name) {
            all.extend(node.group(inventory, group).findings());
        }
    }
    all.retain(Finding::is_unwell);
    all
}

impl Check {
    /// The one volume that is named.
    fn only_volume(&self) -> Result<LvId> {
        let [volume] = self.names.as_slice() else {
            bail!("--idle takes one volume, as VG/LV");
        };
        LvId::named(volume)
    }

    /// The request for the look at each volume.
    fn request(&self) -> Request<'_> {
        Request {
            fs: self.fs,
            read_only: self.ro,
            patience: PATIENCE,
            tries: true,
            ..Request::default()
        }
    }

    /// The options of the mount that `-o` describes. A name VG/LV on the command line sets the options for group and
    /// volume.
    fn rehearsed(&self) -> Result<Options> {
        let mut options = Map::new();
        match self.names.as_slice() {
            [] => {}
            [name] => {
                if let Some((vg, lv)) = name.split_once('/') {
                    options.insert(GROUP.to_owned(), vg.into());
                    options.insert(VOLUME.to_owned(), lv.into());
                }
            }
            _ => bail!("with -o, name one volume, as VG/LV"),
        }
        for (key, value) in &self.options {
            options.insert(key.clone(), value.clone().into());
        }
        if let Some(fs) = self.fs {
            options.insert(FS_TYPE.to_owned(), fs.to_string().into());
        }
        if self.ro {
            options.insert(READ_WRITE.to_owned(), "ro".into());
        }
        Options::parse(&Value::from(options).to_string()).context("reading the volume's options")
    }
}
