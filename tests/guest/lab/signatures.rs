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
