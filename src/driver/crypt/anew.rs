//! A LUKS2 header that the driver writes anew for cryptsetup, in memory.
//!
//! cryptsetup might understand the header on the disk in another way than the driver, or read it after a change. So
//! cryptsetup gets a header that the driver writes from the header that it has judged. Only numbers, salts, digests and
//! the areas with the encrypted keys, which have no structure, come from the disk. The driver writes the members' names
//! and the checksums itself.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use serde_json::{Map, Value, json};

use super::CIPHER;
use super::header::{BINARY, CHECKSUM, FIRST, SECOND, checksum};
use super::layout::{Kdf, KeyDigest, Keyslot, Layout, STRIPES};
use super::mapping::OF_SPEED;
use crate::fs::superblock::{ReadAt, bytes};

/// Both copies of a new header that opens the same volume as `layout`. `None`: `layout` opens nothing, or its JSON does
/// not fit.
pub fn both_copies(uuid: &str, layout: &Layout) -> Option<Vec<u8>> {
    let json = template(layout)?.to_string();
    let size = usize::try_from(layout.size).ok()?;
    let mut both = Vec::new();
    for (place, magic) in [(0, FIRST), (layout.size, SECOND)] {
        let mut copy = vec![0; size];
        put(&mut copy, 0, magic)?;
        put(&mut copy, 6, &[0, 2])?;
        put(&mut copy, 8, &layout.size.to_be_bytes())?;
        put(&mut copy, 16, &1_u64.to_be_bytes())?;
        put(&mut copy, 72, b"sha256")?;
        put(&mut copy, 168, uuid.as_bytes())?;
        put(&mut copy, 256, &place.to_be_bytes())?;
        put(&mut copy, BINARY, json.as_bytes())?;
        let sum = checksum(&copy)?;
        put(&mut copy, CHECKSUM, &sum)?;
        both.extend(copy);
    }
    Some(both)
}

/// Copies `what` into a header's copy. `None`: there is no room.
fn put(copy: &mut [u8], at: usize, what: &[u8]) -> Option<()> {
    let to = copy.get_mut(at..)?.get_mut(..what.len())?;
    to.copy_from_slice(what);
    Some(())
}

/// Copies these places of a device to the same places of a file. A key that cannot be read becomes zeros, which no
/// passphrase opens. The key of another slot may still open the volume.
pub fn copy_keys(device: &impl ReadAt, to: &File, places: &[Range<u64>]) -> io::Result<()> {
    for Range { start, end } in places {
        let length = usize::try_from(end.saturating_sub(*start)).unwrap_or(usize::MAX);
        if let Ok(Some(key)) = bytes(device, *start, length) {
            to.write_all_at(&key, *start)?;
        }
    }
    Ok(())
}

/// The places of the encrypted keys, in bytes.
pub fn keys(layout: &Layout) -> Vec<Range<u64>> {
    let keys = layout.opening().filter_map(|(_, slot)| slot.key());
    keys.collect()
}

/// The JSON of the header that cryptsetup gets: one segment with the driver's cipher, and the key slots that open it.
/// `None`: there is no such segment or digest, or a text is no number.
pub fn template(layout: &Layout) -> Option<Value> {
    let (segment, (_, digest)) = (layout.segment()?, layout.digest()?);
    let KeyDigest {
        hash,
        iterations,
        salt,
        digest,
        ..
    } = digest;
    let areas: u64 = layout.config.keyslots_size.parse().ok()?;
    let mut slots = Map::new();
    for (number, slot) in layout.opening() {
        slots.insert(number.to_string(), keyslot(slot)?);
    }
    let numbers: Vec<&String> = slots.keys().collect();
    let flags = layout.config.flags.iter();
    let flags: Vec<&String> = flags.filter(|flag| is_of_speed(flag)).collect();
    Some(json!({
        "segments": { "0": {
            "type": "crypt",
            "offset": segment.begins()?.to_string(),
            "size": "dynamic",
            "iv_tweak": "0",
            "encryption": CIPHER,
            "sector_size": segment.sector_size,
        } },
        "digests": { "0": {
            "type": "pbkdf2",
            "keyslots": numbers,
            "segments": ["0"],
            "hash": hash,
            "iterations": iterations,
            "salt": salt,
            "digest": digest,
        } },
        "tokens": {},
        "config": {
            "json_size": layout.size.checked_sub(BINARY as u64)?.to_string(),
            "keyslots_size": areas.to_string(),
            "flags": flags,
        },
        "keyslots": slots,
    }))
}

/// Whether a flag of a header changes only the speed of the device. A header has hyphens where the kernel's table has
/// underscores.
fn is_of_speed(flag: &str) -> bool {
    OF_SPEED
        .iter()
        .any(|option| option.replace('_', "-") == flag)
}

fn keyslot(slot: &Keyslot) -> Option<Value> {
    let place = slot.area.place()?;
    let Kdf {
        kind,
        salt,
        hash,
        iterations,
        time,
        memory,
        cpus,
        ..
    } = &slot.kdf;
    let kdf = match kind.as_str() {
        "pbkdf2" => json!({ "type": kind, "salt": salt, "hash": hash, "iterations": iterations }),
        _ => json!({ "type": kind, "salt": salt, "time": time, "memory": memory, "cpus": cpus }),
    };
    Some(json!({
        "type": "luks2",
        "key_size": slot.key_size,
        "priority": slot.priority.unwrap_or(1),
        "af": { "type": "luks1", "stripes": STRIPES, "hash": slot.af.hash },
        "area": {
            "type": "raw",
            "offset": place.start.to_string(),
            "size": place.end.checked_sub(place.start)?.to_string(),
            "encryption": CIPHER,
            "key_size": slot.area.key_size,
        },
        "kdf": kdf,
    }))
}
