//! The key slots of a LUKS2 header. Pure; what is in a slot takes a passphrase to know.
//!
//! Source: cryptsetup's docs/on-disk-format-luks2.pdf, "LUKS2 JSON Metadata Format".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many a header may have.
pub const MOST: usize = 32;
/// Of what somebody else may have written there, so much is shown.
const LONGEST_WORD: usize = 32;

/// A slot that opens the volume with a passphrase of its own, or by the token that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyslot {
    pub slot: u32,
    /// How a passphrase is made a key: `argon2id`, `argon2i` or `pbkdf2`.
    pub kdf: String,
    /// `None`: it takes none to speak of.
    #[serde(rename = "memory_bytes")]
    pub memory: Option<u64>,
    pub passes: Option<u64>,
    /// The type of the token that fills this slot, as `systemd-tpm2`: no passphrase of a person's.
    pub token: Option<String>,
}

#[derive(Deserialize)]
struct Json {
    keyslots: BTreeMap<String, Slot>,
    #[serde(default)]
    tokens: BTreeMap<String, Token>,
}

#[derive(Deserialize)]
struct Slot {
    #[serde(rename = "type")]
    kind: String,
    kdf: Option<Kdf>,
}

#[derive(Deserialize)]
struct Kdf {
    #[serde(rename = "type")]
    kind: String,
    /// In KiB.
    memory: Option<u64>,
    time: Option<u64>,
    iterations: Option<u64>,
}

#[derive(Deserialize)]
struct Token {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    keyslots: Vec<String>,
}

/// The slots that this JSON of a header has. `None`: it is not what a header has.
pub fn parse(json: &[u8]) -> Option<Vec<Keyslot>> {
    let text = json.split(|byte| *byte == 0).next()?;
    let Json { keyslots, tokens } = serde_json::from_slice(text).ok()?;
    let word = |text: &str| text.chars().take(LONGEST_WORD).collect::<String>();
    let mut slots = Vec::new();
    // One of another type holds the state of a reencryption, and opens nothing.
    for (name, slot) in keyslots.iter().filter(|(_, slot)| slot.kind == "luks2") {
        let kdf = slot.kdf.as_ref();
        let token = tokens.values().find(|token| token.keyslots.contains(name));
        slots.push(Keyslot {
            slot: name.parse().ok()?,
            kdf: kdf.map(|kdf| word(&kdf.kind)).unwrap_or_default(),
            memory: kdf.and_then(|kdf| kdf.memory?.checked_mul(1 << 10)),
            passes: kdf.and_then(|kdf| kdf.time.or(kdf.iterations)),
            token: token.map(|token| word(&token.kind)),
        });
    }
    slots.sort_unstable_by_key(|slot| slot.slot);
    (slots.len() <= MOST).then_some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_that_open_it_in_order() {
        let json = br#"{"keyslots":{
            "10":{"type":"luks2","kdf":{"type":"argon2id","time":4,"memory":65536,"cpus":1,"salt":"x"}},
            "2":{"type":"luks2","kdf":{"type":"pbkdf2","hash":"sha256","iterations":1000,"salt":"x"}},
            "3":{"type":"reencrypt","mode":"encrypt"}},
            "tokens":{"0":{"type":"systemd-tpm2","keyslots":["2"]}},"segments":{}}"#;
        let mut bytes = json.to_vec();
        bytes.extend([0; 100]);
        let slots = parse(&bytes).unwrap();
        let seen = slots
            .iter()
            .map(|one| (one.slot, one.kdf.as_str(), one.memory, one.passes));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [
                (2, "pbkdf2", None, Some(1000)),
                (10, "argon2id", Some(64 << 20), Some(4))
            ]
        );
        assert_eq!(slots[0].token.as_deref(), Some("systemd-tpm2"));
        assert_eq!(slots[1].token, None);
    }

    #[test]
    fn what_is_no_header_has_no_slots() {
        for json in [
            &b""[..],
            b"\0",
            b"{}",
            br#"{"keyslots":{"x":{"type":"luks2"}}}"#,
            b"[1]",
        ] {
            assert_eq!(parse(json), None, "{json:?}");
        }
        assert_eq!(parse(br#"{"keyslots":{}}"#), Some(Vec::new()));
    }
}
