//! One call, read from its entry in the log.

use std::time::UNIX_EPOCH;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use driver::names::{date, folded};

#[allow(clippy::struct_field_names)] // the entry has a field `call`
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Call {
    /// When the call ended, in seconds since the epoch.
    #[serde(serialize_with = "as_date")]
    pub time: u64,
    pub call: String,
    pub volume: Option<String>,
    pub pod: Option<String>,
    /// kubelet's name of the volume.
    pub name: Option<String>,
    /// The call's option `mountoptions`.
    pub mountoptions: Option<String>,
    /// The tools that ran, with their times.
    #[serde(rename = "tools", serialize_with = "as_tools")]
    pub steps: Option<String>,
    pub took_ms: u64,
    #[serde(rename = "outcome", serialize_with = "as_outcome")]
    pub failed: bool,
    pub message: Option<String>,
}

/// A tool that ran, with its duration.
#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    took_ms: u64,
    #[serde(rename = "outcome", serialize_with = "as_outcome")]
    failed: bool,
}

impl<'a> Tool<'a> {
    /// Parses `lvs:12ms`, or `blkid!:3ms` for a tool that failed.
    fn parse(step: &'a str) -> Self {
        let (word, took) = step.rsplit_once(':').unwrap_or((step, ""));
        Self {
            name: word.trim_end_matches('!'),
            took_ms: took.trim_end_matches("ms").parse().unwrap_or(0),
            failed: word.ends_with('!'),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the form that serde asks for
fn as_date<S: Serializer>(time: &u64, to: S) -> Result<S::Ok, S::Error> {
    date(*time).serialize(to)
}

#[allow(clippy::ref_option)] // the form that serde asks for
fn as_tools<S: Serializer>(steps: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    let steps = steps.iter().flat_map(|steps| steps.split(','));
    to.collect_seq(steps.map(Tool::parse))
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the form that serde asks for
fn as_outcome<S: Serializer>(failed: &bool, to: S) -> Result<S::Ok, S::Error> {
    outcome(*failed).serialize(to)
}

fn outcome(failed: bool) -> &'static str {
    if failed { "failed" } else { "ok" }
}

impl Call {
    /// `ok` or `failed`.
    pub fn outcome(&self) -> &'static str {
        outcome(self.failed)
    }

    /// Parses an entry of the journal (`journalctl --output=json`), or a line of a log file. `None`: it is not the
    /// entry of a call.
    pub(super) fn parse(entry: &[u8]) -> Option<Self> {
        let entry: Map<String, Value> = serde_json::from_slice(entry).ok()?;
        // Another program may have written the entry, with control characters.
        let text = |name: &str| entry.get(name).and_then(Value::as_str).map(folded);
        let field = |name: &str| {
            text(name).or_else(|| text(&format!("FLEXVOLUME_{}", name.to_uppercase())))
        };
        let micros = text("__REALTIME_TIMESTAMP").and_then(|time| time.parse::<u64>().ok());
        let in_file = || {
            let time = humantime::parse_rfc3339(&text("time")?).ok()?;
            Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
        };
        Some(Self {
            time: micros.map(|time| time / 1_000_000).or_else(in_file)?,
            call: field("call")?,
            volume: field("volume"),
            pod: field("pod"),
            name: field("name"),
            mountoptions: field("mountoptions"),
            steps: field("steps"),
            took_ms: field("took_ms")
                .and_then(|took| took.parse().ok())
                .unwrap_or(0),
            failed: field("outcome")? == "failed",
            message: field("message"),
        })
    }

    /// Whether `word` is this call's volume (VG/LV, VG or LV), its pod, or kubelet's name of the volume.
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
    use driver::config::LogTarget;
    use driver::host::Log;
    use driver::reply::Status;
    use proptest::prelude::*;

    proptest! {
        /// The text is hostile, since pods choose names and values of options, and tools choose their messages.
        #[test]
        fn hostile_text_in_the_log_is_read_back_as_it_was_folded(
            (value, volume, message) in (ANY, ANY, ANY)
        ) {
            let file = tempfile::NamedTempFile::new().unwrap();
            let log = Log::default();
            for (key, value) in [("volume", &volume), ("mountoptions", &value)] {
                log.about(key, value);
            }
            log.write(&LogTarget::File(file.path().to_owned()), "mount", Status::Failure, &message);
            let line = std::fs::read_to_string(file.path()).unwrap();
            prop_assert_eq!(line.lines().count(), 1);
            prop_assert!(!line.trim_end().contains(char::is_control));
            let call = Call::parse(line.as_bytes()).unwrap();
            let some = |text: &str| Some(folded(text));
            let want = Call {
                time: call.time,
                call: "mount".to_owned(),
                volume: some(&volume),
                mountoptions: some(&value),
                failed: true,
                message: some(&message).filter(|message| !message.is_empty()),
                took_ms: call.took_ms,
                ..Call::default()
            };
            prop_assert_eq!(call, want, "{}", line);
        }
    }

    /// Characters and words with a meaning in a line of the log, and characters that would break a line.
    const ANY: &str = "([\\\\\" =ax{},:\\n\\r\u{1b}\u{85}\u{2028}\u{301}]|outcome=ok|call=){0,9}";

    #[test]
    fn reads_the_entries_that_the_driver_writes() {
        let in_journal = r#"{"__REALTIME_TIMESTAMP":"7999999","MESSAGE":[1],"FLEXVOLUME_CALL":"mount",
            "FLEXVOLUME_VOLUME":"vg/x","FLEXVOLUME_POD":"shop/web-0","FLEXVOLUME_NAME":"data",
            "FLEXVOLUME_MOUNTOPTIONS":"noatime,ro","FLEXVOLUME_STEPS":"lvs:12ms,blkid!:3ms",
            "FLEXVOLUME_TOOK_MS":"21","FLEXVOLUME_OUTCOME":"failed","FLEXVOLUME_MESSAGE":"gone"}"#;
        let in_file = r#"{"time":"1970-01-01T00:00:07Z","call":"mount","volume":"vg/x","pod":"shop/web-0","name":"data",
            "mountoptions":"noatime,ro","steps":"lvs:12ms,blkid!:3ms","took_ms":"21","outcome":"failed",
            "message":"gone"}"#;
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
            message: some("gone"),
        };
        for entry in [in_journal, in_file] {
            let call = Call::parse(entry.as_bytes()).unwrap();
            assert_eq!(call, want);
            for word in ["vg/x", "vg", "x", "shop/web-0", "data"] {
                assert!(call.is_about(word), "{word}");
            }
            for word in ["shop/web", "shop", "v", "vg/", ""] {
                assert!(!call.is_about(word), "{word}");
            }
        }
        for other in ["", "call=mount outcome=ok", "[]", r#"{"call":"mount"}"#] {
            assert_eq!(Call::parse(other.as_bytes()), None, "{other}");
        }
    }
}
