//! Judges whether a LUKS2 header, and then the kernel, encrypt a volume as the driver does. Pure.

use super::facts::Facts;
use super::reason::Reason;
use crate::crypt::{CIPHER, DmTable, Header, KEY_SIZES, Keyslot, Layout, Segment};
use crate::names::{Foreign, Shown};

/// A LUKS2 header has no MAC: whoever can write to the disk can write one that encrypts with a key of theirs, or not at
/// all. Fails unless each copy of the header encrypts all of the volume, and its key, as the driver does.
pub fn require_cipher(header: &Header) -> Result<(), Reason> {
    let odd = header.layouts.iter().find_map(|layout| match layout {
        Some(layout) => odd_of_layout(layout),
        None => Some("a LUKS2 header that cannot be read".shown()),
    });
    odd.map_or(Ok(()), |what| Err(Reason::Cipher(what)))
}

fn odd_of_layout(layout: &Layout) -> Option<Foreign> {
    if let Some(requirement) = layout.config.requirements.values().flatten().next() {
        return Some(format!("the requirement {requirement}").shown());
    }
    let mut segments = layout.segments.values();
    let (Some(segment), None) = (segments.next(), segments.next()) else {
        return Some(format!("{} segments", layout.segments.len()).shown());
    };
    let odd = if segment.kind != "crypt" {
        format!("a segment of the type {}", segment.kind)
    } else if segment.integrity.is_some() {
        "integrity".to_owned()
    } else if segment.cipher != CIPHER {
        format!("the cipher {}", segment.cipher)
    } else if segment.begins().is_none_or(|offset| offset < layout.end) {
        let offset = segment.begins().unwrap_or_default();
        format!("a segment at byte {offset}, in the header itself")
    } else {
        return layout.keyslots.values().find_map(odd_of_keyslot);
    };
    Some(odd.shown())
}

fn odd_of_keyslot(slot: &Keyslot) -> Option<Foreign> {
    let sizes = [slot.area.key_size, slot.key_size];
    let odd_size = sizes.into_iter().find(|size| !KEY_SIZES.contains(size));
    let odd = if slot.kind != "luks2" {
        format!("a key slot of the type {}", slot.kind)
    } else if slot.area.cipher != CIPHER {
        format!("the cipher {} in a key slot", slot.area.cipher)
    } else {
        format!("a key of {} bytes in a key slot", odd_size?)
    };
    Some(odd.shown())
}

/// Fails unless the kernel encrypts all that it writes to the volume's own device, and where this header says.
pub fn require_table(table: &DmTable, header: &Header, facts: &Facts) -> Result<(), Reason> {
    let number = facts.device.as_ref().map(|device| device.number);
    let segments = header
        .layouts
        .iter()
        .flatten()
        .flat_map(|one| one.segments.values());
    let mut places = segments.filter_map(Segment::begins);
    let is_in_place = places.any(|place| Some(place) == table.offset);
    let odd = if table.target != "crypt" {
        format!("a table of the type {}", table.target)
    } else if table.cipher != CIPHER {
        format!("the cipher {} in the kernel", table.cipher)
    } else if !table.has_key || table.has_integrity || table.below != number || !is_in_place {
        "another table in the kernel than its own".to_owned()
    } else {
        return Ok(());
    };
    Err(Reason::Cipher(odd.shown()))
}
