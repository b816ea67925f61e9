//! Hostile text, for tests of text that people see.

use proptest::prelude::*;

/// Text that is not blank. It often contains control sequences of terminals, newlines, and characters with a meaning in
/// YAML, in the format of metrics or in a shell.
pub fn hostile() -> impl Strategy<Value = String> {
    #[rustfmt::skip] // a list
    const TELLING: [&str; 24] = [
        "\x1b[2J", "\x1b]0;x\x07", "\u{9b}31m", "\n", "\r", "\0", "\t", "\u{7f}", "\u{85}", "\u{2028}", "\u{202e}",
        "\u{2066}", "\u{61c}", "\u{feff}", "\"", "\\", ": ", " #", "{{", "---", "- ", "`$(x)`", "vg/data is ready", "'",
    ];
    let part = prop_oneof![
        8 => proptest::sample::select(TELLING.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => (0..5000_usize).prop_map(|length| "ä".repeat(length)),
    ];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat() + "x")
}

/// Whether a text has this number of lines, and only printable characters.
pub fn has_lines(text: &str, number: usize) -> bool {
    text.chars().all(|c| c == '\n' || super::is_printable(c)) && text.lines().count() == number
}
