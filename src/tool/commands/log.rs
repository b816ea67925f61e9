//! `flexvolume-lvm log`: the driver's calls from the journal or the log file, a line each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;

use super::moment::{before, moment};
use super::survey::{Pods, Walk};
use crate::output::{self, Printed, columns, printed, red, titles};
use driver::config::{Config, Loaded, LogTarget};
use driver::host::{Command, Host, read_value};
use driver::names::LvId;
use driver::names::{Shown, folded};

/// How often `--follow` looks.
const PAUSE: Duration = Duration::from_secs(1);
/// At most this many lines of the journal, or bytes of a file, are read: the newest.
const MOST_LINES: usize = 20_000;
const MOST_BYTES: u64 = 8 << 20;

#[derive(Debug, clap::Args)]
pub struct Log {
    /// Only calls about this volume (VG/LV, a device, a path that is on it), group, pod (UID or
    /// namespace/name), or kubelet's name of a volume
    name: Option<String>,
    /// Only calls that failed
    #[arg(long)]
    failed: bool,
    /// Only calls since this: an age (1h, 2days), today, yesterday, or a date with or without a time,
    /// in UTC like the times shown
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<u64>,
    /// How many calls to show, from the last
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 100)]
    lines: usize,
    /// Keep running, and show calls as they come
    #[arg(short, long)]
    follow: bool,
    /// Print JSON; with --follow an object a line
    #[arg(long)]
    json: bool,
}

#[allow(clippy::struct_field_names)] // `call` is what the line calls it
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Call {
    /// When it ended, in seconds since the epoch.
    pub time: u64,
    pub call: String,
    pub volume: Option<String>,
    pub pod: Option<String>,
    /// kubelet's name of the volume.
    pub name: Option<String>,
    /// Its option `mountoptions`, with `ro` if it was to be read only.
    pub mountoptions: Option<String>,
    /// The tools that ran, with their times.
    pub steps: Option<String>,
    pub took_ms: u64,
    pub failed: bool,
    pub message: Option<String>,
}

/// How far the log was read.
#[derive(Default)]
struct Place {
    /// Where the reading goes on: in the journal, in a file.
    cursor: Option<String>,
    offset: Option<u64>,
    /// Older entries than this (seconds since the epoch) are there too, and were not read.
    oldest: Option<u64>,
}

/// Some calls from the log.
pub struct Found {
    pub calls: Vec<Call>,
    /// A note, if the log was not read as a whole: see [`Place::reach`].
    pub reach: String,
}

pub fn run(host: &Host, loaded: &Loaded, asked: &Log) -> Result<Printed> {
    let config = loaded.or_default();
    let oldest = asked.since.unwrap_or(0);
    let mut place = Place::default();
    // A name may be in older calls alone.
    let from = if asked.name.is_some() { 0 } else { oldest };
    let mut calls = read(host, config, from, &mut place)?;
    if !asked.follow {
        require_a_journal(host, config, &place)?;
    }
    let names = asked.name.as_deref();
    let names = names.map(|name| names_of(host, loaded, name, &calls, &place));
    let names = names.transpose()?;
    let wanted = |call: &Call| {
        (call.failed || !asked.failed)
            && call.time >= oldest
            && names.as_ref().is_none_or(|names| call.is_about_any(names))
    };
    calls.retain(wanted);
    calls.drain(..calls.len().saturating_sub(asked.lines));
    if !asked.follow {
        let reach = place.reach();
        let text = match &calls[..] {
            [] => format!("no such call is in the log{reach}\n"),
            calls => in_columns(calls, true),
        };
        let mut printed = printed(&calls, text, asked.json)?;
        if calls.len() < asked.lines && !reach.is_empty() {
            printed.stderr = format!("the log was read{reach}\n");
        }
        return Ok(printed);
    }
    let mut first = true;
    loop {
        let text = if asked.json {
            let lines = calls.iter().map(serde_json::to_string);
            let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
            lines.iter().flat_map(|line| [line, "\n"]).collect()
        } else {
            in_columns(&calls, first)
        };
        if ((first || !calls.is_empty()) && !output::tell(&text)) || host.kernel.pause(PAUSE) {
            return Ok(Printed::default());
        }
        first = false;
        calls = match read(host, config, oldest, &mut place) {
            // Told to end while journalctl ran.
            Err(_) if host.kernel.pause(Duration::ZERO) => return Ok(Printed::default()),
            read => read?,
        };
        calls.retain(wanted);
    }
}

/// The last calls about a volume, or whatever else goes by the name.
pub fn last(host: &Host, config: &Config, about: &str, number: usize) -> Result<Found> {
    let mut found = all(host, config)?;
    found.calls.retain(|call| call.is_about(about));
    let surplus = found.calls.len().saturating_sub(number);
    found.calls.drain(..surplus);
    if found.calls.len() == number {
        found.reach.clear();
    }
    Ok(found)
}

