//! The two copies of a LUKS2 header. Pure, and nothing in it is believed before its checksum is right.
//!
//! Source: cryptsetup's docs/on-disk-format-luks2.pdf, "Binary Header".

use std::io;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layout::{self, Layout};
use crate::fs::superblock::{ReadAt, bytes};
use crate::names::{Bytes, with_hyphens};

/// The size of a header with its key slots, as cryptsetup makes it. Source: cryptsetup-luksFormat(8), `--offset`.
pub const HEADER_SIZE: Bytes = Bytes::new(16 << 20);
const FIRST: &[u8] = b"LUKS\xBA\xBE";
const SECOND: &[u8] = b"SKUL\xBA\xBE";
/// The part before the JSON, which the checksum covers too.
const BINARY: usize = 4096;
/// Sizes that a copy may have, its JSON included, are powers of two from 16 KiB to 4 MiB. The second copy begins where
/// the first ends.
const SMALLEST: u64 = 16 << 10;
const SIZES: usize = 9;
const CHECKSUM: usize = 448;
const CHECKSUM_LENGTH: usize = 64;

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
        layout: whole.and_then(|whole| layout::parse(whole.get(BINARY..)?, size)),
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

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0b1c2d3e-0000-4000-8000-00000000abcd";
    const OTHER: &str = "1b1c2d3e-0000-4000-8000-00000000abcd";
    const SIZE: usize = 16 << 10;

    struct Bytes(Vec<u8>);

    impl ReadAt for Bytes {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let from = self
                .0
                .get(usize::try_from(offset).unwrap()..)
                .unwrap_or_default();
            let length = from.len().min(into.len());
            into[..length].copy_from_slice(&from[..length]);
            Ok(length)
        }
    }

    fn copy_of(magic: &[u8], place: usize, sequence: u64, uuid: &str) -> Vec<u8> {
        let mut bytes = vec![0; SIZE];
        let mut put = |at: usize, what: &[u8]| bytes[at..][..what.len()].copy_from_slice(what);
        put(0, magic);
        put(6, &[0, 2]);
        put(8, &(SIZE as u64).to_be_bytes());
        put(16, &sequence.to_be_bytes());
        put(72, b"sha256");
        put(168, uuid.as_bytes());
        put(256, &(place as u64).to_be_bytes());
        put(
            BINARY,
            br#"{"keyslots":{},"segments":{},"config":{"keyslots_size":"0"}}"#,
        );
        let sum = Sha256::digest(&bytes);
        bytes[CHECKSUM..][..sum.len()].copy_from_slice(&sum);
        bytes
    }

    fn device(first: &str, second: &str) -> Vec<u8> {
        let mut bytes = copy_of(FIRST, 0, 3, first);
        bytes.extend(copy_of(SECOND, SIZE, 3, second));
        bytes.resize(8 << 20, 0);
        bytes
    }

    type Change = fn(&mut Vec<u8>);

    #[test]
    fn each_copy_counts_if_its_checksum_is_right() {
        // How many copies are whole. With both the header is.
        #[rustfmt::skip] // a row is a line
        let cases: [(&str, Change, Option<usize>); 13] = [
            ("both", |_| (), Some(2)),
            ("a bit of the first's JSON", |b| b[5000] ^= 1, Some(1)),
            ("a bit of the second's checksum", |b| b[SIZE + CHECKSUM] ^= 1, Some(1)),
            ("a bit of each", |b| { b[5000] ^= 1; b[SIZE + 5000] ^= 1; }, Some(0)),
            ("the first zeroed", |b| b[..SIZE].fill(0), Some(1)),
            ("the second zeroed", |b| b[SIZE..].fill(0), Some(1)),
            ("both zeroed", |b| b.fill(0), None),
            ("LUKS1", |b| { b[7] = 1; b[SIZE..].fill(0); }, None),
            ("a size that none has", |b| { b[8..16].copy_from_slice(&(5_u64 << 20).to_be_bytes()); }, Some(1)),
            ("as large as can be said", |b| { b[8..16].fill(0xFF); b[SIZE..].fill(0); }, Some(0)),
            ("the second at another place too", |b| b.copy_within(SIZE..2 * SIZE, 2 * SIZE), Some(2)),
            ("another checksum", |b| b[72..78].copy_from_slice(b"md5\0\0\0"), Some(1)),
            ("a UUID that is none", |b| { b[168] = b'x'; b[SIZE..].fill(0); }, Some(0)),
        ];
        for (name, change, want) in cases {
            let mut bytes = device(UUID, UUID);
            change(&mut bytes);
            let found = read(&Bytes(bytes)).unwrap();
            assert_eq!(
                found.as_ref().map(|header| header.layouts.len()),
                want,
                "{name}"
            );
            let Some(header) = found else { continue };
            let whole = want.unwrap_or_default();
            assert_eq!(
                (header.is_usable(), header.is_whole),
                (whole > 0, whole == 2),
                "{name}"
            );
            assert!(whole == 0 || header.uuid.as_deref() == Some(UUID), "{name}");
        }
    }

    /// A disk of which some bytes cannot be read.
    struct Broken(Bytes, std::ops::Range<u64>);

    impl ReadAt for Broken {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let end = offset.saturating_add(into.len() as u64);
            if offset < self.1.end && self.1.start < end {
                return Err(io::Error::from_raw_os_error(nix::libc::EIO));
            }
            self.0.read_at(into, offset)
        }
    }

    #[test]
    fn one_copy_that_cannot_be_read_is_a_damaged_one() {
        let found = |bad| read(&Broken(Bytes(device(UUID, UUID)), bad));
        let size = SIZE as u64;
        for bad in [0..1, size..2 * size] {
            let header = found(bad).unwrap().unwrap();
            assert!(header.is_usable() && !header.is_whole);
            assert_eq!(header.uuid.as_deref(), Some(UUID));
        }
        let neither = found(0..2 * size).unwrap_err();
        assert_eq!(neither.raw_os_error(), Some(nix::libc::EIO));
    }

    #[test]
    fn what_each_whole_copy_says_is_read() {
        let found = |bytes| read(&Bytes(bytes)).unwrap().unwrap();
        assert!(!found(device(UUID, UUID)).has_keys());
        // One that is whole, and cannot be read.
        let mut bytes = device(UUID, UUID);
        bytes[BINARY] = b'[';
        bytes[CHECKSUM..][..CHECKSUM_LENGTH].fill(0);
        let sum = Sha256::digest(&bytes[..SIZE]);
        bytes[CHECKSUM..][..sum.len()].copy_from_slice(&sum);
        let odd = found(bytes);
        assert!(odd.is_whole && odd.layouts[0].is_none() && odd.has_keys());
    }

    #[test]
    fn the_copy_that_was_written_last_says_whose_it_is() {
        let found = |bytes| read(&Bytes(bytes)).unwrap().unwrap();
        let both = found(device(UUID, OTHER));
        assert_eq!((both.uuid.as_deref(), both.is_whole), (Some(UUID), false));
        let mut bytes = device(UUID, UUID);
        bytes[SIZE..2 * SIZE].copy_from_slice(&copy_of(SECOND, SIZE, 4, OTHER));
        let newer = found(bytes);
        assert_eq!(newer.uuid.as_deref(), Some(OTHER));
        // An attacker's copy counts, too.
        assert!(newer.is_usable() && !newer.is_whole && newer.layouts.len() == 2);
        // The device ends in the middle of it.
        let mut bytes = device(UUID, UUID);
        bytes.truncate(SIZE - 1);
        assert!(found(bytes).layouts.is_empty());
    }
}
