//! argv into a call-out. The forms of Kubernetes 1.2 to 1.5 are told apart by their number of
//! arguments. Source: kubelet's `pkg/volume/flexvolume/driver-call.go` and the callers of it.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::names::Bytes;
use crate::options::{Options, holds_secret};

pub const NAMES: [&str; 11] = [
    "init",
    "attach",
    "detach",
    "waitforattach",
    "isattached",
    "mountdevice",
    "unmountdevice",
    "mount",
    "unmount",
    "expandfs",
    "expandvolume",
];

/// A call-out with its arguments, all of them checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOut {
    Init,
    /// `attach <options> <node>`; before 1.6 `attach <options>`
    Attach {
        options: Options,
        node: Option<String>,
    },
    /// `waitforattach <device> <options>`
    WaitForAttach {
        device: String,
        options: Options,
    },
    /// `isattached <options> <node>`; older: `isattached <node> <options>`
    IsAttached {
        options: Options,
        node: String,
    },
    /// `mountdevice <global dir> <device> <options>`
    MountDevice {
        dir: PathBuf,
        device: String,
        options: Options,
    },
    /// `mount <dir> <options>`; before 1.6 `mount <dir> <device> <options>`
    Mount {
        dir: PathBuf,
        device: String,
        options: Options,
    },
    Unmount {
        dir: PathBuf,
    },
    UnmountDevice {
        dir: PathBuf,
    },
    /// `detach <volume name> <node>`; before 1.6 `detach <device>`
    Detach {
        volume: String,
        node: Option<String>,
    },
    /// `expandfs <options> <device> <dir> <new size> <old size>`
    ExpandFs {
        options: Options,
        dir: PathBuf,
        size: Bytes,
    },
    /// `expandvolume <options> <global dir> <new size> <old size>`
    ExpandVolume {
        options: Options,
        dir: PathBuf,
        size: Bytes,
    },
    NotSupported(String),
}

impl CallOut {
    /// Parses what follows the executable's name.
    pub fn parse(args: &[OsString]) -> Result<Self> {
        let secrecy = if args.iter().any(holds_secret) {
            Secrecy::Secret
        } else {
            Secrecy::Open
        };
        let mut words = Vec::with_capacity(args.len());
        for (n, arg) in args.iter().enumerate() {
            let word = arg
                .to_str()
                .with_context(|| format!("argument {n} of the call is not valid UTF-8"))?;
            words.push(word);
        }
        let Some((name, words)) = words.split_first() else {
            bail!("no call-out given; see `lvm --help`");
        };
        let call = match (*name, words) {
            ("init", []) => Self::Init,
            ("attach", [json]) => Self::Attach {
                options: options(json)?,
                node: None,
            },
            ("attach", [json, node]) => Self::Attach {
                options: options(json)?,
                node: Some((*node).to_owned()),
            },
            ("waitforattach", [device, json]) => Self::WaitForAttach {
                device: device_word(device, secrecy)?,
                options: options(json)?,
            },
            ("isattached", [node, json]) if is_json(json) && !is_json(node) => Self::IsAttached {
                options: options(json)?,
                node: (*node).to_owned(),
            },
            ("isattached", [json, node]) => Self::IsAttached {
                options: options(json)?,
                node: (*node).to_owned(),
            },
            ("mountdevice", [dir, device, json]) => Self::MountDevice {
                dir: directory(dir, secrecy)?,
                device: device_word(device, secrecy)?,
                options: options(json)?,
            },
            ("mount", [dir, json]) => Self::Mount {
                dir: directory(dir, secrecy)?,
                device: String::new(),
                options: options(json)?,
            },
            ("mount", [dir, device, json]) => Self::Mount {
                dir: directory(dir, secrecy)?,
                device: device_word(device, secrecy)?,
                options: options(json)?,
            },
            ("unmount", [dir]) => Self::Unmount {
                dir: directory(dir, secrecy)?,
            },
            ("unmountdevice", [dir]) => Self::UnmountDevice {
                dir: directory(dir, secrecy)?,
            },
            ("detach", [volume]) => Self::Detach {
                volume: (*volume).to_owned(),
                node: None,
            },
            ("detach", [volume, node]) => Self::Detach {
                volume: (*volume).to_owned(),
                node: Some((*node).to_owned()),
            },
            ("expandfs", [json, device, dir, new, _old]) => {
                device_word(device, secrecy)?;
                Self::ExpandFs {
                    options: options(json)?,
                    dir: directory(dir, secrecy)?,
                    size: size(new, secrecy)?,
                }
            }
            ("expandvolume", [json, dir, new, _old]) => Self::ExpandVolume {
                options: options(json)?,
                dir: directory(dir, secrecy)?,
                size: size(new, secrecy)?,
            },
            (known, words) if NAMES.contains(&known) => bail!(
                "{known} takes {}; arguments given: {}",
                usage(known),
                words.len()
            ),
            (unknown, _) => Self::NotSupported(shown(unknown, secrecy)),
        };
        Ok(call)
    }

