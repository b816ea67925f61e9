//! Turns an error and its causes into the one line that kubelet shows in a pod's events.

/// The longest message, in bytes. An event holds 1 KiB and kubelet's own words; the log more.
const LONGEST: usize = 2048;

/// The whole chain of causes on one line: no control characters, at most 2 KiB.
#[must_use]
pub fn one_line(error: &anyhow::Error) -> String {
    fold(&format!("{error:#}"))
}

/// Folds any text into one printable line of at most 2 KiB, cut in its middle if it is longer: its
/// beginning says what failed, its end what to do.
#[must_use]
pub fn fold(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        let c = match c {
            // kubelet takes the text as a format, some times twice: `%s` would be read as
            // `%!s(MISSING)` in the pod's event. Doubling the sign would help in one place only.
            '%' => '％',
            c if is_printable(c) => c,
            _ => ' ',
        };
        if c != ' ' || !line.ends_with(' ') {
            line.push(c);
        }
    }
    let line = line.trim();
    if line.len() <= LONGEST {
        return line.to_owned();
    }
    let half = LONGEST.saturating_sub(8) / 2;
    let head = line.floor_char_boundary(half);
    let tail = line.ceil_char_boundary(line.len().saturating_sub(half));
    let (head, tail) = (line.get(..head), line.get(tail..));
    format!("{} … {}", head.unwrap_or(""), tail.unwrap_or(""))
}

/// Control characters, line separators and what would turn the writing around are not.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_what_would_break_a_line() {
        let cases = [
            ("plain", "a b", "a b"),
            ("newline", "a\nb", "a b"),
            ("run of controls", "a\r\n\t\0b", "a b"),
            ("escape sequence", "a\u{1b}[31mb", "a [31mb"),
            ("line separator", "a\u{2028}b", "a b"),
            ("turned around", "a\u{202e}b", "a b"),
            ("ends", "\na\n", "a"),
            ("format", "95 % full, \"%s\"", "95 ％ full, \"％s\""),
        ];
        for (name, input, want) in cases {
            assert_eq!(fold(input), want, "{name}");
        }
    }

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "ä".repeat(5000));
        let folded = fold(&long);
        assert!(folded.len() <= LONGEST, "{}", folded.len());
        assert!(folded.starts_with("begin") && folded.ends_with("end"));
    }
}
