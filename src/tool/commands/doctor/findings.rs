//! The findings of `flexvolume-lvm doctor`, as text or JSON.

use anyhow::Result;

use crate::commands::survey::{Finding, Severity};
use crate::output::{Printed, columns_within, printed, red, yellow};

#[derive(Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds the findings of a check. If the next mounts of several volumes are refused with the same message, only the
    /// first of these findings is added.
    pub fn add(&mut self, found: impl IntoIterator<Item = Finding>) {
        for one in found {
            // All volumes in groups of one name are refused with the same message.
            let is_same =
                |other: &Finding| (other.check, &other.finding) == (one.check, &one.finding);
            if one.check != "next-mount" || !self.0.iter().any(is_same) {
                self.0.push(one);
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// Keeps warnings and failures only.
    pub fn keep_unwell(&mut self) {
        self.0.retain(Finding::is_unwell);
    }

    /// The text or JSON to print. The exit code is 1 if a pod would fail, and 3 if there are only warnings.
    pub fn printed(&self, json: bool, width: usize) -> Result<Printed> {
        let code = match self.0.iter().map(|one| one.severity).max() {
            None | Some(Severity::Ok | Severity::Note) => 0,
            Some(Severity::Failed) => 1,
            Some(Severity::Warning) => 3,
        };
        printed(&self.0, self.text(width), json, code)
    }

    fn text(&self, width: usize) -> String {
        let mut rows = Vec::new();
        for one in &self.0 {
            let severity = match one.severity {
                Severity::Ok => "ok".to_owned(),
                Severity::Note => "note".to_owned(),
                Severity::Warning => yellow("WARNING"),
                Severity::Failed => red("FAILED"),
            };
            let about = one.about.iter().map(|about| format!("{about}: "));
            let finding = about.chain([one.finding.clone()]).collect();
            rows.push(vec![severity, one.check.to_owned(), finding]);
            // Text in backquotes is not wrapped.
            let command = one
                .command
                .iter()
                .map(|command| format!("run: `{command}`"));
            let below = one.why.iter().map(ToString::to_string).chain(command);
            rows.extend(below.map(|text| vec![String::new(), String::new(), text]));
        }
        columns_within(&rows, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{has_lines, hostile};
    use proptest::prelude::*;

    #[test]
    fn a_text_is_wrapped_below_itself_and_a_command_stays_whole() {
        let mut findings = Findings::default();
        let finding = Finding::warning("pool-full", "its data is filled").on(&"vg/pool");
        let finding = finding.why("its volumes run full with it");
        let finding = finding.run("lvextend --size +1g vg/pool");
        let note = Finding::new("kubelet", Severity::Note, "it may crash");
        findings.add([Finding::ok("lvm", "1 logical volume"), finding, note]);
        let printed = findings.printed(false, 44).unwrap();
        let shown = anstream::adapter::strip_str(&printed.stdout).to_string();
        let want = "\
ok       lvm        1 logical volume
WARNING  pool-full  vg/pool: its data is
                    filled
                    its volumes run full
                    with it
                    run:
                    `lvextend --size +1g vg/pool`
note     kubelet    it may crash
";
        assert_eq!((&*shown, printed.code), (want, 3));
    }

    proptest! {
        #[test]
        fn hostile_text_adds_no_line_to_a_finding(hostile in hostile()) {
            let finding = Finding::new("mounts", Severity::Note, &*hostile).on(&hostile);
            let mut findings = Findings::default();
            findings.add([finding.why("why").run(&*hostile)]);
            let text = findings.printed(false, usize::MAX).unwrap().stdout;
            prop_assert!(has_lines(&text, 3), "{text:?}");
            let json = findings.printed(true, usize::MAX).unwrap().stdout;
            prop_assert!(has_lines(&json, 10), "{json:?}");
        }
    }
}
