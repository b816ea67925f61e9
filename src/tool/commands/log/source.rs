//! Reads the log: the journal, or the file that config.toml names.

use std::io::ErrorKind;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::call::Call;
use crate::commands::time::date;
use driver::config::{Config, LogTarget};
use driver::host::{Command, Host};
use driver::names::Shown;

/// At most this many lines of the journal, or bytes of a file, are read: the newest.
const MOST_LINES: usize = 20_000;
const MOST_BYTES: u64 = 8 << 20;

/// How far the log was read.
#[derive(Default)]
pub struct Place {
    /// Where the reading goes on: in the journal, in a file.
    cursor: Option<String>,
    offset: Option<u64>,
    /// Older entries than this (seconds since the epoch) are there too, and were not read.
    oldest: Option<u64>,
}

impl Place {
    /// A note, if the log was not read as a whole.
    pub fn reach(&self) -> String {
        let since = |time| {
            format!(
                " since {}; of older entries there are too many to be read",
                date(time)
            )
        };
        self.oldest.map(since).unwrap_or_default()
    }
}

/// The calls since `oldest` (seconds since the epoch), from where the previous reading ended.
pub fn read(host: &Host, config: &Config, oldest: u64, place: &mut Place) -> Result<Vec<Call>> {
    let mut calls = match &config.log {
        LogTarget::None => bail!(
            "nothing is logged: {} says log = \"none\"; \"syslog\" would",
            config.file
        ),
        LogTarget::Syslog => of_journal(host, config, oldest, place)?,
        LogTarget::File(file) => of_file(host, file, place)?,
    };
    calls.retain(|call| call.time >= oldest);
    Ok(calls)
}

fn of_journal(host: &Host, config: &Config, oldest: u64, place: &mut Place) -> Result<Vec<Call>> {
    // journalctl takes one of the two. Where there are more entries than are asked for, it begins with
    // the oldest ones, unless it goes backwards.
    let is_first = place.cursor.is_none();
    let from = match &place.cursor {
        Some(cursor) => vec![format!("--after-cursor={cursor}")],
        None => vec![format!("--since=@{oldest}"), "--reverse".to_owned()],
    };
    let command = Command::journalctl(config.limits.query)
        .args(["--output=json", "--output-fields=MESSAGE", "--quiet"])
        // Anybody may write an entry of that name, and an advice there is followed by root.
        .args(["--no-pager", "--identifier=flexvolume-lvm", "_UID=0"])
        .args([format!("--lines={MOST_LINES}")])
        .args(from)
        .or_its_beginning();
    let output = host.run(&command).context(
        "asking the journal (without one, look where the syslog daemon writes, such as \
         /var/log/syslog, or set `log` in config.toml to a file)",
    )?;
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let mut entries: Vec<Value> = lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let time = |entry: &Value| {
        let micros = entry.get("__REALTIME_TIMESTAMP").and_then(Value::as_str);
        micros
            .and_then(|time| time.parse::<u64>().ok())
            .unwrap_or_default()
            / 1_000_000
    };
    if is_first {
        entries.reverse();
        let is_whole = !output.cut && entries.len() < MOST_LINES;
        place.oldest = entries.first().filter(|_| !is_whole).map(time);
    }
    let mut calls = Vec::new();
    for entry in entries {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        if let Some(cursor) = text("__CURSOR") {
            place.cursor = Some(cursor.to_owned());
        }
        let time = time(&entry);
        calls.extend(text("MESSAGE").and_then(|message| Call::parse(time, message)));
    }
    Ok(calls)
}

/// Fails if the journal should have the log, and gave nothing because there is none.
pub fn require_a_journal(host: &Host, config: &Config, place: &Place) -> Result<()> {
    if config.log != LogTarget::Syslog || place.cursor.is_some() {
        return Ok(());
    }
    let is_there = |path: &&str| host.kernel.exists(Path::new(path));
    let help = if !is_there(&"/dev/log") {
        "start journald (`systemctl start systemd-journald.socket`)"
    } else if !["/run/log/journal", "/var/log/journal"]
        .iter()
        .any(is_there)
    {
        "look where its syslog daemon writes, such as /var/log/syslog"
    } else {
        return Ok(());
    };
    bail!(
        "there is no log, since this host keeps no journal: {help}, or set `log` in {} to a file",
        config.file
    );
}

fn of_file(host: &Host, file: &Path, place: &mut Place) -> Result<Vec<Call>> {
    let (from, mut bytes) = match host.kernel.read_end(file, place.offset, MOST_BYTES) {
        Ok(read) => read,
        // The first call makes it.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context(|| format!("reading {}", file.shown())),
    };
    // A line that is being written is for the next time.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.truncate(whole.map_or(0, |end| end.saturating_add(1)));
    let is_first = place
        .offset
        .replace(from.saturating_add(bytes.len() as u64))
        .is_none();
    let text = String::from_utf8_lossy(&bytes);
    let calls = text.lines().filter_map(|line| {
        let (time, rest) = line.split_once(' ')?;
        let time = humantime::parse_rfc3339(time).ok()?;
        let time = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
        Call::parse(time, rest)
    });
    let calls: Vec<Call> = calls.collect();
    if is_first && from > 0 {
        place.oldest = calls.first().map(|call| call.time);
    }
    Ok(calls)
}
