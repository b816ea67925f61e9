//! `flexvolume-lvm log`: the driver's calls from the journal or the log file, a line each.

mod call;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::survey::Pods;
use crate::output::{Printed, columns, indented, printed, red, titles, width};
use driver::config::Config;
use driver::host::Host;
use driver::names::{LvId, Shown, date};

pub use call::Call;
use source::read;

#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// Only calls about this volume (VG/LV or its device), group, pod (UID or namespace/name), or kubelet's
    /// name of a volume
    name: Option<String>,
    /// Only calls that failed
    #[arg(long)]
    failed: bool,
    /// Only calls since this: an age (1h, 2days), or a date with or without a time, in UTC
    #[arg(long, value_name = "WHEN", value_parser = time_of)]
    since: Option<u64>,
    /// How many calls to show, from the last
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 100)]
    lines: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(host: &Host, config: &Config, args: &LogArgs) -> Result<Printed> {
    let mut calls = read(host, config, args.since.unwrap_or_default())?;
    if let Some(word) = &args.name {
        let volume = LvId::from_device(word).map_or(word.clone(), |id| id.to_string());
        // The log has no UIDs of pods, so a UID is translated into the pod's name.
        let pod = Pods::read(host.kernel).name(word).to_string();
        calls.retain(|call| call.is_about(&volume) || call.is_about(&pod));
    }
    calls.retain(|call| call.failed || !args.failed);
    calls.drain(..calls.len().saturating_sub(args.lines));
    let text = match (&calls[..], &args.name) {
        ([], None) if !args.failed && args.since.is_none() => "no call is in the log\n".to_owned(),
        ([], None) => "no such call is in the log\n".to_owned(),
        ([], Some(word)) => format!("no such call about {} is in the log\n", word.shown()),
        (calls, _) => in_columns(calls, true),
    };
    let is_missing = args.name.is_some() && calls.is_empty();
    printed(&calls, text, args.json, u8::from(is_missing))
}

/// Parses the value of `--since` into seconds since the epoch.
fn time_of(text: &str) -> Result<u64> {
    if let Ok(ago) = humantime::parse_duration(text) {
        return Ok(before(ago));
    }
    let rest = match text.len() {
        10 => " 00:00:00",
        16 => ":00",
        _ => "",
    };
    let time = humantime::parse_rfc3339_weak(&format!("{text}{rest}")).context(
        "write how long ago, such as 1h or 2days, or a time in UTC, such as 2026-11-21 or \"2026-11-21 10:00\"",
    )?;
    Ok(time.duration_since(UNIX_EPOCH)?.as_secs())
}

/// The time `ago` before now, in seconds since the epoch.
fn before(ago: Duration) -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.saturating_sub(ago).as_secs()
}

/// The last calls about a volume.
pub fn last(host: &Host, config: &Config, about: &LvId, number: usize) -> Result<Vec<Call>> {
    let mut calls = read(host, config, 0)?;
    calls.retain(|call| call.is_about(&about.to_string()));
    Ok(calls.split_off(calls.len().saturating_sub(number)))
}

/// The volumes about which there were calls in the last day. A day is enough, since kubelet repeats the calls for a pod
/// that waits. A volume that a pod named only once, by mistake or on purpose, is forgotten after the day.
pub fn volumes(host: &Host, config: &Config) -> Result<BTreeSet<String>> {
    const DAY: Duration = Duration::from_secs(86_400);
    let calls = since(host, config, DAY)?.into_iter();
    Ok(calls.filter_map(|call| call.volume).collect())
}

/// The volumes of a pod, or with this name of kubelet's, by the log. For each pod and name, the last call counts. So a
/// mistake that was corrected in the manifest is forgotten.
pub fn of_calls(host: &Host, config: &Config, word: &str) -> Result<BTreeSet<String>> {
    let is_its = |name: &Option<String>| name.as_deref() == Some(word);
    let calls = read(host, config, 0)?.into_iter();
    let its = calls.filter(|call| is_its(&call.pod) || is_its(&call.name));
    let last: BTreeMap<_, _> = its
        .filter_map(|call| Some(((call.pod, call.name), call.volume?)))
        .collect();
    Ok(last.into_values().collect())
}

pub fn since(host: &Host, config: &Config, since: Duration) -> Result<Vec<Call>> {
    read(host, config, before(since))
}

/// The calls in columns. Below a failed call is its message.
pub fn in_columns(calls: &[Call], with_titles: bool) -> String {
    let titles = with_titles.then(|| titles(["TIME", "CALL", "VOLUME", "POD", "TOOK", "OUTCOME"]));
    let or_none = |text: Option<&String>| text.map_or("-", String::as_str).to_owned();
    let rows = calls.iter().map(|call| {
        vec![
            date(call.time),
            call.call.clone(),
            or_none(call.volume.as_ref().or(call.name.as_ref())),
            or_none(call.pod.as_ref()),
            took(call.took_ms),
            if call.failed {
                red(call.outcome())
            } else {
                call.outcome().to_owned()
            },
        ]
    });
    let lines = columns(&titles.into_iter().chain(rows).collect::<Vec<_>>());
    let mut lines = lines.split_inclusive('\n');
    let mut text = String::new();
    if with_titles {
        text.push_str(lines.next().unwrap_or_default());
    }
    for (line, call) in lines.zip(calls) {
        text.push_str(line);
        if let Some(message) = call.message.as_ref().filter(|_| call.failed) {
            text.push_str(&indented(message, 4, width()));
            if let Some(steps) = &call.steps {
                let steps = format!("steps: {}", steps.replace(',', ", "));
                text.push_str(&indented(&steps, 4, width()));
            }
        }
    }
    text
}

/// `12 ms`, `1.4 s`, `104 s`.
fn took(ms: u64) -> String {
    let tenths = ms / 100;
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..100_000 => format!("{}.{} s", tenths / 10, tenths % 10),
        _ => format!("{} s", ms / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{has_lines, hostile};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_call_is_three_lines_at_most_whatever_others_wrote_in_the_log(hostile in hostile()) {
            let entry = serde_json::json!({
                "time": "1970-01-01T00:00:07Z", "call": "mount", "volume": hostile, "pod": hostile, "steps": "lvs:1ms",
                "outcome": "failed", "message": hostile,
            });
            let calls = [Call::parse(entry.to_string().as_bytes()).unwrap()];
            let text = in_columns(&calls, false).replace(&red("failed"), "failed");
            let lines = text.lines().count();
            prop_assert!(lines <= 3 && has_lines(&text, lines), "{text:?}");
            let json = serde_json::to_string(&calls).unwrap();
            prop_assert!(has_lines(&json, 1), "{json:?}");
        }
    }

    #[test]
    fn a_time_is_an_age_or_what_a_clock_shows_in_utc() {
        for (text, want) in [
            ("2026-11-21", Some(1_795_219_200)),
            ("2026-07-01 10:00", Some(1_782_900_000)),
            ("2026-11-21T10:00:30Z", Some(1_795_255_230)),
            ("yesterday", None),
            ("21.11.2026", None),
            ("2026-13-21", None),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(time_of(text).ok(), want, "{text}");
        }
        let (hour, week) = (time_of("1h").unwrap(), time_of("7days 1h").unwrap());
        assert!((7 * 86_400..7 * 86_400 + 60).contains(&(hour - week)));
    }

    #[test]
    fn a_time_that_a_call_took_is_short() {
        for (ms, want) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_424, "1.4 s"),
            (99_990, "99.9 s"),
            (104_500, "104 s"),
        ] {
            assert_eq!(took(ms), want);
        }
    }
}
