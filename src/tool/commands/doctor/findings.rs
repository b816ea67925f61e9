//! The findings of `flexvolume-lvm doctor`: the fault, why it matters, and the command that helps.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;

use crate::output::{Printed, printed, red, wrapped, yellow};
use driver::names::{Shown, folded};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Ok,
    /// To be known, and nothing that anybody can mend: it changes no exit code.
    Note,
    Warning,
    /// A pod would fail.
    Failed,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(Debug))]
#[allow(clippy::struct_field_names)] // what programs read
pub struct Finding {
    /// The check's name: a stable identifier for programs.
    check: &'static str,
    severity: Severity,
    /// The volume, directory or disk, if it is about one.
    about: Option<String>,
    finding: String,
    why: Option<&'static str>,
    command: Option<String>,
}

impl Finding {
    pub fn ok(finding: impl Into<String>) -> Self {
        Self::new(Severity::Ok, finding)
    }

    pub fn warning(finding: impl Into<String>) -> Self {
        Self::new(Severity::Warning, finding)
    }

    pub fn failed(finding: impl Into<String>) -> Self {
        Self::new(Severity::Failed, finding)
    }

    pub fn new(severity: Severity, finding: impl Into<String>) -> Self {
        Self {
            check: "",
            severity,
            about: None,
            finding: folded(&finding.into()),
            why: None,
            command: None,
        }
    }

    pub fn on(mut self, about: &impl ToString) -> Self {
        self.about = Some(about.to_string().shown().to_string());
        self
    }

    /// What is nobody's is worth a note and no more: no pod would miss it.
    pub fn noted_unless(mut self, is_ours: bool) -> Self {
        if !is_ours {
            self.severity = self.severity.min(Severity::Note);
        }
        self
    }

    pub fn why(mut self, why: &'static str) -> Self {
        self.why = Some(why);
        self
    }

    pub fn run(mut self, command: impl Into<String>) -> Self {
        self.command = Some(folded(&command.into()));
        self
    }
}

#[derive(Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds what a check found.
    pub fn add(&mut self, check: &'static str, found: impl IntoIterator<Item = Finding>) {
        let found = found.into_iter();
        self.0.extend(found.map(|one| Finding { check, ..one }));
    }

    /// Leaves out what is well, and notes.
    pub fn keep_unwell(&mut self) {
        self.0.retain(|one| one.severity >= Severity::Warning);
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
    use proptest::prelude::*;

    #[test]
    fn a_long_subject_moves_nothing_aside_and_a_command_stays_whole() {
        let mut findings = Findings::default();
        findings.add("lvm", vec![Finding::ok("1 logical volume")]);
        let dir = "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~lvm/data";
        let finding = Finding::warning("nothing is mounted there").on(&dir);
        let finding = finding.why("its pod waits").run(format!("rmdir {dir}"));
        findings.add("pod-directories", vec![finding]);
        findings.add(
            "kubelet",
            vec![Finding::new(Severity::Note, "it may crash")],
        );
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
            let finding = Finding::new(Severity::Note, &*hostile).on(&hostile);
            let mut findings = Findings::default();
            findings.add("mounts", vec![finding.why("why").run(&*hostile)]);
            let text = findings.printed(false, usize::MAX).unwrap().stdout;
            // A long subject has a line of its own.
            let lines = if hostile.shown().to_string().chars().count() > 40 { 4 } else { 3 };
            prop_assert!(has_lines(&text, lines), "{text:?}");
            let json = findings.printed(true, usize::MAX).unwrap().stdout;
            prop_assert!(has_lines(&json, 10), "{json:?}");
        }
    }
}
