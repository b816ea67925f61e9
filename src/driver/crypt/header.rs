//! The two copies of a LUKS2 header. Pure, and nothing in it is believed before its checksum is right.
//!
//! Source: cryptsetup's docs/on-disk-format-luks2.pdf, "Binary Header".

use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layout::{self, Layout};
use crate::fs::superblock::{ReadAt, fill};
use crate::names::Bytes;

/// Of a header with its key slots, as cryptsetup makes it. Source: cryptsetup-luksFormat(8), `--offset`.
pub const HEADER_SIZE: Bytes = Bytes::new(16 << 20);
const FIRST: &[u8] = b"LUKS\xBA\xBE";
const SECOND: &[u8] = b"SKUL\xBA\xBE";
/// The part before the JSON, which the checksum covers too.
const BINARY: usize = 4096;
/// Sizes that a copy may have, its JSON included. The second copy begins where the first ends.
const SIZES: [u64; 9] = [
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
];
const CHECKSUM: usize = 448;
const CHECKSUM_LENGTH: usize = 64;

/// A LUKS2 header of which at least a beginning is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// In lower case with hyphens. Of a copy that is damaged it may be wrong. `None`: it has none.
    pub uuid: Option<String>,
    pub first: CopyState,
    pub second: CopyState,
    /// Of each copy that is whole. `None`: what is in it cannot be read.
    pub layouts: Vec<Option<Layout>>,
}

/// One copy of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyState {
    Whole,
    /// It begins as one, and the rest is not right, or is another header's.
    Damaged,
    Missing,
}

impl Header {
    /// Whether cryptsetup can open it: it repairs one copy from the other.
    pub fn is_usable(&self) -> bool {
        self.uuid.is_some() && [self.first, self.second].contains(&CopyState::Whole)
    }

    /// Whether anybody could open it: luksFormat writes the key slots last.
    pub fn has_keys(&self) -> bool {
        let has_keys = |layout: &Layout| !layout.keyslots.is_empty();
        self.layouts
            .iter()
            .any(|layout| layout.as_ref().is_none_or(has_keys))
    }

    /// Whether both copies are whole.
    pub fn is_whole(&self) -> bool {
        self.first == CopyState::Whole && self.second == CopyState::Whole
    }
}

struct Found {
    uuid: Option<String>,
    size: u64,
    sequence: u64,
    json: Json,
}

/// What a copy says of segments and key slots.
enum Json {
    /// The copy is not whole.
    Damaged,
    /// The checksum is right, but this is no JSON of a header.
    Odd,
    Is(Layout),
}

impl Found {
    fn is_whole(&self) -> bool {
        !matches!(self.json, Json::Damaged)
    }

    fn unread() -> Self {
        Self {
            uuid: None,
            size: 0,
            sequence: 0,
            json: Json::Damaged,
        }
    }
}

/// The header of a device. `None`: neither copy so much as begins, or it is a LUKS of another version.
pub fn read(device: &impl ReadAt) -> io::Result<Option<Header>> {
    let [first, second] = copies(device)?;
    let state = |copy: &Option<Found>| match copy {
        None => CopyState::Missing,
        Some(found) if found.is_whole() => CopyState::Whole,
        Some(_) => CopyState::Damaged,
    };
    let states = (state(&first), state(&second));
    Ok(match (first, second) {
        (None, None) => None,
        (first, second) => Some(together(first, second, states)),
    })
}

/// A copy that the disk cannot read is a damaged one, if the other one is whole.
fn copies(device: &impl ReadAt) -> io::Result<[Option<Found>; 2]> {
    let mut unread = None;
    let mut copy = |place, magic| {
        copy(device, place, magic).unwrap_or_else(|error| {
            unread = Some(error);
            Some(Found::unread())
        })
    };
    let first = copy(0, FIRST);
    let places = match &first {
        Some(found) if found.is_whole() => vec![found.size],
        _ => SIZES.to_vec(),
    };
    let mut second = None::<Found>;
    for place in places {
        let found = copy(place, SECOND);
        let is_better = |found: &Found| second.as_ref().is_none_or(|_| found.is_whole());
        second = found.filter(is_better).or(second);
        if second.as_ref().is_some_and(Found::is_whole) {
            break;
        }
    }
    let all = [first, second];
    let has_whole = all.iter().flatten().any(Found::is_whole);
    match unread.filter(|_| !has_whole) {
        Some(error) => Err(error),
        None => Ok(all),
    }
}

