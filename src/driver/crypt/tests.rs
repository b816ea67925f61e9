//! Reads LUKS2 headers that have one thing wrong at a time.

use std::io;

use sha2::{Digest, Sha256};

use super::anew::{both_copies, copy_keys, keys};
use super::header::*;
use super::layout::layout_of;
use crate::fs::superblock::ReadAt;

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
    sized(SIZE, magic, place, sequence, uuid)
}

fn sized(size: usize, magic: &[u8], place: usize, sequence: u64, uuid: &str) -> Vec<u8> {
    let mut bytes = vec![0; size];
    let mut put = |at: usize, what: &[u8]| bytes[at..][..what.len()].copy_from_slice(what);
    put(0, magic);
    put(6, &[0, 2]);
    put(8, &(size as u64).to_be_bytes());
    put(16, &sequence.to_be_bytes());
    put(72, b"sha256");
    put(168, uuid.as_bytes());
    put(256, &(place as u64).to_be_bytes());
    put(
        BINARY,
        br#"{"keyslots":{},"segments":{},"digests":{},"config":{"keyslots_size":"0"}}"#,
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
    // The number of whole copies. The header is whole if both are.
    #[rustfmt::skip] // a row is a line
    let cases: [(&str, Change, Option<usize>); 14] = [
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
        ("a checksum that is none", |b| b[72..78].copy_from_slice(b"\x01d5\0\0\0"), Some(1)),
        ("no checksum", |b| b[72..78].fill(0), Some(1)),
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
    // A copy with the right checksum whose JSON cannot be read.
    let mut bytes = device(UUID, UUID);
    bytes[BINARY] = b'[';
    bytes[CHECKSUM..][..CHECKSUM_LENGTH].fill(0);
    let sum = Sha256::digest(&bytes[..SIZE]);
    bytes[CHECKSUM..][..sum.len()].copy_from_slice(&sum);
    let odd = found(bytes);
    assert!(odd.is_whole && odd.layouts[0].is_err() && odd.has_keys());
}

/// cryptsetup would take such a copy for whole if its checksum is right.
#[test]
fn a_copy_with_another_kind_of_checksum_is_not_skipped() {
    for name in ["sha512", "md5", "sha3-256", "whirlpool"] {
        let mut bytes = device(UUID, UUID);
        bytes[72..72 + 32].fill(0);
        bytes[72..][..name.len()].copy_from_slice(name.as_bytes());
        let header = read(&Bytes(bytes)).unwrap().unwrap();
        assert_eq!(header.layouts[0], Err(format!("its checksum is {name}")));
        assert!(header.layouts[1].is_ok() && header.newest().is_none());
    }
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
    // The device ends in the middle of the header.
    let mut bytes = device(UUID, UUID);
    bytes.truncate(SIZE - 1);
    assert!(found(bytes).layouts.is_empty());
}

/// The size of the header decides where its second copy is.
#[test]
fn the_second_copy_is_looked_for_wherever_the_first_may_end() {
    let found = |bytes| read(&Bytes(bytes)).unwrap().unwrap();
    for size in [2 * SIZE, 16 * SIZE] {
        let mut bytes = vec![0; size];
        bytes.extend(sized(size, SECOND, size, 3, UUID));
        let header = found(bytes);
        assert_eq!(header.uuid.as_deref(), Some(UUID), "{size}");
        assert!(header.is_usable() && !header.is_whole, "{size}");
    }
    // A whole first copy says where it ends. Elsewhere is what a larger header has left.
    let mut bytes = device(UUID, UUID);
    bytes[SIZE..2 * SIZE].fill(0);
    bytes[2 * SIZE..4 * SIZE].copy_from_slice(&sized(2 * SIZE, SECOND, 2 * SIZE, 9, OTHER));
    let header = found(bytes);
    assert_eq!(header.uuid.as_deref(), Some(UUID));
    assert_eq!(header.layouts.len(), 1);
}

/// The JSON of a header as cryptsetup 2.6 writes it.
pub const LAYOUT: &str = r#"{"keyslots":{"0":{"type":"luks2","key_size":64,"af":{"type":"luks1","stripes":4000,
    "hash":"sha256"},"area":{"type":"raw","offset":"32768","size":"258048","encryption":"aes-xts-plain64",
    "key_size":64},"kdf":{"type":"argon2id","time":4,"memory":32,"cpus":1,
    "salt":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}},"tokens":{},"segments":{"0":{"type":"crypt",
    "offset":"16777216","size":"dynamic","iv_tweak":"0","encryption":"aes-xts-plain64","sector_size":512}},
    "digests":{"0":{"type":"pbkdf2","keyslots":["0"],"segments":["0"],"hash":"sha256","iterations":1000,
    "salt":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","digest":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}},
    "config":{"json_size":"12288","keyslots_size":"16744448"}}"#;

#[test]
fn what_is_copied_is_read_from_segments_and_key_slots() {
    let read = |text: &str| layout_of(&[text.as_bytes(), &[0; 9]].concat(), 16 << 10);
    let layout = read(LAYOUT).unwrap();
    assert_eq!(layout.end(), Some(16 << 20));
    let (segment, slot) = (layout.segment().unwrap(), &layout.keyslots[&0]);
    assert_eq!(segment.begins(), Some(16 << 20));
    assert_eq!((slot.area.key_size, slot.key_size), (64, 64));
    assert!(layout.config.requirements.is_empty());
    let odd = LAYOUT.replace(r#""16777216""#, r#""all""#).replace(
        r#"{"json_size""#,
        r#"{"requirements":{"mandatory":["x"]},"json_size""#,
    );
    let odd = read(&odd).unwrap();
    assert_eq!(odd.segment().unwrap().begins(), None);
    assert_eq!(odd.config.requirements["mandatory"], ["x"]);
}

#[test]
fn what_has_no_meaning_or_two_says_nothing() {
    let of = |json: &str| layout_of(json.as_bytes(), 16 << 10);
    assert!(of(LAYOUT).is_ok());
    for json in ["", "\0", "{}", "[1]", "{'keyslots':{}}"] {
        assert!(of(json).is_err(), "{json}");
    }
    // The text in the JSON, and its replacement.
    #[rustfmt::skip] // a row is a line
    let cases = [
        (r#""key_size":64"#, r#""key_size":-64"#),
        (r#""config":{"#, r#""config":["#),
        (r#""tokens":{}"#, r#""tokens":{},"tokens":{}"#),
        (r#""tokens":{}"#, r#""tokens":{"0":{"x":1,"x":2}}"#),
        (r#""tokens":{}"#, r#""segments\u0000":{}"#),
        (r#""tokens":{}"#, r#""tokens":{"0":{"\u001b":1}}"#),
        (r#""encryption":"#, r#""encryption\u0000":"","encryption":"#),
        (r#""encryption":"#, r#""encryption":"","encryption":"#),
        (r#"{"0":{"type":"luks2""#, r#"{"00":{"type":"luks2""#),
        (r#"{"0":{"type":"luks2""#, r#"{"0":{},"0":{"type":"luks2""#),
        (r#"{"0":{"type":"luks2""#, r#"{"0":{},"0\u0000":{"type":"luks2""#),
        (r#"{"0":{"type":"luks2""#, r#"{"+1":{},"0":{"type":"luks2""#),
        (r#""16744448"}}"#, "\"16744448\"}}\0{}"),
    ];
    for (old, new) in cases {
        assert!(LAYOUT.contains(old), "{old}");
        assert!(of(&LAYOUT.replacen(old, new, 1)).is_err(), "{new}");
    }
}

#[test]
fn cryptsetup_gets_what_was_judged_and_nothing_else() {
    let json = LAYOUT
        .replace(
            r#""tokens":{}"#,
            r#""tokens":{"0":{"type":"luks2-keyring"}}"#,
        )
        .replace(
            r#""json_size""#,
            r#""flags":["allow-discards","no-read-workqueue"],"json_size""#,
        )
        .replace(
            r#""keyslots":{"#,
            r#""keyslots":{"7":{"type":"luks2","key_size":64},"#,
        );
    let layout = layout_of(json.as_bytes(), 16 << 10).unwrap();
    let both = both_copies(UUID, &layout).unwrap();
    let header = read(&Bytes(both)).unwrap().unwrap();
    assert!(header.is_whole && header.layouts[0] == header.layouts[1]);
    let (found, uuid) = header.newest().unwrap();
    let wanted = LAYOUT
        .replace(
            r#""json_size""#,
            r#""flags":["no-read-workqueue"],"json_size""#,
        )
        .replace(r#"{"type":"luks2","#, r#"{"type":"luks2","priority":1,"#);
    let wanted = layout_of(wanted.as_bytes(), 16 << 10).unwrap();
    assert_eq!((found, uuid), (&wanted, UUID));
    // Nothing is written if the JSON has no room, or no key slot opens the volume.
    let mut large = layout.clone();
    large.keyslots.get_mut(&0).unwrap().kdf.salt = "A".repeat(16 << 10);
    assert_eq!(both_copies(UUID, &large), None);
    let mut none = layout;
    none.digests.clear();
    assert_eq!(both_copies(UUID, &none), None);
}

#[test]
fn of_the_disk_only_the_encrypted_keys_are_copied() {
    let layout = layout_of(LAYOUT.as_bytes(), 16 << 10).unwrap();
    let (places, place) = (keys(&layout), 32768..32768 + 256_000);
    assert_eq!(places, vec![place; 1]);
    let copy = |disk: &Broken| {
        let to = tempfile::tempfile().unwrap();
        to.set_len(1 << 20).unwrap();
        copy_keys(disk, &to, &places).unwrap();
        let all = crate::fs::superblock::bytes(&to, 0, 1 << 20)
            .unwrap()
            .unwrap();
        let others = all[..32768].iter().chain(&all[32768 + 256_000..]);
        assert!(others.clone().all(|byte| *byte == 0));
        all[32768..][..256_000].to_vec()
    };
    let disk = |bad| Broken(Bytes(vec![7; 1 << 20]), bad);
    assert!(copy(&disk(0..1)).iter().all(|byte| *byte == 7));
    // Another key slot may open the volume.
    assert!(copy(&disk(40_000..40_001)).iter().all(|byte| *byte == 0));
}
