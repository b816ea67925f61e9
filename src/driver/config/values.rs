//! Checks values of the config beyond what their types can check.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};

use super::{FsConfig, LogTarget, VolumeGroup};
use crate::names::{Bytes, FsType, VgName};
use crate::options::MountOptions;

/// Reads a `T`. `check` turns it into the setting, or refuses it.
fn checked<'de, D, T, U, E>(from: D, check: impl FnOnce(T) -> Result<U, E>) -> Result<U, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    E: Display,
{
    check(T::deserialize(from)?).map_err(D::Error::custom)
}

/// Reads a whole number from 1 to `most`. `what`: the unit, for the error message.
fn number<'de, D: Deserializer<'de>>(from: D, most: u64, what: &str) -> Result<u64, D::Error> {
    match u64::deserialize(from) {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(D::Error::custom(format!("whole {what} from 1 to {most}"))),
    }
}

pub fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    // A longer limit than a day is a mistake.
    number(from, 86_400, "seconds").map(Duration::from_secs)
}

pub fn percent<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let percent = number(from, 100, "percent")?;
    u8::try_from(percent).map_err(D::Error::custom)
}

/// A size as lvcreate understands it. A bare number of TOML is refused: its unit would be a guess.
pub fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(from)
        .map_err(|_| D::Error::custom("a size in quotes and with its unit, such as \"10g\""))?;
    Bytes::parse_lvm(&text).map_err(D::Error::custom)
}

pub fn max_size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    match size(from)? {
        size if size.get() == 0 => Err(D::Error::custom("it would allow no volume at all")),
        size => Ok(Some(size)),
    }
}

/// The node's name in Kubernetes. `None`: the text is empty, which means the host's own name.
pub fn node_name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |name: String| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.len() > 253 || !name.chars().all(fits) {
            return Err(format!(
                "a node's name is letters, digits, dots and hyphens, at most 253, not {name:?}"
            ));
        }
        Ok(Some(name).filter(|name| !name.is_empty()))
    })
}

fn path(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    let up = path.components().any(|part| part == Component::ParentDir);
    let is_below = path.is_absolute() && path.parent().is_some() && !up;
    if !is_below || text.contains(char::is_control) {
        return Err(format!(
            "{text:?} is not an absolute path below /, without \"..\" and control characters"
        ));
    }
    Ok(path.to_owned())
}

fn file(text: &str) -> Result<PathBuf, String> {
    match text.strip_suffix('/') {
        Some(_) => Err(format!("{text:?} is a directory, and not a file")),
        None => path(text),
    }
}

/// The path of a file with a passphrase. `None`: the text is empty. An error does not quote the text, which may be the
/// passphrase itself.
pub fn key_file<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    match String::deserialize(from).map(|name| (name.is_empty(), file(&name))) {
        Ok((true, _)) => Ok(None),
        Ok((false, Ok(path))) => Ok(Some(path)),
        _ => Err(D::Error::custom(
            "not an absolute path of a file, without \"..\" and control characters",
        )),
    }
}

/// The memory of argon2, within the bounds of cryptsetup. Source: cryptsetup's `lib/crypt_backend/argon2` and
/// `lib/luks2/luks2_internal.h`.
pub fn pbkdf_memory<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    const RANGE: std::ops::RangeInclusive<u64> = 32 << 10..=4 << 30;
    match size(from)? {
        size if RANGE.contains(&size.get()) => Ok(size),
        _ => Err(D::Error::custom("a size from \"32k\" to \"4g\"")),
    }
}

/// How many times argon2 passes over its memory. cryptsetup allows 4 or more. `None`: the config has 0.
pub fn pbkdf_iterations<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    match u32::deserialize(from) {
        Ok(0) => Ok(None),
        Ok(number) if number >= 4 => Ok(Some(number)),
        _ => Err(D::Error::custom(
            "0, or a whole number from 4 to 4294967295",
        )),
    }
}

