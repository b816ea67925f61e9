//! From the text of the file to a [`Config`], or to its mistakes: toml's words, with the line and the key.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::Config;
use super::values::fit_together;
use crate::names::folded;

impl Config {
    /// An error is the first mistake, in one line.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        Self::parse_up_to(1, text, file).map_err(|mistakes| mistakes.concat())
    }

    /// An error is the mistakes, at most so many, in the order of the file, a line each.
    pub fn parse_up_to(most: usize, text: &str, file: &str) -> Result<Self, Vec<String>> {
        let (mut document, errors) = DeTable::parse_recoverable(text);
        let mut mistakes: Vec<Mistake> = errors.iter().map(|e| Mistake::of_toml(text, e)).collect();
        // In a file that is not TOML nobody can tell which key belongs to which table.
        while errors.is_empty() && mistakes.len() < most {
            let mistake = match Self::of_table(document.clone(), file) {
                Ok(config) if mistakes.is_empty() => return Ok(config),
                Ok(_) => break,
                Err(mistake) => mistake,
            };
            // Without this key, serde goes on to the next mistake.
            let is_new = remove(document.get_mut(), mistake.at);
            mistakes.push(mistake);
            if !is_new {
                break;
            }
        }
        let mut lines: Vec<(usize, String)> = mistakes
            .into_iter()
            .map(|Mistake { at, why }| (line_of(text.as_bytes(), at), why))
            .collect();
        lines.sort();
        lines.dedup_by_key(|(line, _)| *line);
        let said = lines.into_iter().take(most);
        let said = said.map(|(line, why)| folded(&format!("{file}, line {line}: {why}")));
        Err(said.collect())
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

/// Takes out the key that is at an offset, and each table that is empty then: an empty table may be wrong. `false`
/// if there is none.
fn remove(table: &mut DeTable, at: usize) -> bool {
    let mut found = None;
    for (name, value) in table.iter_mut() {
        let is_here = name.span().contains(&at) || value.span().contains(&at);
        let emptied = match value.get_mut() {
            DeValue::Table(inner) => remove(inner, at).then(|| inner.is_empty()),
            _ => None,
        };
        if emptied == Some(false) {
            return true;
        }
        if is_here || emptied.is_some() {
            found = Some(name.clone());
        }
    }
    found.is_some_and(|name| table.remove(&name).is_some())
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
