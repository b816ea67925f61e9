//! argv to answer: a call-out always ends in exactly one JSON document.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::calls::guard::{answer_panics, logged, printed, run};
use crate::calls::{is_by_hand, named};
use crate::child;
use crate::config::{FILE_VARIABLE, Loaded, LogTarget};
use crate::host::trust::load;
use crate::host::{Host, Kernel, Log, Processes, Writing};
use crate::options::holds_secret;
use crate::reply::{Printed, Reply};
use crate::secret;

/// The words of this call: argv without the program, or what a call with a secret took off that.
///
/// # Errors
/// The answer to a call whose words cannot be read.
pub fn words(args: &[OsString]) -> Result<Vec<OsString>, Printed> {
    let words = args.get(1..).unwrap_or_default();
    if words
        .first()
        .is_none_or(|first| first != secret::CALL_STDIN)
    {
        return Ok(words.to_vec());
    }
    let words = secret::words(args);
    words.map_err(|error| Printed::text(format!("{}\n", Reply::failure(&error).to_json())))
}

/// Does what kubelet asks for, or this program itself. `args`: all of argv. `None`: a person wrote these
/// [`words`], or they name no call-out.
#[must_use]
pub fn main(args: &[OsString], words: &[OsString]) -> Option<Printed> {
    if words.first().is_some_and(|name| named(name).is_some()) && !is_by_hand(words) {
        let as_they_are = |_: &Host| Ok(words.to_vec());
        return Some(answer(args, words, false, as_they_are));
    }
    child::run(words)
}

/// Answers a call-out. `translated` puts what a person wrote into kubelet's words.
pub fn answer(
    args: &[OsString],
    words: &[OsString],
    is_verbose: bool,
    translated: impl FnOnce(&Host) -> Result<Vec<OsString>>,
) -> Printed {
    if args.iter().any(holds_secret) {
        return printed(&Reply::failure(&secret::hide(args, words)), true);
    }
    let target = LogTarget::default();
    answer_panics(words, Vec::new(), &target);
    let reply = with_host(args, |mut host, config| {
        host.is_verbose = is_verbose;
        Ok(match translated(&host) {
            Ok(call) => run(&call, &host, config),
            Err(error) => logged(words, Err(error), &host.log, &config.config.log),
        })
    });
    // The call ended before it wrote a line to the log, and before it read in the config where the log is.
    let reply = reply.unwrap_or_else(|e| logged(words, Err(e), &Log::default(), &target));
    printed(&reply, words.iter().any(holds_secret))
}

/// Gives `work` two hosts, for a person's command: one that only looks, whose tools change nothing, and one for
/// what changes tags.
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

/// Gives `work` this machine and the config of the driver that `args` call.
fn with_host<T>(args: &[OsString], work: impl FnOnce(Host, &Loaded) -> Result<T>) -> Result<T> {
    let kernel = Kernel::new().context("installing the signal handlers")?;
    let exe = executable(&kernel, args)?;
    let config = load(&kernel, &exe, std::env::var_os(FILE_VARIABLE).as_deref());
    let tools = Processes::new(&kernel, config.config.tool_dirs.clone());
    let limits = &config.config.limits;
    work(Host::new(&tools, &kernel, limits), &config)
}

/// Where the driver is installed. kubelet also runs a link to an executable that is elsewhere:
/// then the config is beside the link, unless there is none.
pub fn executable(kernel: &Kernel, args: &[OsString]) -> Result<PathBuf> {
    let called = args.first().map(Path::new);
    // A word without a slash was looked for in PATH.
    let called = called
        .filter(|path| path.components().count() > 1)
        .and_then(|path| std::path::absolute(path).ok());
    if let Some(called) = &called
        && kernel.exists(&called.with_file_name("config.toml"))
    {
        return Ok(called.clone());
    }
    let exe = std::env::current_exe().context("finding the driver's own executable")?;
    match called {
        // An upgrade has just put another file in its place.
        Some(called) if !kernel.exists(&exe) => Ok(called),
        _ => Ok(exe),
    }
}
