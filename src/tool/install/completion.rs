//! Completes a command line in a shell: `clap_complete`'s engine, with the call-outs, the commands for people
//! and the names on this node. The names come from the kernel's tables: completion is quick, opens no device,
//! and needs no root.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Result;
use std::path::Path;

use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, Fish, Shells, Zsh};
use driver::calls::{self, VERBOSE};
use driver::host::{Kernel, Signals};
use driver::lvm::Mapped;
use driver::names::{FsType, LvId, Shown};
use driver::options;
use driver::volume::Device;

use super::pages::NAME;
use crate::commands::survey::Pods;

/// In the environment of this program when a shell asks for what fits: the shell's name.
pub const VARIABLE: &str = "FLEXVOLUME_LVM_COMPLETE";
const SHELLS: Shells = Shells(&[&Bash, &Fish, &Zsh]);

/// The completions, in the shell's format. `args`: argv from the shell's script, `DRIVER -- WORD…`.
pub fn run(shell: &OsStr, args: &[OsString], command: &Command) -> Result<Vec<u8>> {
    let words = args.get(2..).unwrap_or_default().to_vec();
    let mut text = Vec::new();
    if let Some(completer) = SHELLS.completer(shell.to_str().unwrap_or_default()) {
        let mut all = with_names(command.clone()).subcommands(calls::ALL.map(call_out));
        let here = std::env::current_dir().ok();
        if shell == "bash" {
            return for_bash(&mut all, words, here.as_deref());
        }
        completer.write_complete(&mut all, words, here.as_deref(), &mut text)?;
    }
    Ok(text)
}

/// The script by which a shell asks `driver`.
pub fn script(shell: &str, driver: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    if let Some(completer) = SHELLS.completer(shell) {
        let driver = driver.to_str().unwrap_or_default();
        completer.write_registration(VARIABLE, NAME, NAME, driver, &mut text)?;
    }
    let text = String::from_utf8_lossy(&text);
    Ok(match shell {
        "zsh" => for_zsh(&text).into_bytes(),
        // A path with a `~`, as the driver's own has, is quoted twice there.
        "bash" => text
            .replace("\"'", "'")
            .replace("'\" -- ", "' -- ")
            .into_bytes(),
        _ => text.into_owned().into_bytes(),
    })
}

/// Gives arguments for people the values that they have on this node.
fn with_names(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "names" | "name" => arg.add(ArgValueCompleter::new(|typed: &OsStr| {
            offer(Names::read().all(), typed)
        })),
        "volume" => arg.add(ArgValueCompleter::new(|typed: &OsStr| {
            offer(Names::read().volumes(), typed)
        })),
        "options" => arg.add(ArgValueCompleter::new(pairs)),
        "fs" => arg.add(ArgValueCompleter::new(|typed: &OsStr| {
            offer(FsType::ALL.map(|fs| fs.to_string()), typed)
        })),
        _ => arg,
    });
    command.mut_subcommands(with_names)
}

/// A call-out, as a person makes it.
fn call_out((name, usage): (&'static str, &'static str)) -> Command {
    let words = usage.split(['<', '>']).skip(1).step_by(2);
    let positional = words.clone().filter(|word| *word != "options");
    let positional = positional.map(|word| match word {
        "device" => Arg::new(word).add(ArgValueCompleter::new(|typed: &OsStr| {
            let volumes = Names::read().volumes;
            offer(
                volumes.iter().map(|id| id.device().shown().to_string()),
                typed,
            )
        })),
        "directory" => Arg::new(word).value_hint(ValueHint::DirPath),
        _ => Arg::new(word).value_hint(ValueHint::Other),
    });
    let pairs = Arg::new("options").short('o').action(ArgAction::Append);
    let pairs = pairs.add(ArgValueCompleter::new(self::pairs));
    let verbose = Arg::new("verbose").long(VERBOSE.trim_start_matches('-'));
    let command = Command::new(name).about(usage).args(positional);
    let command = command.arg(verbose.action(ArgAction::SetTrue));
    if words.clone().any(|word| word == "options") {
        command.arg(pairs)
    } else {
        command
    }
}

fn pairs(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(
        Names::read().pairs(typed.to_str().unwrap_or_default()),
        typed,
    )
}

/// The words that begin with the typed text.
fn offer(words: impl IntoIterator<Item = String>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_str().unwrap_or_default();
    let fits = words.into_iter().filter(|word| word.starts_with(typed));
    fits.map(CompletionCandidate::new).collect()
}

/// The names that are on this node.
#[derive(Default)]
struct Names {
    groups: BTreeSet<String>,
    volumes: BTreeSet<LvId>,
    pods: Vec<String>,
}

impl Names {
    fn read() -> Self {
        let Ok(signals) = Signals::install() else {
            return Self::default();
        };
        let kernel = &Kernel::new(&signals);
        let all = Mapped::all(kernel).into_iter();
        let ids = all.filter_map(|device| LvId::from_dm_name(&device.name(kernel)?));
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

    /// Completions of the value of `-o`.
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

/// The completions for bash. It takes `=` for a word of its own, so that `key=value` comes in pieces.
fn for_bash(command: &mut Command, args: Vec<OsString>, here: Option<&Path>) -> Result<Vec<u8>> {
    let told = |name| std::env::var(name).unwrap_or_default();
    let index: usize = told("_CLAP_COMPLETE_INDEX").parse().unwrap_or_default();
    let (words, typed) = joined(args.into_iter().take(index.saturating_add(1)));
    let last = words.len().saturating_sub(1);
    let fits = clap_complete::engine::complete(command, words, last, here)?;
    let fits = fits
        .iter()
        .map(|one| one.get_value().to_str().unwrap_or_default());
    let fits: Vec<String> = fits
        .map(|one| one.get(typed..).unwrap_or_default().to_owned())
        .collect();
    Ok(fits.join(&told("_CLAP_IFS")).into_bytes())
}

/// Puts words that bash took apart together again. Also returns how much of the last one bash itself keeps.
fn joined(args: impl Iterator<Item = OsString>) -> (Vec<OsString>, usize) {
    let (mut words, mut kept) = (Vec::<OsString>::new(), 0);
    for arg in args {
        match words.last_mut() {
            Some(last) if arg == "=" || last.as_encoded_bytes().ends_with(b"=") => {
                kept = last.len().saturating_add(usize::from(arg == "="));
                last.push(arg);
            }
            _ => {
                kept = 0;
                words.push(arg);
            }
        }
    }
    (words, kept)
}

/// Has zsh put no space behind `key=`, and ask also when it has just loaded the script by itself.
fn for_zsh(script: &str) -> String {
    let describe = "[[ -n $other ]] && _describe -V 'values' other";
    let open = "local -a open=(${(M)other:#*=}); other=(${other:#*=})\n        \
                [[ -n $open ]] && _describe -V 'values' open -S ''\n        ";
    let script = script.replace(describe, &format!("{open}{describe}"));
    let function = format!("_clap_dynamic_completer_{}", NAME.replace('-', "_"));
    format!("{script}[[ $funcstack[1] != _{NAME} ]] || {function}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_calls_the_driver_by_a_path_with_a_tilde() {
        let script = script("bash", Path::new("/exec/kubernetes.io~lvm/lvm")).unwrap();
        let script = String::from_utf8(script).unwrap();
        let call = "        '/exec/kubernetes.io~lvm/lvm' -- \"${words[@]}\"";
        assert!(script.contains(call), "{script}");
    }
}
