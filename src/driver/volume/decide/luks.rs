//! Judges whether a LUKS2 header, and then the kernel, encrypt a volume as the driver does. Pure.

use std::ops::RangeInclusive;

use base64ct::{Base64, Encoding};

use serde_json::{Map, Value, json};

use super::reason::Reason;
use crate::crypt::{
    CIPHER, DmTable, Header, KEY_SIZES, KeyDigest, Keyslot, Layout, Segment, template,
};
use crate::host::DeviceNumber;
use crate::names::Shown;

/// The functions with which a key slot may derive a key from a passphrase.
const KDFS: [&str; 3] = ["argon2id", "argon2i", "pbkdf2"];
/// These hashes have at least 160 bits, as luksFormat demands. A shorter hash allows so few keys that all can be tried.
/// Source: cryptsetup-luksFormat(8), `--hash`.
const HASHES: [&str; 12] = [
    "sha1",
    "sha224",
    "sha256",
    "sha384",
    "sha512",
    "sha3-256",
    "sha3-512",
    "ripemd160",
    "whirlpool",
    "blake2b-512",
    "blake2s-256",
    "sm3",
];
/// The sizes of dm-crypt's sectors, in bytes.
const SECTORS: [u64; 4] = [512, 1024, 2048, 4096];
/// Bytes of a salt, and of the digest that a key is compared with. Source: cryptsetup's docs/on-disk-format-luks2.pdf.
const SALT: RangeInclusive<usize> = 32..=32;
const DIGEST: RangeInclusive<usize> = 20..=64;

/// Fails if `cryptsetup reencrypt` was begun and has not ended. Such a header is valid, and has two keys. Runs before
/// every other check of a header, since the advice of the other checks would be wrong here. Source: cryptsetup's
/// `lib/luks2/luks2_json_metadata.c`, `requirements_flags`: `online-reencrypt`, `online-reencrypt-v2` and so on.
pub fn require_no_reencryption(header: &Header) -> Result<(), Reason> {
    let layouts = header.layouts.iter().flatten();
    let mut requirements = layouts.flat_map(|layout| layout.config.requirements.values().flatten());
    let is_begun = |requirement: &String| {
        ["online-reencrypt", "offline-reencrypt"]
            .iter()
            .any(|begin| requirement.starts_with(begin))
    };
    if requirements.any(is_begun) {
        return Err(Reason::Reencryption);
    }
    Ok(())
}

/// Fails unless the header encrypts the whole volume, and its key, as the driver does. A LUKS2 header has no MAC:
/// somebody who can write to the disk can write a header that encrypts with their own key, or not at all.
///
/// What is good is a template: the header that the driver writes for cryptsetup. The header on the disk has to say the
/// same, but for what opens nothing: tokens, flags, and key slots of other keys. The values that the template copies
/// from the disk have to be in their ranges.
///
/// Each copy is judged that anybody can open. luksFormat writes the key slots last, into one copy after the other: if
/// it is cut short between the two copies, the older copy has no key slot.
pub fn require_cipher(header: &Header) -> Result<(), Reason> {
    let mut copies = header.layouts.iter().enumerate();
    let odd = copies.find_map(|(newer, layout)| match layout {
        Ok(layout) if newer > 0 && layout.keyslots.is_empty() => None,
        Ok(layout) => odd_of_layout(layout),
        Err(why) => Some(format!("a LUKS2 header that cannot be read ({why})")),
    });
    odd.map_or(Ok(()), |what| Err(Reason::Cipher(what.shown())))
}

fn odd_of_layout(layout: &Layout) -> Option<String> {
    if let Some(requirement) = layout.config.requirements.values().flatten().next() {
        return Some(format!("the requirement {requirement}"));
    }
    let Some(segment) = layout.segment() else {
        return Some(match layout.segments.len() {
            1 => "no segment with the number 0".to_owned(),
            count => format!("{count} segments"),
        });
    };
    let (Some((number, digest)), Some(_)) = (layout.digest(), layout.opening().next()) else {
        return Some("no key slot of its segment, or several digests".to_owned());
    };
    let of_keyslot = || {
        layout
            .opening()
            .find_map(|(_, slot)| odd_of_keyslot(slot, layout))
    };
    odd_of_segment(segment, layout)
        .or_else(of_keyslot)
        .or_else(|| odd_of_digest(digest))
        .or_else(|| match template(layout) {
            Some(template) => first_difference("", &judged(layout, number), &comparable(template)),
            None => Some("a number that is none".to_owned()),
        })
}

fn odd_of_segment(segment: &Segment, layout: &Layout) -> Option<String> {
    let is_behind = |offset| layout.end().is_some_and(|end| offset >= end);
    if !segment.begins().is_some_and(is_behind) {
        let offset = segment.begins().unwrap_or_default();
        return Some(format!("a segment at byte {offset}, in the header itself"));
    }
    let size = segment.sector_size;
    (!SECTORS.contains(&size)).then(|| format!("sectors of {size} bytes"))
}

fn odd_of_keyslot(slot: &Keyslot, layout: &Layout) -> Option<String> {
    let Keyslot {
        key_size,
        priority,
        af,
        area,
        kdf,
    } = slot;
    let mut sizes = [area.key_size, *key_size].into_iter();
    Some(
        if let Some(size) = sizes.find(|size| !KEY_SIZES.contains(size)) {
            format!("a key of {size} bytes in a key slot")
        } else if priority.is_some_and(|priority| priority > 2) {
            "an unknown priority in a key slot".to_owned()
        } else if !has_room(slot, layout) {
            format!("a key slot at byte {}", area.offset)
        } else if !KDFS.contains(&kdf.kind.as_str()) {
            format!("the key derivation {} in a key slot", kdf.kind)
        } else if kdf.kind == "pbkdf2" && !HASHES.contains(&kdf.hash.as_str()) {
            format!("the hash {} in a key slot", kdf.hash)
        } else if !HASHES.contains(&af.hash.as_str()) {
            format!("the hash {} in a key slot", af.hash)
        } else if !is_base64(&kdf.salt, SALT) {
            "another salt than 32 bytes in a key slot".to_owned()
        } else {
            return None;
        },
    )
}

