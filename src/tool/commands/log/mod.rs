//! `flexvolume-lvm log`: the driver's calls from the journal or the log file, a line each.

mod call;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};

use super::survey::{Inventory, Pods};
use super::time::{before, date, parse_time};
use crate::output::{self, Printed, columns_below, printed, red, titles};
use driver::config::{Config, Loaded};
use driver::host::Host;
use driver::names::LvId;

pub use call::Call;
use source::{Place, read, require_a_journal};

/// How often `--follow` looks.
const PAUSE: Duration = Duration::from_secs(1);

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
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
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

/// Some calls from the log.
pub struct Found {
    pub calls: Vec<Call>,
    /// A note, if the log was not read as a whole: see [`Place::reach`].
    pub reach: String,
}

pub fn run(host: &Host, loaded: &Loaded, args: &Log) -> Result<Printed> {
    let config = loaded.or_default();
    let oldest = args.since.unwrap_or(0);
    let mut place = Place::default();
    // A name may be in older calls alone.
    let from = if args.name.is_some() { 0 } else { oldest };
    let mut calls = read(host, config, from, &mut place)?;
    if !args.follow {
        require_a_journal(host, config, &place)?;
    }
    let names = args.name.as_deref();
    let names = names.map(|name| names_of(host, loaded, name, &calls, &place));
    let names = names.transpose()?;
    let wanted = |call: &Call| {
        (call.failed || !args.failed)
            && call.time >= oldest
            && names.as_ref().is_none_or(|names| call.is_about_any(names))
    };
    calls.retain(wanted);
    calls.drain(..calls.len().saturating_sub(args.lines));
    if !args.follow {
        let reach = place.reach();
        let text = match &calls[..] {
            [] => format!("no such call is in the log{reach}\n"),
            calls => in_columns(calls, true),
        };
        let mut printed = printed(&calls, text, args.json)?;
        if calls.len() < args.lines && !reach.is_empty() {
            printed.stderr = format!("the log was read{reach}\n");
        }
        return Ok(printed);
    }
    let (mut first, mut widths) = (true, Vec::new());
    loop {
        let text = if args.json {
            let lines = calls.iter().map(serde_json::to_string);
            let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
            lines.iter().flat_map(|line| [line, "\n"]).collect()
        } else {
            in_columns_below(&calls, first, &mut widths)
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

/// The volumes about which there were calls in the last day. kubelet repeats those of a pod that waits, so what a
/// pod asked for once, by mistake or on purpose, is forgotten.
pub fn volumes(host: &Host, config: &Config) -> Result<BTreeSet<String>> {
    const DAY: Duration = Duration::from_secs(86_400);
    let calls = since(host, config, DAY)?.into_iter();
    Ok(calls.filter_map(|call| call.volume).collect())
}

/// When each volume was mounted last, as far as the log goes back.
pub fn last_mounts(host: &Host, config: &Config) -> Result<BTreeMap<String, String>> {
    let of = |call: Call| Some((call.volume?, date(call.time)));
    let mounts = mounts(host, config)?.calls;
    Ok(mounts.into_iter().filter_map(of).collect())
}

pub fn since(host: &Host, config: &Config, since: Duration) -> Result<Vec<Call>> {
    let mut place = Place::default();
    let calls = read(host, config, before(since), &mut place)?;
    require_a_journal(host, config, &place)?;
    Ok(calls)
}

/// Calls in columns; below one that failed, why.
pub fn in_columns(calls: &[Call], with_titles: bool) -> String {
    in_columns_below(calls, with_titles, &mut Vec::new())
}

/// The same below other calls, whose columns had these widths.
fn in_columns_below(calls: &[Call], with_titles: bool, widths: &mut Vec<usize>) -> String {
    let mut rows = Vec::new();
    if with_titles {
        rows.push(titles(["TIME", "CALL", "VOLUME", "POD", "TOOK", "OUTCOME"]));
    }
    let outcome = |call: &Call| match call.outcome() {
        "ok" => "ok".to_owned(),
        failed => red(failed),
    };
    let or_none = |text: Option<&String>| text.map_or("-", String::as_str).to_owned();
    rows.extend(calls.iter().map(|call| {
        vec![
            date(call.time),
            call.call.clone(),
            or_none(call.volume.as_ref().or(call.name.as_ref())),
            or_none(call.pod.as_ref()),
            format!("{} ms", call.took_ms),
            outcome(call),
        ]
    }));
    let lines = columns_below(&rows, widths);
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
        let inventory = Inventory::take(host, loaded)?;
        let found = inventory.choose(&[word.to_owned()])?;
        inventory.require(&found).map(|()| found.ids)
    };
    let missing = || format!("no call about {word} is in the log{}", place.reach());
    let found = find().with_context(missing)?;
    names.extend(found.iter().map(LvId::to_string));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{has_lines, hostile};
    use proptest::prelude::*;

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
