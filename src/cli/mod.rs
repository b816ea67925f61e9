//! argv to text: tells kubelet's call-outs from the commands for people, and makes sure that a
//! call-out always ends in exactly one JSON document.

mod by_hand;
mod child;
mod complete;
mod people;
mod secret;

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::{CommandFactory, FromArgMatches};

use crate::calls::{self, guard};
use crate::config::{Config, FILE_VARIABLE, Loaded};
use crate::host::trust::load;
use crate::host::{Aloud, Host, Kernel, Log, Processes, Signals, files};
use crate::names::nearest;
use crate::names::{Shown, folded};
use crate::options::holds_secret;
use crate::output::Printed;
use crate::reply::Reply;
use guard::{exit_code, guarded, logged, note_panics, run};
use people::{People, Tool};

/// The exit code of a command line that is wrong, and of one that is root's.
const USAGE: u8 = 2;

/// Does what `args` (all of argv) ask for.
#[must_use]
pub fn main(args: &[OsString]) -> Printed {
    let words = args.get(1..).unwrap_or_default();
    match words.first() {
        Some(first) if calls::named(first).is_some() => {
            // kubelet never says --help.
            let help = by_hand::help(words, &program(args));
            help.map_or_else(|| call_out(args, words), Printed::text)
        }
        Some(first) if first == "help" && words.get(1).is_some_and(is_call_out) => {
            let words = [words.get(1).cloned().unwrap_or_default(), "--help".into()];
            Printed::text(by_hand::help(&words, &program(args)).unwrap_or_default())
        }
        Some(first) if is_for_people(first) => people(args),
        Some(first) if first == secret::CALL_STDIN => hidden_call(args),
        word => child::run(words).unwrap_or_else(|| {
            // kubelet may make a call-out that is not known yet, and reads a document; but none is called
            // nearly as a command for people is.
            if std::io::stdout().is_terminal() || word.is_some_and(|word| is_nearly_a_command(word))
            {
                mistyped(args, words.first())
            } else {
                call_out(args, words)
            }
        }),
    }
}

fn is_for_people(word: &OsStr) -> bool {
    let flags = ["-h", "--help", "-V", "--version", "help"];
    flags.iter().any(|flag| word == *flag)
        || commands_for_people().iter().any(|name| word == &**name)
}

fn is_call_out(word: &OsString) -> bool {
    calls::named(word).is_some()
}

fn is_nearly_a_command(word: &OsStr) -> bool {
    let names = commands_for_people();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    nearest(&word.shown().to_string(), &names).is_some()
}

fn commands_for_people() -> Vec<String> {
    let command = People::command();
    let names = command
        .get_subcommands()
        .map(|tool| tool.get_name().to_owned());
    names.collect()
}

/// How this was called, for usage lines that can be repeated.
fn program(args: &[OsString]) -> String {
    let called = args.first().and_then(|program| program.to_str());
    called.unwrap_or("lvm").to_owned()
}

fn mistyped(args: &[OsString], word: Option<&OsString>) -> Printed {
    let program = program(args);
    let Some(word) = word else {
        let help = People::command().bin_name(program).render_help();
        return styled(Printed::failure(help.ansi().to_string(), USAGE));
    };
    let word = word.shown().to_string();
    let names = commands_for_people();
    let mut known: Vec<&str> = names.iter().map(String::as_str).collect();
    known.extend(calls::ALL.map(|(name, _)| name));
    let advice = match nearest(&word, &known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("see `{program} --help`"),
    };
    let said = format!("{word:?} is neither a command nor a call-out; {advice}\n");
    Printed::failure(said, USAGE)
}

fn styled(printed: Printed) -> Printed {
    Printed {
        styled: true,
        ..printed
    }
}

/// A call-out as kubelet makes it, or a person by hand.
fn call_out(args: &[OsString], words: &[OsString]) -> Printed {
    if words.iter().any(holds_secret) {
        return answered(&Reply::failure(&secret::hide(args, words)), words);
    }
    call(args, words)
}

