//! A finding: the fault, why it matters, and the command that helps.

use std::borrow::Cow;

use serde::Serialize;

use driver::names::{Shown, folded};

/// The word for a volume or a group with which nothing is wrong.
pub const OK: &str = "ok";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    Ok,
    /// Worth knowing, but nobody can repair it. It does not change the exit code.
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
    pub check: &'static str,
    pub severity: Severity,
    /// The volume, directory or disk that the finding is about.
    pub about: Option<String>,
    pub finding: String,
    pub why: Option<Cow<'static, str>>,
    pub command: Option<String>,
    /// The finding in one word, for a list.
    #[serde(skip)]
    pub word: String,
}

impl Finding {
    pub fn ok(check: &'static str, finding: impl Into<String>) -> Self {
        Self::new(check, Severity::Ok, finding)
    }

    pub fn warning(check: &'static str, finding: impl Into<String>) -> Self {
        Self::new(check, Severity::Warning, finding)
    }

    pub fn failed(check: &'static str, finding: impl Into<String>) -> Self {
        Self::new(check, Severity::Failed, finding)
    }

    pub fn new(check: &'static str, severity: Severity, finding: impl Into<String>) -> Self {
        Self {
            check,
            severity,
            about: None,
            finding: folded(&finding.into()),
            why: None,
            command: None,
            word: String::new(),
        }
    }

    /// Sets the word for a list.
    pub fn word(mut self, word: impl Into<String>) -> Self {
        self.word = word.into().shown().to_string();
        self
    }

    pub fn on(mut self, about: &impl ToString) -> Self {
        self.about = Some(about.to_string().shown().to_string());
        self
    }

    /// Makes the finding a note, unless it is a fault of the driver's: no pod would miss the volume or group of others.
    pub fn noted_unless(mut self, is_fault: bool) -> Self {
        if !is_fault {
            self.severity = self.severity.min(Severity::Note);
        }
        self
    }

    pub fn is_unwell(&self) -> bool {
        self.severity >= Severity::Warning
    }

    pub fn why(mut self, why: impl Into<Cow<'static, str>>) -> Self {
        self.why = Some(why.into());
        self
    }

    pub fn run(mut self, command: impl Into<String>) -> Self {
        self.command = Some(folded(&command.into()));
        self
    }
}
