//! The device inside an encrypted volume, as the kernel shows it: its name, the volume that it is in, and its table.

use std::path::Path;

use anyhow::{Context, Result};

use crate::host::{Command, DeviceNumber, Host, Kernel};
use crate::lvm::Mapped;
use crate::names::{LvUuid, with_hyphens};

/// How the driver's names in device-mapper begin. They contain no hyphen. Each of LVM's names there does, so no volume
/// can have such a name.
const PREFIX: &str = "flexvolume.";

/// The driver's name, in device-mapper, of the device inside an encrypted volume. The name contains the volume's UUID,
/// not the volume's name: a volume may be renamed while it is open, and the names of group and volume together may be
/// too long.
pub fn name_of(volume: &LvUuid) -> String {
    format!("{PREFIX}{}", volume.plain())
}

/// The encrypted volume below a device that has this name and this number. Returns the volume's UUID, and the number of
/// the volume's own device. `None`: the name is not the driver's, or the device below is not known.
pub fn volume_below(
    kernel: &Kernel,
    name: &str,
    number: DeviceNumber,
) -> Option<(LvUuid, DeviceNumber)> {
    let uuid = name.strip_prefix(PREFIX)?;
    let mut below = Mapped::of(number).below(kernel);
    let on = below.next().filter(|_| below.next().is_none())?;
    Some((LvUuid::of(uuid), on.number(kernel)?))
}

/// All devices in /dev/mapper whose names begin with [`PREFIX`], as the driver names the devices inside encrypted
/// volumes.
pub fn all_open(kernel: &Kernel) -> Vec<DeviceNumber> {
    let dir = Path::new("/dev/mapper");
    let names = kernel.entries(dir).filter(|name| name.starts_with(PREFIX));
    let numbers = names.filter_map(|name| kernel.device_number(&dir.join(name)).ok()?);
    numbers.collect()
}

/// The UUID of the LUKS2 header that this device was opened with, with hyphens. `None`: the device is no open LUKS2
/// volume. `dm_uuid` has three parts: the kind, the UUID without hyphens, the name. Source: cryptsetup
/// lib/libdevmapper.c, `dm_prepare_uuid`.
pub fn luks_of(dm_uuid: &str, name: &str) -> Option<String> {
    let rest = dm_uuid.strip_prefix("CRYPT-LUKS2-")?;
    let (plain, named) = rest.split_once('-')?;
    with_hyphens(plain).filter(|_| named == name)
}

/// A device that somebody other than the driver has opened with cryptsetup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlocked {
    pub kind: Luks,
    /// The device's name in device-mapper.
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Luks {
    One,
    Two,
}

impl Luks {
    /// The version of LUKS, by the device's UUID in device-mapper: see [`luks_of`]. `None`: the device is not LUKS.
    pub fn of(dm_uuid: &str) -> Option<Self> {
        match dm_uuid.strip_prefix("CRYPT-")?.split('-').next()? {
            "LUKS1" => Some(Self::One),
            "LUKS2" => Some(Self::Two),
            _ => None,
        }
    }
}

/// The kernel's table of an open device. The kernel encrypts by this table, not by the header. Source: the kernel's
/// Documentation/admin-guide/device-mapper/dm-crypt.rst.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DmTable {
    /// The name of the device-mapper target. Empty: the kernel uses no table yet. If the target is not `crypt`, the
    /// fields below are empty.
    pub target: String,
    pub cipher: String,
    pub has_key: bool,
    /// The device below. `None`: the table does not name a single device by its number.
    pub below: Option<DeviceNumber>,
    /// The byte of the device below where the data begins.
    pub offset: Option<u64>,
    /// The size of dm-crypt's sectors, in bytes.
    pub sector_size: u64,
    /// The other options, without those that change only the speed.
    pub options: Vec<String>,
}

/// The unit of a table's numbers, in bytes.
const SECTOR: u64 = 512;

/// Options that change only the speed: see [`DmTable::options`].
pub(super) const OF_SPEED: [&str; 5] = [
    "same_cpu_crypt",
    "submit_from_crypt_cpus",
    "no_read_workqueue",
    "no_write_workqueue",
    "high_priority",
];

