//! How a copy of a LUKS2 header says that its volume is encrypted. Pure; what of it is allowed is decided elsewhere.
//!
//! Source: cryptsetup's docs/on-disk-format-luks2.pdf, "LUKS2 JSON Metadata Format".

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The largest number of segments, and of key slots: LUKS2 has 32 key slots.
const MOST: usize = 32;
/// So many characters are kept of a text. No text that is allowed is longer.
const LONGEST: usize = 64;

/// What one copy says. Its texts are anybody's who can write to the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    pub segments: Vec<Segment>,
    pub keyslots: Vec<Keyslot>,
    /// What a program must know to open it, such as `online-reencrypt`.
    pub requirements: Vec<String>,
    /// Where both copies and the areas of the key slots end, in bytes.
    pub end: u64,
}

/// A part of the volume, and how it is encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub kind: String,
    /// Empty: it has none.
    pub cipher: String,
    /// In bytes. `None`: it has none, or no number.
    pub offset: Option<u64>,
    pub has_integrity: bool,
}

/// A key slot, and how the volume's key in it is encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyslot {
    pub kind: String,
    /// Empty: it has none.
    pub cipher: String,
    /// The size of the key that encrypts the volume's key, in bytes.
    pub key_size: u64,
    /// The size of the volume's key, in bytes.
    pub volume_key_size: u64,
}

#[derive(Deserialize)]
struct Json {
    keyslots: BTreeMap<String, JsonKeyslot>,
    segments: BTreeMap<String, JsonSegment>,
    config: JsonConfig,
}

#[derive(Deserialize)]
struct JsonKeyslot {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    key_size: u64,
    #[serde(default)]
    area: JsonArea,
}

#[derive(Deserialize, Default)]
struct JsonArea {
    #[serde(default)]
    encryption: String,
    #[serde(default)]
    key_size: u64,
}

#[derive(Deserialize)]
struct JsonSegment {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    encryption: String,
    #[serde(default)]
    offset: String,
    integrity: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct JsonConfig {
    keyslots_size: String,
    #[serde(default)]
    requirements: JsonRequirements,
}

#[derive(Deserialize, Default)]
struct JsonRequirements {
    #[serde(default)]
    mandatory: Vec<String>,
}

/// What this JSON says, after which zeros follow, of a copy with `size` bytes. `None`: it is not what a header has.
pub fn parse(json: &[u8], size: u64) -> Option<Layout> {
    let text = json.split(|byte| *byte == 0).next()?;
    let Json {
        keyslots,
        segments,
        config,
    } = serde_json::from_slice(text).ok()?;
    let mandatory = config.requirements.mandatory;
    if [segments.len(), keyslots.len(), mandatory.len()]
        .into_iter()
        .any(|number| number > MOST)
    {
        return None;
    }
    let segments = segments.into_values().map(|segment| Segment {
        kind: short(&segment.kind),
        cipher: short(&segment.encryption),
        offset: segment.offset.parse().ok(),
        has_integrity: segment.integrity.is_some(),
    });
    let keyslots = keyslots.into_values().map(|slot| Keyslot {
        kind: short(&slot.kind),
        cipher: short(&slot.area.encryption),
        key_size: slot.area.key_size,
        volume_key_size: slot.key_size,
    });
    let areas: u64 = config.keyslots_size.parse().ok()?;
    Some(Layout {
        segments: segments.collect(),
        keyslots: keyslots.collect(),
        requirements: mandatory.iter().map(|text| short(text)).collect(),
        end: size.checked_mul(2)?.checked_add(areas)?,
    })
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As cryptsetup 2.6 makes it, without what is not read.
    const JSON: &str = r#"{"keyslots":{"0":{"type":"luks2","key_size":64,"af":{"type":"luks1"},"area":{
        "type":"raw","offset":"32768","encryption":"aes-xts-plain64","key_size":32},"kdf":{"type":"argon2id"}}},
        "tokens":{},"segments":{"0":{"type":"crypt","offset":"16777216","size":"dynamic","iv_tweak":"0",
        "encryption":"aes-xts-plain64","sector_size":512}},"digests":{},
        "config":{"json_size":"12288","keyslots_size":"16744448"}}"#;

    #[test]
    fn what_encrypts_is_read_from_segments_and_key_slots() {
        let read = |text: String| parse(&[text.as_bytes(), &[0; 9]].concat(), 16 << 10);
        let layout = read(JSON.to_owned()).unwrap();
        assert_eq!(layout.end, 16 << 20);
        assert_eq!(
            layout.segments,
            [Segment {
                kind: "crypt".into(),
                cipher: "aes-xts-plain64".into(),
                offset: Some(16 << 20),
                has_integrity: false,
            }]
        );
        assert_eq!(
            layout.keyslots,
            [Keyslot {
                kind: "luks2".into(),
                cipher: "aes-xts-plain64".into(),
                key_size: 32,
                volume_key_size: 64,
            }]
        );
        assert_eq!(layout.requirements, [""; 0]);
        let odd = JSON
            .replace(r#""sector_size""#, r#""integrity":{},"sector_size""#)
            .replace(r#""16777216""#, r#""all""#)
            .replace(
                r#"{"json_size""#,
                r#"{"requirements":{"mandatory":["x"]},"json_size""#,
            );
        let odd = read(odd).unwrap();
        assert_eq!(odd.segments[0].offset, None);
        assert!(odd.segments[0].has_integrity);
        assert_eq!(odd.requirements, ["x"]);
    }

    #[test]
    fn what_is_no_header_says_nothing() {
        for json in [
            "",
            "\0",
            "{}",
            "[1]",
            "{'keyslots':{}}",
            r#"{"keyslots":{},"segments":{},"config":{}}"#,
            r#"{"keyslots":{"0":{"type":7}},"segments":{},"config":{"keyslots_size":"0"}}"#,
            r#"{"keyslots":{},"segments":{},"segments":{},"config":{"keyslots_size":"0"}}"#,
        ] {
            assert_eq!(parse(json.as_bytes(), 0), None, "{json}");
        }
        let most = r#"{"keyslots":{},"segments":{},"config":{"keyslots_size":"1"}}"#;
        assert_eq!(parse(most.as_bytes(), u64::MAX), None);
    }
}
