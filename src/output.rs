//! What commands for people print: text in columns, or JSON.

use std::fmt::Write;

use anyhow::{Context, Result};

/// What is to be printed, and the exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// For standard output: with a call-out, the document and nothing else.
    pub stdout: String,
    /// For standard error: with a call-out, nothing.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

impl Printed {
    /// A success that says this.
    pub fn text(stdout: String) -> Self {
        Self {
            stdout,
            ..Self::default()
        }
    }

    /// A failure that says this.
    pub fn failure(stderr: String, code: u8) -> Self {
        Self {
            stderr,
            code,
            ..Self::default()
        }
    }
}

/// A report as text or as JSON.
pub fn printed(report: &impl serde::Serialize, text: String, json: bool) -> Result<Printed> {
    let stdout = if json {
        let json = serde_json::to_string_pretty(report).context("writing the report")?;
        format!("{json}\n")
    } else {
        text
    };
    Ok(Printed::text(stdout))
}

/// Rows as aligned columns, two spaces between them.
pub fn columns(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (n, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(n) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = columns(&[row(["A", "B"]), row(["long", ""]), row(["x", "y"])]);
        assert_eq!(text, "A     B\nlong\nx     y\n");
    }
}