pub fn dirs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
    checked(from, |dirs: Vec<String>| {
        if dirs.is_empty() {
            return Err("at least one directory".to_owned());
        }
        dirs.iter().map(|dir| path(dir)).collect()
    })
}

impl TryFrom<String> for LogTarget {
    type Error = String;

    fn try_from(target: String) -> Result<Self, String> {
        let file = match target.as_str() {
            "syslog" => return Ok(Self::Syslog),
            "none" => return Ok(Self::None),
            name => {
                file(name).map_err(|why| format!("\"syslog\", \"none\" or a file, and {why}"))?
            }
        };
        // kubelet's directory for the driver is `<vendor>~<driver>`.
        let dir = file.parent().and_then(Path::file_name);
        if dir.is_some_and(|dir| dir.as_encoded_bytes().contains(&b'~')) {
            return Err(format!(
                "{target:?} is in the driver's own directory, and kubelet loads the driver again \
                 whenever a file there changes"
            ));
        }
        Ok(Self::File(file))
    }
}

pub fn mount_options<'de, D: Deserializer<'de>>(from: D) -> Result<MountOptions, D::Error> {
    checked(from, |text: String| {
        let options = MountOptions::of_node(&text).map_err(|e| e.to_string())?;
        // With "ro" here, a blank volume would be formatted, and nobody could ever write to it.
        if options.is_read_only() || options.is_read_write() {
            return Err(
                "the volume says whether it is read-only (readOnly): leave out ro and rw here"
                    .to_owned(),
            );
        }
        Ok(options)
    })
}

pub fn volume_groups<'de, D>(from: D) -> Result<BTreeMap<VgName, VolumeGroup>, D::Error>
where
    D: Deserializer<'de>,
{
    checked(from, |groups: BTreeMap<_, _>| {
        if groups.is_empty() {
            // Perhaps the author meant to allow no group, but an empty table allows all.
            return Err("name at least one group: [volume_group.NAME]");
        }
        Ok(groups)
    })
}

/// Fails if a word can be neither an option of a tool nor the value of an option. This function does not know which
/// options the tool has.
fn are_words(words: &[String], tool: &str) -> Result<(), String> {
    let mut after_option = false;
    for word in words {
        let is_option = word.starts_with('-');
        let has_space = is_option && word.contains(char::is_whitespace);
        // A word that is neither an option nor a value would be an operand: another device or volume group.
        let is_operand = !is_option && !after_option;
        let is_none = ["", "-", "--"].contains(&word.as_str()) || word.contains(char::is_control);
        if has_space || is_operand || is_none {
            return Err(format!(
                "{word:?} is not an option of {tool}, nor the value of one; write each word on its own"
            ));
        }
        after_option = is_option && !(word.starts_with("--") && word.contains('='));
    }
    Ok(())
}

/// Options of lvcreate that the driver sets itself, or that would create another kind of volume, or none.
const DECIDED: [(&str, &str); 16] = [
    ("-n", "--name"),
    ("-L", "--size"),
    ("-l", "--extents"),
    ("-V", "--virtualsize"),
    ("-T", "--thin"),
    ("", "--thinpool"),
    ("", "--addtag"),
    ("-y", "--yes"),
    ("-s", "--snapshot"),
    ("-W", "--wipesignatures"),
    ("-Z", "--zero"),
    ("-a", "--activate"),
    ("-k", "--setactivationskip"),
    ("-p", "--permission"),
    ("-t", "--test"),
    ("-h", "--help"),
];

/// Short options of lvcreate that take no value, and are not in [`DECIDED`].
const LVCREATE_FLAGS: &str = "dfHKPqv";

/// The letters of the short options in this word. Letters may be joined, as in `-qn`. A letter that takes a value is
/// the last: the rest of the word is its value. `flags`: the letters that take no value.
fn letters_of<'a>(word: &'a str, flags: &str) -> &'a str {
    let Some(letters) = word.strip_prefix('-') else {
        return "";
    };
    let with_value = letters.find(|letter| !flags.contains(letter));
    let end = with_value.map_or(letters.len(), |at| {
        letters.ceil_char_boundary(at.saturating_add(1))
    });
    letters.get(..end).unwrap_or(letters)
}

