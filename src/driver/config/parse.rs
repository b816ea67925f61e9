//! From the text of the file to a [`Config`], or to one line that says where it is wrong.

use std::iter::once;
use std::ops::Range;

use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::values::{as_key, fit_together};
use super::{Config, FsConfig, Limits, Luks, VolumeGroup};
use crate::names::nearest;

impl Config {
    /// An error is the first mistake, in one line.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        Self::parse_up_to(1, text, file).map_err(|mistakes| mistakes.concat())
    }

    /// An error is the mistakes, at most so many, in the order of the file, a line each. From where it is
    /// not TOML nobody can tell what belongs where, so only mistakes of that kind are named there.
    pub fn parse_up_to(most: usize, text: &str, file: &str) -> Result<Self, Vec<String>> {
        let (mut document, errors) = DeTable::parse_recoverable(text);
        let mut mistakes: Vec<Mistake> = errors.iter().map(|e| Mistake::of_toml(text, e)).collect();
        let end = mistakes.iter().map(|mistake| mistake.line).min();
        let looks = if end.is_none() || most > 1 { most } else { 0 };
        for _ in 0..looks {
            let (key, mistake) = match Self::of_table(&document, text, file) {
                Ok(config) if mistakes.is_empty() => return Ok(config),
                Ok(_) => break,
                Err(mistake) => mistake,
            };
            if end.is_none_or(|end| mistake.line < end) {
                mistakes.push(mistake);
            }
            // Without it, serde goes on to the next one.
            remove(document.get_mut(), &key);
        }
        mistakes.sort_by_key(|mistake| mistake.line);
        mistakes.dedup_by(|b, a| (a.line, &a.key) == (b.line, &b.key));
        mistakes.truncate(most);
        let said = |Mistake { line, key, why }| format!("{file}, line {line}, {key}: {why}");
        Err(mistakes.into_iter().map(said).collect())
    }

    /// An error is one mistake, and the names of the key that it is at.
    fn of_table(
        document: &Spanned<DeTable>,
        text: &str,
        file: &str,
    ) -> Result<Self, (Vec<String>, Mistake)> {
        let keys = keys(document.get_ref(), &[]);
        let mistake = |key: Option<&Key>, offset: usize, path: String, why: String| {
            let names = key.map_or(&[][..], |key| &key.names);
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let line = line_of(text.as_bytes(), offset);
            let key = path;
            (names, Mistake { line, key, why })
        };
        let values = Deserializer::from(document.clone());
        let mut config = Self::deserialize(values).map_err(|e| {
            let offset = e.span().map_or(0, |span| span.start);
            let key = keys.iter().rfind(|key| key.is_at(offset));
            let path = key.map(Key::path).unwrap_or_default();
            let why = why_wrong(&path, e.message());
            mistake(key, offset, path, why)
        })?;
        file.clone_into(&mut config.file);
        fit_together(&config).map_err(|(path, why)| {
            let key = keys.iter().find(|key| key.path() == path);
            mistake(key, key.map_or(0, |key| key.value.start), path, why)
        })?;
        Ok(config)
    }
}

struct Mistake {
    line: usize,
    key: String,
    why: String,
}

impl Mistake {
    fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        let offset = error.span().map_or(text.len(), |span| span.start);
        let line = line_of(text.as_bytes(), offset);
        // There may be no key yet, so the line itself is shown.
        let words = text.lines().nth(line.saturating_sub(1));
        let words: String = words.unwrap_or_default().trim().chars().take(60).collect();
        let why: Vec<&str> = error.message().split_whitespace().collect();
        Self {
            line,
            key: format!("at {words:?}"),
            why: why.join(" "),
        }
    }
}

/// Takes a key out, and a table that is empty then: it may be wrong because of that.
fn remove(table: &mut DeTable, names: &[String]) {
    let Some((name, below)) = names.split_first() else {
        return;
    };
    if let Some(DeValue::Table(inner)) = table.get_mut(name.as_str()).map(Spanned::get_mut)
        && !below.is_empty()
    {
        remove(inner, below);
        if !inner.is_empty() {
            return;
        }
    }
    table.remove(name.as_str());
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

/// A key with the names of its tables before it, and where the file has the key and its value.
struct Key<'a> {
    names: Vec<&'a str>,
    name: Range<usize>,
    value: Range<usize>,
}

impl Key<'_> {
    fn path(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|name| as_key(name)).collect();
        names.join(".")
    }

    fn is_at(&self, offset: usize) -> bool {
        self.name.contains(&offset) || self.value.contains(&offset)
    }
}

/// Every key of a table, each before those inside it.
fn keys<'a>(table: &'a DeTable, above: &[&'a str]) -> Vec<Key<'a>> {
    let mut all = Vec::new();
    for (name, value) in table {
        let names = [above, &[name.get_ref().as_ref()]].concat();
        let below = value.get_ref().as_table();
        let below = below.map(|table| keys(table, &names));
        all.push(Key {
            names,
            name: name.span(),
            value: value.span(),
        });
        all.extend(below.unwrap_or_default());
    }
    all
}

/// serde's error, and for an unknown key the one that was probably meant.
fn why_wrong(path: &str, message: &str) -> String {
    let unknown = message.strip_prefix("unknown field `");
    let Some((key, known)) = unknown.and_then(|rest| rest.split_once("`, expected ")) else {
        return message.to_owned();
    };
    if key == "stale_backups" {
        return "this key is gone: backup superblocks of xfs and btrfs no longer keep a blank volume \
                from being formatted; remove this line"
            .to_owned();
    }
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    if let Some(near) = nearest(key, &known) {
        return format!("unknown key; did you mean {near:?}?");
    }
    if let Some(place) = place_of(key) {
        return format!("unknown key; it belongs {place}");
    }
    let known = known.join(", ");
    if path.starts_with("volume_group.") {
        return format!(
            "unknown key; known here: {known}; a volume group's name with a dot in it is written \
             in quotes: [volume_group.\"my.group\"]"
        );
    }
    format!("unknown key; known here: {known}")
}

/// The table in which a misplaced key belongs, as one that was appended to the file.
fn place_of(key: &str) -> Option<&'static str> {
    fn knows<'de, T: Deserialize<'de>>(key: &'de str) -> bool {
        let result = T::deserialize(MapDeserializer::<_, Error>::new(once((key, ()))));
        !result.is_err_and(|e| e.to_string().starts_with("unknown field"))
    }
    let beginning = "at the beginning of the file, above the first [table]";
    let places = [
        (knows::<Config>(key), beginning),
        (knows::<Limits>(key), "in the table [limits]"),
        (knows::<Luks>(key), "in the table [encryption]"),
        (knows::<VolumeGroup>(key), "in a table [volume_group.NAME]"),
        (knows::<FsConfig>(key), "in a table [filesystem.TYPE]"),
    ];
    let place = places.into_iter().find(|(knows, _)| *knows);
    place.map(|(_, place)| place)
}
