//! Stands where kubelet looks for the driver: runs it, hands its output and exit status on as they
//! are, and writes every call down, before and after.
//!
//! kubelet runs `<exec>/<vendor>~lvm/lvm`; the driver itself is `<exec>/../drivers/<vendor>~lvm`. The
//! controller does the same elsewhere, so its environment says where to write.
#![allow(clippy::restriction, clippy::disallowed_methods)]

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

const RECORD: &str = "/run/calls.jsonl";
const OTHER_RECORD: &str = "FLEXVOLUME_LVM_RECORD";

fn main() {
    let mut args = std::env::args_os();
    let me = PathBuf::from(args.next().unwrap());
    let args: Vec<OsString> = args.collect();
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
    // It stands elsewhere than kubelet looks, and its config is there.
    command.env("FLEXVOLUME_LVM_CONFIG", dir.join("config.toml"));
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
