//! What `lvm doctor` finds: what is wrong, why that matters, and the command that helps.

use anyhow::Result;
use serde::Serialize;

use crate::output::{Printed, columns, printed, red, yellow};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    Warning,
    /// A pod would fail.
    Failed,
}

#[derive(Serialize)]
#[allow(clippy::struct_field_names)] // what programs read
pub struct Finding {
    /// The check's name: a stable identifier for programs.
    check: &'static str,
    verdict: Level,
    /// The volume, directory or disk, if it is about one.
    about: Option<String>,
    finding: String,
    why: Option<&'static str>,
    command: Option<String>,
}

impl Finding {
    pub fn on(&mut self, about: &impl ToString) -> &mut Self {
        self.about = Some(about.to_string());
        self
    }

    pub fn why(&mut self, why: &'static str) -> &mut Self {
        self.why = Some(why);
        self
    }

    pub fn run(&mut self, command: impl Into<String>) -> &mut Self {
        self.command = Some(command.into());
        self
    }
}

#[derive(Default)]
pub struct Checks(Vec<Finding>);

impl Checks {
    pub fn ok(&mut self, check: &'static str, finding: impl Into<String>) {
        self.add(check, Level::Ok, finding);
    }

    pub fn warning(&mut self, check: &'static str, finding: impl Into<String>) -> &mut Finding {
        self.add(check, Level::Warning, finding)
    }

    pub fn failed(&mut self, check: &'static str, finding: impl Into<String>) -> &mut Finding {
        self.add(check, Level::Failed, finding)
    }

    #[allow(clippy::indexing_slicing)] // it has just been pushed
    pub fn add(
        &mut self,
        check: &'static str,
        verdict: Level,
        finding: impl Into<String>,
    ) -> &mut Finding {
        let at = self.0.len();
        self.0.push(Finding {
            check,
            verdict,
            about: None,
            finding: finding.into(),
            why: None,
            command: None,
        });
        &mut self.0[at]
    }

    /// The text or JSON to print. The exit code is 1 if a pod would fail, and 3 if there are only warnings.
    pub fn printed(&self, json: bool) -> Result<Printed> {
        let mut rows = Vec::new();
        for one in &self.0 {
            let word = match one.verdict {
                Level::Ok => "ok".to_owned(),
                Level::Warning => yellow("WARNING"),
                Level::Failed => red("FAILED"),
            };
            let about = one.about.clone().unwrap_or_else(|| one.check.to_owned());
            rows.push(vec![word, about, one.finding.clone()]);
            let why = one.why.map(str::to_owned);
            let run = one
                .command
                .as_ref()
                .map(|command| format!("run: {command}"));
            for line in why.into_iter().chain(run) {
                rows.push(vec![String::new(), String::new(), format!("  {line}")]);
            }
        }
        let mut report = printed(&self.0, columns(&rows), json)?;
        report.code = match self.0.iter().map(|one| one.verdict).max() {
            None | Some(Level::Ok) => 0,
            Some(Level::Failed) => 1,
            Some(Level::Warning) => 3,
        };
        Ok(report)
    }
}
