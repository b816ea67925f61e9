//! The call-outs and their arguments.

mod attach;
mod expand;
mod unmount;

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::config::{Config, Loaded};
use crate::failed_step::FailedStep;
use crate::host::Host;
use crate::names::{Bytes, same_host};
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{Job, bring_up};

/// Each call-out with its arguments. Source: kubelet's `pkg/volume/flexvolume/driver-call.go`.
pub const ALL: [(&str, &str); 11] = [
    ("init", ""),
    ("attach", "<options> <node>"),
    ("detach", "<volume name> <node>"),
    ("waitforattach", "<device> <options>"),
    ("isattached", "<options> <node>"),
    ("mountdevice", "<directory> <device> <options>"),
    ("unmountdevice", "<directory>"),
    ("mount", "<directory> <options>"),
    ("unmount", "<directory>"),
    (
        "expandfs",
        "<options> <device> <directory> <new size> <old size>",
    ),
    (
        "expandvolume",
        "<options> <directory> <new size> <old size>",
    ),
];

pub fn named(name: impl AsRef<OsStr>) -> Option<(&'static str, &'static str)> {
    ALL.into_iter().find(|(known, _)| name.as_ref() == *known)
}

/// The option of a call-out by hand that prints each step on standard error.
pub const VERBOSE: &str = "--verbose";

/// Whether a person wrote these words: one of them is a word that kubelet never writes.
pub fn is_by_hand(words: &[OsString]) -> bool {
    let mut before: &OsStr = OsStr::new("");
    words.iter().any(|word| {
        let bytes = word.as_encoded_bytes();
        // A word after `-o` that lacks `=` counts, too: kubelet would write a path, a number or JSON there.
        let is_word = bytes.first().is_some_and(u8::is_ascii_alphabetic) || bytes.contains(&b'=');
        let is_pair = before == "-o" && is_word && !bytes.starts_with(b"{");
        before = word;
        is_pair
            || ["-", "-h", "--help", VERBOSE].iter().any(|own| word == own)
            || bytes.starts_with(b"@")
    })
}

/// Answers a call: parses all of its words first, then does what the call asks for.
pub fn answer(args: &[OsString], host: &Host, config: &Loaded) -> Result<Reply> {
    let words = in_utf8(args)?;
    let Some((name, words)) = words.split_first() else {
        bail!("no call-out given; see `flexvolume-lvm --help`");
    };
    match (*name, words) {
        ("init", []) => Ok(init(config)),
        ("attach", [json, node]) => attach::attach(host, config, &options_of(host, json)?, node),
        ("waitforattach", [device, json]) => {
            let (handed, options) = (device_of(device)?, options_of(host, json)?);
            let config = config_of(config)?;
            let job = Job::new(host, config, &options, None);
            attach::waitforattach(&Job { handed, ..job })
        }
        ("isattached", [json, node]) => {
            attach::isattached(host, config, &options_of(host, json)?, node)
        }
        ("mountdevice", [dir, device, json]) => {
            let (dir, handed, options) =
                (directory(dir)?, device_of(device)?, options_of(host, json)?);
            let config = config_of(config)?;
            let job = Job::new(host, config, &options, Some(&dir));
            bring_up(&Job { handed, ..job })
        }
        ("mount", [dir, json]) => {
            let (dir, options) = (directory(dir)?, options_of(host, json)?);
            let config = config_of(config)?;
            bring_up(&Job::new(host, config, &options, Some(&dir)))
        }
        ("unmount" | "unmountdevice", [dir]) => unmount::unmount(host, config, &directory(dir)?),
        ("detach", [volume, node]) => attach::detach(host, config, volume, node),
        ("expandfs", [json, _, dir, new, _old]) | ("expandvolume", [json, dir, new, _old]) => {
            let (options, dir) = (options_of(host, json)?, directory(dir)?);
            let (size, config) = (bytes(new)?, config_of(config)?);
            expand::run(&Job::to_grow(host, config, &options, &dir, size))
        }
        (name, words) => not_understood(name, words.len()),
    }
}

