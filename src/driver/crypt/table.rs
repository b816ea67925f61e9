//! The table by which the kernel maps the device inside an encrypted volume: what is encrypted, whatever a header says.

use anyhow::{Context, Result};

use crate::host::{Command, DeviceNumber, Host};

/// Source: the kernel's Documentation/admin-guide/device-mapper/dm-crypt.rst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmTable {
    /// `crypt`. Of any other target the fields below are empty.
    pub target: String,
    pub cipher: String,
    pub has_key: bool,
    /// The device that it is on. `None`: it is not one device.
    pub below: Option<DeviceNumber>,
    /// Where on that device it begins, in bytes.
    pub offset: Option<u64>,
    pub has_integrity: bool,
}

/// The table of a device. dmsetup shows no key.
pub fn table_of(host: &Host, device: DeviceNumber) -> Result<DmTable> {
    let DeviceNumber { major, minor } = device;
    let numbers = ["--major", &major.to_string(), "--minor", &minor.to_string()];
    let command = Command::reads("dmsetup", host.limits.query).args(["table"]);
    let output = host.run(&command.args(numbers));
    let output = output.context("asking device-mapper how the volume is encrypted")?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// `start length crypt cipher key iv_offset device offset [number options…]`
fn parse(text: &str) -> DmTable {
    const SECTOR: u64 = 512;
    let mut words = text.split_whitespace().skip(2);
    let mut word = || words.next().unwrap_or_default();
    let target = word();
    let is_crypt = target == "crypt" && text.trim_end().lines().count() == 1;
    let [cipher, key, iv_offset, below, offset] = [word(), word(), word(), word(), word()];
    let offset: Option<u64> = offset.parse().ok().filter(|_| iv_offset == "0");
    DmTable {
        target: if is_crypt { target } else { "no crypt" }.to_owned(),
        cipher: cipher.to_owned(),
        has_key: !["", "-"].contains(&key),
        below: below.parse().ok(),
        offset: offset.and_then(|sectors| sectors.checked_mul(SECTOR)),
        has_integrity: words.any(|option| option.starts_with("integrity:")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_the_kernel_encrypts() {
        let table = parse("0 65536 crypt aes-xts-plain64 0000 0 254:1 32768 1 allow_discards\n");
        let its = DmTable {
            target: "crypt".into(),
            cipher: "aes-xts-plain64".into(),
            has_key: true,
            below: Some(DeviceNumber {
                major: 254,
                minor: 1,
            }),
            offset: Some(16 << 20),
            has_integrity: false,
        };
        assert_eq!(table, its);
        let integrity =
            "0 8 crypt capi:x :64:logon:a 0 254:1 0 2 integrity:28:aead sector_size:512";
        let odd = parse(integrity);
        assert!(odd.has_integrity && odd.cipher == "capi:x" && odd.has_key);
        assert!(!parse("0 8 crypt cipher_null-ecb - 0 254:1 32768").has_key);
        assert_eq!(parse("0 8 crypt aes 00 7 254:1 32768").offset, None);
        for other in [
            "",
            "0 8 linear 254:1 0",
            "0 8 crypt a b 0 254:1 0\n8 8 crypt a b 0 254:1 8",
        ] {
            assert_eq!(parse(other).target, "no crypt", "{other}");
        }
    }
}
