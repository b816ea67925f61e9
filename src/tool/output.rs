//! Formats the output of commands for people: text in columns, or JSON.

use std::fmt::{Display, Write};
use std::io::{IsTerminal, Write as _};

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
pub use driver::reply::Printed;

/// The exit code of a wrong command line, and of a command that only root may run.
pub const USAGE: u8 = 2;

/// Prints at once, for a command that does not end by itself, or whose later steps may fail. A write error is ignored.
pub fn tell(text: &str) {
    let mut out = anstream::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The answer of a command: the report as JSON, or else the text. `code`: the exit code.
pub fn printed(
    report: &impl serde::Serialize,
    text: String,
    json: bool,
    code: u8,
) -> Result<Printed> {
    let stdout = if json {
        let json = serde_json::to_string_pretty(report).context("writing the report")?;
        format!("{json}\n")
    } else {
        text
    };
    Ok(Printed {
        code,
        ..Printed::text(stdout)
    })
}

/// `1 volume`, `2 volumes`.
pub fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Paints text red, for a fault.
pub fn red(text: impl Display) -> String {
    painted(text, Style::new().fg_color(Some(AnsiColor::Red.into())))
}

/// Paints text yellow, for what may become a fault.
pub fn yellow(text: impl Display) -> String {
    painted(text, Style::new().fg_color(Some(AnsiColor::Yellow.into())))
}

pub fn bold(text: impl Display) -> String {
    painted(text, Style::new().bold())
}

fn painted(text: impl Display, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

pub fn titles<const N: usize>(titles: [&str; N]) -> Vec<String> {
    titles.map(bold).to_vec()
}

/// The width of a line: that of the terminal, or 80 if its size is unknown. `usize::MAX`: standard output is no
/// terminal.
pub fn width() -> usize {
    const OF_OLD: usize = 80;
    if !std::io::stdout().is_terminal() {
        return usize::MAX;
    }
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map_or(OF_OLD, |(width, _)| usize::from(width.0))
}

/// `part` as a percentage of `all`, rounded down. 0 if `all` is less than 100.
pub fn percent(part: u64, all: u64) -> f64 {
    let hundredths = part.checked_div(all / 100).unwrap_or_default();
    f64::from(u32::try_from(hundredths).unwrap_or(u32::MAX))
}

/// A text like `41 % filled`. On a terminal, a bar is before the words. The number is rounded down: only what is full
/// has 100 %.
pub fn share(percent: f64, word: &str) -> String {
    let words = format!("{:.0} % {word}", percent.clamp(0.0, 100.0).floor());
    if width() == usize::MAX {
        return words;
    }
    let steps = [10.0, 30.0, 50.0, 70.0, 90.0];
    let bar = steps.map(|step| if percent >= step { '█' } else { '░' });
    format!("{} {words}", bar.iter().collect::<String>())
}

/// A text in lines of at most `width` characters. A command in backquotes stays on one line, even if it is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    /// In a narrower terminal, the text is not wrapped here: the terminal itself wraps it better.
    const NARROWEST: usize = 20;
    let mut lines = vec![String::new()];
    for word in words(text) {
        if let Some(line) = lines.last_mut().filter(|line| !line.is_empty()) {
            let length = line.chars().count().saturating_add(word.chars().count());
            if width < NARROWEST || length < width {
                line.push(' ');
            } else {
                lines.push(String::new());
            }
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&word);
        }
    }
    lines
}

/// The words of a text. A command in backquotes is one of them.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_command = false;
    for part in text.split(' ') {
        match words.last_mut().filter(|_| is_command) {
            Some(command) => {
                command.push(' ');
                command.push_str(part);
            }
            None => words.push(part.to_owned()),
        }
        is_command ^= !part.matches('`').count().is_multiple_of(2);
    }
    words
}

/// Wraps a text, and begins each line with `by` spaces.
pub fn indented(text: &str, by: usize, width: usize) -> String {
    let mut all = String::new();
    for line in wrapped(text, width.saturating_sub(by)) {
        let _ = writeln!(all, "{:by$}{line}", "");
    }
    all
}

/// How many columns of a terminal a text takes, without its colour codes.
pub fn columns_of(text: &str) -> usize {
    strip_str(text).to_string().chars().count()
}

