//! All text for kubelet, for operators, in the log and in lists of processes: no name steers a terminal
//! or begins a line, and no secret is in it.

use std::fs;

use serde_json::Value;

use super::{PLACES, World};

/// A secret as kubelet hands it on, and what it stands for.
pub const SECRET: &str = "Y2FuYXJ5LWluLWEtY29hbC1taW5l";
const PLAIN: &str = "canary-in-a-coal-mine";
/// How a line begins that a tenant wrote.
pub const FORGED: &str = "FORGED";

pub fn is_one_line(line: &str) {
    assert!(!line.contains(char::is_control), "{line:?}");
    has_no_secret(line);
}

pub fn has_no_secret(text: &str) {
    assert!(!text.contains(SECRET) && !text.contains(PLAIN), "{text:?}");
}

impl World {
    pub(super) fn log_file(&self) -> String {
        format!("/run/life{}.log", self.number)
    }

    /// One of the commands that only look.
    pub(super) fn ask(&mut self, which: usize) {
        let slot = self.slots.iter().position(Option::is_some).unwrap_or(0);
        let slot = self.kept.first().map_or(slot, |kept| kept.slot);
        let id = self.groups[PLACES[slot].disk].path(PLACES[slot].lv);
        let group = format!("life{}g", self.number);
        // Each line of these begins so, but for the first ones and the last ones.
        let (args, begins, others): (&[&str], &[&str], _) = match which % 6 {
            0 => (&["check"], &[&group], (0, 1)),
            1 => (&["log", "-n", "1000"], &["20", "    "], (1, 0)),
            2 => (&["status", "-w"], &[""], (0, 0)),
            3 => (&["doctor"], &[""], (0, 0)),
            4 => (&["check", &id], &[""], (0, 0)),
            _ => (&["check", "--idle", &id], &[""], (0, 0)),
        };
        let (said, _) = self.node.says(args);
        self.tally.asked += 1;
        let lines: Vec<&str> = said.lines().collect();
        for line in &lines {
            is_one_line(line);
            assert!(!line.trim_start().starts_with(FORGED), "{args:?}: {said}");
        }
        let end = lines.len().saturating_sub(others.1);
        for line in lines.get(others.0..end).unwrap_or_default() {
            let is_so = begins.iter().any(|begins| line.starts_with(begins));
            assert!(is_so, "{args:?}: {line:?} in {said}");
        }
    }

    /// The log's new lines, and the tools' command lines.
    pub(super) fn look_into_texts(&mut self) {
        let log = fs::read_to_string(self.log_file()).unwrap_or_default();
        for line in log[self.log_read..].lines() {
            is_one_line(line);
            let entry: Value = serde_json::from_str(line).expect(line);
            assert!(entry["call"].is_string(), "{line}");
            self.tally.logged += 1;
        }
        self.log_read = log.len();
        has_no_secret(&self.tools.said());
        self.tools.plan("none");
    }
}