/// The mounts that succeeded, as far as the log goes back.
pub fn mounts(host: &Host, config: &Config) -> Result<Found> {
    let mut found = all(host, config)?;
    let is_mount = |call: &Call| ["mount", "mountdevice"].contains(&&*call.call);
    found.calls.retain(|call| !call.failed && is_mount(call));
    Ok(found)
}

fn all(host: &Host, config: &Config) -> Result<Found> {
    let mut place = Place::default();
    let calls = read(host, config, 0, &mut place)?;
    let reach = place.reach();
    Ok(Found { calls, reach })
}

/// When each volume was mounted last, as far as the log goes back.
pub fn last_mounts(host: &Host, config: &Config) -> Result<BTreeMap<String, String>> {
    let of = |call: Call| Some((call.volume?, shown(call.time)));
    let mounts = mounts(host, config)?.calls;
    Ok(mounts.into_iter().filter_map(of).collect())
}

fn shown(time: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(time));
    humantime::format_rfc3339_seconds(time.unwrap_or(UNIX_EPOCH)).to_string()
}

pub fn since(host: &Host, config: &Config, since: Duration) -> Result<Vec<Call>> {
    let mut place = Place::default();
    let calls = read(host, config, before(since), &mut place)?;
    require_a_journal(host, config, &place)?;
    Ok(calls)
}

/// Calls in columns; below one that failed, why.
pub fn in_columns(calls: &[Call], with_titles: bool) -> String {
    let mut rows = Vec::new();
    if with_titles {
        rows.push(titles(["TIME", "CALL", "VOLUME", "POD", "TOOK", "OUTCOME"]));
    }
    let outcome = |failed| if failed { red("failed") } else { "ok".into() };
    let or_none = |text: Option<&String>| text.map_or("-", String::as_str).to_owned();
    rows.extend(calls.iter().map(|call| {
        vec![
            shown(call.time),
            call.call.clone(),
            or_none(call.volume.as_ref().or(call.name.as_ref())),
            or_none(call.pod.as_ref()),
            format!("{} ms", call.took_ms),
            outcome(call.failed),
        ]
    }));
    let lines = columns(&rows);
    let mut text = String::new();
    let skip = usize::from(with_titles);
    for (n, line) in lines.lines().enumerate() {
        let _ = writeln!(text, "{line}");
        let Some(call) = n.checked_sub(skip).and_then(|n| calls.get(n)) else {
            continue;
        };
        if let Some(message) = call.message.as_ref().filter(|_| call.failed) {
            let _ = writeln!(text, "    {message}");
            if let Some(steps) = &call.steps {
                let _ = writeln!(text, "    steps: {}", steps.replace(',', ", "));
            }
        }
    }
    text
}

/// The names that the log may have for a volume that a word names. A word that the log does not have is
/// resolved as `status` does.
fn names_of(
    host: &Host,
    loaded: &Loaded,
    word: &str,
    calls: &[Call],
    place: &Place,
) -> Result<BTreeSet<String>> {
    let volume = LvId::from_device(word).map_or(word.to_owned(), |id| id.to_string());
    // The log has no UIDs of pods.
    let pod = Pods::read(host.kernel).name(word).to_string();
    let mut names = BTreeSet::from([volume, pod]);
    if calls.iter().any(|call| call.is_about_any(&names)) {
        return Ok(names);
    }
    let find = || {
        let walk = Walk::begin(host, loaded)?;
        let found = walk.choose(&[word.to_owned()])?;
        walk.require(&found).map(|()| found.ids)
    };
    let missing = || format!("no call about {word} is in the log{}", place.reach());
    let found = find().with_context(missing)?;
    names.extend(found.iter().map(LvId::to_string));
    Ok(names)
}

