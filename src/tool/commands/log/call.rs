//! One call, as its line in the log has it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::commands::time::date;
use driver::host::read_value;
use driver::names::folded;

#[allow(clippy::struct_field_names)] // `call` is what the line calls it
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(into = "ForPrograms")]
pub struct Call {
    /// When it ended, in seconds since the epoch.
    pub time: u64,
    pub call: String,
    pub volume: Option<String>,
    pub pod: Option<String>,
    /// kubelet's name of the volume.
    pub name: Option<String>,
    /// Its option `mountoptions`, with `ro` if it was to be read only.
    pub mountoptions: Option<String>,
    /// The tools that ran, with their times.
    pub steps: Option<String>,
    pub took_ms: u64,
    pub failed: bool,
    pub message: Option<String>,
}

/// A call for programs: its fields are stable.
#[derive(Serialize)]
struct ForPrograms {
    time: String,
    call: String,
    volume: Option<String>,
    pod: Option<String>,
    name: Option<String>,
    mountoptions: Option<String>,
    tools: Vec<Tool>,
    took_ms: u64,
    outcome: &'static str,
    message: Option<String>,
}

/// A tool that ran, and for how long.
#[derive(Serialize)]
struct Tool {
    name: String,
    took_ms: u64,
    outcome: &'static str,
}

impl Tool {
    /// Reads `lvs:12ms`, or `blkid!:3ms` of one that failed.
    fn parse(step: &str) -> Self {
        let (word, time) = step.rsplit_once(':').unwrap_or((step, ""));
        let name = word.trim_end_matches('!');
        Self {
            name: name.to_owned(),
            took_ms: millis(time),
            outcome: outcome(name != word),
        }
    }
}

fn millis(took: &str) -> u64 {
    took.trim_end_matches("ms").parse().unwrap_or(0)
}

fn outcome(failed: bool) -> &'static str {
    if failed { "failed" } else { "ok" }
}

impl From<Call> for ForPrograms {
    fn from(call: Call) -> Self {
        let outcome = call.outcome();
        let steps = call.steps.as_deref().unwrap_or_default().split(',');
        Self {
            time: date(call.time),
            call: call.call,
            volume: call.volume,
            pod: call.pod,
            name: call.name,
            mountoptions: call.mountoptions,
            tools: steps
                .filter(|step| !step.is_empty())
                .map(Tool::parse)
                .collect(),
            took_ms: call.took_ms,
            outcome,
            message: call.message,
        }
    }
}

impl Call {
    /// `ok` or `failed`.
    pub fn outcome(&self) -> &'static str {
        outcome(self.failed)
    }

    /// Reads what [`driver::host::Log`] writes.
    pub(super) fn parse(time: u64, mut rest: &str) -> Option<Self> {
        let mut call = Self {
            time,
            ..Self::default()
        };
        while let Some((key, after)) = rest.trim_start().split_once('=') {
            let (value, after) = read_value(after);
            // Somebody else may have written this line, control characters included.
            let value = folded(&value);
            rest = after;
            match key {
                "call" => call.call = value,
                "volume" => call.volume = Some(value),
                "pod" => call.pod = Some(value),
                "name" => call.name = Some(value),
                "mountoptions" => call.mountoptions = Some(value),
                "steps" => call.steps = Some(value),
                "took" => call.took_ms = millis(&value),
                "outcome" => call.failed = value == "failed",
                "message" => call.message = Some(value),
                _ => {}
            }
        }
        (!call.call.is_empty()).then_some(call)
    }

    pub(super) fn is_about_any(&self, names: &BTreeSet<String>) -> bool {
        names.iter().any(|name| self.is_about(name))
    }

    /// Whether this names its volume, in full or in part, its pod, or what kubelet calls the volume.
    pub(super) fn is_about(&self, word: &str) -> bool {
        let names = [&self.volume, &self.pod, &self.name];
        let parts = self.volume.as_ref().and_then(|id| id.split_once('/'));
        names.into_iter().flatten().any(|name| name == word)
            || parts.is_some_and(|(vg, lv)| vg == word || lv == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::host;
    use proptest::prelude::*;

    proptest! {
        /// Pods choose the names and values of options, and tools what they complain about.
        #[test]
        fn hostile_text_in_the_log_is_read_back_unchanged(
            (name, value, volume, message) in (ANY, ANY, ANY, ANY)
        ) {
            let log = host::Log::default();
            for (key, value) in [("volume", &volume), ("ignored", &name), ("ignored", &name), ("mountoptions", &value)] {
                log.about(key, value);
            }
            let line = log.line("mount", "failed", &message);
            prop_assert_eq!(line.lines().count(), 1);
            prop_assert!(!line.contains(char::is_control));
            let call = Call::parse(7, &line).unwrap();
            let some = |text: &str| Some(folded(&text.replace(['\n', '\r', '\u{1b}', '\u{85}', '\u{2028}'], "?")));
            let want = Call {
                time: 7,
                call: "mount".to_owned(),
                volume: some(&volume),
                mountoptions: some(&value),
                failed: true,
                message: some(&message).filter(|_| !message.is_empty()),
                took_ms: call.took_ms,
                ..Call::default()
            };
            prop_assert_eq!(call, want, "{}", line);
        }
    }

    /// Characters and words with a meaning in a line of the log, and characters that would break a line.
    const ANY: &str = "([\\\\\" =ax\\n\\r\u{1b}\u{85}\u{2028}\u{301}]|outcome=ok|call=){0,9}";

    #[test]
    fn reads_the_lines_that_the_driver_writes() {
        let line = r#"call=mount volume=vg/x pod=shop/web-0 name=data mountoptions=noatime,ro ignored="a b" steps=lvs:12ms,blkid!:3ms took=21ms outcome=failed message="the device \"x\": \\ gone""#;
        let call = Call::parse(7, line).unwrap();
        let some = |text: &str| Some(text.to_owned());
        let want = Call {
            time: 7,
            call: "mount".to_owned(),
            volume: some("vg/x"),
            pod: some("shop/web-0"),
            name: some("data"),
            mountoptions: some("noatime,ro"),
            steps: some("lvs:12ms,blkid!:3ms"),
            took_ms: 21,
            failed: true,
            message: some("the device \"x\": \\ gone"),
        };
        assert_eq!(call, want);
        for word in ["vg/x", "vg", "x", "shop/web-0", "data"] {
            assert!(call.is_about(word), "{word}");
        }
        for word in ["shop/web", "shop", "v", "vg/", ""] {
            assert!(!call.is_about(word), "{word}");
        }
        let unmount = Call::parse(7, "call=unmount took=1ms outcome=ok").unwrap();
        assert!(!unmount.failed && unmount.volume.is_none());
        for other in ["", "x", "-- Boot 1 --", "a=b"] {
            assert_eq!(Call::parse(0, other), None, "{other}");
        }
    }
}
