//! `flexvolume-lvm explain`: what a word in brackets, or of NEXT MOUNT, means, and what helps. It asks nothing of the
//! host.

use std::collections::HashSet;

use anyhow::{Result, bail};
use strum::IntoEnumIterator;

use super::survey::NextMount;
use crate::output::{Printed, indented, width};
use driver::failed_step::FailedStep;
use driver::names::nearest;
use driver::volume::Word;

/// A word that says why a mount would fail, or a call did: it has a heading in docs/on-call.md. Or a word for what the
/// next mount does: it has a row there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Refusal(Word),
    NotLookedAt,
    Step(FailedStep),
    NextMount(NextMount),
}

impl Topic {
    pub fn word(self) -> &'static str {
        match self {
            Self::Refusal(word) => word.into(),
            Self::NotLookedAt => "not-looked-at",
            Self::Step(step) => step.into(),
            Self::NextMount(next) => next.into(),
        }
    }

    /// Paragraphs in Markdown.
    fn text(self) -> &'static str {
        match self {
            Self::Refusal(word) => word.text(),
            Self::NotLookedAt => include_str!("../../driver/volume/decide/words/not-looked-at.md"),
            Self::Step(step) => step.text(),
            Self::NextMount(next) => next.text(),
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
        let of_next_mount = NextMount::iter().map(Self::NextMount);
        Self::of_refusals()
            .chain(Self::of_steps())
            .chain(of_next_mount)
    }

    /// Parses a word, with or without its brackets. The first topic of this word: see [`run`].
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim_matches(['[', ']']);
        if let Some(topic) = Self::all().find(|one| one.word() == text) {
            return Ok(topic);
        }
        match near(text).as_slice() {
            [] => bail!("the driver has no such word; without a word, the command lists all"),
            [one] => bail!("the driver has no such word; did you mean {one}?"),
            several => bail!(
                "the driver has no such word; did you mean one of {}?",
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
    let mut with_part = all.clone();
    with_part.retain(|word| has_part(word, &text));
    if text.len() >= SHORTEST && !with_part.is_empty() {
        return with_part;
    }
    nearest(&text, &all).into_iter().collect()
}

/// Whether the word begins with the part, or has it after a `-`.
fn has_part(word: &str, part: &str) -> bool {
    let mut ends = word.match_indices('-').filter_map(|(at, _)| word.get(at..));
    word.starts_with(part) || ends.any(|end| end.starts_with(&format!("-{part}")))
}

/// Prints all texts about a word, or all words. A word for what the next mount does may also be that of a message.
pub fn run(topic: Option<Topic>) -> Printed {
    let Some(topic) = topic else {
        let mut all: Vec<&str> = Topic::all().map(Topic::word).collect();
        let mut seen = HashSet::new();
        all.retain(|word| seen.insert(*word));
        let width = width().min(80);
        return Printed::text(indented(&all.join(" "), 0, width));
    };
    let mut text = format!("{}\n", topic.word());
    for one in Topic::all().filter(|one| one.word() == topic.word()) {
        let begin = match one {
            Topic::NextMount(_) => "In NEXT MOUNT, and as the verdict of `check`: ",
            Topic::Refusal(_) | Topic::NotLookedAt | Topic::Step(_) => "",
        };
        for paragraph in one.text().trim_end().split("\n\n") {
            text.push('\n');
            let items = paragraph
                .replace("\n- ", "\r- ")
                .replace("\n  ", " ")
                .replace('\n', " ");
            for item in items.split('\r') {
                let item = format!("{begin}{}", without_links(item));
                text.push_str(&indented(&item, 2, width()));
            }
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

    /// The page, with a row for each [`NextMount`] in the table of this section.
    fn with_table(page: &str, section: &str) -> String {
        const HEAD: &str = "\n|---|---|\n";
        let (before, rest) = page.split_once(section).unwrap();
        let (head, rest) = rest.split_once(HEAD).unwrap();
        let (_, after) = rest.split_once("\n\n").unwrap();
        let rows = NextMount::iter().map(|next| {
            let word: &str = next.into();
            format!("| `{word}` | {} |\n", next.text())
        });
        let rows = rows.collect::<String>();
        format!("{before}{section}{head}{HEAD}{rows}\n{after}")
    }

    #[test]
    fn the_page_for_who_is_on_call_has_the_texts_of_all_messages() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/on-call.md");
        let page = fs::read_to_string(path).unwrap();
        let want = with_table(&page, "\n## 2. ");
        let want = with_words(&want, "\n## 3. ", Topic::of_refusals());
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
            let found = Topic::parse(topic.word()).unwrap();
            let is_next = matches!(topic, Topic::NextMount(_));
            // No two words of messages are the same.
            assert!(found == topic || is_next && found.word() == topic.word());
            let said = run(Some(found)).stdout;
            let lines = said.lines().count();
            assert!((3..30).contains(&lines) && !said.contains("]("), "{said}");
            assert_eq!(topic.text().starts_with("Why: "), !is_next, "{said}");
        }
        // What a person types who has read NEXT MOUNT.
        for next in NextMount::iter() {
            let said = run(Some(Topic::parse(next.into()).unwrap())).stdout;
            assert!(said.contains("In NEXT MOUNT, "), "{said}");
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
