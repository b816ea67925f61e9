//! Parses the two copies of a LUKS2 header. A copy counts only if its checksum is right.
//!
//! Source: cryptsetup's docs/on-disk-format-luks2.pdf, "Binary Header".

use std::cmp::Reverse;
use std::io;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layout::{Layout, layout_of};
use crate::fs::superblock::{ReadAt, bytes};
use crate::names::{Bytes, with_hyphens};

/// The size of a header with its key slots, as cryptsetup makes it. Source: cryptsetup-luksFormat(8), `--offset`.
pub const HEADER_SIZE: Bytes = Bytes::new(16 << 20);
pub(super) const FIRST: &[u8] = b"LUKS\xBA\xBE";
pub(super) const SECOND: &[u8] = b"SKUL\xBA\xBE";
/// The length of the part before the JSON. The checksum covers this part, too.
pub(super) const BINARY: usize = 4096;
/// The size of a copy, with its JSON, is a power of two from 16 KiB to 4 MiB. The second copy begins where the first
/// ends.
const SMALLEST: u64 = 16 << 10;
const SIZES: usize = 9;
pub(super) const CHECKSUM: usize = 448;
pub(super) const CHECKSUM_LENGTH: usize = 64;

/// A LUKS2 header, whole or damaged: at least the beginning of one copy was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// In lower case with hyphens. In a damaged header it may be wrong. `None`: no UUID was found.
    pub uuid: Option<String>,
    /// Whether both copies are whole and belong to the same header.
    pub is_whole: bool,
    /// One for each whole copy, the newest first. An error: why the copy's JSON cannot be read.
    pub layouts: Vec<Result<Layout, String>>,
}

impl Header {
    /// Whether cryptsetup can use this header. One whole copy is enough: cryptsetup repairs the other from it.
    pub fn is_usable(&self) -> bool {
        self.uuid.is_some() && !self.layouts.is_empty()
    }

    /// The newest copy, and its UUID. `None`: its JSON cannot be read.
    pub fn newest(&self) -> Option<(&Layout, &str)> {
        let layout = self.layouts.first()?.as_ref().ok()?;
        Some((layout, self.uuid.as_deref()?))
    }

    /// Whether the header has key slots. A killed luksFormat leaves a header without key slots, since it writes them
    /// last. True also if the JSON of a copy cannot be read.
    pub fn has_keys(&self) -> bool {
        self.layouts.iter().any(|layout| match layout {
            Ok(layout) => !layout.keyslots.is_empty(),
            Err(_) => true,
        })
    }
}

/// One copy of a header.
struct HeaderCopy {
    uuid: Option<String>,
    size: u64,
    sequence: u64,
    /// The copy's JSON, or why it cannot be read. `None`: the copy is damaged.
    layout: Option<Result<Layout, String>>,
}

impl HeaderCopy {
    fn is_whole(&self) -> bool {
        self.layout.is_some()
    }
}

/// The header of a device. `None`: no copy of a LUKS2 header begins on the device. If one copy is whole, a copy that
/// cannot be read from the disk counts as damaged.
pub fn read(device: &impl ReadAt) -> io::Result<Option<Header>> {
    let mut unread = None;
    let mut copy = |place, magic| {
        copy(device, place, magic).unwrap_or_else(|error| {
            unread = Some(error);
            None
        })
    };
    let mut copies = Vec::from_iter(copy(0, FIRST));
    let places = match copies.first() {
        Some(first) if first.is_whole() => vec![first.size],
        _ => sizes().collect(),
    };
    for place in places {
        let second = copy(place, SECOND);
        let is_it = second.as_ref().is_some_and(HeaderCopy::is_whole);
        copies.extend(second);
        if is_it {
            break;
        }
    }
    if let Some(error) = unread.filter(|_| !copies.iter().any(HeaderCopy::is_whole)) {
        return Err(error);
    }
    // The header's UUID is the UUID of the newest whole copy. If two copies are equally new, the first on the disk
    // counts. A copy with another UUID does not belong to this header.
    copies.sort_by_key(|copy| Reverse((copy.is_whole(), copy.sequence)));
    let Some(newest) = copies.first() else {
        return Ok(None);
    };
    let uuid = newest.uuid.clone();
    let is_its = |copy: &&HeaderCopy| copy.is_whole() && copy.uuid == uuid;
    Ok(Some(Header {
        is_whole: copies.iter().filter(is_its).count() == 2,
        uuid,
        layouts: copies.into_iter().filter_map(|copy| copy.layout).collect(),
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
    Ok(Some(HeaderCopy {
        uuid: uuid(binary.get(168..208).unwrap_or_default()),
        size,
        sequence: number(16).unwrap_or(0),
        layout: whole.flatten().and_then(|whole| layout(&whole, size)),
    }))
}

/// The JSON of a copy. `None`: the copy is damaged.
///
/// cryptsetup accepts many kinds of checksum, but each of its versions writes sha256. A copy with another kind is an
/// error, and is not skipped, since cryptsetup may take it for whole.
fn layout(whole: &[u8], size: u64) -> Option<Result<Layout, String>> {
    let algorithm = text(whole.get(72..104)?);
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    if algorithm != b"sha256" && !algorithm.is_empty() && algorithm.iter().all(is_word) {
        let algorithm = String::from_utf8_lossy(algorithm);
        return Some(Err(format!("its checksum is {algorithm}")));
    }
    let sum = whole.get(CHECKSUM..)?.get(..CHECKSUM_LENGTH)?;
    let is_right = algorithm == b"sha256" && sum.starts_with(&checksum(whole)?);
    let json = whole.get(BINARY..)?;
    is_right.then(|| layout_of(json, size))
}

/// The checksum of a copy. The checksum's own place counts as zeros.
pub(super) fn checksum(whole: &[u8]) -> Option<[u8; 32]> {
    let (before, rest) = whole.split_at_checked(CHECKSUM)?;
    let (_, after) = rest.split_at_checked(CHECKSUM_LENGTH)?;
    let sum = Sha256::new()
        .chain_update(before)
        .chain_update([0; CHECKSUM_LENGTH])
        .chain_update(after);
    Some(sum.finalize().into())
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The UUID in a field of text. `None`: the text is no UUID.
fn uuid(field: &[u8]) -> Option<String> {
    let text = str::from_utf8(text(field)).ok()?.to_ascii_lowercase();
    with_hyphens(&text.replace('-', "")).filter(|uuid| *uuid == text)
}
