//! The driver's log: one entry for each call.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use humantime::format_rfc3339_seconds;
use nix::fcntl::OFlag;
use serde::Serializer;

use crate::config::LogTarget;
use crate::names::{folded, folded_to};
use crate::reply::Status;

/// Collects the fields of one call, and writes them as one entry at the call's end.
///
/// The log never makes a call fail. An entry that a socket or a FIFO does not take at once is dropped. Only a log file
/// on a disk that hangs makes the call wait.
pub struct Log {
    started: Instant,
    subject: RefCell<Fields>,
    steps: RefCell<String>,
}

/// The fields of an entry, in order. Each name is there once, and no value contains a newline.
type Fields = Vec<(&'static str, String)>;

impl Default for Log {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            subject: RefCell::default(),
            steps: RefCell::default(),
        }
    }
}

impl Log {
    /// Adds a field about the subject of the call: the volume, the pod, an ignored option.
    pub fn about(&self, key: &'static str, value: &str) {
        let value = folded_to(value, 256);
        let mut subject = self.subject.borrow_mut();
        match subject.iter_mut().find(|(known, _)| *known == key) {
            None => subject.push((key, value)),
            Some((_, known)) if *known == value => {}
            Some((_, known)) => {
                let _ = write!(known, ",{value}");
            }
        }
    }

    pub fn step(&self, name: &str, took: Duration, ok: bool) {
        let mut steps = self.steps.borrow_mut();
        if !steps.is_empty() {
            steps.push(',');
        }
        let mark = if ok { "" } else { "!" };
        let _ = write!(steps, "{name}{mark}:{}ms", took.as_millis());
    }

    fn entry(&self, call: &str, outcome: &str, message: &str) -> Fields {
        let mut fields = vec![("call", call.to_owned())];
        fields.extend_from_slice(&self.subject.borrow());
        let last = [
            ("steps", self.steps.borrow().clone()),
            ("took_ms", self.started.elapsed().as_millis().to_string()),
            ("outcome", outcome.to_owned()),
            ("message", folded(message)),
        ];
        fields.extend(last.into_iter().filter(|(_, value)| !value.is_empty()));
        fields
    }

    pub fn write(&self, target: &LogTarget, call: &str, status: Status, message: &str) {
        let failed = status == Status::Failure;
        let fields = self.entry(call, if failed { "failed" } else { "ok" }, message);
        match target {
            LogTarget::None => {}
            LogTarget::Syslog => send(failed, &fields),
            LogTarget::File(path) => {
                // O_NONBLOCK: otherwise a FIFO without a reader would make the call wait.
                let file = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .custom_flags(OFlag::O_NONBLOCK.bits() | OFlag::O_NOFOLLOW.bits())
                    .open(path);
                if let Ok(mut file) = file {
                    let _ = file.write_all(&of_file(&fields));
                }
            }
        }
    }
}

/// The line of a log file: a JSON object, which begins with the time.
fn of_file(fields: &Fields) -> Vec<u8> {
    // A clock that was never set may even show a time before 1970.
    let now = format_rfc3339_seconds(SystemTime::now().max(UNIX_EPOCH)).to_string();
    let time = [("time", &*now)].into_iter();
    let others = fields.iter().map(|(key, value)| (*key, &**value));
    let mut line = Vec::new();
    let _ = serde_json::Serializer::new(&mut line).collect_map(time.chain(others));
    line.push(b'\n');
    line
}

/// The line that a person reads in the journal: `key=value`. A value with a space is in quotes.
fn line(fields: &Fields) -> String {
    let words = fields.iter().map(|(key, value)| {
        let is_plain = value.bytes().all(|c| !matches!(c, b' ' | b'"' | b'\\'));
        if is_plain && !value.is_empty() {
            return format!("{key}={value}");
        }
        let escaped = value.replace('\\', r"\\").replace('"', "\\\"");
        format!("{key}=\"{escaped}\"")
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Sends one datagram to journald, with fields. Without journald, sends a line in the form of syslog(3). Source:
/// <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>.
fn send(failed: bool, fields: &Fields) {
    const DAEMON: u8 = 3;
    let severity = if failed { 3 } else { 6 };
    let Ok(socket) = UnixDatagram::unbound() else {
        return;
    };
    // If the socket is full, the line is dropped, so that the call does not wait.
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    let (pid, line) = (std::process::id(), line(fields));
    // This form is right only because no value contains a newline.
    let mut native = format!(
        "MESSAGE={line}\nPRIORITY={severity}\nSYSLOG_FACILITY={DAEMON}\n\
         SYSLOG_IDENTIFIER=flexvolume-lvm\nSYSLOG_PID={pid}\n"
    );
    for (key, value) in fields {
        let name = key.to_uppercase().replace('-', "_");
        let _ = writeln!(native, "FLEXVOLUME_{name}={value}");
    }
    if socket
        .send_to(native.as_bytes(), "/run/systemd/journal/socket")
        .is_err()
    {
        let priority = (DAEMON << 3) | severity;
        let packet = format!("<{priority}>flexvolume-lvm[{pid}]: {line}");
        let _ = socket.send_to(packet.as_bytes(), "/dev/log");
    }
}
