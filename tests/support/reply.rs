//! A reply as kubelet reads it.

use std::fmt::Debug;
use std::process::Output;

use serde::Deserialize;

/// A reply of the driver, which was one JSON document and nothing else.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    pub status: String,
    #[serde(default)]
    pub message: String,
    pub device: Option<String>,
    pub attached: Option<bool>,
    pub capabilities: Option<serde_json::Value>,
}

/// A call as a message shows it.
pub fn shown(call: impl Debug) -> String {
    format!("{call:?}").chars().take(300).collect()
}

impl Reply {
    /// The command of the message that begins with `begins`. `None`: the message has no such command.
    pub fn command(&self, begins: &str) -> Option<&str> {
        let mut spans = self.message.split('`').skip(1).step_by(2);
        spans.find(|span| span.starts_with(begins))
    }

    /// Reads what a call left: one document on one line, nothing on standard error, and the exit
    /// status that goes with the document.
    #[track_caller]
    pub fn of(call: impl Debug, output: &Output) -> Self {
        let shown = shown(&call);
        let call = format!("{call:?}");
        let stdout = str::from_utf8(&output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr, "", "{shown} answered {stdout}");
        let line = stdout.strip_suffix('\n');
        let line = line.unwrap_or_else(|| panic!("{shown}: no newline ends {stdout:?}"));
        assert!(!line.contains(char::is_control), "{shown}: {line:?}");
        assert!(line.len() <= 4096, "{shown}: {} bytes", line.len());
        let reply: Self =
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{shown} answered {line:?}: {e}"));
        // kubelet prints the characters that JSON escapes.
        let message = &reply.message;
        assert!(!message.contains(char::is_control), "{shown}: {message:?}");
        // kubelet would log the arguments, and the secret in them.
        let holds_secret = call.contains("kubernetes.io/secret/");
        let code = match reply.status.as_str() {
            "Success" | "Not supported" => 0,
            "Failure" => i32::from(!holds_secret),
            _ => panic!("{shown}: {reply:?}"),
        };
        assert_eq!(output.status.code(), Some(code), "{shown}: {reply:?}");
        let has_reason = reply.status == "Success" || !reply.message.is_empty();
        assert!(has_reason, "{shown}: {reply:?}");
        reply
    }

    #[track_caller]
    pub fn is_success(&self) {
        assert_eq!(self.status, "Success", "{self:?}");
    }

    /// Expects a failure that says these words.
    #[track_caller]
    pub fn is_failure(&self, words: &[&str]) {
        assert!(!words.is_empty(), "any refusal would do");
        assert_eq!(self.status, "Failure", "{self:?}");
        for word in words {
            assert!(self.message.contains(word), "no {word:?} in {self:?}");
        }
    }
}