/// The whole copy that was written last says the UUID. A copy that says another one is not this header's.
fn together(first: Option<Found>, second: Option<Found>, states: (CopyState, CopyState)) -> Header {
    let rank = |found: &Option<Found>| found.as_ref().map(|one| (one.is_whole(), one.sequence));
    let is_first = rank(&first) >= rank(&second);
    let copies = [&first, &second].into_iter().flatten();
    let layouts = copies.filter_map(|copy| match &copy.json {
        Json::Damaged => None,
        Json::Odd => Some(None),
        Json::Is(layout) => Some(Some(layout.clone())),
    });
    let layouts = layouts.collect();
    let (best, other) = if is_first {
        (first, second)
    } else {
        (second, first)
    };
    let uuid_of = |found: Option<Found>| found.and_then(|found| found.uuid);
    let is_there = other.is_some();
    let (uuid, other) = (uuid_of(best), uuid_of(other));
    let (mut first, mut second) = states;
    if is_there && other != uuid {
        *(if is_first { &mut second } else { &mut first }) = CopyState::Damaged;
    }
    Header {
        uuid,
        first,
        second,
        layouts,
    }
}

/// The copy at this place, if one begins there.
fn copy(device: &impl ReadAt, place: u64, magic: &[u8]) -> io::Result<Option<Found>> {
    let Some(binary) = bytes(device, place, BINARY)? else {
        return Ok(None);
    };
    let number = |at: usize| Some(u64::from_be_bytes(*binary.get(at..)?.first_chunk()?));
    let version = binary.get(6..8).unwrap_or_default();
    if !binary.starts_with(magic) || version != [0, 2] {
        return Ok(None);
    }
    let size = number(8).unwrap_or(0);
    let is_sane = SIZES.contains(&size) && number(256) == Some(place) && [0, size].contains(&place);
    let length = usize::try_from(size).unwrap_or(usize::MAX);
    let whole = if is_sane {
        bytes(device, place, length)?
    } else {
        None
    };
    let layout = whole
        .as_ref()
        .and_then(|whole| layout::parse(whole.get(BINARY..)?, size));
    let json = match (whole.is_some_and(|mut whole| is_right(&mut whole)), layout) {
        (false, _) => Json::Damaged,
        (true, None) => Json::Odd,
        (true, Some(layout)) => Json::Is(layout),
    };
    Ok(Some(Found {
        uuid: uuid(binary.get(168..208).unwrap_or_default()),
        size,
        sequence: number(16).unwrap_or(0),
        json,
    }))
}

/// Whether the checksum of these bytes is right.
fn is_right(whole: &mut [u8]) -> bool {
    let algorithm = whole.get(72..104).unwrap_or_default();
    let is_known = text(algorithm) == b"sha256";
    let Some(place) = whole
        .get_mut(CHECKSUM..)
        .and_then(|rest| rest.get_mut(..CHECKSUM_LENGTH))
    else {
        return false;
    };
    let sum = place.to_vec();
    place.fill(0);
    is_known && sum.starts_with(&Sha256::digest(&*whole))
}

