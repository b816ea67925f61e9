//! Names that LVM accepts, and nothing else: a value of these types is safe as an operand and as a
//! part of a path.
//!
//! Source: lvm(8) "VALID NAMES", and what lvm 2.03.16 refuses (lib/misc/lvm-string.c): it knows a
//! few more reserved parts than its manual page lists.

mod fs_type;
mod near;
pub mod size;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;

pub use fs_type::FsType;
pub use near::nearest;
pub use size::Bytes;

/// `NAME_LEN` less its NUL, and the same for a name in device-mapper (`DM_NAME_LEN`).
const LONGEST: usize = 127;

/// What LVM leaves for the names of a group and a volume together: `vg_validate` in
/// lib/metadata/metadata.c counts three characters more.
const LONGEST_PAIR: usize = 124;

/// An LV's name cannot begin like this: LVM names its own volumes so.
const RESERVED_STARTS: [&str; 2] = ["pvmove", "snapshot"];

/// An LV's name cannot hold these: LVM names the hidden parts of a volume so.
const RESERVED_PARTS: [&str; 17] = [
    "_cdata", "_cmeta", "_corig", "_cpool", "_cvol", "_imeta", "_iorig", "_mimage", "_mlog",
    "_pmspare", "_rimage", "_rmeta", "_tdata", "_tmeta", "_vdata", "_vorigin", "_wcorig",
];

/// Why LVM would refuse a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameError {
    what: &'static str,
    name: String,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    Empty,
    Hyphen,
    Dots,
    Character(char),
    Long(usize),
    Start(&'static str),
    Part(&'static str),
    Pair(usize),
    Device(usize),
    NoPair,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            name,
            problem,
        } = self;
        write!(f, "{name:?} is not a name for a {what}: ")?;
        match problem {
            Problem::Empty => write!(f, "it is empty"),
            Problem::Hyphen => write!(f, "it begins with a hyphen"),
            Problem::Dots => write!(f, "`.` and `..` are directories"),
            Problem::Character(c) => {
                write!(f, "it holds {c:?}; LVM allows a-z A-Z 0-9 + _ . and -")
            }
            Problem::Long(length) => {
                write!(f, "it has {length} characters; LVM allows {LONGEST}")
            }
            Problem::Start(start) => {
                write!(f, "LVM keeps names that begin with {start:?} for itself")
            }
            Problem::Part(part) => write!(f, "LVM keeps names that hold {part:?} for itself"),
            Problem::Pair(length) => write!(
                f,
                "group and volume have {length} characters; LVM allows {LONGEST_PAIR} for both"
            ),
            Problem::Device(length) => write!(
                f,
                "its device's name would have {length} characters (hyphens count twice there); \
                 device-mapper allows {LONGEST}"
            ),
            Problem::NoPair => write!(f, "it must be VG/LV, with one slash"),
        }
    }
}

impl std::error::Error for NameError {}

impl NameError {
    fn new(what: &'static str, name: &str, problem: Problem) -> Self {
        // A hostile name may be very long, and the message shows what it is about all the same.
        let name = name.chars().take(LONGEST).collect();
        Self {
            what,
            name,
            problem,
        }
    }
}

/// What holds for the names of groups and of volumes.
fn check(name: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '.' | '-');
    if name.is_empty() {
        Err(Problem::Empty)
    } else if let Some(c) = name.chars().find(|c| !allowed(*c)) {
        Err(Problem::Character(c))
    } else if name.starts_with('-') {
        Err(Problem::Hyphen)
    } else if name == "." || name == ".." {
        Err(Problem::Dots)
    } else if name.len() > LONGEST {
        Err(Problem::Long(name.len()))
    } else {
        Ok(())
    }
}

fn check_reserved(name: &str) -> Result<(), Problem> {
    if let Some(start) = RESERVED_STARTS.iter().find(|s| name.starts_with(**s)) {
        return Err(Problem::Start(start));
    }
    match RESERVED_PARTS.iter().find(|part| name.contains(**part)) {
        Some(part) => Err(Problem::Part(part)),
        None => Ok(()),
    }
}

/// The name of a volume group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct VgName(String);

/// The name of a logical volume.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct LvName(String);

impl VgName {
    /// Takes a name that LVM would take. That nothing in /dev has it already is not looked at:
    /// LVM only asks when it makes a group.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        check(name).map_err(|problem| NameError::new("volume group", name, problem))?;
        Ok(Self(name.to_owned()))
    }
}