/// The table of a device. dmsetup does not show the key.
pub fn table_of(host: &Host, device: DeviceNumber) -> Result<DmTable> {
    let DeviceNumber { major, minor } = device;
    let numbers = ["--major", &major.to_string(), "--minor", &minor.to_string()];
    let command = Command::reads("dmsetup", host.limits.query).args(["table"]);
    let output = host
        .run(&command.args(numbers))
        .context("asking device-mapper how the volume is encrypted")?;
    Ok(parse(&output.text()))
}

/// Parses the output of dmsetup: `start length crypt cipher key iv_offset device offset [number options…]`.
fn parse(text: &str) -> DmTable {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        return DmTable::default();
    }
    let another = || DmTable {
        target: "no crypt".to_owned(),
        ..DmTable::default()
    };
    let [
        _,
        _,
        "crypt",
        cipher,
        key,
        iv_offset,
        below,
        offset,
        ref options @ ..,
    ] = *words
    else {
        return another();
    };
    if text.trim_end().lines().count() != 1 {
        return another();
    }
    let offset: Option<u64> = offset.parse().ok().filter(|_| iv_offset == "0");
    let mut table = DmTable {
        target: "crypt".to_owned(),
        cipher: cipher.to_owned(),
        has_key: key != "-",
        below: below.parse().ok(),
        offset: offset.and_then(|sectors| sectors.checked_mul(SECTOR)),
        sector_size: SECTOR,
        options: Vec::new(),
    };
    // The first word is the number of options.
    for option in options.iter().skip(1) {
        if OF_SPEED.contains(option) {
            continue;
        }
        match option.strip_prefix("sector_size:").map(str::parse) {
            Some(Ok(size)) => table.sector_size = size,
            Some(Err(_)) | None => table.options.push((*option).to_owned()),
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::LvId;

    #[test]
    fn it_is_known_by_name_and_by_the_header_it_was_opened_with() {
        let volume = LvUuid::of("xtUTfc-ic3C-0AzY-Yrmh-qYaR-Eh8t-XmOJUh");
        let name = name_of(&volume);
        assert_eq!(name, "flexvolume.xtUTfcic3C0AzYYrmhqYaREh8tXmOJUh");
        assert_eq!(LvId::from_dm_name(&name), None);
        let cases = [
            (
                "CRYPT-LUKS2-0b1c2d3e00004000800000000000abcd-",
                Some("0b1c2d3e-0000-4000-8000-00000000abcd"),
            ),
            ("CRYPT-LUKS1-0b1c2d3e00004000800000000000abcd-", None),
            ("CRYPT-PLAIN-", None),
            ("CRYPT-LUKS2-0b1c-", None),
        ];
        for (uuid, want) in cases {
            assert_eq!(
                luks_of(&format!("{uuid}{name}"), &name).as_deref(),
                want,
                "{uuid}"
            );
            assert_eq!(luks_of(&format!("{uuid}other"), &name), None, "{uuid}");
        }
    }

    #[test]
    fn luks_is_known_by_the_uuid_of_its_open_device() {
        let cases = [
            ("CRYPT-LUKS1-0b1c-x", Some(Luks::One)),
            ("CRYPT-LUKS2-0b1c-x", Some(Luks::Two)),
            ("CRYPT-PLAIN-x", None),
            ("LVM-0b1c", None),
        ];
        for (uuid, want) in cases {
            assert_eq!(Luks::of(uuid), want, "{uuid}");
        }
    }

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
            sector_size: 512,
            options: vec!["allow_discards".to_owned()],
        };
        assert_eq!(table, its);
        let integrity =
            "0 8 crypt capi:x :64:logon:a 0 254:1 0 2 integrity:28:aead sector_size:512";
        let odd = parse(integrity);
        assert_eq!(odd.options, ["integrity:28:aead"]);
        assert!(odd.cipher == "capi:x" && odd.has_key);
        let large = parse("0 8 crypt a 00 0 254:1 8 2 sector_size:4096 no_read_workqueue");
        assert!(large.sector_size == 4096 && large.options.is_empty());
        assert!(!parse("0 8 crypt cipher_null-ecb - 0 254:1 32768").has_key);
        assert_eq!(parse("0 8 crypt aes 00 7 254:1 32768").offset, None);
        assert_eq!(parse("\n").target, "");
        for other in [
            "0 8 linear 254:1 0",
            "0 8 crypt a b 0 254:1 0\n8 8 crypt a b 0 254:1 8",
        ] {
            assert_eq!(parse(other).target, "no crypt", "{other}");
        }
    }
}
