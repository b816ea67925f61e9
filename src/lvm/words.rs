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

/// LVM's messages in what it printed to standard output, on one line. None: there are none in it.
///
/// Where they are depends on the version and on lvm.conf(5). With `report/output_format = "json"`
/// LVM 2.03.31 writes those of every command into `log`; 2.03.11 and 2.03.16 do with
/// `log/report_command_log = 1` too, which without JSON makes all of them print a table; else they
/// are on standard error.
pub(super) fn words(stdout: &[u8]) -> Option<String> {
    if stdout.trim_ascii_start().first() == Some(&b'{') {
        let log = serde_json::from_slice(stdout).map(|Messages { log }| log);
        // Its last message is a "status": that the command failed.
        let messages = log.unwrap_or_default().into_iter();
        let messages = messages.filter(|message| message.log_type != "status");
        return Some(
            messages
                .map(|m| m.log_message)
                .collect::<Vec<_>>()
                .join("; "),
        );
    }
    let text = String::from_utf8_lossy(stdout);
    let (_, table) = text.split_once("Command Log")?;
    let rows = table.lines().filter_map(|row| {
        // Number, type, context; what it is about and the message; errno and return code.
        let words: Vec<_> = row.split_whitespace().collect();
        match words.as_slice() {
            [_, "error" | "warn", _, message @ .., _, _] => Some(message.join(" ")),
            _ => None,
        }
    });
    Some(rows.collect::<Vec<_>>().join("; "))
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
            (
                "table",
                "Command Log\n===\nSeq LogType Context ObjType Msg\n \
                 1 error processing vg    It failed  -1  0\n 2 status processing vg failure -1 5",
                Some("vg It failed"),
            ),
            ("text", "1 error x y z a", None),
            ("nothing", "", None),
        ];
        for (name, stdout, want) in cases {
            assert_eq!(words(stdout.as_bytes()).as_deref(), want, "{name}");
        }
    }
}
