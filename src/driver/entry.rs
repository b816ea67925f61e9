//! Turns argv into the answer. A call-out always ends in exactly one JSON document and one line in the log.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow};
use serde_json::Value;
use zeroize::Zeroize;

use crate::calls::{self, is_by_hand, named};
use crate::child;
use crate::config::{FILE_VARIABLE, Loaded, LogTarget};
use crate::failed_step::FailedStep;
use crate::hidden::hide_secret;
use crate::host::config_file::load;
use crate::host::{Host, Kernel, Log, Processes, Writing};
use crate::names::{LvId, LvName, ObjectName, VgName};
use crate::options::{GROUP, NAME, VOLUME, holds_secret};
use crate::reply::{Printed, Reply, Status};
use crate::volume::Refusal;
use crate::volume::lock::Busy;

/// Answers a call of kubelet, or does the work of a process that the driver itself started. `args`: all of argv.
/// `None`: a person wrote these `words`, or they name neither a call-out nor such work.
#[must_use]
pub fn main(args: &[OsString], words: &[OsString]) -> Option<Printed> {
    if words.first().is_some_and(|name| named(name).is_some()) && !is_by_hand(words) {
        return Some(answer(args, words, false, |_| Ok(words.to_vec())));
    }
    child::run(words)
}

/// Answers a call-out. `translated` turns a person's words into the words that kubelet would send. It returns kubelet's
/// own words as they are.
pub fn answer(
    args: &[OsString],
    words: &[OsString],
    is_verbose: bool,
    translated: impl FnOnce(&Host) -> Result<Vec<OsString>>,
) -> Printed {
    if let Some(error) = hide_secret(args, words) {
        return printed(&failed(&error), true);
    }
    let target = LogTarget::default();
    answer_panics(words, Vec::new(), &target);
    let answered = with_host(args, |mut host, config| {
        host.is_verbose = is_verbose;
        Ok(match translated(&host) {
            Ok(call) => run(&call, &host, config),
            Err(error) => logged(words, Err(error), &host.log, &config.config.log),
        })
    });
    // The call failed before it read the config, which names the log. So the call's line goes to the default log.
    let reply = answered.unwrap_or_else(|e| logged(words, Err(e), &Log::default(), &target));
    printed(&reply, words.iter().any(holds_secret))
}

/// Runs `work`, which is a person's command, with two [`Host`]s: the tools of the first change nothing, the tools of
/// the second may change tags.
pub fn with_hosts<T>(
    args: &[OsString],
    work: impl FnOnce(&Host, &Writing, &Loaded) -> Result<T>,
) -> Result<T> {
    with_host(args, |host, config| {
        let mut looking = Host::new(host.tools, host.kernel, host.limits);
        looking.is_looking = true;
        work(&looking, &Writing(&host), config)
    })
}

/// Runs `work` with this host and its config. `args`: all of argv, which says where the config is: see [`executable`].
fn with_host<T>(args: &[OsString], work: impl FnOnce(Host, &Loaded) -> Result<T>) -> Result<T> {
    let kernel = Kernel::new().context("installing the signal handlers")?;
    let exe = executable(&kernel, args)?;
    let config = load(&kernel, &exe, std::env::var_os(FILE_VARIABLE).as_deref());
    let tools = Processes::new(&kernel, config.config.tool_dirs.clone());
    let limits = &config.config.limits;
    work(Host::new(&tools, &kernel, limits), &config)
}

/// The path of the installed driver; its config is beside that path. If a config is beside the path in argv, that path
/// is returned: kubelet may have run a link to an executable in another directory. Otherwise, the executable's own path
/// is returned. If an upgrade has just replaced the executable, its own path leads nowhere, and the path in argv is
/// returned.
pub fn executable(kernel: &Kernel, args: &[OsString]) -> Result<PathBuf> {
    // A word without a slash was found in PATH, so it is no path.
    let called = args
        .first()
        .map(Path::new)
        .filter(|path| path.components().count() > 1)
        .and_then(|path| std::path::absolute(path).ok());
    if let Some(called) = &called
        && kernel.exists(&called.with_file_name("config.toml"))
    {
        return Ok(called.clone());
    }
    let exe = std::env::current_exe().context("finding the driver's own executable")?;
    match called {
        Some(called) if !kernel.exists(&exe) => Ok(called),
        _ => Ok(exe),
    }
}

/// Answers one call-out of kubelet: `args` is argv without the executable's name.
fn run(args: &[OsString], host: &Host, config: &Loaded) -> Reply {
    let fields = log_fields(args);
    for (key, value) in &fields {
        host.log.about(key, value);
    }
    let target = &config.config.log;
    answer_panics(args, fields, target);
    logged(args, calls::answer(args, host, config), &host.log, target)
}

/// The answer of a call that failed. Its message ends with a word, which a refusal has already.
fn failed(error: &Error) -> Reply {
    let failure = if error.is::<Refusal>() {
        None
    } else if error.is::<Busy>() {
        Some(FailedStep::Busy)
    } else {
        Some(FailedStep::of_error(error))
    };
    Reply::failure(error, failure.map(Into::into))
}

fn logged(args: &[OsString], answer: Result<Reply>, log: &Log, target: &LogTarget) -> Reply {
    let reply = answer.unwrap_or_else(|error| failed(&error));
    // Logs the first word only if it names a call-out: any other word may be a secret in the wrong place.
    let known = args.first().and_then(named);
    let name = known.map_or("other", |(name, _)| name);
    let message = reply.message.as_deref().unwrap_or_default();
    log.write(target, name, reply.status, message);
    reply
}

