//! What a shell offers where somebody presses TAB: words of the commands and call-outs, and what is on this
//! node, from the kernel's own tables. Nothing is asked that may take long, no device is opened, and nobody
//! needs to be root.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use clap::{Arg, ArgAction, Command};

use super::by_hand::VERBOSE;
use crate::calls;
use crate::commands::survey::Pods;
use crate::host::Kernel;
use crate::names::{FsType, LvId, Shown};
use crate::options;
use crate::volume::Device;

/// What is offered, with what it means.
type Offer = (String, String);

/// What fits for the last of these words, a line each, with what it means after a tab. The first word is
/// the driver's own name. Nothing: files may fit.
/// `command`: all commands for people.
pub fn run(command: &Command, kernel: &Kernel, words: &[String]) -> String {
    let Some((typed, before)) = words.get(1..).and_then(<[String]>::split_last) else {
        return String::new();
    };
    let offers = match before.split_first() {
        Some((name, before)) if calls::named(name).is_some() => {
            Names::read(kernel).of_call(name, before, typed)
        }
        _ => of_people(command, kernel, before, typed),
    };
    let mut text = String::new();
    for (word, means) in offers.iter().filter(|(word, _)| word.starts_with(&**typed)) {
        let _ = writeln!(text, "{word}\t{means}");
    }
    text
}

/// A command for people, as far as it is written.
fn of_people(mut command: &Command, kernel: &Kernel, before: &[String], typed: &str) -> Vec<Offer> {
    let (mut wants, mut place) = (None, 0_usize);
    for word in before {
        if wants.take().is_some() {
            continue;
        }
        if let Some(below) = command.find_subcommand(word) {
            (command, place) = (below, 0);
        } else if word.starts_with('-') {
            wants = command.get_opts().find(|arg| spellings(arg).contains(word));
        } else {
            place = place.saturating_add(1);
        }
    }
    let places: Vec<&Arg> = command.get_positionals().collect();
    let takes_more = |arg: &&&Arg| matches!(arg.get_action(), ArgAction::Append);
    let at = places.get(place).or(places.last().filter(takes_more));
    if let Some(option) = wants {
        values(kernel, option, typed)
    } else if typed.starts_with('-') {
        let options = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let all = options.flat_map(|arg| {
            let means = arg.get_help().map(ToString::to_string).unwrap_or_default();
            spellings(arg)
                .into_iter()
                .map(move |word| (word, means.clone()))
        });
        all.chain([("--help".to_owned(), String::new())]).collect()
    } else if let Some(arg) = at {
        values(kernel, arg, typed)
    } else if !places.is_empty() {
        Vec::new()
    } else {
        let tools = command.get_subcommands().filter(|tool| !tool.is_hide_set());
        let tools = tools.map(|tool| {
            let means = tool.get_about().map(ToString::to_string);
            (tool.get_name().to_owned(), means.unwrap_or_default())
        });
        let calls = calls::ALL.map(|(name, usage)| (name.to_owned(), usage.to_owned()));
        let calls = calls.into_iter().filter(|_| before.is_empty());
        tools.chain(calls).collect()
    }
}

fn spellings(arg: &Arg) -> Vec<String> {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    long.into_iter().chain(short).collect()
}

/// The values that an argument may have.
fn values(kernel: &Kernel, arg: &Arg, typed: &str) -> Vec<Offer> {
    match arg.get_id().as_str() {
        "names" | "name" => plain(Names::read(kernel).all()),
        "volume" => plain(Names::read(kernel).volumes()),
        "options" => plain(Names::read(kernel).pairs(typed)),
        "fs" => plain(FsType::ALL.map(|fs| fs.to_string())),
        _ => {
            let values = arg.get_possible_values();
            plain(values.iter().map(|value| value.get_name().to_owned()))
        }
    }
}

fn plain(words: impl IntoIterator<Item = String>) -> Vec<Offer> {
    words
        .into_iter()
        .map(|word| (word, String::new()))
        .collect()
}

/// The names that are on this node.
struct Names {
    groups: BTreeSet<String>,
    volumes: BTreeSet<LvId>,
    pods: Vec<String>,
}

impl Names {
    fn read(kernel: &Kernel) -> Self {
        let all = Path::new("/sys/block");
        let blocks = kernel.list(all).unwrap_or_default();
        let names = blocks.iter().filter(|block| block.starts_with("dm-"));
        let names = names.filter_map(|block| kernel.read(&all.join(block).join("dm/name")).ok());
        let ids = names.filter_map(|name| LvId::from_dm_name(name.trim_end()));
        // Not another's device, nor a part of a volume.
        let is_volume = |id: &LvId| matches!(Device::find(kernel, id), Ok(Some(_)));
        let volumes: BTreeSet<LvId> = ids.filter(is_volume).collect();
        Self {
            groups: volumes.iter().map(|id| id.vg().to_string()).collect(),
            volumes,
            pods: Pods::read(kernel).names().map(str::to_owned).collect(),
        }
    }

    fn volumes(&self) -> Vec<String> {
        self.volumes.iter().map(LvId::to_string).collect()
    }

    fn all(&self) -> Vec<String> {
        let groups = self.groups.iter().cloned();
        groups
            .chain(self.volumes())
            .chain(self.pods.iter().cloned())
            .collect()
    }

    /// A call-out, as far as it is written.
    fn of_call(&self, name: &str, before: &[String], typed: &str) -> Vec<Offer> {
        let usage = calls::named(name).map_or("", |(_, usage)| usage);
        if before.last().is_some_and(|word| word == "-o") {
            return plain(self.pairs(typed));
        }
        if typed.starts_with('-') {
            return plain(["-o", VERBOSE].map(str::to_owned));
        }
        let place = before.iter().filter(|word| !word.starts_with('-')).count();
        let pairs = before.iter().filter(|word| *word == "-o").count();
        let wants = usage
            .split('<')
            .nth(place.saturating_sub(pairs).saturating_add(1));
        if wants.is_some_and(|wants| wants.starts_with("device")) {
            return plain(
                self.volumes
                    .iter()
                    .map(|id| id.device().shown().to_string()),
            );
        }
        Vec::new()
    }

    /// What may follow `-o`.
    fn pairs(&self, typed: &str) -> Vec<String> {
        let Some((key, _)) = typed.split_once('=') else {
            let keys = options::KNOWN.into_iter().chain(["fsType", "readwrite"]);
            return keys.map(|key| format!("{key}=")).collect();
        };
        let values: Vec<String> = match key {
            options::GROUP => self.groups.iter().cloned().collect(),
            options::VOLUME => self.volumes.iter().map(|id| id.lv().to_string()).collect(),
            "fsType" => FsType::ALL.map(|fs| fs.to_string()).to_vec(),
            "readwrite" => ["ro", "rw"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        values
            .iter()
            .map(|value| format!("{key}={value}"))
            .collect()
    }
}
