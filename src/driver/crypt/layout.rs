//! Parses the JSON of a LUKS2 header. `volume/decide/luks.rs` judges it: whoever can write to the disk can write this
//! JSON.
//!
//! cryptsetup may understand the same text in another way: its json-c ends a name at a NUL, and takes the later of two
//! equal names. So this parser accepts only a text whose names mean the same to every reader. [`Layout`] has typed
//! fields for the values that `anew.rs` copies into the header for cryptsetup, and the whole JSON, which
//! `volume/decide/luks.rs` compares with that header.
//!
//! Source: cryptsetup's docs/on-disk-format-luks2.pdf, "LUKS2 JSON Metadata Format".

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, from_slice};

/// The number of parts into which a key is split. To get the key, all parts are needed. Source: the same document,
/// "Anti-Forensic Splitter".
pub const STRIPES: u64 = 4000;
const SECTOR: u64 = 512;

/// One copy of a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    pub segments: BTreeMap<u8, Segment>,
    pub keyslots: BTreeMap<u8, Keyslot>,
    pub digests: BTreeMap<u8, KeyDigest>,
    pub config: LayoutConfig,
    /// The size of this copy in bytes, which its JSON does not say.
    #[serde(default)]
    pub size: u64,
    /// The whole JSON.
    #[serde(default)]
    pub json: Value,
}

impl Layout {
    /// The byte where the header ends. Its parts are both copies and, after them, the areas of the key slots. `None`:
    /// the size of the areas is no number.
    pub fn end(&self) -> Option<u64> {
        let areas: u64 = self.config.keyslots_size.parse().ok()?;
        self.size.checked_mul(2)?.checked_add(areas)
    }

    /// The segment 0, which cryptsetup opens. `None`: it is missing, or there are other segments.
    pub fn segment(&self) -> Option<&Segment> {
        self.segments.get(&0).filter(|_| self.segments.len() == 1)
    }

    /// The digest of the segment's key, with its number. `None`: there is no such digest, or more than one.
    pub fn digest(&self) -> Option<(u8, &KeyDigest)> {
        let mut digests = self.digests.iter().filter(|(_, one)| one.is_of_segment());
        let (number, digest) = digests.next().filter(|_| digests.next().is_none())?;
        Some((*number, digest))
    }

    /// The key slots that can open the segment.
    pub fn opening(&self) -> impl Iterator<Item = (&u8, &Keyslot)> {
        let named = self.digest().map(|(_, digest)| &digest.keyslots);
        self.keyslots.iter().filter(move |(number, _)| {
            named.is_some_and(|named| named.iter().any(|one| *one == number.to_string()))
        })
    }
}

/// A part of the volume that is encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Segment {
    pub offset: String,
    /// In bytes.
    pub sector_size: u64,
}

impl Segment {
    /// The segment's offset in bytes. `None`: the text is no number.
    pub fn begins(&self) -> Option<u64> {
        self.offset.parse().ok()
    }
}

/// A key slot. `key_size`: the size of the volume's key, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keyslot {
    pub key_size: u64,
    pub priority: Option<u8>,
    pub af: Splitter,
    pub area: KeyslotArea,
    pub kdf: Kdf,
}

/// How the volume's key is split before it is encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Splitter {
    pub hash: String,
}

/// Where the header keeps the volume's key. `key_size`: the size, in bytes, of the key that encrypts the volume's key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyslotArea {
    pub offset: String,
    pub size: String,
    pub key_size: u64,
}

impl KeyslotArea {
    /// The place in bytes. `None`: a text is no number, or the sum overflows.
    pub fn place(&self) -> Option<Range<u64>> {
        let start: u64 = self.offset.parse().ok()?;
        Some(start..start.checked_add(self.size.parse().ok()?)?)
    }
}

impl Keyslot {
    /// The part of the slot's area in which the encrypted key is. `None`: its numbers are no place on a device.
    pub fn key(&self) -> Option<Range<u64>> {
        let Range { start, end } = self.area.place()?;
        let striped = self.key_size.checked_mul(STRIPES)?;
        let size = striped.checked_next_multiple_of(SECTOR)?;
        Some(start..end.min(start.checked_add(size)?))
    }
}

/// How a key is derived from a passphrase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kdf {
    #[serde(rename = "type")]
    pub kind: String,
    /// pbkdf2 uses these two fields, argon2 the three after them.
    pub hash: String,
    pub iterations: u64,
    pub time: u64,
    pub memory: u64,
    pub cpus: u64,
    pub salt: String,
}

/// A digest, which tells whether a key is the right one, with the key slots and segments of that key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyDigest {
    pub keyslots: Vec<String>,
    pub segments: Vec<String>,
    pub hash: String,
    pub iterations: u64,
    pub salt: String,
    pub digest: String,
}

impl KeyDigest {
    /// Whether this is a digest of the key of [`Layout::segment`].
    fn is_of_segment(&self) -> bool {
        self.segments.iter().any(|one| one == "0")
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayoutConfig {
    pub keyslots_size: String,
    /// Options with which cryptsetup is to open the volume.
    pub flags: Vec<String>,
    /// Features that a program must know to open the volume, by kind. `online-reencrypt`, for example, is of the kind
    /// `mandatory`.
    pub requirements: BTreeMap<String, Vec<String>>,
}

/// Parses the JSON of a copy with `size` bytes. Only zeros may follow the JSON. An error says why this is no JSON of a
/// header.
pub fn layout_of(json: &[u8], size: u64) -> Result<Layout, String> {
    let end = json.iter().position(|byte| *byte == 0);
    let (text, rest) = json.split_at(end.unwrap_or(json.len()));
    if rest.iter().any(|byte| *byte != 0) {
        return Err("something follows it".to_owned());
    }
    let parsed = from_slice(text)
        .and_then(|OneMeaning| Ok((from_slice::<Layout>(text)?, from_slice::<Value>(text)?)));
    let (layout, json) = parsed.map_err(|error| error.to_string())?;
    Ok(Layout {
        size,
        json,
        ..layout
    })
}

/// Any JSON in which no name comes twice in one object, and no name has a control character. A text may have any
/// character: the driver compares texts that encrypt as a whole, and cryptsetup gets no other text.
struct OneMeaning;

impl<'de> Deserialize<'de> for OneMeaning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for OneMeaning {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self, A::Error> {
        while let Some(Self) = all.next_element()? {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if let Some(c) = name.chars().find(|c| c.is_control()) {
                let error = format!("a control character in a name: {c:?}");
                return Err(A::Error::custom(error));
            }
            members.next_value::<Self>()?;
            if let Some(twice) = names.replace(name) {
                return Err(A::Error::custom(format!("`{twice}` twice")));
            }
        }
        Ok(self)
    }
}
