//! The bytes by which content is known, for kinds whose own tool is not on every machine.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

const KIB: u64 = 1 << 10;

/// Overwrites bytes of a device, and waits until they are there.
pub fn put(device: &str, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(device).unwrap();
    file.write_all_at(bytes, at).unwrap();
    file.sync_all().unwrap();
}

/// Linux software RAID, superblock of version 1.
pub fn md1(device: &str, at: u64) {
    let mut block = [0; 256];
    block[..4].copy_from_slice(&0xA92B_4EFC_u32.to_le_bytes());
    block[4] = 1;
    block[16..32].copy_from_slice(b"sixteen bytes id");
    block[144..152].copy_from_slice(&(at / 512).to_le_bytes());
    let words = block
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let sum: u64 = words.map(u64::from).sum();
    let folded = u32::try_from((sum & 0xFFFF_FFFF) + (sum >> 32)).unwrap();
    block[216..220].copy_from_slice(&folded.to_le_bytes());
    put(device, at, &block);
}

/// Linux software RAID, superblock of version 0.90.
pub fn md0(device: &str, at: u64) {
    let mut block = [0; 256];
    block[..4].copy_from_slice(&0xA92B_4EFC_u32.to_le_bytes());
    block[8] = 90;
    put(device, at, &block);
}

/// The label of ZFS that begins at `at`, with four of its uberblocks.
pub fn zfs(device: &str, at: u64) {
    for number in 0..4 {
        let uberblock = at + 128 * KIB + number * KIB;
        put(device, uberblock, &0x00BA_B10C_u64.to_le_bytes());
    }
}

pub fn bcache(device: &str) {
    let mut block = [0; 256];
    block[8] = 8;
    block[24..40].copy_from_slice(&0xC685_73F6_4E1A_45CA_8265_F57F_48BA_6D81_u128.to_be_bytes());
    put(device, 4 * KIB, &block);
}

pub fn luks(device: &str, version: u8, at: u64) {
    let mut header = [0; 512];
    let magic = if at == 0 {
        b"LUKS\xBA\xBE"
    } else {
        b"SKUL\xBA\xBE"
    };
    header[..6].copy_from_slice(magic);
    header[7] = version;
    if version == 2 {
        header[256..264].copy_from_slice(&at.to_be_bytes());
    }
    put(device, at, &header);
}

/// A boot sector with a table of one partition of this type.
pub fn mbr(device: &str, kind: u8, start: u32, sectors: u32) {
    let mut sector = [0; 512];
    sector[440..444].copy_from_slice(b"disk");
    sector[450] = kind;
    sector[454..458].copy_from_slice(&start.to_le_bytes());
    sector[458..462].copy_from_slice(&sectors.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xAA]);
    put(device, 0, &sector);
}

/// One header of a GUID partition table without partitions, with its array of entries.
pub fn gpt(device: &str, size: u64, is_second: bool) {
    let last = size / 512 - 1;
    let entries = [0; 128 * 128];
    let (own, other, array) = if is_second {
        (last, 1, last - 32)
    } else {
        (1, last, 2)
    };
    let mut header = [0; 92];
    header[..8].copy_from_slice(b"EFI PART");
    header[8..16].copy_from_slice(&[0, 0, 1, 0, 92, 0, 0, 0]);
    header[24..32].copy_from_slice(&own.to_le_bytes());
    header[32..40].copy_from_slice(&other.to_le_bytes());
    header[40..48].copy_from_slice(&34_u64.to_le_bytes());
    header[48..56].copy_from_slice(&(last - 33).to_le_bytes());
    header[56..72].copy_from_slice(b"the table's guid");
    header[72..80].copy_from_slice(&array.to_le_bytes());
    header[80..88].copy_from_slice(&[128, 0, 0, 0, 128, 0, 0, 0]);
    header[88..].copy_from_slice(&crc32(&entries).to_le_bytes());
    let sum = crc32(&header);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
    put(device, array * 512, &entries);
    put(device, own * 512, &header);
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}
