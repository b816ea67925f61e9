//! The findings of `flexvolume-lvm doctor`, as text or JSON.

use std::fmt::Write;

use anyhow::Result;

use crate::commands::survey::{Finding, Severity};
use crate::output::{Printed, printed, red, wrapped, yellow};

#[derive(Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds what a check found, and what others found too only once.
    pub fn add(&mut self, found: impl IntoIterator<Item = Finding>) {
        for one in found {
            // All volumes of groups with one name are refused in the same words.
            let is_same =
                |other: &Finding| (other.check, &other.finding) == (one.check, &one.finding);
            if one.check != "next-mount" || !self.0.iter().any(is_same) {
                self.0.push(one);
            }
        }
    }

    /// Keeps warnings and failures only.
    pub fn keep_unwell(&mut self) {
        self.0.retain(Finding::is_unwell);
    }

    /// The text or JSON to print. The exit code is 1 if a pod would fail, and 3 if there are only warnings.
    pub fn printed(&self, json: bool, width: usize) -> Result<Printed> {
        let mut report = printed(&self.0, self.text(width), json)?;
        report.code = match self.0.iter().map(|one| one.severity).max() {
            None | Some(Severity::Ok | Severity::Note) => 0,
            Some(Severity::Failed) => 1,
            Some(Severity::Warning) => 3,
        };
        Ok(report)
    }

    fn text(&self, width: usize) -> String {
        /// A longer subject, such as a pod's directory, has a line of its own.
        const LONGEST: usize = 40;
        let about = |one: &Finding| one.about.clone().unwrap_or_else(|| one.check.to_owned());
        let lengths = self.0.iter().map(|one| about(one).chars().count());
        let column = lengths.filter(|length| *length <= LONGEST).max();
        let column = column.unwrap_or_default();
        // The widest severity, and two spaces after each column.
        let before = column.saturating_add("WARNING".len()).saturating_add(4);
        let room = width.saturating_sub(before);
        let mut text = String::new();
        for one in &self.0 {
            let (word, padded) = match one.severity {
                Severity::Ok => ("ok".to_owned(), "     "),
                Severity::Note => ("note".to_owned(), "   "),
                Severity::Warning => (yellow("WARNING"), ""),
                Severity::Failed => (red("FAILED"), " "),
            };
            let about = about(one);
            let _ = write!(text, "{word}{padded}  {about:column$}");
            let mut gap = 2;
            if about.chars().count() > LONGEST {
                text.push('\n');
                gap = before;
            }
            let indented = |line: String| format!("  {line}");
            let why = one.why.map(|why| wrapped(why, room.saturating_sub(2)));
            let why = why.into_iter().flatten().map(indented);
            // A command stays whole, as it can be pasted.
            let run = one
                .command
                .iter()
                .map(|command| format!("  run: {command}"));
            for line in wrapped(&one.finding, room)
                .into_iter()
                .chain(why)
                .chain(run)
            {
                let _ = writeln!(text, "{:gap$}{line}", "");
                gap = before;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{has_lines, hostile};
    use driver::names::Shown;
    use proptest::prelude::*;

    #[test]
    fn a_long_subject_moves_nothing_aside_and_a_command_stays_whole() {
        let mut findings = Findings::default();
        let dir = "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~lvm/data";
        let finding = Finding::warning("mounts", "nothing is mounted there").on(&dir);
        let finding = finding.why("its pod waits").run(format!("rmdir {dir}"));
        let note = Finding::new("kubelet", Severity::Note, "it may crash");
        findings.add([Finding::ok("lvm", "1 logical volume"), finding, note]);
        let printed = findings.printed(false, 40).unwrap();
        let shown = anstream::adapter::strip_str(&printed.stdout).to_string();
        let want = format!(
            "ok       lvm      1 logical volume\n\
             WARNING  {dir}\n                  nothing is mounted\n                  there\n                    \
             its pod waits\n                    run: rmdir {dir}\n\
             note     kubelet  it may crash\n"
        );
        assert_eq!((shown, printed.code), (want, 3));
    }

    proptest! {
        #[test]
        fn hostile_text_adds_no_line_to_a_finding(hostile in hostile()) {
            let finding = Finding::new("mounts", Severity::Note, &*hostile).on(&hostile);
            let mut findings = Findings::default();
            findings.add([finding.why("why").run(&*hostile)]);
            let text = findings.printed(false, usize::MAX).unwrap().stdout;
            // A long subject has a line of its own.
            let lines = if hostile.shown().to_string().chars().count() > 40 { 4 } else { 3 };
            prop_assert!(has_lines(&text, lines), "{text:?}");
            let json = findings.printed(true, usize::MAX).unwrap().stdout;
            prop_assert!(has_lines(&json, 10), "{json:?}");
        }
    }
}