pub fn lvcreate_options<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    checked(from, |words: Vec<String>| {
        are_words(&words, "lvcreate")?;
        for word in &words {
            if let Some((_, long)) = DECIDED.iter().find(|option| has_option(word, option)) {
                return Err(format!(
                    "{word:?} is not for here: the driver decides {long}; it decides all of {}",
                    DECIDED.map(|(_, long)| long).join(", ")
                ));
            }
        }
        Ok(words)
    })
}

/// Whether a word for lvcreate has this option, by its short or its long name. LVM also understands the first letters
/// of a long option, and a value joined to a short option.
fn has_option(word: &str, (short, long): &(&str, &str)) -> bool {
    if word.starts_with("--") {
        let name = word.split('=').next().unwrap_or_default();
        return long.starts_with(name);
    }
    let letters = letters_of(word, LVCREATE_FLAGS);
    let letter = short.chars().nth(1);
    letter.is_some_and(|letter| letters.contains(letter))
}

pub fn filesystems<'de, D>(from: D) -> Result<BTreeMap<FsType, FsConfig>, D::Error>
where
    D: Deserializer<'de>,
{
    checked(from, |all: BTreeMap<FsType, FsConfig>| {
        for (fs, config) in &all {
            are_mkfs_options(*fs, &config.mkfs_options)?;
        }
        Ok::<_, String>(all)
    })
}

/// Options with which a mkfs would overwrite data, make nothing, write to another device, too, or choose the UUID.
struct Refused {
    /// The letters of the short options.
    short: &'static str,
    long: &'static [&'static str],
    /// What no word may contain: a part of an option's value.
    part: Option<&'static str>,
    /// All letters of this mkfs that take no value.
    flags: &'static str,
}

impl Refused {
    /// Sources: misc/mke2fs.c, `mkfs/xfs_mkfs.c` and mkfs/main.c of e2fsprogs, xfsprogs and btrfs-progs.
    fn of(fs: FsType) -> Self {
        const LONG: &[&str] = &["--force", "--uuid", "--version", "--help"];
        let (short, long, part, flags): (_, &[_], _, _) = match fs {
            FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => ("FnStUV", &[], None, "cjnqvDFKSV"),
            FsType::Xfs => ("fNV", &[], Some("uuid="), "fCKNqV"),
            FsType::Btrfs => ("fUVh", LONG, None, "fvVMKqh"),
        };
        Self {
            short,
            long,
            part,
            flags,
        }
    }

    /// Whether a word contains one of these options. mkfs also understands the first letters of a long option.
    fn has(&self, word: &str) -> bool {
        if word.starts_with("--") {
            let name = word.split('=').next().unwrap_or_default();
            return self.long.iter().any(|long| long.starts_with(name));
        }
        let letters = letters_of(word, self.flags);
        letters.chars().any(|letter| self.short.contains(letter))
            || self.part.is_some_and(|part| word.contains(part))
    }

    fn in_words(&self) -> String {
        let short = self.short.chars().map(|letter| format!("-{letter}"));
        let others = self.long.iter().chain(self.part.as_slice());
        short
            .chain(others.map(|other| (*other).to_owned()))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Fails if a word is an option with which mkfs would overwrite data, make nothing, write to another device, too, or
/// choose the UUID.
fn are_mkfs_options(fs: FsType, words: &[String]) -> Result<(), String> {
    let tool = format!("mkfs.{fs}");
    are_words(words, &tool)?;
    let refused = Refused::of(fs);
    for word in words {
        if refused.has(word) {
            return Err(format!(
                "{word:?} is not for here: the driver decides what {tool} may overwrite and the UUID, and \
                 refuses {}",
                refused.in_words()
            ));
        }
        if word.contains("/dev/") {
            return Err(format!(
                "{word:?} names a device, and the options are for every volume"
            ));
        }
    }
    Ok(())
}
