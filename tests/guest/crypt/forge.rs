//! LUKS2 headers as an attacker writes them who can write to the disk. Their checksums are right.

use std::fs::File;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256, Sha384, Sha512};

use super::*;
use crate::data::foreign::bytes;

/// The size of each of the two copies, as luksFormat makes them.
pub const COPY: usize = 16 << 10;
/// At which byte of a copy its JSON begins.
const JSON: usize = 4096;

/// One copy of a header.
#[derive(Clone)]
pub struct Copy(pub Vec<u8>);

impl Copy {
    /// Reads a copy of a header that luksFormat has made: the first (0) or the second (1).
    pub fn read(device: &str, which: usize) -> Self {
        Self(bytes(device, (which * COPY) as u64, COPY))
    }

    pub fn json(&self) -> String {
        let text = self.0[JSON..].split(|byte| *byte == 0).next().unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    pub fn with_json(mut self, json: &str) -> Self {
        self.0[JSON..].fill(0);
        self.0[JSON..][..json.len()].copy_from_slice(json.as_bytes());
        self
    }

    /// The copy with the bytes `what` at byte `at`, which is before the JSON.
    pub fn with(mut self, at: usize, what: &[u8]) -> Self {
        self.0[at..][..what.len()].copy_from_slice(what);
        self
    }

    /// The bytes of the copy, with the right checksum by this algorithm.
    pub fn summed(self, algorithm: &str) -> Vec<u8> {
        let mut name = [0; 32];
        name[..algorithm.len()].copy_from_slice(algorithm.as_bytes());
        let Self(mut copy) = self.with(72, &name);
        copy[448..512].fill(0);
        let sum = match algorithm {
            "sha256" => Sha256::digest(&copy).to_vec(),
            "sha384" => Sha384::digest(&copy).to_vec(),
            "sha512" => Sha512::digest(&copy).to_vec(),
            other => panic!("{other}"),
        };
        copy[448..][..sum.len()].copy_from_slice(&sum);
        copy
    }
}

/// Writes to the disk behind the driver's back.
pub fn write(device: &str, at: usize, bytes: &[u8]) {
    let disk = File::options().write(true).open(device).unwrap();
    disk.write_all_at(bytes, at as u64).unwrap();
    disk.sync_all().unwrap();
}

/// Writes both copies of the header with this change of their JSON.
pub fn rewrite(device: &str, change: impl Fn(&str) -> String) {
    for which in [0, 1] {
        let copy = Copy::read(device, which);
        let json = change(&copy.json());
        assert_ne!(json, copy.json(), "nothing was changed");
        write(
            device,
            which * COPY,
            &copy.with_json(&json).summed("sha256"),
        );
    }
}

/// A change of JSON: replaces `old` by `new` in the part that begins with `from`.
pub fn within(from: &str, old: &str, new: &str) -> impl Fn(&str) -> String {
    move |json| {
        let (before, after) = json.split_once(from).unwrap();
        format!("{before}{from}{}", after.replacen(old, new, 1))
    }
}

pub const SEGMENTS: &str = "\"segments\":";
pub const SLOTS: &str = "\"keyslots\":";
pub const CONFIG: &str = "\"config\":";
pub const AES: &str = "aes-xts-plain64";

/// An attacker who can write to the disk and knows what is in LVM's tags, but no passphrase. The attacker has another
/// volume key, and a header with it.
pub struct Attacker {
    name: String,
}

impl Attacker {
    /// The byte at which the area of the attacker's key slot begins: beside that of the volume's own.
    const AREA: usize = 4 << 20;

    pub fn new(volume: &Volume) -> Self {
        let (name, uuid) = (format!("{}-attack", volume.vg()), luks_uuid(volume));
        bash(&format!(
            "cd /run; head -c 64 /dev/urandom > {name}.volume-key; echo no > {name}.key; truncate -s 32M {name}.header
            cryptsetup luksFormat {QUICKLY} --type luks2 --cipher {AES} --key-size 512 --uuid {uuid} \
              --sector-size 512 --master-key-file {name}.volume-key --key-file {name}.key {name}.header"
        ));
        Self { name }
    }

    pub fn header(&self, which: usize) -> Copy {
        Copy::read(&format!("/run/{}.header", self.name), which)
    }

    /// The attacker's JSON, with a key slot that any passphrase opens if nothing is encrypted in its area.
    pub fn json(&self) -> String {
        let area = format!("\"offset\":\"{}\"", Self::AREA);
        within(SLOTS, "\"offset\":\"32768\"", &area)(&self.header(0).json())
    }

    /// Writes the attacker's volume key into that area, as it is.
    pub fn plant_key(&self, device: &str) {
        let key = fs::read(format!("/run/{}.volume-key", self.name)).unwrap();
        write(device, Self::AREA, &split(&key));
    }

    /// Makes a filesystem on the volume that is encrypted with the attacker's key.
    pub fn plant_data(&self, volume: &Volume, filesystem: &str) {
        let (name, opened) = (&self.name, format!("{}-open", self.name));
        bash(&format!(
            "cryptsetup open --master-key-file /run/{name}.volume-key --header /run/{name}.header {} {opened}
            mkfs.ext4 -q -F -U {filesystem} /dev/mapper/{opened}
            cryptsetup close {opened}",
            volume.device()
        ));
    }
}

/// A key of 64 bytes, split as LUKS does: all stripes but the last are zeros. Source: cryptsetup's
/// docs/on-disk-format-luks2.pdf, "anti-forensic splitter".
fn split(key: &[u8]) -> Vec<u8> {
    const STRIPES: usize = 4000;
    let mut mixed = vec![0; key.len()];
    for _ in 1..STRIPES {
        for (number, block) in (0_u32..).zip(mixed.chunks_mut(32)) {
            let sum = Sha256::new().chain_update(number.to_be_bytes());
            block.copy_from_slice(&sum.chain_update(&*block).finalize());
        }
    }
    let last: Vec<u8> = key.iter().zip(&mixed).map(|(a, b)| a ^ b).collect();
    let mut stripes = vec![0; key.len() * (STRIPES - 1)];
    stripes.extend(last);
    stripes
}
