//! What a value must look like. Each function takes a TOML value and gives what it means, or says
//! in one clause why it cannot be.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::read::kind;
use super::{LogTarget, StaleBackups};
use crate::names::{Bytes, FsType, LvName};
use crate::options::MountOptions;

/// A day: a limit beyond it is a mistake.
const MOST_SECONDS: u64 = 86_400;

pub fn boolean(value: &DeValue) -> Result<bool, String> {
    let given = || format!("true or false, without quotes, not {}", kind(value));
    value.as_bool().ok_or_else(given)
}

pub fn text<'v>(value: &'v DeValue) -> Result<&'v str, String> {
    let given = || format!("a text in quotes, not {}", kind(value));
    let text = value.as_str().ok_or_else(given)?;
    if text.chars().any(char::is_control) {
        return Err(format!("{text:?} holds a control character"));
    }
    Ok(text)
}

fn whole_number(value: &DeValue) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn given(value: &DeValue) -> String {
    match value {
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        other => kind(other).to_owned(),
    }
}

/// Whole seconds, from 1 to a day.
pub fn seconds(value: &DeValue) -> Result<Duration, String> {
    match whole_number(value) {
        Some(seconds @ 1..=MOST_SECONDS) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "whole seconds from 1 to {MOST_SECONDS}, not {}",
            given(value)
        )),
    }
}

pub fn percent(value: &DeValue) -> Result<u8, String> {
    match whole_number(value).map(u8::try_from) {
        Some(Ok(percent @ 1..=100)) => Ok(percent),
        _ => Err(format!("whole percent from 1 to 100, not {}", given(value))),
    }
}

/// A size as lvcreate understands it. A bare number of TOML is refused: its unit would be a guess.
pub fn size(value: &DeValue) -> Result<Bytes, String> {
    if let DeValue::Integer(number) = value {
        return Err(format!(
            "a size in quotes and with its unit, such as \"{number}g\""
        ));
    }
    Bytes::parse_lvm(text(value)?).map_err(|e| e.to_string())
}

pub fn max_size(value: &DeValue) -> Result<Option<Bytes>, String> {
    match size(value)? {
        size if size.get() == 0 => Err("it would allow no volume at all".to_owned()),
        size => Ok(Some(size)),
    }
}

/// None for the empty text: the host's own name.
pub fn node_name(value: &DeValue) -> Result<Option<String>, String> {
    let name = text(value)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.len() > 253 || !name.chars().all(fits) {
        return Err(format!(
            "a node's name is letters, digits, dots and hyphens, at most 253, not {name:?}"
        ));
    }
    Ok(Some(name.to_owned()).filter(|name| !name.is_empty()))
}

fn list<'v>(value: &'v DeValue) -> Result<Vec<&'v str>, String> {
    let Some(items) = value.as_array() else {
        return Err(format!(
            "a list of texts, such as [\"one\", \"two\"], not {}",
            kind(value)
        ));
    };
    items.iter().map(|item| text(item.get_ref())).collect()
}

/// Absolute, without `..`, and not the root directory.
fn path(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err(format!("{text:?} is no absolute path"));
    }
    let up = path.components().any(|part| part == Component::ParentDir);
    if up || path.parent().is_none() {
        return Err(format!(
            "{text:?} must be a path below / and without \"..\""
        ));
    }
    Ok(path.to_owned())
}

pub fn dirs(value: &DeValue) -> Result<Vec<PathBuf>, String> {
    let dirs = list(value)?;
    if dirs.is_empty() {
        return Err("at least one directory".to_owned());
    }
    dirs.into_iter().map(path).collect()
}

pub fn log(value: &DeValue) -> Result<LogTarget, String> {
    let target = match text(value)? {
        "syslog" => return Ok(LogTarget::Syslog),
        "none" => return Ok(LogTarget::None),
        target => target,
    };
    if !target.starts_with('/') || target.ends_with('/') {
        return Err(format!(
            "\"syslog\", \"none\" or the absolute path of a file, not {target:?}"
        ));
    }
    let file = path(target)?;
    // <vendor>~<driver>
    let dir = file.parent().and_then(Path::file_name);
    if dir.is_some_and(|dir| dir.to_string_lossy().contains('~')) {
        return Err(format!(
            "{target:?} is in the driver's own directory, and kubelet loads the driver again \
             whenever a file there changes"
        ));
    }
    Ok(LogTarget::File(file))
}

