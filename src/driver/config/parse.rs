//! From the bytes of the file to a [`Config`], or to its first mistake: toml's words, with the line and the key.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::{Config, LogTarget};
use crate::names::folded;

impl Config {
    /// An error is one line with `file`, the line and the key of the first mistake.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Self, String> {
        match str::from_utf8(bytes) {
            Ok(text) => Self::parse(text, file),
            Err(e) => {
                let line = line_of(bytes, e.valid_up_to());
                Err(format!("{file}, line {line}: this is not valid UTF-8 text"))
            }
        }
    }

    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        let mistake = |error: &Error, has_key: bool| {
            let at = error.span().map_or(text.len(), |span| span.start);
            let number = line_of(text.as_bytes(), at);
            let line = text.lines().nth(number.saturating_sub(1));
            let why = match line {
                // The line shows which key it is.
                Some(line) if !has_key => format!("{}, at {:?}", error.message(), line.trim()),
                _ => in_one_line(error),
            };
            folded(&format!("{file}, line {number}: {why}"))
        };
        let document = DeTable::parse(text).map_err(|error| mistake(&error, false))?;
        match Self::deserialize(Deserializer::from(document)) {
            Ok(config) => Ok(Self {
                file: file.to_owned(),
                ..config
            }),
            Err(error) => Err(mistake(&error, true)),
        }
    }

    /// The defaults, but with the `attach` and the `log` of a file that is wrong elsewhere.
    pub fn saved_from(bytes: &[u8], file: &str) -> Self {
        let text = str::from_utf8(bytes).unwrap_or_default();
        let (table, _) = DeTable::parse_recoverable(text);
        let value = |key| table.get_ref().get(key).map(Spanned::get_ref);
        let Self { attach, log, .. } = Self::default();
        let named = value("log").and_then(|log| LogTarget::try_from(log.as_str()?.to_owned()).ok());
        Self {
            file: file.to_owned(),
            attach: value("attach").and_then(DeValue::as_bool).unwrap_or(attach),
            log: named.unwrap_or(log),
            ..Self::default()
        }
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

/// The line, counted from 1, of the byte at `offset`.
fn line_of(text: &[u8], offset: usize) -> usize {
    let newlines = text.iter().take(offset).filter(|byte| **byte == b'\n');
    newlines.count().saturating_add(1)
}