/// The calls since `oldest` (seconds since the epoch), from where the previous reading ended.
fn read(host: &Host, config: &Config, oldest: u64, place: &mut Place) -> Result<Vec<Call>> {
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
    let command = Command::reads("journalctl", config.limits.query)
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
fn require_a_journal(host: &Host, config: &Config, place: &Place) -> Result<()> {
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

impl Place {
    /// A note, if the log was not read as a whole.
    fn reach(&self) -> String {
        let since = |time| {
            format!(
                " since {}; of older entries there are too many to be read",
                shown(time)
            )
        };
        self.oldest.map(since).unwrap_or_default()
    }
}

impl Call {
    /// Reads what [`driver::host::Log`] writes.
    fn parse(time: u64, mut rest: &str) -> Option<Self> {
        let mut call = Self {
            time,
            ..Self::default()
        };
        while let Some((key, after)) = rest.trim_start().split_once('=') {
            let (value, after) = read_value(after);
            // Whoever could write the log may have.
            let value = folded(&value);
            rest = after;
            match key {
                "call" => call.call = value,
                "volume" => call.volume = Some(value),
                "pod" => call.pod = Some(value),
                "name" => call.name = Some(value),
                "mountoptions" => call.mountoptions = Some(value),
                "steps" => call.steps = Some(value),
                "took" => call.took_ms = value.trim_end_matches("ms").parse().unwrap_or(0),
                "outcome" => call.failed = value == "failed",
                "message" => call.message = Some(value),
                _ => {}
            }
        }
        (!call.call.is_empty()).then_some(call)
    }

    fn is_about_any(&self, names: &BTreeSet<String>) -> bool {
        names.iter().any(|name| self.is_about(name))
    }

    /// Whether this names its volume, in full or in part, its pod, or what kubelet calls the volume.
    fn is_about(&self, word: &str) -> bool {
        let names = [&self.volume, &self.pod, &self.name];
        let parts = self.volume.as_ref().and_then(|id| id.split_once('/'));
        names.into_iter().flatten().any(|name| name == word)
            || parts.is_some_and(|(vg, lv)| vg == word || lv == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{has_lines, hostile};
    use driver::host;
    use proptest::prelude::*;

    proptest! {
        /// Pods choose the names and values of options, and tools what they complain about.
        #[test]
        fn what_others_write_is_read_as_it_was_written(
            (name, value, volume, message) in (ANY, ANY, ANY, ANY)
        ) {
            let log = host::Log::default();
            for (key, value) in [("volume", &volume), ("ignored", &name), ("ignored", &name), ("mountoptions", &value)] {
                log.about(key, value);
            }
            let line = log.line("mount", "failed", &message);
            prop_assert_eq!(line.lines().count(), 1);
            prop_assert!(!line.contains(char::is_control));
            let call = Call::parse(7, &line).unwrap();
            let some = |text: &str| Some(folded(&text.replace(['\n', '\r', '\u{1b}', '\u{85}', '\u{2028}'], "?")));
            let want = Call {
                time: 7,
                call: "mount".to_owned(),
                volume: some(&volume),
                mountoptions: some(&value),
                failed: true,
                message: some(&message).filter(|_| !message.is_empty()),
                took_ms: call.took_ms,
                ..Call::default()
            };
            prop_assert_eq!(call, want, "{}", line);
        }
    }

    /// Characters and words with a meaning in a line of the log, and characters that would break a line.
    const ANY: &str = "([\\\\\" =ax\\n\\r\u{1b}\u{85}\u{2028}\u{301}]|outcome=ok|call=){0,9}";

    #[test]
    fn reads_the_lines_that_the_driver_writes() {
        let line = r#"call=mount volume=vg/x pod=shop/web-0 name=data mountoptions=noatime,ro ignored="a b" steps=lvs:12ms,blkid!:3ms took=21ms outcome=failed message="the device \"x\": \\ gone""#;
        let call = Call::parse(7, line).unwrap();
        let some = |text: &str| Some(text.to_owned());
        let want = Call {
            time: 7,
            call: "mount".to_owned(),
            volume: some("vg/x"),
            pod: some("shop/web-0"),
            name: some("data"),
            mountoptions: some("noatime,ro"),
            steps: some("lvs:12ms,blkid!:3ms"),
            took_ms: 21,
            failed: true,
            message: some("the device \"x\": \\ gone"),
        };
        assert_eq!(call, want);
        for word in ["vg/x", "vg", "x", "shop/web-0", "data"] {
            assert!(call.is_about(word), "{word}");
        }
        for word in ["shop/web", "shop", "v", "vg/", ""] {
            assert!(!call.is_about(word), "{word}");
        }
        let unmount = Call::parse(7, "call=unmount took=1ms outcome=ok").unwrap();
        assert!(!unmount.failed && unmount.volume.is_none());
        for other in ["", "x", "-- Boot 1 --", "a=b"] {
            assert_eq!(Call::parse(0, other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_call_is_three_lines_at_most_whatever_others_wrote_in_the_log(hostile in hostile()) {
            let line = format!("call=mount volume={hostile:?} pod={hostile:?} steps=lvs:1ms outcome=failed message={hostile:?}");
            let raw = format!("call=mount pod=\"{hostile}\" outcome=failed message={hostile}");
            for line in [line, raw] {
                let calls: Vec<Call> = Call::parse(7, &line).into_iter().collect();
                let text = in_columns(&calls, false).replace(&red("failed"), "failed");
                let lines = text.lines().count();
                prop_assert!(lines <= 3 && has_lines(&text, lines), "{text:?}");
                let json = serde_json::to_string(&calls).unwrap();
                prop_assert!(has_lines(&json, 1), "{json:?}");
            }
        }
    }
}