/// Makes a panic end the process with an answer, which is also logged. The answer says where in the source the panic
/// was. It leaves out the panic's own message, which may quote a secret.
fn answer_panics(args: &[OsString], fields: Vec<(&'static str, String)>, target: &LogTarget) {
    // The hook keeps only the first word, since the others may hold a secret.
    let call: Vec<OsString> = args.first().cloned().into_iter().collect();
    let has_secret = args.iter().any(holds_secret);
    let target = target.clone();
    // The hook of the standard library would write to standard error, which kubelet reads as part of the reply.
    std::panic::set_hook(Box::new(move |panic| {
        let log = Log::default();
        for (key, value) in &fields {
            log.about(key, value);
        }
        let place = panic.location().map(ToString::to_string);
        let bug = anyhow!(
            "flexvolume-lvm {} stopped at {} because of a bug; please report this message",
            env!("CARGO_PKG_VERSION"),
            place.as_deref().unwrap_or("an unknown place"),
        );
        let printed = printed(&logged(&call, Err(bug), &log, &target), has_secret);
        let mut out = io::stdout();
        let _ = out
            .write_all(printed.stdout.as_bytes())
            .and_then(|()| out.flush());
        #[allow(clippy::exit)] // the driver keeps nothing that a destructor would undo
        std::process::exit(printed.code.into());
    }));
}

/// The reply as kubelet reads it. A failed call exits with 1. If its arguments held a secret, it exits with 0: kubelet
/// logs the whole argv of a call that does not exit with 0. kubelet finds the failure in the document. Source:
/// kubelet's `pkg/volume/flexvolume/driver-call.go`, `Run`.
fn printed(reply: &Reply, has_secret: bool) -> Printed {
    let failed = reply.status == Status::Failure;
    Printed {
        code: u8::from(failed && !has_secret),
        ..Printed::text(format!("{}\n", reply.to_json()))
    }
}

/// The fields of a call for the log: the volume, the pod, and kubelet's name of the volume. Reads these fields even
/// from a call that will be refused, so that the log always names them.
fn log_fields(args: &[OsString]) -> Vec<(&'static str, String)> {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let json = words.iter().find(|word| word.trim_start().starts_with('{'));
    let found = match (json, words.as_slice()) {
        (Some(json), _) => of_options(json),
        // If a secret was cut in pieces, any word of the call may be a part of it.
        (None, ["detach", volume, ..]) if !args.iter().any(holds_secret) => {
            match LvId::from_device(volume) {
                Some(id) => vec![("volume", Some(id.to_string()))],
                None => vec![("name", checked(volume))],
            }
        }
        _ => Vec::new(),
    };
    let known = found.into_iter();
    known
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

fn of_options(json: &str) -> Vec<(&'static str, Option<String>)> {
    // Reads also options with values that are no strings, though the call refuses them.
    let mut pairs: BTreeMap<String, Value> = serde_json::from_str(json).unwrap_or_default();
    for (key, value) in &mut pairs {
        if let (true, Value::String(secret)) = (holds_secret(key), value) {
            secret.zeroize();
        }
    }
    let text = |key: &str| pairs.get(key).and_then(Value::as_str);
    let volume = text(GROUP)
        .zip(text(VOLUME))
        .and_then(|(vg, lv)| volume(vg, lv));
    let pod = text("kubernetes.io/pod.name").and_then(checked).map(|pod| {
        let namespace = text("kubernetes.io/pod.namespace").and_then(checked);
        namespace.map_or(pod.clone(), |namespace| format!("{namespace}/{pod}"))
    });
    let name = text(NAME).and_then(checked);
    vec![("volume", volume), ("pod", pod), ("name", name)]
}

fn volume(vg: &str, lv: &str) -> Option<String> {
    let (vg, lv) = (VgName::parse(vg).ok()?, LvName::parse(lv).ok()?);
    Some(LvId::new(vg, lv).to_string())
}

fn checked(name: &str) -> Option<String> {
    Some(ObjectName::parse(name).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The environment variable with the log file, for the process of this test that panics.
    const LOG: &str = "PANICS_WITH_LOG";

    #[test]
    fn a_panic_leaves_its_place_in_the_message_and_in_the_log() {
        if let Some(file) = std::env::var_os(LOG) {
            let target = LogTarget::File(file.into());
            answer_panics(
                &["mount".into(), "/x".into()],
                vec![("volume", "vg/lv".into())],
                &target,
            );
            panic!("not for kubelet");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        let name = "entry::tests::a_panic_leaves_its_place_in_the_message_and_in_the_log";
        let mut panics = Command::new(std::env::current_exe().unwrap());
        let ended = panics
            .args(["--exact", name])
            .env(LOG, &file)
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), Some(1));
        let reply = String::from_utf8(ended.stdout).unwrap();
        assert!(
            reply.contains(r#"{"status":"Failure","#) && reply.ends_with("}\n"),
            "{reply}"
        );
        let log = std::fs::read_to_string(file).unwrap();
        assert!(
            log.contains(r#""call":"mount","volume":"vg/lv""#) && log.lines().count() == 1,
            "{log}"
        );
        assert!(ended.stderr.is_empty());
        for text in [reply, log] {
            assert!(text.contains(" stopped at src/driver/entry.rs:"), "{text}");
            assert!(!text.contains("not for kubelet"), "{text}");
        }
    }
}
