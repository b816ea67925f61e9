//! Which disks other hosts may see too.

use std::path::{Path, PathBuf};

use driver::host::Kernel;

/// The kind of disk, if it is one that several hosts may use.
pub(super) fn kind_of_shared(kernel: &Kernel, disk: &Path) -> Option<&'static str> {
    let number = kernel.device_number(disk).ok()??;
    let block = PathBuf::from(format!("/sys/dev/block/{number}"));
    let read = |file: &Path| kernel.read(file).unwrap_or_default();
    // A partition of one has "part1-" before that.
    if read(&block.join("dm/uuid")).contains("mpath-") {
        return Some("a multipath");
    }
    let device = kernel.link(&block).ok()?;
    // The controllers of the same disk have their transport here.
    let controllers = device.ancestors().nth(1).and_then(Path::file_name)?;
    let subsystem = Path::new("/sys/class/nvme-subsystem").join(controllers);
    let transports = kernel.list(&subsystem).unwrap_or_default();
    let mut transports = transports
        .iter()
        .map(|controller| read(&subsystem.join(controller).join("transport")));
    if transports.any(|transport| !["", "pcie"].contains(&transport.trim())) {
        return Some("an NVMe-oF");
    }
    kind_by_place(device.to_str()?)
}

/// Derives the kind from the disk's path in /sys/devices.
fn kind_by_place(place: &str) -> Option<&'static str> {
    let mut parts = place.split('/');
    parts.find_map(
        |part| match part.trim_end_matches(|c: char| !c.is_alphabetic()) {
            "session" => Some("an iSCSI"),
            "rport" => Some("a Fibre Channel"),
            "nvme-fabrics" => Some("an NVMe-oF"),
            _ => None,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_hosts_share_is_known_by_its_place() {
        let cases = [
            (
                "platform/host3/session1/target3:0:0/3:0:0:0/block/sda",
                Some("an iSCSI"),
            ),
            (
                "pci0000:00/0000:00:02.0/host1/rport-1:0-2/target1:0:0/1:0:0:0/block/sdb/sdb1",
                Some("a Fibre Channel"),
            ),
            ("virtual/nvme-fabrics/ctl/nvme0/nvme0n1", Some("an NVMe-oF")),
            ("virtual/nvme-subsystem/nvme-subsys0/nvme0n1", None),
            (
                "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda",
                None,
            ),
            ("pci0000:00/0000:00:03.0/virtio1/block/vda", None),
        ];
        for (place, want) in cases {
            let place = format!("../../devices/{place}");
            assert_eq!(kind_by_place(&place), want, "{place}");
        }
    }
}