pub fn filesystem(value: &DeValue) -> Result<FsType, String> {
    FsType::parse(text(value)?).map_err(|e| e.to_string())
}

pub fn stale_backups(value: &DeValue) -> Result<StaleBackups, String> {
    match text(value)? {
        "refuse" => Ok(StaleBackups::Refuse),
        "ignore" => Ok(StaleBackups::Ignore),
        other => Err(format!("\"refuse\" or \"ignore\", not {other:?}")),
    }
}

pub fn thin_pool(value: &DeValue) -> Result<Option<LvName>, String> {
    let name = LvName::parse(text(value)?);
    name.map(Some).map_err(|e| e.to_string())
}

pub fn mount_options(value: &DeValue) -> Result<MountOptions, String> {
    let options = text(value)?;
    if options.is_empty() {
        return Ok(MountOptions::default());
    }
    // With "ro" here, a blank volume would be formatted first and then be of no use.
    let decided = options
        .split(',')
        .find(|option| matches!(*option, "ro" | "rw"));
    if let Some(decided) = decided {
        return Err(format!(
            "whether a volume is read-only is said by the volume (readOnly), not by {decided:?} \
             here"
        ));
    }
    MountOptions::parse(options).map_err(|e| e.to_string())
}

/// The words of a command line, as far as they can be told apart without knowing the tool.
fn words(value: &DeValue, tool: &str) -> Result<Vec<String>, String> {
    let words = list(value)?;
    let mut after_option = false;
    for &word in &words {
        let is_option = word.starts_with('-');
        if word.is_empty() || word == "--" || word == "-" {
            return Err(format!("{word:?} is no option of {tool}"));
        }
        if is_option && word.contains(char::is_whitespace) {
            return Err(format!(
                "write each word on its own: {:?}, not {word:?}",
                word.split_whitespace().collect::<Vec<_>>()
            ));
        }
        // Another device or volume group would be one more operand.
        if !is_option && !after_option {
            return Err(format!(
                "{word:?} is no option of {tool}, nor the value of one"
            ));
        }
        after_option = is_option && !(word.starts_with("--") && word.contains('='));
    }
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// What lvcreate is told by the driver, or what would make another thing of the volume.
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

pub fn lvcreate_options(value: &DeValue) -> Result<Vec<String>, String> {
    let words = words(value, "lvcreate")?;
    for word in &words {
        // LVM understands an option by its first letters too, and a value joined to a short one.
        let name = word.split('=').next().unwrap_or_default();
        let is_decided = |(short, long): &&(&str, &str)| {
            if word.starts_with("--") {
                long.starts_with(name)
            } else {
                !short.is_empty() && word.starts_with(short)
            }
        };
        if let Some((_, long)) = DECIDED.iter().find(is_decided) {
            return Err(format!(
                "{word:?} is not for here: {long} is decided by the driver, as are {}",
                DECIDED.map(|(_, long)| long).join(", ")
            ));
        }
    }
    Ok(words)
}

/// What would have mkfs overwrite data, make nothing, or write elsewhere too.
pub fn mkfs_options(fs: FsType, value: &DeValue) -> Result<Vec<String>, String> {
    let tool = format!("mkfs.{fs}");
    let words = words(value, &tool)?;
    for word in &words {
        let refused: &[&str] = match fs {
            FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => &["-F", "-FF", "-n", "-S", "-t", "-V"],
            FsType::Xfs => &["-f", "-N", "-V"],
            FsType::Btrfs => &["-f", "--force", "-V", "--version", "--help"],
        };
        if refused.contains(&word.as_str()) {
            return Err(format!(
                "{word:?} is not for here: the driver decides what {tool} may overwrite, and \
                 refuses {}",
                refused.join(", ")
            ));
        }
        if word.contains("/dev/") {
            return Err(format!(
                "{word:?} names a device, and the options are for every volume"
            ));
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn options_of_lvcreate_that_the_driver_decides_are_refused() {
        let cases = [
            (r#"["--type", "raid1", "-m", "1"]"#, None),
            (
                r#"["--stripes", "2", "--stripesize=64k", "-Cy", "-r", "auto"]"#,
                None,
            ),
            (r#"["--alloc", "anywhere", "--nosync"]"#, None),
            (r#"["-n", "x"]"#, Some("--name is decided by the driver")),
            (r#"["--name=x"]"#, Some("--name is decided by the driver")),
            (r#"["--nam", "x"]"#, Some("--name is decided by the driver")),
            (r#"["-L1g"]"#, Some("--size is decided by the driver")),
            (
                r#"["-l", "100%FREE"]"#,
                Some("--extents is decided by the driver"),
            ),
            (r#"["-T"]"#, Some("--thin is decided by the driver")),
            (
                r#"["--thinpool", "p"]"#,
                Some("--thinpool is decided by the driver"),
            ),
            (
                r#"["--addtag", "a"]"#,
                Some("--addtag is decided by the driver"),
            ),
            (r#"["-y"]"#, Some("--yes is decided by the driver")),
            (
                r#"["-Wn"]"#,
                Some("--wipesignatures is decided by the driver"),
            ),
            (r#"["-an"]"#, Some("--activate is decided by the driver")),
            (r#"["-pr"]"#, Some("--permission is decided by the driver")),
            (r#"[""]"#, Some("\"\" is no option of lvcreate")),
            (r#"["--"]"#, Some("\"--\" is no option of lvcreate")),
            (
                r#"["othergroup"]"#,
                Some("\"othergroup\" is no option of lvcreate"),
            ),
            (
                r#"["-m", "1", "othergroup"]"#,
                Some("\"othergroup\" is no option"),
            ),
            (
                r#"["--mirrors=1", "othergroup"]"#,
                Some("\"othergroup\" is no option"),
            ),
            (
                r#"["--type raid1"]"#,
                Some("write each word on its own: [\"--type\", \"raid1\"]"),
            ),
            (r#"["--type\u0000"]"#, Some("control character")),
            (r#""-m1""#, Some("a list of texts")),
        ];
        for (options, want) in cases {
            let text = format!("volume_group.data.lvcreate_options = {options}");
            match (Config::parse(&text, "f"), want) {
                (Ok(_), None) => {}
                (Err(e), Some(want)) => assert!(e.contains(want), "{options}: {e}"),
                (result, want) => panic!("{options}: {result:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn options_of_mkfs_that_overwrite_or_reach_elsewhere_are_refused() {
        let cases = [
            (
                "ext4",
                r#"["-m", "5", "-O", "^has_journal", "-E", "stride=16"]"#,
                true,
            ),
            ("xfs", r#"["-m", "reflink=1", "-n", "ftype=1"]"#, true),
            ("btrfs", r#"["-n", "32k", "--csum=xxhash", "-M"]"#, true),
            ("ext4", r#"["-F"]"#, false),
            ("ext3", r#"["-FF"]"#, false),
            ("ext2", r#"["-n"]"#, false),
            ("ext4", r#"["-S"]"#, false),
            ("xfs", r#"["-f"]"#, false),
            ("xfs", r#"["-l", "logdev=/dev/sdb"]"#, false),
            ("btrfs", r#"["--force"]"#, false),
            ("btrfs", r#"["-M", "/dev/sdb"]"#, false),
            ("btrfs", r#"["/dev/sdb"]"#, false),
            ("btrfs", r#"["--"]"#, false),
            ("ext4", r#"["-m 5"]"#, false),
            ("ext4", r#"[""]"#, false),
        ];
        for (fs, options, want) in cases {
            for table in ["filesystem", "volume_group.data.filesystem"] {
                let text = format!("{table}.{fs}.mkfs_options = {options}");
                let result = Config::parse(&text, "f");
                assert_eq!(result.is_ok(), want, "{text}: {result:?}");
            }
        }
    }
}