impl LvName {
    /// Takes a name that LVM would take.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        check(name)
            .and_then(|()| check_reserved(name))
            .map_err(|problem| NameError::new("logical volume", name, problem))?;
        Ok(Self(name.to_owned()))
    }
}

/// What a checked name offers, whatever it names.
macro_rules! checked_text {
    ($name:ident, $error:ty) => {
        impl $name {
            /// The name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(name: String) -> Result<Self, Self::Error> {
                Self::parse(&name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

checked_text!(VgName, NameError);
checked_text!(LvName, NameError);

/// A logical volume: its group's name and its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LvId {
    vg: VgName,
    lv: LvName,
}

impl LvId {
    /// Puts the two together, if LVM and device-mapper can hold both.
    pub fn new(vg: VgName, lv: LvName) -> Result<Self, NameError> {
        let id = Self { vg, lv };
        let both = id.vg.0.len().saturating_add(id.lv.0.len());
        let device = id.dm_name().len();
        let problem = if both > LONGEST_PAIR {
            Problem::Pair(both)
        } else if device > LONGEST {
            Problem::Device(device)
        } else {
            return Ok(id);
        };
        Err(NameError::new("logical volume", &id.to_string(), problem))
    }

    /// Parses `VG/LV`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let Some((vg, lv)) = text.split_once('/') else {
            return Err(NameError::new("logical volume", text, Problem::NoPair));
        };
        Self::new(VgName::parse(vg)?, LvName::parse(lv)?)
    }

    /// Finds the volume that device-mapper calls `name`. None: no volume of LVM has that name. The
    /// layers below a volume (`vg-lv-real`) are none.
    ///
    /// Source: dmsetup(8) `splitname`, lvm(8) "VALID NAMES".
    pub fn from_dm_name(name: &str) -> Option<Self> {
        let mut vg = String::with_capacity(name.len());
        let mut rest = name.chars();
        let lv = loop {
            match rest.next()? {
                '-' if rest.as_str().starts_with('-') => {
                    rest.next();
                    vg.push('-');
                }
                // A single one separates.
                '-' => break rest.as_str(),
                c => vg.push(c),
            }
        };
        let lv = lv.replace("--", "-");
        let id = Self::new(VgName::parse(&vg).ok()?, LvName::parse(&lv).ok()?).ok()?;
        // Only one way of writing it is right: this also drops a single hyphen in the second part.
        (id.dm_name() == name).then_some(id)
    }

    /// Finds the volume whose device is `/dev/mapper/<name>` or `/dev/<vg>/<lv>`. None for any
    /// other path, and for `/dev/dm-<n>`, which says no name.
    pub fn from_device(path: &str) -> Option<Self> {
        let path = path.strip_prefix("/dev/")?;
        match path.strip_prefix("mapper/") {
            Some(name) => Self::from_dm_name(name),
            None => Self::parse(path).ok(),
        }
    }

    /// The group.
    pub fn vg(&self) -> &VgName {
        &self.vg
    }

    /// The volume in it.
    pub fn lv(&self) -> &LvName {
        &self.lv
    }

    /// What device-mapper calls it: hyphens in the names are doubled, a single one separates.
    pub fn dm_name(&self) -> String {
        let double = |name: &str| name.replace('-', "--");
        format!("{}-{}", double(&self.vg.0), double(&self.lv.0))
    }

    /// Its device while it is active: `/dev/mapper/<dm name>`.
    pub fn device(&self) -> PathBuf {
        PathBuf::from(format!("/dev/mapper/{}", self.dm_name()))
    }
}

impl fmt::Display for LvId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.vg, self.lv))
    }
}

/// Whether two names are one host's: equal in any case, or one is the short form of the other.
/// Two full names must be equal as a whole, and so must addresses.
pub fn same_host(node: &str, host: &str) -> bool {
    let [node, host] = [node, host].map(|name| name.trim_end_matches('.').to_ascii_lowercase());
    let is_address = |name: &str| name.parse::<IpAddr>().is_ok();
    if node.is_empty() || host.is_empty() {
        return false;
    }
    if node == host || is_address(&node) || is_address(&host) {
        return node == host;
    }
    let is_short_of =
        |short: &str, full: &str| !short.contains('.') && full.split('.').next() == Some(short);
    is_short_of(&node, &host) || is_short_of(&host, &node)
}
