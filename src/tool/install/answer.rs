//! Calls a driver as kubelet does, and reads its answer.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;

use driver::host::{Command, Host, ToolError};
use driver::names::Shown;

/// The time limit for `init`, longer than any driver needs. kubelet serves no volume while `init` runs.
const LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// The driver's mode: `capabilities.attach` in the answer. If this key is missing, the mode is true, as for
    /// kubelet.
    pub attach: bool,
    /// Empty if the driver gave no message.
    pub message: String,
}

/// Runs `init` of a driver. kubelet reads standard output and standard error as one stream, so
/// anything besides the document is a failure.
pub fn init(host: &Host, driver: &Path) -> Result<Init> {
    let output = host.run(&Command::driver(driver, LIMIT).args(["init"]))?;
    if !output.stderr.is_empty() {
        bail!("it writes to standard error: {}", output.stderr);
    }
    match parse(&output.stdout) {
        Some(init) => Ok(init),
        None => match output.text().trim() {
            "" => bail!("it printed nothing"),
            text => bail!("it printed {}", text.shown()),
        },
    }
}

/// Reads the answer. `None`: it is not one JSON document with the status Success.
fn parse(stdout: &[u8]) -> Option<Init> {
    let document: Value = serde_json::from_slice(stdout).ok()?;
    let attach = document.pointer("/capabilities/attach");
    let message = document.get("message").and_then(Value::as_str);
    (document.get("status")? == "Success").then(|| Init {
        attach: attach.and_then(Value::as_bool).unwrap_or(true),
        message: message.unwrap_or_default().to_owned(),
    })
}

/// Runs an executable with `--version`. Whether its answer is that of this driver, in any version. An executable that
/// fails or does not start is not this driver.
///
/// Fails if a signal stops this process.
pub fn is_this_driver(host: &Host, driver: &Path) -> Result<bool> {
    let command = Command::driver(driver, LIMIT).args(["--version"]);
    match host.run(&command) {
        Ok(output) => Ok(names_this_driver(&output.stdout)),
        Err(ToolError::Stopped { .. }) => bail!("told to stop before anything was changed"),
        Err(_) => Ok(false),
    }
}

fn names_this_driver(stdout: &[u8]) -> bool {
    let version = [&b"lvm "[..], b"flexvolume-lvm "]
        .iter()
        .find_map(|name| stdout.strip_prefix(*name));
    version
        .and_then(<[u8]>::first)
        .is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_answer_as_kubelet_does() {
        let answer = |attach, message: &str| {
            let message = message.to_owned();
            Some(Init { attach, message })
        };
        let cases = [
            (r#"{"status": "Success"}"#, answer(true, "")),
            (
                r#"{"status":"Success","capabilities":{"attach":false}}"#,
                answer(false, ""),
            ),
            (
                "{\"status\":\"Success\",\"message\":\"look out\"}\n",
                answer(true, "look out"),
            ),
            (r#"{"status":"success"}"#, None),
            (r#"{"status":"Failure"}"#, None),
            (r#"{"status":"Success"} x"#, None),
            (r#"["status"]"#, None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn tells_this_driver_from_lvms_own_command() {
        for text in ["lvm 0.1.0\n", "lvm 1.20.3-rc.1+x", "flexvolume-lvm 1.0.0\n"] {
            assert!(names_this_driver(text.as_bytes()), "{text}");
        }
        for text in [
            "  LVM version: 2.03.16(2)",
            "lvm",
            "lvm: no such command",
            "",
        ] {
            assert!(!names_this_driver(text.as_bytes()), "{text}");
        }
    }
}
