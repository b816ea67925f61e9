//! argv to text: tells kubelet's call-outs from the commands for people, and makes sure that a
//! call-out always ends in exactly one JSON document.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};

use crate::commands::{self, Tool};
use crate::config::{Config, FILE_VARIABLE, Loaded};
use crate::host::trust::load;
use crate::host::{Host, Kernel, Log, Processes, Signals};
use crate::output::Printed;
use crate::{calls, child, exit_code, guarded, logged, note_panics, run};

/// FlexVolume driver that gives Kubernetes pods LVM logical volumes, and never formats data away.
#[derive(Debug, Parser)]
#[command(name = "lvm", version, after_help = after_help(), subcommand_help_heading = "Commands for people")]
struct People {
    #[command(subcommand)]
    tool: Tool,
}

fn after_help() -> String {
    let mut help =
        String::from("Call-outs, as kubelet makes them (each answers with one JSON document):\n");
    for name in calls::NAMES {
        help.push_str("  ");
        help.push_str(name);
        let usage = calls::usage(name);
        if usage != "no arguments" {
            help.push(' ');
            help.push_str(usage);
        }
        help.push('\n');
    }
    help.push_str("\n<options> is JSON: {\"volumegroup\":\"VG\",\"volumeID\":\"LV\",\"kubernetes.io/fsType\":\"ext4\"}");
    help
}

/// Does what `args` (all of argv) ask for.
#[must_use]
pub fn main(args: &[OsString]) -> Printed {
    let words = args.get(1..).unwrap_or_default();
    match words.first() {
        Some(first) if calls::NAMES.iter().any(|name| first == name) => call_out(args, words),
        Some(first) if is_for_people(first) => people(args),
        _ => child::run(words).unwrap_or_else(|| call_out(args, words)),
    }
}

fn is_for_people(word: &OsStr) -> bool {
    let flags = ["-h", "--help", "-V", "--version", "help"];
    flags.iter().any(|flag| word == *flag)
        || People::command()
            .get_subcommands()
            .any(|tool| word == tool.get_name())
}

fn call_out(args: &[OsString], words: &[OsString]) -> Printed {
    note_panics();
    let reply = guarded(|| with_host(args, |host, config| Ok(run(words, host, config))));
    // It never got as far as its own line in the log, or to the config that says where that goes.
    let reply =
        reply.unwrap_or_else(|e| logged(words, Err(e), &Log::default(), &Config::default().log));
    Printed {
        code: exit_code(&reply, words),
        ..Printed::text(format!("{}\n", reply.to_json()))
    }
}

fn people(args: &[OsString]) -> Printed {
    const USAGE: u8 = 2;
    let parsed = match People::try_parse_from(args) {
        Ok(parsed) => parsed,
        Err(error) => {
            let text = error.render().to_string();
            return if error.use_stderr() {
                Printed::failure(text, USAGE)
            } else {
                Printed::text(text)
            };
        }
    };
    let answer = with_host(args, |host, config| {
        commands::run(&parsed.tool, host, config)
    });
    let answer = answer.unwrap_or_else(|error| Printed::failure(format!("lvm: {error:#}\n"), 1));
    Printed {
        styled: true,
        ..answer
    }
}

fn with_host<T>(args: &[OsString], work: impl FnOnce(&Host, &Loaded) -> Result<T>) -> Result<T> {
    let signals = Signals::install().context("installing the signal handlers")?;
    let kernel = Kernel::new(&signals);
    let exe = executable(args)?;
    let config = load(&kernel, &exe, std::env::var_os(FILE_VARIABLE).as_deref());
    let tools = Processes::new(&signals, config.or_default().tool_dirs.clone());
    work(&Host::new(&tools, &kernel), &config)
}

/// Where the driver is installed. kubelet also runs a link to an executable that is elsewhere:
/// then the config is beside the link, unless there is none.
fn executable(args: &[OsString]) -> Result<PathBuf> {
    let called = args.first().map(Path::new);
    // A word without a slash was looked for in PATH.
    let called = called
        .filter(|path| path.components().count() > 1)
        .and_then(|path| std::path::absolute(path).ok());
    if let Some(called) = &called
        && called
            .with_file_name("config.toml")
            .symlink_metadata()
            .is_ok()
    {
        return Ok(called.clone());
    }
    let exe = std::env::current_exe().context("finding the driver's own executable")?;
    match called {
        // An upgrade has just put another file in its place.
        Some(called) if !exe.exists() => Ok(called),
        _ => Ok(exe),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_for_people_has_the_name_of_a_call_out() {
        for name in calls::NAMES {
            assert!(!is_for_people(OsStr::new(name)), "{name}");
        }
    }
}
