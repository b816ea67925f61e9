//! Whether LVM's creation time of a volume can be true: the clock of the node that created it may have been ahead.

use std::path::{Path, PathBuf};

use super::Look;
use crate::host::Kernel;
use crate::names::{LvId, LvUuid};
use crate::volume::device::Device;

/// The directory of LVM's older metadata, unless lvm.conf names another. Source: lvm.conf(5), `backup/archive_dir`.
const ARCHIVE: &str = "/etc/lvm/archive";

impl Look<'_> {
    /// False if the volume's creation time lies in the future, or if the device's node or LVM's archive proves an
    /// earlier creation. Asked only if ext backups were found that are older than the creation time.
    pub(super) fn is_as_old_as_lvm_says(&self, device: &Device) -> bool {
        let kernel = self.subject.host.kernel;
        let Ok(volume) = self.facts.require_volume() else {
            return false;
        };
        let made = volume.created;
        let is_before = |time: Option<u64>| time.is_some_and(|time| time < made);
        // The kernel makes the device's node when the volume is activated. udev changes it later.
        let node = kernel.changed(&device.node(kernel).path);
        made <= self.facts.now
            && !is_before(node)
            && !is_archived_before(kernel, made, &self.facts.id, &volume.uuid)
    }
}

/// Whether LVM archived metadata with this volume before `made`, LVM's creation time of the volume. Reads one file: of
/// those older than `made`, the one with the highest number.
fn is_archived_before(kernel: &Kernel, made: u64, id: &LvId, uuid: &LvUuid) -> bool {
    let dir = Path::new(ARCHIVE);
    let older = |name: &String| {
        kernel
            .changed(&dir.join(name))
            .is_some_and(|time| time < made)
    };
    let numbered = |name: String| Some((number_of(&name, id.vg().as_str())?, name));
    let last = kernel.entries(dir).filter(older).filter_map(numbered).max();
    let file: Option<PathBuf> = last.map(|(_, name)| dir.join(name));
    let text = file.and_then(|file| kernel.read(&file).ok());
    text.is_some_and(|text| text.contains(&format!("\"{uuid}\"")))
}

/// The number in the name of an archived file of this group. Source: LVM's `lib/format_text/archive.c`,
/// `vg_00012-123456.vg`.
fn number_of(name: &str, vg: &str) -> Option<u32> {
    let rest = name.strip_prefix(vg)?.strip_prefix('_')?;
    let (number, rest) = rest.split_once('-')?;
    rest.strip_suffix(".vg")?.parse::<u64>().ok()?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archived_file_belongs_to_its_group() {
        let cases = [
            ("vg_00012-123456.vg", Some(12)),
            ("vg_1000000-1.vg", Some(1_000_000)),
            ("vg_b_00012-123456.vg", None),
            ("vg2_00012-123456.vg", None),
            ("vg_00012-123456.vg.bak", None),
            ("vg_00012.vg", None),
        ];
        for (name, want) in cases {
            assert_eq!(number_of(name, "vg"), want, "{name}");
        }
    }
}