/// A call-out that held a secret, without that on its command line.
fn hidden_call(args: &[OsString]) -> Printed {
    match secret::words(args) {
        Ok(words) => call(args, &words),
        Err(error) => Printed::text(format!("{}\n", Reply::failure(&error).to_json())),
    }
}

fn call(args: &[OsString], words: &[OsString]) -> Printed {
    note_panics();
    let is_by_hand = by_hand::is_by_hand(words);
    let is_a_persons = is_by_hand || std::io::stderr().is_terminal();
    if is_a_persons && by_hand::needs_root(words) && !nix::unistd::geteuid().is_root() {
        let reply = Reply::failure(&anyhow!("not root: only root can do that; use sudo"));
        return Printed {
            code: USAGE,
            ..Printed::text(format!("{}\n", reply.to_json()))
        };
    }
    let reply = guarded(|| {
        // kubelet has no terminal.
        let aloud = Aloud::on_a_terminal(words.iter().any(|word| word == by_hand::VERBOSE));
        with_host(args, aloud, |host, config| {
            if is_by_hand {
                return Ok(match by_hand::translated(host.kernel, words) {
                    Ok(call) => run(&call, host, config),
                    Err(error) => logged(words, Err(error), &host.log, &config.or_default().log),
                });
            }
            Ok(run(words, host, config))
        })
    });
    // It never got as far as its own line in the log, or to the config that says where that goes.
    let reply =
        reply.unwrap_or_else(|e| logged(words, Err(e), &Log::default(), &Config::default().log));
    answered(&reply, words)
}

fn answered(reply: &Reply, words: &[OsString]) -> Printed {
    Printed {
        code: exit_code(reply, words),
        ..Printed::text(format!("{}\n", reply.to_json()))
    }
}

fn people(args: &[OsString]) -> Printed {
    let command = People::command().bin_name(program(args));
    let parsed = command
        .try_get_matches_from(args)
        .and_then(|found| People::from_arg_matches(&found));
    let tool = match parsed {
        Ok(parsed) => parsed.tool,
        Err(error) => {
            let text = error.render().ansi().to_string();
            return styled(if error.use_stderr() {
                Printed::failure(text, USAGE)
            } else {
                Printed::text(text)
            });
        }
    };
    let is_root = nix::unistd::geteuid().is_root();
    if tool.needs_root() && !is_root {
        return Printed::failure(
            "not root: LVM answers root only; use sudo\n".to_owned(),
            USAGE,
        );
    }
    let answer = with_host(args, Aloud::on_a_terminal(false), |host, config| {
        people::run(&tool, host, config)
    });
    styled(answer.unwrap_or_else(|error| {
        let is_roots = matches!(tool, Tool::Install(_) | Tool::Uninstall(_));
        let said = format!("{error:#}");
        let lines = said.lines().map(folded);
        let said = lines.collect::<Vec<_>>().join("\n");
        if is_roots && !is_root {
            return Printed::failure(format!("{said} (not root: use sudo)\n"), USAGE);
        }
        Printed::failure(format!("{said}\n"), 1)
    }))
}

fn with_host<T>(
    args: &[OsString],
    aloud: Aloud,
    work: impl FnOnce(&Host, &Loaded) -> Result<T>,
) -> Result<T> {
    let signals = Signals::install().context("installing the signal handlers")?;
    let mut kernel = Kernel::new(&signals);
    kernel.aloud = aloud;
    let exe = executable(args)?;
    let config = load(&kernel, &exe, std::env::var_os(FILE_VARIABLE).as_deref());
    let tools = Processes::new(&signals, config.or_default().tool_dirs.clone(), aloud);
    let limits = &config.or_default().limits;
    work(&Host::new(&tools, &kernel, limits), &config)
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
        && files::exists(&called.with_file_name("config.toml")).unwrap_or(false)
    {
        return Ok(called.clone());
    }
    let exe = std::env::current_exe().context("finding the driver's own executable")?;
    match called {
        // An upgrade has just put another file in its place.
        Some(called) if files::identity(&exe).is_none() => Ok(called),
        _ => Ok(exe),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_for_people_has_the_name_of_a_call_out() {
        for (name, _) in calls::ALL {
            assert!(!is_for_people(OsStr::new(name)), "{name}");
        }
    }
}
