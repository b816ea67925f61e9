//! Judges whether a LUKS2 header, and then the kernel, encrypt a volume as the driver does. Pure.

use std::ops::RangeInclusive;

use base64ct::{Base64, Encoding};

use super::reason::Reason;
use crate::crypt::{
    CIPHER, DmTable, Header, KEY_SIZES, KeyDigest, Keyslot, Layout, Others, STRIPES, Segment,
};
use crate::host::DeviceNumber;
use crate::names::Shown;

/// The functions with which a key slot may derive a key from a passphrase.
const KDFS: [&str; 3] = ["argon2id", "argon2i", "pbkdf2"];
/// These hashes have at least 160 bits, as luksFormat demands. A shorter hash allows so few keys that all can be tried.
/// Source: cryptsetup-luksFormat(8), `--hash`.
const HASHES: [&str; 11] = [
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
/// somebody who can write to the disk can write a header that encrypts with their own key, or not at all. Fails also if
/// a member is unknown, since it may change the meaning of others.
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
    let slots = layout.keyslots.values();
    odd_of_segment(segment, layout)
        .or_else(|| slots.clone().find_map(|slot| odd_of_keyslot(slot, layout)))
        .or_else(|| odd_of_digests(layout))
        .or_else(|| unknown(layout).map(|name| format!("{name}, which the driver does not know")))
}

fn odd_of_segment(segment: &Segment, layout: &Layout) -> Option<String> {
    let Segment {
        kind,
        cipher,
        size,
        iv_tweak,
        sector_size,
        ..
    } = segment;
    let is_behind = |offset| layout.end().is_some_and(|end| offset >= end);
    Some(if kind != "crypt" {
        format!("a segment of the type {kind}")
    } else if segment.integrity.is_some() {
        "integrity".to_owned()
    } else if cipher != CIPHER {
        format!("the cipher {cipher}")
    } else if !segment.begins().is_some_and(is_behind) {
        let offset = segment.begins().unwrap_or_default();
        format!("a segment at byte {offset}, in the header itself")
    } else if size != "dynamic" || iv_tweak != "0" {
        format!("a segment of the size {size}, with the tweak {iv_tweak}")
    } else if !SECTORS.contains(sector_size) {
        format!("sectors of {sector_size} bytes")
    } else {
        return None;
    })
}

fn odd_of_keyslot(slot: &Keyslot, layout: &Layout) -> Option<String> {
    let Keyslot {
        kind,
        key_size,
        af,
        area,
        kdf,
        ..
    } = slot;
    let mut sizes = [area.key_size, *key_size].into_iter();
    let odd = if kind != "luks2" {
        format!("a key slot of the type {kind}")
    } else if area.cipher != CIPHER {
        format!("the cipher {}", area.cipher)
    } else if let Some(size) = sizes.find(|size| !KEY_SIZES.contains(size)) {
        format!("a key of {size} bytes")
    } else if slot.priority.is_some_and(|priority| priority > 2) {
        "an unknown priority".to_owned()
    } else if af.kind != "luks1" || af.stripes != STRIPES {
        format!("{} stripes of the type {}", af.stripes, af.kind)
    } else if area.kind != "raw" || !has_room(slot, layout) {
        format!("an area of the type {} at byte {}", area.kind, area.offset)
    } else if !KDFS.contains(&kdf.kind.as_str()) {
        format!("the key derivation {}", kdf.kind)
    } else if kdf.kind == "pbkdf2" && !HASHES.contains(&kdf.hash.as_str()) {
        format!("the hash {}", kdf.hash)
    } else if !HASHES.contains(&af.hash.as_str()) {
        format!("the hash {}", af.hash)
    } else if !is_base64(&kdf.salt, SALT) {
        "another salt than 32 bytes".to_owned()
    } else {
        return None;
    };
    Some(match kind.as_str() {
        "luks2" => format!("{odd} in a key slot"),
        _ => odd,
    })
}

/// Whether the slot's key lies between the second copy of the header and the data.
fn has_room(slot: &Keyslot, layout: &Layout) -> bool {
    let (Some(place), Some(end)) = (slot.area.place(), layout.end()) else {
        return false;
    };
    place.start >= layout.size.saturating_mul(2) && place.end <= end
}

fn odd_of_digests(layout: &Layout) -> Option<String> {
    let is_odd = |digest: &&KeyDigest| {
        digest.kind != "pbkdf2"
            || digest.iterations == 0
            || !HASHES.contains(&digest.hash.as_str())
            || !is_base64(&digest.salt, SALT)
            || !is_base64(&digest.digest, DIGEST)
    };
    if let Some(digest) = layout.digests.values().find(is_odd) {
        return Some(format!(
            "a digest of the type {}, with {}",
            digest.kind, digest.hash
        ));
    }
    let is_opened = layout.opening().next().is_some();
    (!is_opened).then(|| "no key slot of its segment, or several digests".to_owned())
}

fn is_base64(text: &str, lengths: RangeInclusive<usize>) -> bool {
    let mut buffer = [0; 64];
    Base64::decode(text, &mut buffer).is_ok_and(|bytes| lengths.contains(&bytes.len()))
}

/// The first member of the header that the driver does not know.
fn unknown(layout: &Layout) -> Option<&str> {
    let slots = layout.keyslots.values();
    let slots = slots.flat_map(|slot| {
        [
            &slot.others,
            &slot.af.others,
            &slot.area.others,
            &slot.kdf.others,
        ]
    });
    let all = [&layout.others, &layout.config.others].into_iter();
    let all = all.chain(layout.segments.values().map(|segment| &segment.others));
    let all = all
        .chain(slots)
        .chain(layout.digests.values().map(|digest| &digest.others));
    all.flat_map(Others::keys).next().map(String::as_str)
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