/// The rows as aligned columns, with two spaces between them.
pub fn columns(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (n, cell) in row.iter().enumerate() {
            match widths.get_mut(n) {
                Some(widest) => *widest = columns_of(cell).max(*widest),
                None => widths.push(columns_of(cell)),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let space = width.saturating_sub(columns_of(cell)).saturating_add(2);
            let _ = write!(line, "{cell}{:space$}", "");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Like [`columns`], but wraps the last column to make lines of at most `width` characters. Only a long word, or a
/// command in backquotes, makes a line longer.
pub fn columns_within(rows: &[Vec<String>], width: usize) -> String {
    let last = rows
        .iter()
        .map(Vec::len)
        .max()
        .unwrap_or_default()
        .saturating_sub(1);
    let mut before: Vec<Vec<String>> = rows.to_vec();
    for row in &mut before {
        row.truncate(last);
    }
    let before = columns(&before);
    let widest = before.lines().map(columns_of).max();
    let by = widest.unwrap_or_default().saturating_add(2);
    let mut text = String::new();
    for (line, row) in before.lines().zip(rows) {
        let Some(cell) = row.get(last) else {
            let _ = writeln!(text, "{line}");
            continue;
        };
        let space = by.saturating_sub(columns_of(line));
        let below = indented(cell, by, width);
        let _ = write!(text, "{line}{:space$}{}", "", below.trim_start());
    }
    text
}

/// The text, with each line cut to `width` columns of the terminal.
pub fn cut(text: &str, width: usize) -> String {
    let mut all = String::new();
    for line in text.lines() {
        let is_long = columns_of(line) > width;
        let mut left = width.saturating_sub(usize::from(is_long));
        let mut in_colour = false;
        for c in line.chars() {
            // A colour code takes no column, and the code that ends a colour must not be cut.
            if in_colour || c == '\x1b' {
                in_colour = c != 'm';
                all.push(c);
            } else if left > 0 {
                left = left.saturating_sub(1);
                all.push(c);
            }
        }
        all.push_str(if is_long { "…\n" } else { "\n" });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_between_words_and_never_in_a_command() {
        let cases = [
            ("one two three", usize::MAX, vec!["one two three"]),
            (
                "it is full: run `lvextend -L +1g vg/pool` there",
                24,
                vec!["it is full: run", "`lvextend -L +1g vg/pool`", "there"],
            ),
            (
                "so run `lvs -a vg/pool` there",
                20,
                vec!["so run", "`lvs -a vg/pool`", "there"],
            ),
            ("no room for a column", 5, vec!["no room for a column"]),
            ("", 24, vec![""]),
        ];
        for (text, width, want) in cases {
            assert_eq!(wrapped(text, width), want, "{text}");
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = columns(&[row(["A", "B"]), row(["long", ""]), row(["x", "y"])]);
        assert_eq!(text, "A     B\nlong\nx     y\n");
        let painted = columns(&[vec![red("A"), bold("B")], row(["long", "x"])]);
        assert_eq!(strip_str(&painted).to_string(), "A     B\nlong  x\n");
        assert_ne!(painted, strip_str(&painted).to_string());
    }

    #[test]
    fn the_last_column_is_wrapped_below_itself() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect();
        let rows: [Vec<String>; 3] = [
            row(&["vg/x", "ok", "mounts it"]),
            row(&["vg/data", "busy"]),
            row(&[
                "a",
                "refused",
                "run `lvs -a` as root, then look for it here",
            ]),
        ];
        let text = columns_within(&rows, 40);
        let want = "vg/x     ok       mounts it\nvg/data  busy\na        refused  run `lvs -a` as root,\n                  then look for it here\n";
        assert_eq!(text, want);
        assert_eq!(columns_within(&rows, usize::MAX), columns(&rows));
    }

    #[test]
    fn a_line_is_cut_and_its_colour_ends() {
        let text = format!("{} end\nshort\n", red("wrong"));
        assert_eq!(cut(&text, 9), text);
        let short = cut(&text, 5);
        assert_eq!(strip_str(&short).to_string(), "wron…\nshort\n");
        assert!(short.starts_with(&red("wron")), "{short:?}");
    }
}
