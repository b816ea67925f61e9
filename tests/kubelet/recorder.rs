//! Stands where kubelet looks for the driver: runs it, hands its output and exit status on as they
//! are, and writes every call down, before and after.
//!
//! kubelet runs `<exec>/<vendor>~lvm/lvm`; the driver itself is `<exec>/../drivers/<vendor>~lvm`.
//! With `--table FILE…` it prints what was written down.
#![allow(
    clippy::unwrap_used,
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

fn main() {
    let mut args = std::env::args_os();
    let me = PathBuf::from(args.next().unwrap());
    let args: Vec<OsString> = args.collect();
    if args.first().is_some_and(|first| first == "--table") {
        print_table(&args[1..]);
        return;
    }
    let dir = me.parent().unwrap();
    let driver = dir.file_name().unwrap();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let id = format!("{}-{}", since_1970.as_millis(), std::process::id());
    let shown: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    write_down(&json!({"id": id, "driver": driver.to_string_lossy(), "args": shown}));

    let started = Instant::now();
    // One stream for both, as kubelet has it.
    let (mut output, both) = std::io::pipe().unwrap();
    let mut command = Command::new(dir.join("../../drivers").join(driver));
    command
        .args(&args)
        .env("FLEXVOLUME_LVM_CONFIG", dir.join("config.toml"))
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
    write_down(&json!({"id": id, "reply": shown, "status": status, "ms": ms}));
    // kubelet may be gone.
    let _ = std::io::stdout().write_all(&reply);
    std::process::exit(status);
}

fn write_down(line: &Value) {
    let file = OpenOptions::new().append(true).create(true).open(RECORD);
    // One write, so that lines of calls that run at once do not mix.
    file.unwrap()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// What kubelet called, in order: a line for each driver, each call with its time, and how often
/// it came in a row.
fn print_table(files: &[OsString]) {
    let mut drivers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(Path::new(file)).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        for call in lines.iter().filter(|line| line["args"].is_array()) {
            let end = lines
                .iter()
                .find(|line| line["id"] == call["id"] && line["status"].is_number());
            let name = call["args"][0].as_str().unwrap_or("");
            let word = match end {
                None => format!("{name} never ended"),
                Some(end) if end["reply"].as_str().is_some_and(|r| r.contains("Failure")) => {
                    format!("{name} failed")
                }
                Some(_) => name.to_owned(),
            };
            let ms = end.map_or(0, |end| end["ms"].as_u64().unwrap_or(0));
            let calls = drivers.entry(call["driver"].to_string()).or_default();
            calls.push(format!("{word}\t{ms}"));
        }
    }
    for (driver, calls) in drivers {
        let mut line = Vec::new();
        for run in calls.chunk_by(|a, b| word_of(a) == word_of(b)) {
            let ms: Vec<_> = run.iter().filter_map(|c| c.split('\t').nth(1)).collect();
            let many = match run.len() {
                1 => String::new(),
                n => format!(" x{n}"),
            };
            let longest = ms.iter().filter_map(|ms| ms.parse::<u64>().ok()).max();
            let longest = longest.unwrap_or(0);
            line.push(format!("{}{many} {longest}ms", word_of(&run[0])));
        }
        println!("{driver}: {}", line.join(", "));
    }
}

fn word_of(call: &str) -> &str {
    call.split('\t').next().unwrap_or("")
}
