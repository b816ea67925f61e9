use serde::Deserialize;

/// A report in JSON, as far as it is about LVM's messages.
#[derive(Deserialize)]
struct Messages {
    #[serde(default)]
    log: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    log_type: String,
    #[serde(default)]
    log_message: String,
}

/// LVM's messages in what it printed to standard output, on one line. None: that is no JSON.
///
/// Where they are depends on the version and on lvm.conf(5). With `report/output_format = "json"`
/// LVM 2.03.31 writes those of every command into `log`; 2.03.11 and 2.03.16 do with
/// `log/report_command_log = 1` too; without both they are on standard error.
pub(super) fn words(stdout: &[u8]) -> Option<String> {
    if stdout.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let log = serde_json::from_slice(stdout).map_or_else(|_| Vec::new(), |Messages { log }| log);
    // Its last message is a "status": that the command failed.
    let messages = log
        .into_iter()
        .filter(|message| message.log_type != "status");
    Some(
        messages
            .map(|m| m.log_message)
            .collect::<Vec<_>>()
            .join("; "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_a_log_and_json_is_never_shown() {
        let log = r#" {"report":[{"lv":[]}],"log":[
            {"log_seq_num":"1","log_type":"error","log_message":"Group \"vg\" not found"},
            {"log_type":"error","log_message":"Cannot process it"},
            {"log_type":"status","log_message":"failure"}]}"#;
        let cases = [
            (
                "log",
                log,
                Some("Group \"vg\" not found; Cannot process it"),
            ),
            (
                "columns left out",
                r#"{"log":[{"log_seq_num":"1"}]}"#,
                Some(""),
            ),
            ("no log", r#"{"report":[]}"#, Some("")),
            ("cut short", r#"{"report":["#, Some("")),
            ("text", "  Command Log\n  1 error", None),
            ("nothing", "", None),
        ];
        for (name, stdout, want) in cases {
            assert_eq!(words(stdout.as_bytes()).as_deref(), want, "{name}");
        }
    }
}
