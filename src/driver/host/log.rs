use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use humantime::format_rfc3339_seconds;
use nix::fcntl::OFlag;
use nix::libc::SIGXFSZ;

use crate::config::LogTarget;
use crate::names::is_printable;
use crate::reply::Status;

/// Collects what one call does and writes it as one line at the end.
///
/// The log never makes a call fail or wait: what cannot be written at once is dropped.
pub struct Log {
    started: Instant,
    subject: RefCell<String>,
    /// Fields of the journal: `journalctl FLEXVOLUME_VOLUME=vg0/data`.
    fields: RefCell<String>,
    steps: RefCell<String>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            subject: RefCell::default(),
            fields: RefCell::default(),
            steps: RefCell::default(),
        }
    }
}

impl Log {
    /// Adds `key=value` to what the call is about: the volume, the pod, an ignored option.
    pub fn about(&self, key: &str, value: &str) {
        let value = folded(value.chars().take(256));
        if ["volume", "pod", "name"].contains(&key) {
            let _ = writeln!(
                self.fields.borrow_mut(),
                "FLEXVOLUME_{}={value}",
                key.to_uppercase()
            );
        }
        let _ = write!(self.subject.borrow_mut(), " {key}={}", written(&value));
    }

    pub fn step(&self, name: &str, took: Duration, ok: bool) {
        let mut steps = self.steps.borrow_mut();
        if !steps.is_empty() {
            steps.push(',');
        }
        let mark = if ok { "" } else { "!" };
        let _ = write!(steps, "{name}{mark}:{}ms", took.as_millis());
    }

    /// The one line of a call: `key=value`, a space between them. [`read_value`] reads a value.
    pub fn line(&self, call: &str, outcome: &str, message: &str) -> String {
        let mut line = format!("call={call}{}", self.subject.borrow());
        let steps = self.steps.borrow();
        if !steps.is_empty() {
            let _ = write!(line, " steps={steps}");
        }
        let took = self.started.elapsed().as_millis();
        let _ = write!(line, " took={took}ms outcome={outcome}");
        if !message.is_empty() {
            let _ = write!(line, " message={}", written(&folded(message.chars())));
        }
        line
    }

    pub fn write(&self, target: &LogTarget, call: &str, status: Status, message: &str) {
        let failed = status == Status::Failure;
        let outcome = if failed { "failed" } else { "ok" };
        let line = self.line(call, outcome, message);
        match target {
            LogTarget::None => {}
            LogTarget::Syslog => {
                let fields = self.fields.borrow();
                let own = format!("FLEXVOLUME_CALL={call}\nFLEXVOLUME_OUTCOME={outcome}\n{fields}");
                send(failed, &line, &own);
            }
            LogTarget::File(path) => {
                // O_NONBLOCK: a FIFO without a reader must not hold up the call.
                let file = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .custom_flags(OFlag::O_NONBLOCK.bits() | OFlag::O_NOFOLLOW.bits())
                    .open(path);
                // Past RLIMIT_FSIZE a write is an error then, and not the end of the call.
                let ignored = signal_hook::flag::register(SIGXFSZ, Arc::default());
                if let (Ok(mut file), Ok(_)) = (file, ignored) {
                    // A clock that was never set counts from 1970, or from before.
                    let now = format_rfc3339_seconds(SystemTime::now().max(UNIX_EPOCH));
                    let _ = file.write_all(format!("{now} {line}\n").as_bytes());
                }
            }
        }
    }
}

/// The text on one line.
fn folded(text: impl Iterator<Item = char>) -> String {
    text.map(|c| if is_printable(c) { c } else { '?' })
        .collect()
}

/// A value as the log has it, in quotes if something in it could be taken for its end.
fn written(value: &str) -> String {
    let is_plain = value.bytes().all(|c| !matches!(c, b' ' | b'"' | b'\\'));
    if is_plain && !value.is_empty() {
        return value.to_owned();
    }
    let escaped = value.replace('\\', r"\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

/// Reads a value as the log has it, at the beginning of a text, and returns what follows it.
pub fn read_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_once(' ').unwrap_or((text, ""));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => value.extend(chars.next()),
            c => value.push(c),
        }
    }
    (value, chars.as_str())
}

/// Sends one datagram to journald, with fields; where there is none, in the form of syslog(3).
/// Source: <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>.
fn send(failed: bool, line: &str, fields: &str) {
    const DAEMON: u8 = 3;
    let severity = if failed { 3 } else { 6 };
    let Ok(socket) = UnixDatagram::unbound() else {
        return;
    };
    // A full socket drops the line instead of holding up the call.
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    let pid = std::process::id();
    // No value holds the end of a line: those would need another form.
    let native = format!(
        "MESSAGE={line}\nPRIORITY={severity}\nSYSLOG_FACILITY={DAEMON}\n\
         SYSLOG_IDENTIFIER=flexvolume-lvm\nSYSLOG_PID={pid}\n{fields}"
    );
    if socket
        .send_to(native.as_bytes(), "/run/systemd/journal/socket")
        .is_err()
    {
        let priority = (DAEMON << 3) | severity;
        let packet = format!("<{priority}>flexvolume-lvm[{pid}]: {line}");
        let _ = socket.send_to(packet.as_bytes(), "/dev/log");
    }
}
