//! The device inside an encrypted volume, as the kernel's tables show it. Starts no process.

use std::path::{Path, PathBuf};

use crate::host::{DeviceNumber, Kernel};
use crate::names::{LvUuid, with_hyphens};

/// Without a hyphen, which each name of LVM's has: no volume can be called so.
const PREFIX: &str = "flexvolume.";

/// What the driver calls it in device-mapper. By the volume's UUID, because a volume may be renamed while it is
/// open, and group and volume together may be too long.
pub fn name_of(volume: &LvUuid) -> String {
    format!("{PREFIX}{}", volume.plain())
}

/// Whether a device is called as the driver calls what is inside a volume.
pub fn is_inside(device: &Path) -> bool {
    let name = device.strip_prefix("/dev/mapper");
    name.is_ok_and(|name| {
        name.as_os_str()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
    })
}

/// An encrypted volume that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its kernel name, `dm-N`.
    pub holder: String,
    /// Its name in device-mapper.
    pub name: String,
    pub number: DeviceNumber,
    /// The UUID of the LUKS2 header that it was opened with, with hyphens.
    pub luks: String,
}

/// Which of these devices on top of a volume is the one that the driver opens it as.
pub fn mapping(kernel: &Kernel, volume: &LvUuid, holders: &[String]) -> Option<Mapping> {
    let name = name_of(volume);
    let mut all = holders
        .iter()
        .filter_map(|holder| mapping_of(kernel, holder));
    all.find(|mapping| mapping.name == name)
}

/// What this device on top of a volume is, if somebody has opened the volume as it.
pub fn mapping_of(kernel: &Kernel, holder: &str) -> Option<Mapping> {
    let dir = Path::new("/sys/class/block").join(holder);
    let read = |entry| kernel.read(&dir.join(entry)).ok();
    let name = read("dm/name")?.trim_end().to_owned();
    Some(Mapping {
        luks: luks_of(read("dm/uuid")?.trim_end(), &name)?,
        number: read("dev")?.parse().ok()?,
        holder: holder.to_owned(),
        name,
    })
}

/// The volume in which the device of this name is: its UUID, and the device that it is on.
pub fn volume_below(
    kernel: &Kernel,
    name: &str,
    number: DeviceNumber,
) -> Option<(LvUuid, DeviceNumber)> {
    let uuid = name.strip_prefix(PREFIX)?;
    let below = PathBuf::from(format!("/sys/dev/block/{number}/slaves"));
    let below = match kernel.list(&below).ok()?.as_slice() {
        [one] => below.join(one),
        _ => return None,
    };
    let on = kernel.read(&below.join("dev")).ok()?.parse().ok()?;
    Some((LvUuid::of(uuid), on))
}

/// All devices that are called as the driver calls what is inside a volume.
pub fn all_open(kernel: &Kernel) -> Vec<DeviceNumber> {
    let dir = Path::new("/dev/mapper");
    let names = kernel.entries(dir).filter(|name| name.starts_with(PREFIX));
    let numbers = names.filter_map(|name| kernel.device_number(&dir.join(name)).ok()?);
    numbers.collect()
}

/// Source: cryptsetup lib/libdevmapper.c, `dm_prepare_uuid`: the kind, the UUID without hyphens, the name.
fn luks_of(dm_uuid: &str, name: &str) -> Option<String> {
    let rest = dm_uuid.strip_prefix("CRYPT-LUKS2-")?;
    let (plain, named) = rest.split_once('-')?;
    let is_uuid = plain.len() == 32 && plain.bytes().all(|byte| byte.is_ascii_hexdigit());
    (named == name && is_uuid).then(|| with_hyphens(plain.to_ascii_lowercase()))
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
}
