//! `flexvolume-lvm explain`: what a word in brackets means, and what helps. It asks nothing of the host.

use std::str::FromStr;

use anyhow::{Result, bail};
use strum::IntoEnumIterator;

use crate::output::{Printed, indented, width};
use driver::failed_step::FailedStep;
use driver::names::nearest;
use driver::volume::Word;

/// A word that says why a mount would fail, or a call did. Each has a heading in docs/on-call.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Refusal(Word),
    NotLookedAt,
    Step(FailedStep),
}

impl Topic {
    pub fn word(self) -> &'static str {
        match self {
            Self::Refusal(word) => word.into(),
            Self::NotLookedAt => "not-looked-at",
            Self::Step(step) => step.into(),
        }
    }

    /// Paragraphs in Markdown.
    fn text(self) -> &'static str {
        match self {
            Self::Refusal(word) => word.text(),
            Self::NotLookedAt => include_str!("../../driver/volume/decide/words/not-looked-at.md"),
            Self::Step(step) => step.text(),
        }
    }

    fn of_refusals() -> impl Iterator<Item = Self> {
        let refusals = Word::iter().map(Self::Refusal);
        refusals.chain([Self::NotLookedAt])
    }

    fn of_steps() -> impl Iterator<Item = Self> {
        FailedStep::iter().map(Self::Step)
    }

    fn all() -> impl Iterator<Item = Self> {
        Self::of_refusals().chain(Self::of_steps())
    }

    /// Parses a word, with or without its brackets.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim_matches(['[', ']']);
        if let Ok(word) = Word::from_str(text) {
            return Ok(Self::Refusal(word));
        }
        if let Some(topic) = Self::all().find(|one| one.word() == text) {
            return Ok(topic);
        }
        match near(text).as_slice() {
            [] => bail!("no message ends with this word; without a word, the command lists all"),
            [one] => bail!("no message ends with this word; did you mean {one}?"),
            several => bail!(
                "no message ends with this word; did you mean one of {}?",
                several.join(", ")
            ),
        }
    }
}

/// The words that a mistyped word, or a part of a word, may stand for: those that begin with the text or have it after
/// a `-`, or else the nearest one.
fn near(text: &str) -> Vec<&'static str> {
    /// Shorter texts are parts of too many words.
    const SHORTEST: usize = 3;
    let all: Vec<&str> = Topic::all().map(Topic::word).collect();
    let text = text.to_lowercase();
    let has_part = |word: &&str| {
        let mut ends = word.match_indices('-').filter_map(|(at, _)| word.get(at..));
        word.starts_with(&text) || ends.any(|end| end.starts_with(&format!("-{text}")))
    };
    let with_part: Vec<&str> = all.iter().copied().filter(has_part).collect();
    if text.len() >= SHORTEST && !with_part.is_empty() {
        return with_part;
    }
    nearest(&text, &all).into_iter().collect()
}

/// Prints the text about a word, or all words.
pub fn run(topic: Option<Topic>) -> Printed {
    let Some(topic) = topic else {
        let all: Vec<&str> = Topic::all().map(Topic::word).collect();
        let width = width().min(80);
        return Printed::text(indented(&all.join(" "), 0, width));
    };
    let mut text = format!("{}\n", topic.word());
    for paragraph in topic.text().trim_end().split("\n\n") {
        text.push('\n');
        let items = paragraph
            .replace("\n- ", "\r- ")
            .replace("\n  ", " ")
            .replace('\n', " ");
        for item in items.split('\r') {
            text.push_str(&indented(&without_links(item), 2, width()));
        }
    }
    Printed::text(text)
}

/// The text with `[words](target)` as `words (docs/on-call.md#…)`.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut plain = parts.next().unwrap_or_default().replace('[', "");
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        let page = if target.starts_with('#') {
            "on-call.md"
        } else {
            ""
        };
        let words = [" (docs/", page, target, ")", &rest.replace('[', "")];
        plain.push_str(&words.concat());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The page, with the headings of these words in the place of those after `section`.
    fn with_words(page: &str, section: &str, topics: impl Iterator<Item = Topic>) -> String {
        let (before, rest) = page.split_once(section).unwrap();
        let (head, rest) = rest.split_once("\n### ").unwrap();
        let (_, after) = rest.split_once("\n## ").unwrap();
        let texts = topics.map(|one| format!("### {}\n\n{}\n", one.word(), one.text()));
        format!(
            "{before}{section}{head}\n{}## {after}",
            texts.collect::<String>()
        )
    }

    #[test]
    fn the_page_for_who_is_on_call_has_the_texts_of_all_messages() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/on-call.md");
        let page = fs::read_to_string(path).unwrap();
        let want = with_words(&page, "\n## 3. ", Topic::of_refusals());
        let want = with_words(&want, "\n## 4. ", Topic::of_steps());
        if std::env::var_os("FLEXVOLUME_LVM_WRITE").is_some() {
            return fs::write(path, want).unwrap();
        }
        let other = page.lines().zip(want.lines()).find(|(is, want)| is != want);
        assert!(
            page == want,
            "FLEXVOLUME_LVM_WRITE=1 corrects {path}: {other:#?}"
        );
    }

    #[test]
    fn a_word_is_found_and_a_mistyped_one_gets_a_suggestion() {
        for topic in Topic::all() {
            // No two words are the same.
            assert_eq!(Topic::parse(topic.word()).unwrap(), topic);
            let said = run(Some(topic)).stdout;
            let lines = said.lines().count();
            assert!((4..24).contains(&lines) && !said.contains("]("), "{said}");
            assert!(topic.text().starts_with("Why: "), "{said}");
        }
        assert_eq!(
            Topic::parse("[no-room]").unwrap(),
            Topic::Refusal(Word::NoRoom)
        );
        for (text, near) in [
            ("no-rom", "; did you mean no-room?"),
            ("header", "; did you mean luks-header?"),
            ("[Luks]", "; did you mean one of luks-header, luks-format?"),
            (
                "read-only",
                "; did you mean one of mounted-read-only, create-read-only, ",
            ),
            ("no", "lists all"),
            ("", "lists all"),
            ("ext4", "lists all"),
        ] {
            let error = Topic::parse(text).unwrap_err().to_string();
            assert!(error.contains(near), "{text}: {error}");
        }
        assert!(run(None).stdout.contains("no-room"));
    }

    #[test]
    fn a_link_is_a_file_and_its_heading() {
        let text = "[More](#x), and [a page](limits.md#y).";
        let want = "More (docs/on-call.md#x), and a page (docs/limits.md#y).";
        assert_eq!(without_links(text), want);
    }
}
