//! Names that LVM accepts. A value of these types is safe as an operand and as a part of a path; a [`Foreign`] is not.
//! Source: lvm(8) "VALID NAMES", and what lvm 2.03.16 refuses (lib/misc/lvm-string.c).

mod date;
mod foreign;
mod fs_type;
mod size;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Error, Result, anyhow};
use serde::Deserialize;

pub use date::date;
pub use foreign::{Foreign, Shown, folded, folded_to, is_printable, quoted};
pub use fs_type::{Encryption, Filesystem, FsType};
pub use size::Bytes;
#[cfg(test)]
pub use tests::hostile;

const VOLUME: &str = "logical volume";

/// The longest name, in bytes: LVM's `NAME_LEN` without its NUL. device-mapper's `DM_NAME_LEN` is the same.
const LONGEST: usize = 127;

/// An LV's name must not begin with these words, which LVM uses for its own volumes.
const RESERVED_STARTS: [&str; 2] = ["pvmove", "snapshot"];

/// An LV's name must not contain these, which LVM uses for the hidden parts of a volume.
const RESERVED_PARTS: [&str; 17] = [
    "_cdata", "_cmeta", "_corig", "_cpool", "_cvol", "_imeta", "_iorig", "_mimage", "_mlog",
    "_pmspare", "_rimage", "_rmeta", "_tdata", "_tmeta", "_vdata", "_vorigin", "_wcorig",
];

/// Puts the beginning of a text in quotes, for a message. A hostile text may be very long, and its beginning is enough
/// to recognise it.
pub fn cited(text: &str) -> String {
    format!("{:?}", text.chars().take(LONGEST).collect::<String>())
}

/// The error about a text that is no name, size or filesystem: one line with the text.
fn invalid(text: &str, why: &str) -> Error {
    anyhow!("{} is not a {why}", cited(text))
}

fn invalid_name(text: &str, of: &str, why: impl fmt::Display) -> Error {
    invalid(text, &format!("name for a {of}: {why}"))
}

/// Checks the rules that names of groups and of volumes share.
fn check(name: &str, of: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '.' | '-');
    let is_good = (1..=LONGEST).contains(&name.len())
        && name.chars().all(allowed)
        && !name.starts_with('-')
        && !matches!(name, "." | "..");
    if !is_good {
        let why = format!(
            "LVM allows 1 to {LONGEST} of a-z A-Z 0-9 + _ . and -, no hyphen at the beginning, and neither . nor .."
        );
        return Err(invalid_name(name, of, why));
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct VgName(String);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct LvName(String);

impl VgName {
    /// Parses a name that LVM would accept. Does not check whether /dev has such an entry: that matters only to a
    /// person who creates a group.
    pub fn parse(name: &str) -> Result<Self> {
        check(name, "volume group")?;
        Ok(Self(name.to_owned()))
    }
}

impl LvName {
    pub fn parse(name: &str) -> Result<Self> {
        check(name, VOLUME)?;
        let start = RESERVED_STARTS.iter().find(|text| name.starts_with(**text));
        let part = RESERVED_PARTS.iter().find(|text| name.contains(**text));
        if let Some(text) = start.or(part) {
            let why = format!("LVM keeps names with {text:?} for itself");
            return Err(invalid_name(name, VOLUME, why));
        }
        Ok(Self(name.to_owned()))
    }
}

/// The name of an object in Kubernetes: a DNS subdomain of RFC 1123. It fits into a tag of LVM.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName(String);

impl ObjectName {
    pub fn parse(text: &str) -> Result<Self> {
        const LONGEST: usize = 253;
        if text.len() > LONGEST || !text.split('.').all(is_label) {
            let why = format!(
                "name to Kubernetes, which takes a-z, 0-9, hyphens and dots, up to {LONGEST} characters, with \
                 a letter or digit at both ends"
            );
            return Err(invalid(text, &why));
        }
        Ok(Self(text.to_owned()))
    }

    /// A volume's name in a call-out. kubelet takes it from an object's name. In a person's call it may also contain
    /// capitals, `_` and `+`, which a tag can contain: lvm(8), "TAGS".
    pub fn of_volume(text: &str) -> Result<Self> {
        let plain = text.to_ascii_lowercase().replace(['_', '+'], "0");
        Self::parse(&plain).or_else(|_| Self::parse(text))?;
        Ok(Self(text.to_owned()))
    }
}

macro_rules! checked_text {
    ($name:ident) => {
        impl $name {
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
            type Error = Error;

            fn try_from(name: String) -> Result<Self> {
                Self::parse(&name)
            }
        }
    };
}

checked_text!(VgName);
checked_text!(LvName);
checked_text!(ObjectName);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LvId {
    vg: VgName,
    lv: LvName,
}

impl LvId {
    pub fn new(vg: VgName, lv: LvName) -> Self {
        Self { vg, lv }
    }

    pub fn parse(text: &str) -> Result<Self> {
        let Some((vg, lv)) = text.split_once('/') else {
            return Err(invalid_name(
                text,
                VOLUME,
                "it must be VG/LV, with one slash",
            ));
        };
        Ok(Self::new(VgName::parse(vg)?, LvName::parse(lv)?))
    }

    /// The volume that a person names: as VG/LV, or by its device.
    pub fn named(text: &str) -> Result<Self> {
        Self::from_device(text).map_or_else(|| Self::parse(text), Ok)
    }

    /// The volume that device-mapper calls `name`. `None` for the layers below a volume (`vg-lv-real`), which are no
    /// volumes. Source: dmsetup(8) `splitname`, lvm(8) "VALID NAMES".
    pub fn from_dm_name(name: &str) -> Option<Self> {
        // A doubled hyphen stands for a hyphen in a name. A single hyphen separates the names. While the names are
        // split, a slash stands for a doubled hyphen, since no name contains a slash.
        let folded = name.replace("--", "/");
        let (vg, lv) = folded.split_once('-')?;
        let [vg, lv] = [vg, lv].map(|name| name.replace('/', "-"));
        let id = Self::new(VgName::parse(&vg).ok()?, LvName::parse(&lv).ok()?);
        // Only the volume's exact name is right. This refuses, for example, a single hyphen in the second part.
        (id.dm_name() == name).then_some(id)
    }

    /// Finds the volume whose device is `/dev/mapper/<name>` or `/dev/<vg>/<lv>`. `None`: any other path, also
    /// `/dev/dm-<n>`, which contains no name.
    pub fn from_device(path: &str) -> Option<Self> {
        let name = path.strip_prefix("/dev/")?;
        match name.strip_prefix("mapper/") {
            Some(mapped) => Self::from_dm_name(mapped),
            None => Self::parse(name).ok(),
        }
    }

    pub fn vg(&self) -> &VgName {
        &self.vg
    }

    pub fn lv(&self) -> &LvName {
        &self.lv
    }

    /// The volume's name in device-mapper: hyphens in the two names are doubled, and a single one separates the names.
    pub fn dm_name(&self) -> String {
        let [vg, lv] = [&self.vg.0, &self.lv.0].map(|name| name.replace('-', "--"));
        format!("{vg}-{lv}")
    }

    pub fn device(&self) -> PathBuf {
        PathBuf::from(format!("/dev/mapper/{}", self.dm_name()))
    }
}

impl fmt::Display for LvId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.vg, self.lv))
    }
}

