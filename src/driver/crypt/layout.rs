//! How a copy of a LUKS2 header says that its volume is encrypted. Pure; what of it is allowed is decided elsewhere.
//!
//! Source: cryptsetup's docs/on-disk-format-luks2.pdf, "LUKS2 JSON Metadata Format".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one copy says. Its texts are anybody's who can write to the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    pub segments: BTreeMap<String, Segment>,
    pub keyslots: BTreeMap<String, Keyslot>,
    pub config: LayoutConfig,
    /// Where both copies and the areas of the key slots end, in bytes. No copy says that itself.
    #[serde(default)]
    pub end: u64,
}

/// A part of the volume, and how it is encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, rename = "encryption")]
    pub cipher: String,
    #[serde(default)]
    pub offset: String,
    pub integrity: Option<Value>,
}

impl Segment {
    /// Its offset in bytes. `None`: it has none, or no number.
    pub fn begins(&self) -> Option<u64> {
        self.offset.parse().ok()
    }
}

/// A key slot, with the size of the volume's key in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyslot {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub key_size: u64,
    #[serde(default)]
    pub area: KeyslotArea,
}

/// How the volume's key is encrypted in a key slot, and the size of the key for that, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyslotArea {
    #[serde(default, rename = "encryption")]
    pub cipher: String,
    #[serde(default)]
    pub key_size: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutConfig {
    keyslots_size: String,
    #[serde(default)]
    pub requirements: Requirements,
}

/// What a program must know to open the volume, such as `online-reencrypt`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirements {
    #[serde(default)]
    pub mandatory: Vec<String>,
}

/// What this JSON says, after which zeros follow, of a copy with `size` bytes. `None`: it is not what a header has.
pub fn parse(json: &[u8], size: u64) -> Option<Layout> {
    let text = json.split(|byte| *byte == 0).next()?;
    let layout: Layout = serde_json::from_slice(text).ok()?;
    let areas = layout.config.keyslots_size.parse().ok()?;
    let end = size.checked_mul(2)?.checked_add(areas)?;
    Some(Layout { end, ..layout })
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
        let (segment, slot) = (&layout.segments["0"], &layout.keyslots["0"]);
        assert_eq!(segment.begins(), Some(16 << 20));
        for (read, want) in [
            (&segment.kind, "crypt"),
            (&segment.cipher, "aes-xts-plain64"),
            (&slot.kind, "luks2"),
            (&slot.area.cipher, "aes-xts-plain64"),
        ] {
            assert_eq!(read, want);
        }
        assert_eq!((slot.area.key_size, slot.key_size), (32, 64));
        assert!(segment.integrity.is_none() && layout.config.requirements.mandatory.is_empty());
        let odd = JSON
            .replace(r#""sector_size""#, r#""integrity":{},"sector_size""#)
            .replace(r#""16777216""#, r#""all""#)
            .replace(
                r#"{"json_size""#,
                r#"{"requirements":{"mandatory":["x"]},"json_size""#,
            );
        let odd = read(odd).unwrap();
        assert_eq!(odd.segments["0"].begins(), None);
        assert!(odd.segments["0"].integrity.is_some());
        assert_eq!(odd.config.requirements.mandatory, ["x"]);
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
        let none = r#"{"end":7,"keyslots":{},"segments":{},"config":{"keyslots_size":"1"}}"#;
        assert_eq!(parse(none.as_bytes(), 8).unwrap().end, 17);
        let most = r#"{"keyslots":{},"segments":{},"config":{"keyslots_size":"1"}}"#;
        assert_eq!(parse(most.as_bytes(), u64::MAX), None);
    }
}
