//! From the text of the file to a [`Config`], or to its first mistake: toml's words, with the line and the key.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer, Error};

use super::Config;
use super::values::fit_together;
use crate::names::folded;

impl Config {
    /// An error is the first mistake, in one line.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        DeTable::parse(text)
            .map_err(|error| Mistake::of_toml(text, &error))
            .and_then(|document| Self::of_table(document, file))
            .map_err(|Mistake { at, why }| {
                let line = line_of(text.as_bytes(), at);
                folded(&format!("{file}, line {line}: {why}"))
            })
    }

    fn of_table(document: Spanned<DeTable>, file: &str) -> Result<Self, Mistake> {
        let mut config = Self::deserialize(Deserializer::from(document)).map_err(|e| Mistake {
            at: e.span().map_or(0, |span| span.start),
            why: in_one_line(&e),
        })?;
        file.clone_into(&mut config.file);
        fit_together(&config).map_err(|(at, why)| Mistake { at, why })?;
        Ok(config)
    }
}

struct Mistake {
    /// The offset in the text, in bytes.
    at: usize,
    why: String,
}

impl Mistake {
    fn of_toml(text: &str, error: &Error) -> Self {
        let at = error.span().map_or(text.len(), |span| span.start);
        // There may be no key yet, so the line itself is shown.
        let line = line_of(text.as_bytes(), at).saturating_sub(1);
        let line = text.lines().nth(line).unwrap_or_default();
        let why = format!("{}, at {:?}", error.message(), line.trim());
        Self { at, why }
    }
}

/// toml's words and, on a line of its own there, the key.
fn in_one_line(error: &Error) -> String {
    if error.message().starts_with("unknown field `stale_backups`") {
        return "stale_backups: this key is gone: backup superblocks of xfs and btrfs no longer keep a blank \
                volume from being formatted; remove this line"
            .to_owned();
    }
    error.to_string().trim_end().replace("\nin `", ", in `")
}

pub fn text_of<'a>(bytes: &'a [u8], file: &str) -> Result<&'a str, String> {
    str::from_utf8(bytes).map_err(|e| {
        let line = line_of(bytes, e.valid_up_to());
        format!("{file}, line {line}: this is not valid UTF-8 text")
    })
}

/// The line, counted from 1, of the byte at `offset`.
fn line_of(text: &[u8], offset: usize) -> usize {
    let newlines = text.iter().take(offset).filter(|byte| **byte == b'\n');
    newlines.count().saturating_add(1)
}
