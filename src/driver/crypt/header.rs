//! The two copies of a LUKS2 header. Pure, and nothing in it is believed before its checksum is right.
//!
//! Source: cryptsetup's docs/on-disk-format-luks2.pdf, "Binary Header".

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::fs::superblock::{ReadAt, bytes};
use crate::names::{Bytes, with_hyphens};

/// The size of a header with its key slots, as cryptsetup makes it. Source: cryptsetup-luksFormat(8), `--offset`.
pub const HEADER_SIZE: Bytes = Bytes::new(16 << 20);
pub(super) const FIRST: &[u8] = b"LUKS\xBA\xBE";
pub(super) const SECOND: &[u8] = b"SKUL\xBA\xBE";
/// The part before the JSON, which the checksum covers too.
pub(super) const BINARY: usize = 4096;
/// Sizes that a copy may have, its JSON included, are powers of two from 16 KiB to 4 MiB. The second copy begins where
/// the first ends.
const SMALLEST: u64 = 16 << 10;
const SIZES: usize = 9;
pub(super) const CHECKSUM: usize = 448;
pub(super) const CHECKSUM_LENGTH: usize = 64;

/// A LUKS2 header of which at least a beginning is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// In lower case with hyphens. Of a header that is damaged it may be wrong. `None`: it has none.
    pub uuid: Option<String>,
    /// Whether both copies are whole, and of one header.
    pub is_whole: bool,
    /// One for each whole copy. `None`: its JSON cannot be read.
    pub layouts: Vec<Option<Layout>>,
}

impl Header {
    /// Whether cryptsetup can open it: it repairs one copy from the other.
    pub fn is_usable(&self) -> bool {
        self.uuid.is_some() && !self.layouts.is_empty()
    }

    /// Whether anybody could open it: luksFormat writes the key slots last.
    pub fn has_keys(&self) -> bool {
        let has_keys = |layout: &Layout| !layout.keyslots.is_empty();
        self.layouts
            .iter()
            .any(|layout| layout.as_ref().is_none_or(has_keys))
    }
}

/// One copy of a header.
struct HeaderCopy {
    uuid: Option<String>,
    size: u64,
    sequence: u64,
    /// Whether its checksum is right.
    is_whole: bool,
    /// `None`: it is damaged, or this is no JSON of a header.
    layout: Option<Layout>,
}

/// The header of a device. `None`: no copy begins there, or it is a LUKS of another version. A copy that the disk
/// cannot read is a damaged one, if the other one is whole.
pub fn read(device: &impl ReadAt) -> io::Result<Option<Header>> {
    let is_whole = |copy: &HeaderCopy| copy.is_whole;
    let mut unread = None;
    let mut copy = |place, magic| {
        copy(device, place, magic).unwrap_or_else(|error| {
            unread = Some(error);
            None
        })
    };
    let mut copies = Vec::from_iter(copy(0, FIRST));
    let places = match copies.first() {
        Some(first) if is_whole(first) => vec![first.size],
        _ => sizes().collect(),
    };
    for place in places {
        let second = copy(place, SECOND);
        let is_it = second.as_ref().is_some_and(is_whole);
        copies.extend(second);
        if is_it {
            break;
        }
    }
    if let Some(error) = unread.filter(|_| !copies.iter().any(is_whole)) {
        return Err(error);
    }
    // The whole copy that was written last says the UUID, the first of two that were written at once. A copy that says
    // another UUID is not this header's.
    let rank = |copy: &&HeaderCopy| (copy.is_whole, copy.sequence);
    let Some(newest) = copies.iter().rev().max_by_key(rank) else {
        return Ok(None);
    };
    let uuid = newest.uuid.clone();
    let is_its = |copy: &&HeaderCopy| copy.is_whole && copy.uuid == uuid;
    Ok(Some(Header {
        is_whole: copies.iter().filter(is_its).count() == 2,
        uuid,
        layouts: (copies.into_iter().filter(is_whole).map(|copy| copy.layout)).collect(),
    }))
}

fn sizes() -> impl Iterator<Item = u64> {
    (0..SIZES).map(|doubled| SMALLEST << doubled)
}

/// The copy at this place, if one begins there.
fn copy(device: &impl ReadAt, place: u64, magic: &[u8]) -> io::Result<Option<HeaderCopy>> {
    let Some(binary) = bytes(device, place, BINARY)? else {
        return Ok(None);
    };
    let number = |at: usize| Some(u64::from_be_bytes(*binary.get(at..)?.first_chunk()?));
    let version = binary.get(6..8).unwrap_or_default();
    if !binary.starts_with(magic) || version != [0, 2] {
        return Ok(None);
    }
    let size = number(8).unwrap_or(0);
    let is_sane =
        sizes().any(|one| one == size) && number(256) == Some(place) && [0, size].contains(&place);
    let length = usize::try_from(size).unwrap_or(usize::MAX);
    let whole = is_sane.then(|| bytes(device, place, length)).transpose()?;
    let whole = whole.flatten().filter(|whole| is_right(whole));
    Ok(Some(HeaderCopy {
        uuid: uuid(binary.get(168..208).unwrap_or_default()),
        size,
        sequence: number(16).unwrap_or(0),
        is_whole: whole.is_some(),
        layout: whole.and_then(|whole| layout_of(whole.get(BINARY..)?, size)),
    }))
}

/// Whether the checksum of these bytes is right. It was made while its own place held zeros.
fn is_right(whole: &[u8]) -> bool {
    let algorithm = whole.get(72..104).unwrap_or_default();
    let (before, rest) = whole.split_at_checked(CHECKSUM).unwrap_or_default();
    let (sum, after) = rest.split_at_checked(CHECKSUM_LENGTH).unwrap_or_default();
    let own = Sha256::new()
        .chain_update(before)
        .chain_update([0; CHECKSUM_LENGTH])
        .chain_update(after)
        .finalize();
    text(algorithm) == b"sha256" && sum.starts_with(&own)
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A UUID as it is written, and nothing else.
fn uuid(field: &[u8]) -> Option<String> {
    let text = str::from_utf8(text(field)).ok()?.to_ascii_lowercase();
    with_hyphens(&text.replace('-', "")).filter(|uuid| *uuid == text)
}

/// How one copy says that its volume is encrypted. What of that is allowed is decided elsewhere. Whoever can write to
/// the disk can write these texts.
///
/// Source: cryptsetup's docs/on-disk-format-luks2.pdf, "LUKS2 JSON Metadata Format".
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
    /// What a program must know to open the volume, by kind: `online-reencrypt` is `mandatory`.
    #[serde(default)]
    pub requirements: BTreeMap<String, Vec<String>>,
}

/// What this JSON says, after which zeros follow, of a copy with `size` bytes. `None`: it is not what a header has.
pub fn layout_of(json: &[u8], size: u64) -> Option<Layout> {
    let text = json.split(|byte| *byte == 0).next()?;
    let layout: Layout = serde_json::from_slice(text).ok()?;
    let areas = layout.config.keyslots_size.parse().ok()?;
    let end = size.checked_mul(2)?.checked_add(areas)?;
    Some(Layout { end, ..layout })
}
