//! What `check` found, for programs, and in words for people.

use std::fmt::Write;

use serde::Serialize;

use crate::commands::survey::{
    Choice, Finding, Health, Inventory, NextMount, OK, Request, Verdict,
};
use crate::output::{indented, width};
use driver::host::own_name;
use driver::lvm::Volume;
use driver::names::LvId;
use driver::volume::Reason;

#[derive(Default, Serialize)]
pub struct CheckReport {
    pub volumes: Vec<Checked>,
    would_mount: usize,
    would_be_refused: usize,
    not_active: usize,
    busy: usize,
    to_repair: usize,
    /// How many volumes would mount, but are full or have another fault.
    unwell: usize,
    /// How many volumes do not count for the exit code: they are not the driver's, or another node has them, which is
    /// no fault.
    not_counted: usize,
    /// Faults of groups and disks, and questions that LVM did not answer.
    pub beside_volumes: Vec<Finding>,
}

#[derive(Serialize)]
pub struct Checked {
    #[serde(flatten)]
    verdict: Verdict,
    /// The volume's health, as `status` prints it. `None`: LVM does not list the volume.
    health: Option<String>,
    /// Whether this volume counts for the exit code.
    counts: bool,
    /// The volume's faults, each once, without the refusal of the next mount.
    #[serde(skip)]
    faults: Vec<Finding>,
}

impl Checked {
    /// The result for a volume of which only the verdict is known.
    pub fn unlisted(verdict: Verdict) -> Self {
        Self {
            verdict,
            health: None,
            counts: true,
            faults: Vec::new(),
        }
    }

    /// The result for a volume that a person names. It counts, even if it is not the driver's.
    pub fn named(inventory: &Inventory, id: &LvId, request: Request) -> Self {
        let listed = inventory.volume(id);
        let of_many = listed.and_then(|volume| Self::of_many(inventory, volume, request));
        let unlisted = || {
            let mut verdict = inventory.verdict(id, request).0;
            verdict.steps.extend(unknown_size(&verdict));
            Self::unlisted(verdict)
        };
        Self {
            counts: true,
            ..of_many.unwrap_or_else(unlisted)
        }
    }

    /// The result for a volume of LVM's list. `None`: it is a pool.
    pub fn of_many(inventory: &Inventory, volume: &Volume, request: Request) -> Option<Self> {
        let (health, _) = Health::of(inventory, volume, Some(request));
        let (health_word, counts) = (health.word(), health.counts());
        let mut faults = health.findings();
        faults.retain(|one| one.check != "next-mount");
        let verdict = health.verdict?;
        Some(Self {
            counts,
            health: Some(health_word),
            verdict,
            faults,
        })
    }

    fn is_unwell(&self) -> bool {
        let is_ill = self.health.as_ref().is_some_and(|health| health != OK);
        is_ill && self.counts && self.verdict.is_good()
    }
}

impl CheckReport {
    /// The report about these volumes, counted.
    pub fn of(volumes: Vec<Checked>, beside_volumes: Vec<Finding>) -> Self {
        let mut report = Self {
            volumes,
            beside_volumes,
            ..Self::default()
        };
        report.count();
        report
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        let others = [
            self.would_be_refused,
            self.not_active,
            self.busy,
            self.to_repair,
            self.unwell,
            self.beside_volumes.len(),
        ];
        u8::from(others.iter().any(|number| *number > 0))
    }

    /// Counts the volumes by their verdicts.
    fn count(&mut self) {
        self.unwell = self.volumes.iter().filter(|one| one.is_unwell()).count();
        for one in &self.volumes {
            let number = match one.verdict.next_mount() {
                _ if !one.counts => &mut self.not_counted,
                NextMount::Busy => &mut self.busy,
                NextMount::Repair => &mut self.to_repair,
                NextMount::Activate => &mut self.not_active,
                _ if one.verdict.is_good() => &mut self.would_mount,
                _ => &mut self.would_be_refused,
            };
            *number = number.saturating_add(1);
        }
    }
}

/// How to check with the `size` that a pod asks for, if the volume is refused for want of one.
fn unknown_size(verdict: &Verdict) -> Option<String> {
    let id = matches!(verdict.refusal(), Some(Reason::NoSize)).then_some(&verdict.id)?;
    Some(format!(
        "the `size` that a pod asks for is not known here: `{} check {id} -o size=10g` checks with one",
        own_name()
    ))
}