/// Whether this is a label of a name in the DNS.
fn is_label(label: &str) -> bool {
    const fn is_at_end(c: char) -> bool {
        c.is_ascii_lowercase() || c.is_ascii_digit()
    }
    label.starts_with(is_at_end)
        && label.ends_with(is_at_end)
        && label.chars().all(|c| is_at_end(c) || c == '-')
}

/// Whether two names mean one host: they are equal, ignoring case, or one is the short form of the other. Two full
/// names, and addresses, must be equal as a whole.
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

/// The UUID of a filesystem or a LUKS2 header, with hyphens and in lower case. `None`: these are not 32 hexadecimal
/// digits.
pub fn with_hyphens(digits: &str) -> Option<String> {
    let is_uuid = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut uuid = is_uuid.then(|| digits.to_ascii_lowercase())?;
    for hyphen in [20, 16, 12, 8] {
        uuid.insert(hyphen, '-');
    }
    Some(uuid)
}

/// The UUID of a logical volume, which stays the same when its name changes. It has 32 characters. device-mapper writes
/// it without hyphens. LVM writes it with hyphens, in groups of 6, 4, 4, 4, 4, 4 and 6. Source: lvm2 lib/uuid/uuid.c.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LvUuid(String);

impl LvUuid {
    /// Accepts a UUID with or without hyphens.
    pub fn of(text: &str) -> Self {
        Self(text.replace('-', ""))
    }

    /// The UUID without hyphens, as device-mapper writes it.
    pub fn plain(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LvUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ENDS: [usize; 6] = [6, 10, 14, 18, 22, 26];
        for (at, character) in self.0.chars().enumerate() {
            if ENDS.contains(&at) {
                f.write_str("-")?;
            }
            write!(f, "{character}")?;
        }
        Ok(())
    }
}

/// The word in lower case, without dashes, underscores, dots and spaces: people write `VG-Name`, `vg_name` and
/// `vgname`.
pub fn plain(word: &str) -> String {
    word.to_lowercase().replace(['-', '_', '.', ' '], "")
}

/// The known word that was probably meant. Ignores case and dashes, and accepts two wrong letters, or one in a short
/// word. `None`: no known word is so similar.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 32;
    if word.len() > LONGEST {
        return None;
    }
    let word = plain(word);
    let near = known.iter().filter_map(|known| {
        let other = plain(known);
        let distance = strsim::damerau_levenshtein(&word, &other);
        let most = if other.len() <= 4 { 1 } else { 2 };
        (distance <= most).then_some((distance, other.len(), *known))
    });
    near.min().map(|(_, _, known)| known)
}
