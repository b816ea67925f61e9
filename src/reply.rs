//! The one JSON document that kubelet reads.
//!
//! Source: kubelet's `pkg/volume/flexvolume/driver-call.go`, `DriverStatus`.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// The longest message, in bytes. An event holds 1 KiB and kubelet's own words; the log more.
const LONGEST: usize = 2048;

/// The three words that kubelet knows; any other is a failure too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Status {
    #[default]
    Success,
    /// Not done; `message` says why and what to do.
    Failure,
    /// The driver does not have this call-out: kubelet never makes it again.
    #[serde(rename = "Not supported")]
    NotSupported,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reply {
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The device of `attach` and `waitforattach`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The answer of `isattached`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<bool>,
    /// The answer of `init`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
}

impl Reply {
    fn of(status: Status) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub fn success() -> Self {
        Self::default()
    }

    pub fn device(device: &Path) -> Self {
        Self {
            device: Some(device.to_string_lossy().into_owned()),
            ..Self::success()
        }
    }

    pub fn failure(error: &anyhow::Error) -> Self {
        Self::of(Status::Failure).with_message(&format!("{error:#}"))
    }

    pub fn not_supported(message: &str) -> Self {
        Self::of(Status::NotSupported).with_message(message)
    }

    /// This reply with a message, folded to one line. An empty message is left out.
    pub fn with_message(mut self, message: &str) -> Self {
        self.message = Some(fold(message)).filter(|m| !m.is_empty());
        self
    }

    pub fn to_json(&self) -> String {
        // kubelet takes the message as a format, sometimes twice: `%s` would be read as
        // `%!s(MISSING)` in the pod's event. Doubling the sign would help in one place only.
        let message = self.message.as_ref().map(|text| text.replace('%', "％"));
        let reply = Self {
            message,
            ..self.clone()
        };
        // Strings, bools and an enum: nothing in it can fail to be written.
        serde_json::to_string(&reply).unwrap_or_else(|_| r#"{"status":"Failure"}"#.to_owned())
    }
}

/// Folds any text into one printable line of at most 2 KiB.
fn fold(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if is_printable(c) { c } else { ' ' };
        if c != ' ' || !line.ends_with(' ') {
            line.push(c);
        }
    }
    shortened(line.trim(), LONGEST)
}

/// At most this many bytes of a line. The middle is cut out: the beginning says what failed, the end
/// what to do.
pub fn shortened(line: &str, most: usize) -> String {
    if line.len() <= most {
        return line.to_owned();
    }
    let half = most.saturating_sub(8) / 2;
    let head = line.floor_char_boundary(half);
    let tail = line.ceil_char_boundary(line.len().saturating_sub(half));
    let (head, tail) = (line.get(..head), line.get(tail..));
    format!("{} … {}", head.unwrap_or(""), tail.unwrap_or(""))
}

/// Control characters, line separators and what would turn the writing around are not.
pub fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_kubelet_reads_it() {
        let cases = [
            (Reply::success(), r#"{"status":"Success"}"#),
            (
                Reply::not_supported("no such call-out"),
                r#"{"status":"Not supported","message":"no such call-out"}"#,
            ),
            (
                Reply::failure(&anyhow::anyhow!("in\nner").context("outer")),
                r#"{"status":"Failure","message":"outer: in ner"}"#,
            ),
            (
                Reply::failure(&anyhow::anyhow!("95 % full, \"%s\"")),
                r#"{"status":"Failure","message":"95 ％ full, \"％s\""}"#,
            ),
            (
                Reply::device(Path::new("/dev/mapper/vg-lv")),
                r#"{"status":"Success","device":"/dev/mapper/vg-lv"}"#,
            ),
            (
                Reply {
                    attached: Some(false),
                    ..Reply::success()
                },
                r#"{"status":"Success","attached":false}"#,
            ),
        ];
        for (reply, want) in cases {
            assert_eq!(reply.to_json(), want);
        }
    }

    #[test]
    fn folds_what_would_break_a_line() {
        let cases = [
            ("plain", "a b", "a b"),
            ("newline", "a\nb", "a b"),
            ("run of controls", "a\r\n\t\0b", "a b"),
            ("escape sequence", "a\u{1b}[31mb", "a [31mb"),
            ("line separator", "a\u{2028}b", "a b"),
            ("turned around", "a\u{202e}b", "a b"),
            ("ends", "\na\n", "a"),
        ];
        for (name, input, want) in cases {
            assert_eq!(fold(input), want, "{name}");
        }
    }

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "ä".repeat(5000));
        let folded = fold(&long);
        assert!(folded.len() <= LONGEST, "{}", folded.len());
        assert!(folded.starts_with("begin") && folded.ends_with("end"));
    }
}