/// Whether the slot's key lies between the second copy of the header and the data.
fn has_room(slot: &Keyslot, layout: &Layout) -> bool {
    let (Some(place), Some(end)) = (slot.area.place(), layout.end()) else {
        return false;
    };
    place.start >= layout.size.saturating_mul(2) && place.end <= end
}

fn odd_of_digest(digest: &KeyDigest) -> Option<String> {
    let is_odd = digest.iterations == 0
        || !HASHES.contains(&digest.hash.as_str())
        || !is_base64(&digest.salt, SALT)
        || !is_base64(&digest.digest, DIGEST);
    is_odd.then(|| format!("a digest of another size, or with {}", digest.hash))
}

/// The part of a header's JSON that opens the segment. `digest`: the number of the digest of the segment's key. Key
/// slots of other keys, and their digests, are left out. The numbers of the key slots stay.
fn judged(layout: &Layout, digest: u8) -> Value {
    let mut json = layout.json.clone();
    let opening: Vec<String> = layout
        .opening()
        .map(|(number, _)| number.to_string())
        .collect();
    if let Some(slots) = member(&mut json, "keyslots") {
        slots.retain(|number, _| opening.contains(number));
    }
    if let Some(digests) = member(&mut json, "digests") {
        let its = digests.remove(&digest.to_string()).unwrap_or_default();
        *digests = Map::from_iter([("0".to_owned(), its)]);
    }
    if let Some(config) = member(&mut json, "config") {
        // A requirement was refused before. cryptsetup may leave an empty list of them.
        config.remove("requirements");
    }
    comparable(json)
}

/// The JSON of a header without tokens and flags, without default priorities, and with the numbers of a digest's key
/// slots in order.
fn comparable(mut json: Value) -> Value {
    if let Some(all) = json.as_object_mut() {
        all.remove("tokens");
    }
    if let Some(config) = member(&mut json, "config") {
        config.remove("flags");
    }
    let slots = member(&mut json, "keyslots").into_iter();
    for slot in slots
        .flat_map(Map::values_mut)
        .filter_map(Value::as_object_mut)
    {
        if slot.get("priority") == Some(&json!(1)) {
            slot.remove("priority");
        }
    }
    let digests = member(&mut json, "digests").into_iter();
    for digest in digests.flat_map(Map::values_mut) {
        if let Some(numbers) = digest.get_mut("keyslots").and_then(Value::as_array_mut) {
            numbers.sort_by_key(Value::to_string);
        }
    }
    json
}

fn member<'a>(json: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    json.get_mut(name)?.as_object_mut()
}

/// The path of the first member that is not as in the template, with its value. `None`: both say the same.
fn first_difference(path: &str, has: &Value, template: &Value) -> Option<String> {
    let (Value::Object(members), Value::Object(wanted)) = (has, template) else {
        let is_short = !has.is_object() && !has.is_array();
        let value = if is_short {
            format!(" {has}")
        } else {
            String::new()
        };
        return (has != template).then(|| format!("{path}{value}"));
    };
    let join = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    let differs = |(name, value): (&String, &Value)| match wanted.get(name) {
        Some(wanted) => first_difference(&join(name), value, wanted),
        None => Some(format!("{}, which the driver does not know", join(name))),
    };
    let lacks = |name: &&String| !members.contains_key(*name);
    let missing = || {
        wanted
            .keys()
            .find(lacks)
            .map(|name| format!("no {}", join(name)))
    };
    members.iter().find_map(differs).or_else(missing)
}

fn is_base64(text: &str, lengths: RangeInclusive<usize>) -> bool {
    let mut buffer = [0; 64];
    Base64::decode(text, &mut buffer).is_ok_and(|bytes| lengths.contains(&bytes.len()))
}

/// Fails unless the kernel's table encrypts all data as this header says, and writes it to the device `below`, the
/// volume's own. `allow_discards` is accepted: it only shows which blocks are free.
pub fn require_table(
    table: &DmTable,
    header: &Header,
    below: Option<DeviceNumber>,
) -> Result<(), Reason> {
    let segments = header.layouts.iter().flatten().filter_map(Layout::segment);
    let mut places = segments.map(|segment| (segment.begins(), segment.sector_size));
    let is_in_place = places.any(|place| place == (table.offset, table.sector_size));
    let mut options = table.options.iter();
    let odd = if table.target != "crypt" {
        format!("a table of the type {}", table.target)
    } else if table.cipher != CIPHER {
        format!("the cipher {} in the kernel", table.cipher)
    } else if let Some(option) = options.find(|option| *option != ALLOW_DISCARDS) {
        format!("the option {option} in the kernel")
    } else if !table.has_key || table.below.is_none() || table.below != below || !is_in_place {
        "another table in the kernel than its own".to_owned()
    } else {
        return Ok(());
    };
    Err(Reason::Cipher(odd.shown()))
}

const ALLOW_DISCARDS: &str = "allow_discards";

/// Whether the kernel tells the disk which blocks are free, though the node's config does not allow that.
pub fn tells_too_much(table: &DmTable, allow_discards: bool) -> bool {
    !allow_discards && table.options.iter().any(|option| option == ALLOW_DISCARDS)
}
