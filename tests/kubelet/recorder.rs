//! Stands where kubelet looks for the driver: runs it, hands its output and exit status on as they
//! are, and writes every call down, before and after.
//!
//! kubelet runs `<exec>/<vendor>~lvm/lvm`; the driver itself is `<exec>/../drivers/<vendor>~lvm`. The
//! controller does the same elsewhere, so its environment says where to write. With `--table FILE…`
//! it prints a short form of what was written down.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    clippy::exit,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

const RECORD: &str = "/run/calls.jsonl";
const OTHER_RECORD: &str = "FLEXVOLUME_LVM_RECORD";

fn main() {
    let mut args = std::env::args_os();
    let me = PathBuf::from(args.next().unwrap());
    let args: Vec<OsString> = args.collect();
    if args.first().is_some_and(|first| first == "--table") {
        print_tables(&args[1..]);
        return;
    }
    let dir = me.parent().unwrap();
    let driver = dir.file_name().unwrap().to_string_lossy();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let id = format!("{}-{}", since_1970.as_millis(), std::process::id());
    let shown: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    write_down(&json!({"id": id, "driver": driver, "args": shown}));

    let started = Instant::now();
    // One stream for both, as kubelet has it.
    let (mut output, both) = std::io::pipe().unwrap();
    let mut command = Command::new(dir.join("../../drivers").join(&*driver));
    // It stands elsewhere than kubelet looks, and its config is there. The script has none.
    let config = dir.join("config.toml");
    if config.exists() {
        command.env("FLEXVOLUME_LVM_CONFIG", config);
    }
    command
        .args(&args)
        .stdin(Stdio::null())
        .stdout(both.try_clone().unwrap())
        .stderr(both);
    let mut child = command.spawn().unwrap();
    // It holds the other ends of the pipe.
    drop(command);
    let mut reply = Vec::new();
    output.read_to_end(&mut reply).unwrap();
    let status = child.wait().unwrap().code().unwrap_or(255);
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap();
    let shown = String::from_utf8_lossy(&reply);
    write_down(&json!({"id": id, "driver": driver, "reply": shown, "status": status, "ms": ms}));
    // kubelet may be gone.
    let _ = std::io::stdout().write_all(&reply);
    std::process::exit(status);
}

fn write_down(line: &Value) {
    let record = std::env::var_os(OTHER_RECORD).unwrap_or_else(|| RECORD.into());
    let file = OpenOptions::new().append(true).create(true).open(record);
    // One write, so that lines of calls that run at once do not mix.
    file.unwrap()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// A call that was written down.
struct Call {
    driver: String,
    name: String,
    /// None: it never ended.
    end: Option<End>,
}

struct End {
    ms: u64,
    failed: bool,
}

fn calls_of(file: &Path) -> Vec<Call> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let word = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let end_of = |id: &Value| {
        let mut ends = lines.iter().filter(|line| line["id"] == *id);
        let end = ends.find(|line| line["status"].is_number())?;
        Some(End {
            ms: end["ms"].as_u64().unwrap_or(0),
            failed: word(&end["reply"]).contains("\"Failure\""),
        })
    };
    let starts = lines.iter().filter(|line| line["args"].is_array());
    starts
        .map(|call| Call {
            driver: word(&call["driver"]),
            name: word(&call["args"][0]),
            end: end_of(&call["id"]),
        })
        .collect()
}

/// What kubelet called, in order, a line for each driver; and how long that took, a line for each
/// call-out. kubelet calls `init` of all drivers when it starts or sees a new one: that is left out.
fn print_tables(files: &[OsString]) {
    let calls: Vec<Call> = files.iter().flat_map(|f| calls_of(Path::new(f))).collect();
    let mut orders: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut times: BTreeMap<&str, (Vec<u64>, usize)> = BTreeMap::new();
    for call in &calls {
        let (ended, failed) = times.entry(&call.name).or_default();
        let mark = match &call.end {
            None => " (never ended)",
            Some(end) => {
                ended.push(end.ms);
                *failed += usize::from(end.failed);
                if end.failed { " (failed)" } else { "" }
            }
        };
        if call.name != "init" {
            let order = orders.entry(&call.driver).or_default();
            order.push(format!("{}{mark}", call.name));
        }
    }
    for (driver, order) in orders {
        let runs = order.chunk_by(|a, b| a == b).map(|run| match run.len() {
            1 => run[0].clone(),
            n => format!("{} x{n}", run[0]),
        });
        println!("{driver}: {}", runs.collect::<Vec<_>>().join(", "));
    }
    println!("\ncall-out          calls  failed  median ms  longest ms");
    for (name, (mut ms, failed)) in times {
        ms.sort_unstable();
        let median = ms.get(ms.len() / 2).copied().unwrap_or(0);
        let longest = ms.last().copied().unwrap_or(0);
        println!(
            "{name:<16} {:>6} {failed:>7} {median:>10} {longest:>11}",
            ms.len()
        );
    }
}
