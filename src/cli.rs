//! argv to text: tells kubelet's call-outs from the commands for people, and makes sure that a
//! call-out always ends in exactly one JSON document.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};

use crate::commands::{self, Tool};
use crate::config::{Config, FILE_VARIABLE, Loaded};
use crate::fs::{EXAMINE, scan::examine};
use crate::host::trust::load;
use crate::host::{Host, Kernel, LinuxKernel, Log, Processes, Signals};
use crate::mount::UNMOUNT;
use crate::{calls, exit_code, guarded, logged, note_panics, run};

/// What is to be printed, and the exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// For standard output: with a call-out, the document and nothing else.
    pub stdout: String,
    /// For standard error: with a call-out, nothing.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

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
        Some(first) if first == EXAMINE => examine_stdin(words),
        Some(first) if first == UNMOUNT => unmount_alone(words),
        _ => call_out(args, words),
    }
}

/// The device on standard input, examined in a process of its own, because a read of a broken disk
/// may never return. `examine-stdin <size> <time of creation> [flush]`, decimal.
fn examine_stdin(words: &[OsString]) -> Printed {
    let examine = || -> Result<String> {
        let number = |n: usize| -> Result<u64> {
            let word = words.get(n).and_then(|word| word.to_str());
            word.context("too few arguments")?
                .parse()
                .context("reading a number")
        };
        let device = stdin()?;
        if words.get(3).is_some() {
            device.sync_all().context("flushing the disk")?;
        }
        let seen = examine(&device, number(1)?, number(2)?);
        Ok(serde_json::to_string(&seen)?)
    };
    alone(examine())
}

fn stdin() -> Result<File> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    Ok(File::from(stdin))
}

/// What the driver tells itself from a process of its own.
fn alone(result: Result<String>) -> Printed {
    match result {
        Ok(stdout) => Printed {
            stdout,
            ..Printed::default()
        },
        Err(error) => Printed {
            stderr: format!("{error:#}\n"),
            code: 1,
            ..Printed::default()
        },
    }
}

/// `unmount-alone -- <dir>`: one umount2(2) in a process of its own, because the disk may never
/// answer. The exit code is the kernel's error.
fn unmount_alone(words: &[OsString]) -> Printed {
    let unmount = || -> Result<std::io::Result<()>> {
        let dir = words.get(2).context("too few arguments")?;
        let signals = Signals::install()?;
        Ok(LinuxKernel::new(&signals).unmount(Path::new(dir)))
    };
    let failed = |error: &anyhow::Error, code| Printed {
        stderr: format!("{error:#}\n"),
        code,
        ..Printed::default()
    };
    match unmount() {
        Ok(Ok(())) => Printed::default(),
        Ok(Err(error)) => {
            let code = error
                .raw_os_error()
                .and_then(|code| u8::try_from(code).ok());
            failed(&error.into(), code.unwrap_or(u8::MAX))
        }
        Err(error) => failed(&error, u8::MAX),
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
        stdout: format!("{}\n", reply.to_json()),
        stderr: String::new(),
        code: exit_code(&reply, words),
    }
}

fn people(args: &[OsString]) -> Printed {
    const USAGE: u8 = 2;
    let parsed = match People::try_parse_from(args) {
        Ok(parsed) => parsed,
        Err(error) => {
            let text = error.render().to_string();
            return if error.use_stderr() {
                Printed {
                    stderr: text,
                    code: USAGE,
                    ..Printed::default()
                }
            } else {
                Printed {
                    stdout: text,
                    ..Printed::default()
                }
            };
        }
    };
    match with_host(args, |host, config| {
        commands::run(&parsed.tool, host, config)
    }) {
        Ok(printed) => printed,
        Err(error) => Printed {
            stderr: format!("lvm: {error:#}\n"),
            code: 1,
            ..Printed::default()
        },
    }
}

fn with_host<T>(args: &[OsString], work: impl FnOnce(&Host, &Loaded) -> Result<T>) -> Result<T> {
    let signals = Signals::install().context("installing the signal handlers")?;
    let kernel = LinuxKernel::new(&signals);
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