/// Each volume with its facts, the steps of its mount and the result.
pub fn in_steps(report: &CheckReport) -> String {
    let mut text = String::new();
    for Checked { verdict, .. } in &report.volumes {
        let _ = writeln!(text, "{}", verdict.id);
        for step in &verdict.steps {
            text.push_str(&indented(step, 2, width()));
        }
        let result = match verdict.message() {
            Some(message) if verdict.is_refused() => {
                format!("REFUSED: {message} [{}]", verdict.short())
            }
            Some(message) => format!("{}: {message}", verdict.word()),
            None => count(report),
        };
        text.push_str(&indented(&result, 2, width()));
        if let Some(see) = verdict.see() {
            text.push_str(&indented(&format!("see: `{see}`"), 2, width()));
        }
    }
    let faults = report.volumes.iter().flat_map(|one| &one.faults);
    for finding in faults.chain(&report.beside_volumes) {
        let mut line = format!("unwell: {}", finding.finding);
        if let Some(command) = &finding.command {
            let _ = write!(line, "; run `{command}`");
        }
        text.push_str(&indented(&line, 2, width()));
    }
    text
}

/// How wide the column of names is.
pub fn widest(choice: &Choice) -> usize {
    let ids = choice.ids.iter().map(|id| id.to_string().len());
    ids.chain(choice.groups.iter().map(String::len))
        .max()
        .unwrap_or_default()
}

/// A volume's line in a list.
pub fn line_of(one: &Checked, widest: usize) -> String {
    let verdict = &one.verdict;
    let what = verdict.message().or_else(|| verdict.main_step());
    let health = one.health.as_ref().filter(|_| one.is_unwell());
    let what = health.cloned().or(what).unwrap_or_default();
    in_line(&verdict.id.to_string(), verdict.word(), &what, widest)
}

/// The line of a fault beside the volumes.
pub fn line_beside(finding: &Finding, widest: usize) -> String {
    let about = finding.about.as_deref().unwrap_or_default();
    in_line(about, "unwell", &finding.finding, widest)
}

fn in_line(name: &str, word: &str, what: &str, widest: usize) -> String {
    /// As wide as `activate`, the longest word.
    const WORD: usize = 8;
    let before = format!("{name:widest$}  {word:WORD$}  ");
    let by = before.chars().count();
    let line = format!("{before}{}", indented(what, by, width()).trim_start());
    format!("{}\n", line.trim_end())
}

/// How many volumes would mount, and how many would not, in words.
pub fn count(report: &CheckReport) -> String {
    let mut text = format!(
        "{} would mount, {} would be refused",
        report.would_mount, report.would_be_refused
    );
    for (number, what) in [
        (report.not_active, "not active, so not looked at"),
        (report.to_repair, "if `e2fsck -p` can repair it"),
        (report.busy, "busy"),
        (
            report.unwell.saturating_add(report.beside_volumes.len()),
            "not well",
        ),
    ] {
        if number > 0 {
            let _ = write!(text, ", {number} {what}");
        }
    }
    if report.not_counted > 0 {
        let _ = write!(text, "; not counted: {} of no pod here", report.not_counted);
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Error;
    use proptest::prelude::*;

    use super::*;
    use crate::hostile::{has_lines, hostile};
    use driver::host::holders::Opener;
    use driver::mount::Table;
    use driver::names::Shown;
    use driver::volume::{Content, Decision, Facts, Reason};

    /// A report with hostile text in each place where others' text may be.
    fn report(hostile: &str) -> CheckReport {
        let id = LvId::parse("vg/data").unwrap();
        let mut row = Table::parse("36 1 254:1 / /a rw - ext4 /dev/x rw").rows()[0].clone();
        row.mount_point = hostile.into();
        let opener = Opener {
            pid: 7,
            command: hostile.shown(),
            writes: true,
        };
        let seen = |content, decision| {
            let mut facts = Facts::of(&id, 7);
            facts.content = Some(content);
            Verdict::of(&facts, decision)
        };
        let verdicts = [
            seen(Content::Other(hostile.shown()), Decision::Bind(row)),
            seen(
                Content::Failed(hostile.to_owned()),
                Decision::Refuse(Reason::Open(vec![opener])),
            ),
            Verdict::of_error(&id, &Error::msg(hostile.to_owned())),
        ];
        CheckReport {
            volumes: verdicts.map(Checked::unlisted).into(),
            ..CheckReport::default()
        }
    }

    proptest! {
        #[test]
        fn hostile_text_adds_no_line_to_check(hostile in hostile()) {
            let tame = report("x");
            let report = report(&hostile);
            let in_lines = |report: &CheckReport| {
                let lines = report.volumes.iter().map(|one| line_of(one, 7));
                lines.collect::<String>()
            };
            for print in [&in_steps as &dyn Fn(&CheckReport) -> String, &in_lines] {
                let text = print(&report);
                prop_assert!(has_lines(&text, print(&tame).lines().count()), "{text:?}");
            }
            let json = serde_json::to_string(&report).unwrap();
            prop_assert!(has_lines(&json, 1), "{json:?}");
        }
    }
}
