//! The one flat JSON object of strings that kubelet sends.
//!
//! No error of this file holds any part of a value: it could be a secret. serde's own words for a
//! wrong type quote the value, so every type that JSON has is answered for here.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, anyhow, bail};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{SECRET, shown};

/// More than this, secrets left out, nobody writes into a manifest.
const MOST_BYTES: usize = 64 << 10;

/// The pairs of a flat object, secrets dropped.
pub(super) fn parse(json: &str) -> Result<BTreeMap<String, String>> {
    const FORM: &str =
        r#"they must be one object of strings, such as {"volumegroup":"vg","volumeID":"data"}"#;
    if !json.trim_start().starts_with('{') {
        bail!("the options are no JSON object; {FORM}");
    }
    let mut wrong = None;
    let mut parser = serde_json::Deserializer::from_str(json);
    let pairs = Pairs { wrong: &mut wrong }.deserialize(&mut parser);
    if let Some(wrong) = wrong {
        bail!(wrong);
    }
    pairs
        .and_then(|pairs| parser.end().map(|()| pairs))
        .map_err(|e| anyhow!("the options are not valid JSON ({e}); {FORM}"))
}

/// Whether a text is JSON with a secret's key in it. JSON that breaks off counts as far as it goes.
pub(super) fn has_secret_key(json: &str) -> bool {
    let mut found = false;
    // How it ends does not matter: `found` is what was seen up to there.
    let _ = Keys { found: &mut found }.deserialize(&mut serde_json::Deserializer::from_str(json));
    found
}

/// Reads all pairs. What is wrong with one goes to `wrong`, as serde adds a position that helps
/// nobody to find it in a manifest.
struct Pairs<'a> {
    wrong: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Pairs<'_> {
    type Value = BTreeMap<String, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pairs<'_> {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fail = |wrong: String| {
            *self.wrong = Some(wrong);
            A::Error::custom("")
        };
        let mut pairs = BTreeMap::new();
        let mut room = MOST_BYTES;
        while let Some(key) = map.next_key::<String>()? {
            if key.starts_with(SECRET) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let name = shown(&key);
            let value = match map.next_value_seed(Text)? {
                Ok(value) => value,
                Err(kind) => {
                    return Err(fail(format!(
                        "option {name} is {kind}, and every option is a string: put its value in \
                         double quotes"
                    )));
                }
            };
            let used = key.len().saturating_add(value.len());
            let Some(left) = room.checked_sub(used) else {
                return Err(fail(format!(
                    "the options are larger than {} KiB at option {name}",
                    MOST_BYTES / 1024
                )));
            };
            room = left;
            if pairs.insert(key, value).is_some() {
                return Err(fail(format!("option {name} is given twice; leave one out")));
            }
        }
        Ok(pairs)
    }
}

/// A string, or the kind of thing that is there in its place.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Result<String, &'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Result<String, &'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Ok(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Err("true or false"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Err("a number"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Err("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Err("a number"))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Err("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        // Read to its end: serde_json takes what is left over for broken JSON.
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Err("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Err("an object"))
    }
}

struct Keys<'a> {
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            *self.found |= key.starts_with(SECRET);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}