    pub fn options(&self) -> Option<&Options> {
        match self {
            Self::Attach { options, .. }
            | Self::WaitForAttach { options, .. }
            | Self::IsAttached { options, .. }
            | Self::MountDevice { options, .. }
            | Self::Mount { options, .. }
            | Self::ExpandFs { options, .. }
            | Self::ExpandVolume { options, .. } => Some(options),
            Self::Init
            | Self::Unmount { .. }
            | Self::UnmountDevice { .. }
            | Self::Detach { .. }
            | Self::NotSupported(_) => None,
        }
    }
}

/// The arguments of a call-out, for messages and the help.
pub fn usage(name: &str) -> &'static str {
    match name {
        "attach" | "isattached" => "<options> <node>",
        "detach" => "<volume name> <node>",
        "waitforattach" => "<device> <options>",
        "mountdevice" => "<directory> <device> <options>",
        "mount" => "<directory> <options>",
        "unmount" | "unmountdevice" => "<directory>",
        "expandfs" => "<options> <device> <directory> <new size> <old size>",
        "expandvolume" => "<options> <directory> <new size> <old size>",
        _ => "no arguments",
    }
}

fn is_json(word: &str) -> bool {
    word.trim_start().starts_with('{')
}

fn options(json: &str) -> Result<Options> {
    Options::parse(json).context("reading the volume's options")
}

fn size(word: &str, secrecy: Secrecy) -> Result<Bytes> {
    match (Bytes::parse_decimal(word), secrecy) {
        (Err(_), Secrecy::Secret) => bail!("the new size is not a number of bytes"),
        (size, _) => size.context("reading the new size"),
    }
}

/// A directory that kubelet names: absolute, and only going down.
fn directory(word: &str, secrecy: Secrecy) -> Result<PathBuf> {
    const LONGEST: usize = 4095; // PATH_MAX less its NUL
    let shown = shown(word, secrecy);
    let path = Path::new(word);
    let goes_down = path.is_absolute()
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && !word.split('/').any(|part| part == ".");
    if !goes_down || word.len() > LONGEST || word.contains(char::is_control) {
        bail!(
            "{shown:?} is not a directory to mount on: it must be an absolute path without `.`, `..` \
             or control characters"
        );
    }
    if path.parent().is_none() {
        bail!("/ is not a directory to mount on");
    }
    // Without a slash at its end: mountinfo never has one.
    Ok(path.components().collect())
}

/// A device that kubelet passes on from `attach`, or nothing.
fn device_word(word: &str, secrecy: Secrecy) -> Result<String> {
    let is_path = word.starts_with("/dev/")
        && word.len() <= 4095
        && !word.contains(char::is_control)
        && !word.split('/').any(|part| part == "..");
    if word.is_empty() || is_path {
        return Ok(word.to_owned());
    }
    bail!(
        "{:?} is not a device: it must be a path below /dev, or empty",
        shown(word, secrecy)
    )
}

/// Whether a word of the call may be repeated in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    Open,
    /// A secret is in it. Cut in pieces or in the wrong place, any word may be a part of that.
    Secret,
}

fn shown(word: &str, secrecy: Secrecy) -> String {
    match secrecy {
        Secrecy::Open => word.chars().take(80).collect(),
        Secrecy::Secret => "(not shown: the call holds a secret)".to_owned(),
    }
}
