//! Text that others write: names of processes and directories, labels, tags, what tools say. Root reads it on a
//! terminal, which obeys escape sequences, and in lines, of which each is the driver's.

use std::ffi::OsStr;
use std::fmt;

use serde::Serialize;

/// The longest message, in bytes. An event holds 1 KiB and kubelet's own words; the log more.
const LONGEST_MESSAGE: usize = 2048;

/// The longest part of a message, in bytes: more than a path of kubelet's has with the longest name of a volume.
const LONGEST_PART: usize = 512;

/// A text of somebody else's, for people: one line of at most 512 bytes, of which each character can be seen.
/// Only [`Shown`] makes one. Nothing is opened, run or decided by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Foreign(String);

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The one way from a path to a message: clippy.toml allows no other.
pub trait Shown {
    fn shown(&self) -> Foreign;

    /// The same as a word of a command in a message.
    fn quoted(&self) -> String {
        quoted(&self.shown().0)
    }
}

impl<T: AsRef<OsStr> + ?Sized> Shown for T {
    #[allow(clippy::disallowed_methods)] // the one door
    fn shown(&self) -> Foreign {
        Foreign(folded_to(&self.as_ref().to_string_lossy(), LONGEST_PART))
    }
}

/// A word of a command that can be pasted into a shell.
pub fn quoted(word: &str) -> String {
    // A tilde means something at the beginning; kubelet's directory for a driver has one inside.
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c) || (c == '~' && word.starts_with('/'))
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A message on one printable line of at most 2 KiB, whatever it quotes.
pub fn folded(text: &str) -> String {
    folded_to(text, LONGEST_MESSAGE)
}

/// Folds any text into one printable line of at most so many bytes.
pub fn folded_to(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if is_printable(c) { c } else { ' ' };
        if c != ' ' || !line.ends_with(' ') {
            line.push(c);
        }
    }
    shortened(line.trim(), most)
}

/// At most this many bytes of a line. The middle is cut out: the beginning says what failed, the end
/// what to do.
fn shortened(line: &str, most: usize) -> String {
    if line.len() <= most {
        return line.to_owned();
    }
    let half = most.saturating_sub(8) / 2;
    let head = line.floor_char_boundary(half);
    let tail = line.ceil_char_boundary(line.len().saturating_sub(half));
    let (head, tail) = (line.get(..head), line.get(tail..));
    format!("{} … {}", head.unwrap_or(""), tail.unwrap_or(""))
}

/// Whether a character can be seen: it ends no line, commands no terminal, turns no writing around, and has a width.
pub fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
        && !matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn folds_what_would_break_a_line() {
        let cases = [
            ("plain", "a b", "a b"),
            ("newline", "a\nb", "a b"),
            ("run of controls", "a\r\n\t\0b", "a b"),
            ("escape sequence", "a\u{1b}[31mb", "a [31mb"),
            ("escape of one byte in Latin 1", "a\u{9b}31mb", "a 31mb"),
            ("line separator", "a\u{2028}b", "a b"),
            ("turned around", "a\u{202e}b\u{2067}c\u{61c}d", "a b c d"),
            ("without a width", "a\u{200b}b\u{feff}c\u{2063}d", "a b c d"),
            ("ends", "\na\n", "a"),
            ("of other languages", "ä 東京 🙂", "ä 東京 🙂"),
        ];
        for (name, input, want) in cases {
            assert_eq!(folded(input), want, "{name}");
            assert_eq!(Path::new(input).shown().to_string(), want, "{name}");
        }
    }

    #[test]
    fn a_path_in_a_command_is_one_word_of_a_shell() {
        let cases = [
            ("/mnt/a", "/mnt/a"),
            ("/x/kubernetes.io~lvm/a", "/x/kubernetes.io~lvm/a"),
            ("/mnt/my data", "'/mnt/my data'"),
            ("/mnt/$(reboot)", "'/mnt/$(reboot)'"),
            ("/mnt/it's", r"'/mnt/it'\''s'"),
            ("/mnt/a;b&c|d>e*?[f]{g}", "'/mnt/a;b&c|d>e*?[f]{g}'"),
            ("~/a", "'~/a'"),
            ("", "''"),
        ];
        for (input, want) in cases {
            assert_eq!(Path::new(input).quoted(), want);
        }
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "ä".repeat(5000));
        for (line, most) in [
            (folded(&long), LONGEST_MESSAGE),
            (long.shown().to_string(), LONGEST_PART),
        ] {
            assert!(line.len() <= most, "{}", line.len());
            assert!(line.starts_with("begin") && line.ends_with("end"));
        }
    }
}