/// `None`: the device ends before.
fn bytes(device: &impl ReadAt, place: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; length];
    match fill(device, &mut bytes, place) {
        Ok(()) => Ok(Some(bytes)),
        Err((_, e)) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err((_, e)) => Err(e),
    }
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A UUID as it is written, and nothing else.
fn uuid(field: &[u8]) -> Option<String> {
    let text = str::from_utf8(text(field)).ok()?.to_ascii_lowercase();
    let is_one = text.len() == 36
        && text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        });
    is_one.then_some(text)
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
    type Seen = (Option<String>, CopyState, CopyState);

    fn seen(change: impl FnOnce(&mut Vec<u8>)) -> Option<Seen> {
        let mut bytes = device(UUID, UUID);
        change(&mut bytes);
        let found = read(&Bytes(bytes)).unwrap();
        found.map(|header| (header.uuid, header.first, header.second))
    }

    #[test]
    fn each_copy_counts_if_its_checksum_is_right() {
        use CopyState::{Damaged, Missing, Whole};
        let uuid = || Some(UUID.to_owned());
        #[rustfmt::skip] // a row is a line
        let cases: [(&str, Change, Option<Seen>); 13] = [
            ("both", |_| (), Some((uuid(), Whole, Whole))),
            ("a bit of the first's JSON", |b| b[5000] ^= 1, Some((uuid(), Damaged, Whole))),
            ("a bit of the second's checksum", |b| b[SIZE + CHECKSUM] ^= 1, Some((uuid(), Whole, Damaged))),
            ("a bit of each", |b| { b[5000] ^= 1; b[SIZE + 5000] ^= 1; }, Some((uuid(), Damaged, Damaged))),
            ("the first zeroed", |b| b[..SIZE].fill(0), Some((uuid(), Missing, Whole))),
            ("the second zeroed", |b| b[SIZE..].fill(0), Some((uuid(), Whole, Missing))),
            ("both zeroed", |b| b.fill(0), None),
            ("LUKS1", |b| { b[7] = 1; b[SIZE..].fill(0); }, None),
            ("a size that none has", |b| { b[8..16].copy_from_slice(&(5_u64 << 20).to_be_bytes()); }, Some((uuid(), Damaged, Whole))),
            ("as large as can be said", |b| { b[8..16].fill(0xFF); b[SIZE..].fill(0); }, Some((uuid(), Damaged, Missing))),
            ("the second at another place", |b| b.copy_within(SIZE..2 * SIZE, 2 * SIZE), Some((uuid(), Whole, Whole))),
            ("another checksum", |b| b[72..78].copy_from_slice(b"md5\0\0\0"), Some((uuid(), Damaged, Whole))),
            ("a UUID that is none", |b| { b[168] = b'x'; b[SIZE..].fill(0); }, Some((None, Damaged, Missing))),
        ];
        for (name, change, want) in cases {
            assert_eq!(seen(change), want, "{name}");
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
        use CopyState::{Damaged, Whole};
        let found = |bad| read(&Broken(Bytes(device(UUID, UUID)), bad));
        let size = SIZE as u64;
        for (bad, states) in [(0..1, (Damaged, Whole)), (size..2 * size, (Whole, Damaged))] {
            let header = found(bad).unwrap().unwrap();
            assert!(header.is_usable());
            assert_eq!((header.first, header.second), states);
            assert_eq!(header.uuid.as_deref(), Some(UUID));
        }
        assert_eq!(
            found(0..2 * size).unwrap_err().raw_os_error(),
            Some(nix::libc::EIO)
        );
    }

    #[test]
    fn what_each_whole_copy_says_is_read() {
        let found = |bytes| read(&Bytes(bytes)).unwrap().unwrap();
        let both = found(device(UUID, UUID));
        assert!(both.layouts.len() == 2 && both.layouts[0].is_some() && !both.has_keys());
        let mut bytes = device(UUID, UUID);
        bytes[SIZE + 5000] ^= 1;
        assert_eq!(found(bytes).layouts.len(), 1);
        // One that is whole, and cannot be read.
        let mut bytes = device(UUID, UUID);
        bytes[BINARY] = b'[';
        bytes[CHECKSUM..][..CHECKSUM_LENGTH].fill(0);
        let sum = Sha256::digest(&bytes[..SIZE]);
        bytes[CHECKSUM..][..sum.len()].copy_from_slice(&sum);
        let odd = found(bytes);
        assert!(odd.is_whole() && odd.layouts[0].is_none() && odd.has_keys());
    }

    #[test]
    fn the_copy_that_was_written_last_says_whose_it_is() {
        let found = |bytes| read(&Bytes(bytes)).unwrap().unwrap();
        let both = found(device(UUID, OTHER));
        assert_eq!(
            (both.uuid.as_deref(), both.second),
            (Some(UUID), CopyState::Damaged)
        );
        let mut bytes = device(UUID, UUID);
        bytes[SIZE..2 * SIZE].copy_from_slice(&copy_of(SECOND, SIZE, 4, OTHER));
        let newer = found(bytes);
        assert_eq!(
            (newer.uuid.as_deref(), newer.first),
            (Some(OTHER), CopyState::Damaged)
        );
        assert!(newer.is_usable() && !newer.is_whole());
        // Two that are damaged, and differ: nobody knows.
        let mut bytes = device(UUID, OTHER);
        (bytes[5000], bytes[SIZE + 5000]) = (1, 1);
        let neither = found(bytes);
        assert!(!neither.is_usable());
        // The device ends in the middle of it.
        let mut bytes = device(UUID, UUID);
        bytes.truncate(SIZE - 1);
        assert_eq!(found(bytes).first, CopyState::Damaged);
    }
}
