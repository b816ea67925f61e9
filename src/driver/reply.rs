//! The one JSON document that kubelet reads.
//!
//! Source: kubelet's `pkg/volume/flexvolume/driver-call.go`, `DriverStatus`.

use std::path::Path;

use anyhow::Error;
use serde::Serialize;
use serde_json::Value;

use crate::host::selinux;
use crate::names::folded;

/// The three values of `status` that kubelet knows. kubelet takes any other value for a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Status {
    #[default]
    Success,
    /// The call failed. `message` says why, and what to do.
    Failure,
    /// The driver does not have this call-out. kubelet does not call it again.
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
            device: device.to_str().map(str::to_owned),
            ..Self::success()
        }
    }

    /// The answer of a call that failed. `word`: its word at the end of the message. `None`: the error ends with one.
    pub fn failure(error: &Error, word: Option<&str>) -> Self {
        let mut message = selinux::explained(error);
        if let Some(word) = word {
            message = format!("{message} [{word}]");
        }
        Self::of(Status::Failure).with_message(&message)
    }

    pub fn not_supported(message: &str) -> Self {
        Self::of(Status::NotSupported).with_message(message)
    }

    /// This reply with a message, folded to one line. An empty message is left out.
    pub fn with_message(mut self, message: &str) -> Self {
        self.message = Some(folded(message)).filter(|m| !m.is_empty());
        self
    }

    pub fn to_json(&self) -> String {
        // kubelet uses the message as a format, sometimes twice: `%s` would be `%!s(MISSING)` in the pod's event. `%%`
        // would be right in only one of these places. So another character stands for the percent sign.
        let message = self.message.as_ref().map(|text| text.replace('%', "％"));
        let reply = Self {
            message,
            ..self.clone()
        };
        // A reply has only strings, bools and an enum, so writing it as JSON cannot fail.
        serde_json::to_string(&reply).unwrap_or_else(|_| r#"{"status":"Failure"}"#.to_owned())
    }
}

/// The output of the executable and its exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// For standard output. For a call-out, this is the JSON document and nothing else.
    pub stdout: String,
    /// For standard error. For a call-out, this is empty.
    pub stderr: String,
    pub code: u8,
    /// Whether the text is for people, with colours that are removed if no terminal shows them.
    pub styled: bool,
}

impl Printed {
    pub fn text(stdout: String) -> Self {
        Self {
            stdout,
            ..Self::default()
        }
    }

    pub fn failure(stderr: String, code: u8) -> Self {
        Self {
            stderr,
            code,
            ..Self::default()
        }
    }
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
                Reply::failure(
                    &anyhow::anyhow!("in\nner").context("outer"),
                    Some("call-failed"),
                ),
                r#"{"status":"Failure","message":"outer: in ner [call-failed]"}"#,
            ),
            (
                Reply::failure(&anyhow::anyhow!("95 % full, \"%s\""), None),
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
}
