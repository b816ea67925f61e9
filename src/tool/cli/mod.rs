//! Runs the command or the call-out that a person types, and returns its output.

mod by_hand;
mod help;
mod people;

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::Path;

use anyhow::anyhow;
use clap::FromArgMatches;
use driver::calls::{self, VERBOSE};
use driver::host::{NAME, is_called_by_name, selinux};
use driver::names::{Shown, folded, is_printable, nearest};
use driver::reply::{Printed, Reply};
use driver::{hide_secret, with_hosts};

use crate::output::USAGE;
use people::{People, Task};

/// Runs what a person typed. `args`: all of argv. `words`: the result of [`driver::words`].
#[must_use]
// Never inlined: otherwise this function's large frame would be on the stack in each call of kubelet.
#[cold]
#[inline(never)]
pub fn main(args: &[OsString], words: &[OsString]) -> Printed {
    match words.first() {
        Some(_) if asks_for_call_outs(words) => Printed::text(by_hand::call_outs()),
        Some(first) if is_call_out(first) => call_out(args, words),
        Some(first) if is_for_people(first) => {
            if let Some(error) = hide_secret(args, words) {
                return Printed::failure(format!("{error:#}\n"), 1);
            }
            let program = args.first().cloned().unwrap_or_default();
            people(&[&[program], words].concat())
        }
        word => {
            // kubelet may make a call-out that this version does not know, and needs a JSON answer. But no call-out has
            // a name similar to that of a command.
            if std::io::stdout().is_terminal()
                || !may_be_kubelets(args)
                || word.is_some_and(|word| is_nearly_a_command(word))
            {
                mistyped(args, words.first())
            } else {
                call_out(args, words)
            }
        }
    }
}

/// All commands for people as clap knows them, for their man pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    people::command()
}

/// Whether kubelet may have started this process. kubelet starts a driver by its absolute path in the plugin directory
/// (source: kubelet's `pkg/volume/flexvolume/driver-call.go`). That path does not end in `flexvolume-lvm`, and its
/// directory is not `bin` or `sbin`.
fn may_be_kubelets(args: &[OsString]) -> bool {
    let Some(program) = args.first().map(Path::new).filter(|_| !is_called_by_name()) else {
        return false;
    };
    let dir = program.parent().and_then(Path::file_name);
    program.is_absolute()
        && program.file_name() != Some(OsStr::new(NAME))
        && !dir.is_some_and(|dir| dir == "bin" || dir == "sbin")
}

fn is_for_people(word: &OsStr) -> bool {
    let flags = ["-h", "--help", "-V", "--version", "help"];
    flags.iter().any(|flag| word == *flag)
        || commands_for_people().iter().any(|name| word == &**name)
}

fn is_call_out(word: &OsString) -> bool {
    calls::named(word).is_some()
}

/// Whether the words are `help call-outs`, `help mount` or `mount --help`. kubelet never writes --help.
fn asks_for_call_outs(words: &[OsString]) -> bool {
    match words {
        [first, what, ..] if first == "help" => what == "call-outs" || is_call_out(what),
        [first, flag] => is_call_out(first) && (flag == "--help" || flag == "-h"),
        _ => false,
    }
}

fn is_nearly_a_command(word: &OsStr) -> bool {
    let names = commands_for_people();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    nearest(&word.shown().to_string(), &names).is_some()
}

fn commands_for_people() -> Vec<String> {
    let command = command();
    let names = command
        .get_subcommands()
        .map(|tool| tool.get_name().to_owned());
    names.collect()
}

/// The name by which the driver was started. Usage lines begin with it, so that they can be pasted.
fn program(args: &[OsString]) -> String {
    if is_called_by_name() {
        return NAME.to_owned();
    }
    let called = args.first().and_then(|program| program.to_str());
    called.unwrap_or("lvm").to_owned()
}

fn mistyped(args: &[OsString], word: Option<&OsString>) -> Printed {
    let program = program(args);
    let Some(word) = word else {
        let help = command().bin_name(program).render_help();
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

/// Answers a call-out from a person or a person's script, or a word that may be a call-out of a later kubelet.
fn call_out(args: &[OsString], words: &[OsString]) -> Printed {
    let is_by_hand = calls::is_by_hand(words);
    let is_a_persons = is_by_hand || std::io::stderr().is_terminal();
    if is_a_persons && by_hand::needs_root(words) && !nix::unistd::geteuid().is_root() {
        let reply = Reply::failure(&anyhow!("not root: only root can do that; use sudo"), None);
        return Printed {
            code: USAGE,
            ..Printed::text(format!("{}\n", reply.to_json()))
        };
    }
    let is_verbose = words.iter().any(|word| word == VERBOSE);
    driver::answer(args, words, is_verbose, |host| {
        if is_by_hand {
            return by_hand::translated(host.kernel, words);
        }
        Ok(words.to_vec())
    })
}

fn people(args: &[OsString]) -> Printed {
    let command = command().bin_name(program(args));
    let parse = |args: &[OsString]| {
        let found = command.clone().try_get_matches_from(args)?;
        People::from_arg_matches(&found)
    };
    let task = match parse(args) {
        Ok(parsed) => parsed.task,
        Err(error) => {
            // clap quotes the words as they are. A person's script may have taken them from a manifest.
            let plain: Vec<OsString> = args.iter().map(printable).collect();
            // A parser that refuses such a character refuses the `?`, too. If there is no error now, a word was not
            // UTF-8, and the first error quotes no word.
            return not_parsed(&parse(&plain).err().unwrap_or(error));
        }
    };
    let is_root = nix::unistd::geteuid().is_root();
    if task.needs_root() && !is_root {
        return Printed::failure(
            "not root: LVM answers root only; use sudo\n".to_owned(),
            USAGE,
        );
    }
    let answer = with_hosts(args, |host, writing, config| {
        people::run(&task, host, writing, config)
    });
    styled(answer.unwrap_or_else(|error| {
        let is_roots = matches!(task, Task::Install(_) | Task::Uninstall(_));
        let said = selinux::explained(&error);
        let lines = said.lines().map(folded);
        let said = lines.collect::<Vec<_>>().join("\n");
        if is_roots && !is_root {
            return Printed::failure(format!("{said} (not root: use sudo)\n"), USAGE);
        }
        Printed::failure(format!("{said}\n"), 1)
    }))
}

/// A usage error, or the text of `--help` or `--version`.
fn not_parsed(error: &clap::Error) -> Printed {
    let text = error.render().ansi().to_string();
    styled(if error.use_stderr() {
        Printed::failure(text, USAGE)
    } else {
        Printed::text(text)
    })
}

fn printable(word: &OsString) -> OsString {
    let word = String::from_utf8_lossy(word.as_encoded_bytes());
    word.replace(|c| !is_printable(c), "?").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelet_calls_by_the_path_of_its_plugin_directory() {
        for (program, may_be) in [
            (
                "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/kubernetes.io~lvm/lvm",
                true,
            ),
            ("/var/lib/plugins/example.com~flex/flex", true),
            ("/usr/sbin/flexvolume-lvm", false),
            ("/opt/flexvolume-lvm", false),
            ("/usr/local/bin/lvm", false),
            ("./lvm", false),
            ("lvm", false),
        ] {
            assert_eq!(may_be_kubelets(&[program.into()]), may_be, "{program}");
        }
        assert!(!may_be_kubelets(&[]));
    }

    #[test]
    fn no_command_for_people_has_the_name_of_a_call_out() {
        for (name, _) in calls::ALL {
            assert!(!is_for_people(OsStr::new(name)), "{name}");
        }
    }
}
