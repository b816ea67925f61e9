//! Text that others write: names of processes and directories, labels, tags, tools' messages. Such text may contain
//! escape sequences, which root's terminal would obey. It may also contain newlines, and root would take the next line
//! for the driver's own.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;

/// The longest message, in bytes. A pod's event holds 1 KiB, with kubelet's own words. The log holds more.
const LONGEST_MESSAGE: usize = 2048;

/// The longest quoted part of a message, in bytes. kubelet's path with the longest name of a volume is shorter.
const LONGEST_PART: usize = 512;

/// A text of somebody else, to show to people: one line of at most 512 bytes, with printable characters only. Only
/// [`Shown`] makes one. The driver opens, runs and decides nothing by such a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Foreign(String);

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The only way to put a path into a message: clippy.toml allows no other.
pub trait Shown {
    fn shown(&self) -> Foreign;

    /// The text, quoted as a word of a shell command. If it is longer than [`Self::shown`] allows: a placeholder, since
    /// a shortened path would name another file.
    fn quoted(&self) -> String;
}

impl<T: AsRef<OsStr> + ?Sized> Shown for T {
    #[allow(clippy::disallowed_methods)] // the only place that makes a `Foreign`
    fn shown(&self) -> Foreign {
        Foreign(folded_to(&self.as_ref().to_string_lossy(), LONGEST_PART))
    }

    fn quoted(&self) -> String {
        quoted_or_placeholder(self.as_ref())
    }
}

/// [`Shown::quoted`], compiled once for all types.
fn quoted_or_placeholder(word: &OsStr) -> String {
    let word = quoted(word);
    if word.len() > LONGEST_PART {
        return "PATH".to_owned();
    }
    word
}

/// The word, quoted so that a command with it can be pasted into a shell. The result is printable ASCII if the word has
/// bytes that [`folded`] would change: `$'…'` with octal escapes, which POSIX has since 2024.
#[allow(clippy::disallowed_methods)] // only what is the same as the word is printed
pub fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain_text = folded_to(&text, usize::MAX).as_str() == word;
    if !is_plain_text {
        let mut escaped = "$'".to_owned();
        for byte in word.as_bytes() {
            if matches!(byte, b'"'..=b'~') && !b"'\\".contains(byte) {
                escaped.push(char::from(*byte));
            } else {
                let digits = [byte >> 6, byte >> 3 & 7, byte & 7];
                escaped.push('\\');
                escaped.extend(digits.map(|digit| char::from(b'0' | digit)));
            }
        }
        escaped.push('\'');
        return escaped;
    }
    // A shell expands a tilde only at the beginning of a word. kubelet's directory for a driver has one inside.
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c) || (c == '~' && text.starts_with('/'))
    };
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The message as one printable line of at most 2 KiB. A message may quote text of others.
pub fn folded(text: &str) -> String {
    folded_to(text, LONGEST_MESSAGE)
}

/// Folds any text into one printable line of at most `most` bytes.
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

/// The line, with its middle cut out if it has more than `most` bytes. The beginning says what failed, the end what to
/// do.
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

/// Whether a character is printable: it can be seen, does not end a line, does not control a terminal, and does not
/// change the direction of text. Source: Unicode's DerivedCoreProperties.txt, `Default_Ignorable_Code_Point`.
#[rustfmt::skip] // a row is a plane of Unicode, or a part of it
pub fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}')
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}')
        && !matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}')
        && !matches!(c, '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

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
            (
                "hidden",
                "a\u{ad}b\u{3164}c\u{fe0f}d\u{e0041}e",
                "a b c d e",
            ),
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
            ("/mnt/ä b", "'/mnt/ä b'"),
            ("/mnt/a\nb", r"$'/mnt/a\012b'"),
            ("/mnt/a  b", r"$'/mnt/a\040\040b'"),
            ("/mnt/\u{1b}[2J'\\", r"$'/mnt/\033[2J\047\134'"),
            ("/mnt/\u{202e}x", r"$'/mnt/\342\200\256x'"),
        ];
        let bytes = (1..=255).collect::<Vec<u8>>();
        let inputs = cases.iter().map(|(input, _)| input.as_bytes());
        for input in inputs.chain(bytes.chunks(100)) {
            let quoted = Path::new(OsStr::from_bytes(input)).quoted();
            assert_eq!(folded(&quoted), quoted);
            let script = format!("printf %s {quoted}");
            let taken = Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(taken.stdout, input, "{quoted}");
        }
        for (input, want) in cases {
            assert_eq!(Path::new(input).quoted(), want);
        }
        // A part of such a path would be another path.
        assert_eq!(Path::new(&"a/".repeat(LONGEST_PART)).quoted(), "PATH");
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