fn bytes(text: &str) -> Result<Bytes> {
    match text.parse() {
        Ok(size) => Ok(Bytes::new(size)),
        Err(_) => bail!("the new size is not a number of bytes"),
    }
}

/// Answers a call-out that the driver does not have, or one with too few or too many words.
fn not_understood(name: &str, count: usize) -> Result<Reply> {
    let Some((name, usage)) = named(name) else {
        return Ok(Reply::not_supported(
            "flexvolume-lvm has no call-out of this name; see `flexvolume-lvm --help`",
        ));
    };
    let usage = if usage.is_empty() {
        "no arguments"
    } else {
        usage
    };
    bail!("{name} takes {usage}; arguments given: {count}")
}

/// The config of a call that needs one without a mistake.
fn config_of(config: &Loaded) -> Result<&Config> {
    config
        .require()
        .map_err(|error| FailedStep::Config.error(format!("{error:#}")))
}

/// Parses a volume's options.
fn options_of(host: &Host, json: &str) -> Result<Options> {
    let options = Options::parse(json)
        .map_err(|error| FailedStep::Options.of(host, error, "reading the volume's options"))?;
    if let Some(given) = options.mount_options.joined() {
        host.log.about("mountoptions", &given);
    }
    Ok(options)
}

fn in_utf8(args: &[OsString]) -> Result<Vec<&str>> {
    let words = args.iter().enumerate().map(|(n, arg)| {
        let word = arg.to_str();
        word.with_context(|| format!("argument {n} of the call is not valid UTF-8"))
    });
    words.collect()
}

/// Whether a call that names `node` is for this host.
fn is_here(host: &Host, config: &Loaded, node: &str) -> bool {
    match &config.config.node_name {
        Some(name) => same_host(node, name),
        None => same_host(node, &host.kernel.host_name()),
    }
}

/// Parses a directory that kubelet names: an absolute path, without `.` and `..`. No error in this file repeats an
/// argument of the call, since a secret may stand in the wrong place.
fn directory(word: &str) -> Result<PathBuf> {
    const LONGEST: usize = 4095; // PATH_MAX less its NUL
    let path = Path::new(word);
    let goes_down = path.is_absolute()
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && !word.split('/').any(|part| part == ".");
    let is_top = path.parent().is_none();
    if !goes_down || is_top || word.len() > LONGEST || word.contains(char::is_control) {
        bail!(
            "what the call names is not a directory to mount on: it must be an absolute path below /, without `.`, \
             `..` or control characters"
        );
    }
    // This drops a slash at the end, which mountinfo never has.
    Ok(path.components().collect())
}

/// Parses the device that kubelet passes, as `attach` has answered it: a path below /dev, or an empty word.
fn device_of(word: &str) -> Result<Option<&str>> {
    let is_path = word.starts_with("/dev/")
        && word.len() <= 4095
        && !word.contains(char::is_control)
        && !word.split('/').any(|part| part == "..");
    if !word.is_empty() && !is_path {
        bail!("what the call names is not a device: it must be a path below /dev, or empty");
    }
    Ok(Some(word).filter(|word| !word.is_empty()))
}

/// `init`: says what the driver can do. Starts no process: kubelet holds a lock until `init` answers, and every volume
/// of the node waits for that lock. If the config cannot be read, the reply only says so: a failure would unload the
/// driver while volumes are mounted.
fn init(config: &Loaded) -> Reply {
    let known = &config.config;
    let reply = Reply {
        capabilities: Some(json!({
            "attach": known.attach,
            "fsGroup": known.fs_group,
            "requiresFSResize": known.requires_fs_resize,
            "selinuxRelabel": known.selinux_relabel,
            "supportsMetrics": known.supports_metrics,
        })),
        ..Reply::success()
    };
    match &config.problem {
        None => reply,
        Some(problem) => reply.with_message(&format!(
            "{problem}; until that is corrected no volume is brought up, and every key but \
             `attach` has its default"
        )),
    }
}
