//! Compares the sectors of a volume's filesystem with those of its disks, and of the disks that it may grow onto.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::Look;
use crate::fs::{self, Family};
use crate::host::Kernel;
use crate::lvm::{self, DEEPEST};
use crate::names::{Bytes, FsType};
use crate::volume::decide::{Fitting, Ground, Sectors};
use crate::volume::device::Device;
use crate::volume::kernel_tables::sysfs_path;

/// This directory exists if the kernel can cache more than a page at a time. Source: Linux' `mm/huge_memory.c`, and
/// `mapping_max_folio_size_supported` in `include/linux/pagemap.h`.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

/// The smallest sector of a disk: every filesystem can live on it. Source: Linux' `include/linux/blk_types.h`,
/// `SECTOR_SIZE`.
const SMALLEST: Bytes = Bytes::new(512);

impl Look<'_> {
    /// Where the volume may grow. Reads the volume only if some device of the node has sectors of more than 512 bytes.
    /// Asks LVM only if some device has larger sectors than the filesystem.
    pub(super) fn ground(&self) -> Result<Ground> {
        let (host, facts) = (self.subject.host, &self.facts);
        let kernel = host.kernel;
        let Some(device) = facts.top() else {
            return Ok(Ground::default());
        };
        let mut ground = Ground::default();
        let largest = all_sectors(kernel).max().unwrap_or(SMALLEST);
        if largest <= SMALLEST {
            return Ok(ground);
        }
        let file = device.open(kernel, false)?;
        let found = fs::superblock_of(host, None, (&Arc::new(file), &device.path))?;
        ground.sectors = found.map(|found| self.sectors(device, found.sector));
        let sector = match &ground.sectors {
            Some(sectors) => sectors.filesystem,
            // What is on a closed encrypted volume cannot be seen.
            None => self.sectors(device, 0).device,
        };
        let is_thin = facts.volume().is_none_or(|volume| volume.pool.is_some());
        if largest <= sector || is_thin {
            return Ok(ground);
        }
        let mut all = lvm::extensible(host, facts.id.vg())?;
        all.retain(|disk| {
            let number = kernel.device_number(&disk.path).ok().flatten();
            number.is_some_and(|number| sector_of(kernel, &sysfs_path(number, "")) <= sector)
        });
        let free = all.iter().map(|disk| disk.free.get()).sum();
        ground.disks = Some(Fitting {
            sector,
            disks: all.into_iter().map(|disk| disk.path).collect(),
            free: Bytes::new(free),
        });
        Ok(ground)
    }

    /// Compares the device with the sectors, in bytes, for which a filesystem on it was made.
    pub(super) fn sectors(&self, device: &Device, filesystem: u64) -> Sectors {
        let kernel = self.subject.host.kernel;
        let sector = |device: &Device| sector_of(kernel, &sysfs_path(device.number, ""));
        // The device inside an encrypted volume has those of the time when it was opened.
        let below = self.facts.device.as_ref().unwrap_or(device);
        let filesystem = Bytes::new(filesystem);
        let on = sector(device).max(sector(below));
        let larger = if filesystem < on {
            larger_disks(
                kernel,
                &sysfs_path(below.number, "slaves"),
                DEEPEST,
                filesystem,
            )
        } else {
            BTreeSet::new()
        };
        Sectors {
            filesystem,
            device: on,
            larger: larger.into_iter().collect(),
        }
    }
}

/// The largest blocks with which this kernel mounts a filesystem of this type. Source: Linux'
/// `fs/xfs/xfs_super.c` since 6.12, `fs/ext4/sysfs.c` since 6.19, `fs/btrfs/sysfs.c`.
pub(super) fn largest_block(kernel: &Kernel, fs: FsType) -> Bytes {
    const ANY: u64 = u64::MAX;
    let page = kernel.page_size();
    Bytes::new(match Family::of(fs) {
        // Its cache then has pages that are as large.
        Family::Xfs if is_since_6_12(kernel) && kernel.exists(Path::new(HUGE_PAGES)) => ANY,
        Family::Ext if kernel.exists(Path::new("/sys/fs/ext4/features/blocksize_gt_pagesize")) => {
            ANY
        }
        Family::Xfs | Family::Ext => page,
        Family::Btrfs => {
            let sizes = Path::new("/sys/fs/btrfs/features/supported_sectorsizes");
            let sizes = kernel.read(sizes).unwrap_or_default();
            let sizes = sizes
                .split_whitespace()
                .filter_map(|size| size.parse().ok());
            sizes.max().unwrap_or(ANY)
        }
    })
}

fn is_since_6_12(kernel: &Kernel) -> bool {
    let release = kernel.read(Path::new("/proc/sys/kernel/osrelease"));
    let release = release.unwrap_or_default();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|number| number.parse::<u32>().ok());
    let release = numbers.next().zip(numbers.next());
    // Doubt is for the kernel to decide.
    release.is_none_or(|release| release >= (6, 12))
}

/// The sectors of all devices of the node.
fn all_sectors(kernel: &Kernel) -> impl Iterator<Item = Bytes> {
    let all = Path::new("/sys/block");
    let names = kernel.list(all).unwrap_or_default().into_iter();
    names.map(|name| sector_of(kernel, &all.join(name)))
}

/// The size of the sectors of a device with this directory in /sys. A partition has those of its disk.
fn sector_of(kernel: &Kernel, dir: &Path) -> Bytes {
    let size = |queue| {
        let size = kernel.read(&dir.join(queue).join("logical_block_size"));
        size.ok()?.trim_end().parse().ok().map(Bytes::new)
    };
    size("queue")
        .or_else(|| size("../queue"))
        .unwrap_or(SMALLEST)
}

/// The disks below the devices in this directory of /sys whose sectors have more bytes than `than`. Devices of LVM
/// itself are no disks.
fn larger_disks(kernel: &Kernel, dir: &Path, deepest: usize, than: Bytes) -> BTreeSet<String> {
    let mut disks = BTreeSet::new();
    let Some(deepest) = deepest.checked_sub(1) else {
        return disks;
    };
    for name in kernel.list(dir).unwrap_or_default() {
        let below = dir.join(&name);
        let uuid = kernel.read(&below.join("dm/uuid")).unwrap_or_default();
        if uuid.starts_with("LVM-") {
            disks.extend(larger_disks(kernel, &below.join("slaves"), deepest, than));
        } else if sector_of(kernel, &below) > than {
            // As udev has it in /dev. Source: Linux' `block/genhd.c`.
            disks.insert(name.replace('!', "/"));
        }
    }
    disks
}
