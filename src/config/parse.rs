//! From the text of the file to a [`Config`], or to one line that says where it is wrong.

use std::iter::once;
use std::ops::Range;

use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};
use toml::de::{DeTable, Deserializer};

use super::values::{as_key, fit_together};
use super::{Config, FsConfig, Limits, VolumeGroup};
use crate::names::nearest;

impl Config {
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        let said = |offset: usize, key: &str, why: &str| {
            let line = line_of(text.as_bytes(), offset);
            format!("{file}, line {line}, {key}: {why}")
        };
        let document = DeTable::parse(text).map_err(|e| {
            let offset = e.span().map_or(text.len(), |span| span.start);
            // There may be no key yet, so the line itself is shown.
            let line = text
                .lines()
                .nth(line_of(text.as_bytes(), offset).saturating_sub(1));
            let words: String = line.unwrap_or_default().trim().chars().take(60).collect();
            let why: Vec<&str> = e.message().split_whitespace().collect();
            said(offset, &format!("at {words:?}"), &why.join(" "))
        })?;
        let keys = keys(document.get_ref(), &[]);
        let values = Deserializer::from(document.clone());
        let mut config = Config::deserialize(values).map_err(|e| {
            let offset = e.span().map_or(0, |span| span.start);
            let key = keys.iter().rfind(|key| key.is_at(offset));
            let path = key.map(Key::path).unwrap_or_default();
            said(offset, &path, &why_wrong(&path, e.message()))
        })?;
        file.clone_into(&mut config.file);
        fit_together(&config).map_err(|(path, why)| {
            let key = keys.iter().find(|key| key.path() == path);
            said(key.map_or(0, |key| key.value.start), &path, &why)
        })?;
        Ok(config)
    }
}

/// The line, counted from 1, of the byte at `offset`.
pub fn line_of(text: &[u8], offset: usize) -> usize {
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
        (knows::<VolumeGroup>(key), "in a table [volume_group.NAME]"),
        (knows::<FsConfig>(key), "in a table [filesystem.TYPE]"),
    ];
    let place = places.into_iter().find(|(knows, _)| *knows);
    place.map(|(_, place)| place)
}
