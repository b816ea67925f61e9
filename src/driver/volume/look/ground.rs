//! Finds where a volume may grow: its filesystem may not be able to use the sectors of every disk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::Look;
use crate::fs::{self, Family, Superblock};
use crate::host::{DeviceNumber, Kernel};
use crate::lvm::{self, DEEPEST, GroupDisk};
use crate::names::{Bytes, FsType};
use crate::volume::decide::{Fitting, Ground, Purpose, Sectors, ShortDisk, Wish};
use crate::volume::device::{Device, in_dev};

/// This directory exists if the kernel's cache can hold blocks that are larger than a page. Source: Linux'
/// `mm/huge_memory.c`, and `mapping_max_folio_size_supported` in `include/linux/pagemap.h`.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

/// The smallest sector of a disk. Every filesystem can use it. Source: Linux' `include/linux/blk_types.h`,
/// `SECTOR_SIZE`.
const SMALLEST: Bytes = Bytes::new(512);

/// Every ext filesystem can become this large: 2^32 blocks of the smallest size, with as many inodes as mke2fs may
/// make.
const ANY_EXT: Bytes = Bytes::new(4 << 40);

impl Look<'_> {
    /// Where the volume may grow. Reads the volume only if some device of the node has sectors of more than 512 bytes,
    /// or if the wanted size is larger than every ext filesystem can become. Asks LVM only if some device has larger
    /// sectors than the filesystem, or if LVM has warned of something, such as a disk that is too small.
    pub(super) fn ground(&self, wish: &Wish) -> Result<Ground> {
        let (host, facts) = (self.subject.host, &self.facts);
        let kernel = host.kernel;
        let (Some(top), Some(device), Some(volume)) = (facts.top(), &facts.device, facts.volume())
        else {
            return Ok(Ground::default());
        };
        let largest_sector = all_sectors(kernel).max().unwrap_or(SMALLEST);
        let is_mixed = largest_sector > SMALLEST;
        let is_vast = matches!(wish.purpose, Purpose::Size(size) if size > ANY_EXT);
        let mut found = None;
        if is_mixed || is_vast {
            let file = top.open(kernel, false)?;
            found = fs::superblock_of(host, (&Arc::new(file), &top.path))?;
        }
        let mut ground = Ground {
            device: device.size(kernel).ok(),
            largest: found
                .as_ref()
                .and_then(|found| largest(kernel, device, top, found)),
            sectors: found
                .filter(|_| is_mixed)
                .map(|found| self.sectors(top, found.sector)),
            ..Ground::default()
        };
        let fits = match &ground.sectors {
            Some(sectors) => sectors.filesystem,
            // The filesystem is not known, for example of a closed encrypted volume. So the device's sectors count.
            None => self.sectors(top, 0).device,
        };
        let is_thin = volume.pool.is_some();
        let sector = Some(fits).filter(|fits| is_mixed && largest_sector > *fits);
        if is_thin || sector.is_none() && !volume.warned {
            return Ok(ground);
        }
        let all = lvm::disks_of(host, facts.id.vg())?;
        ground.short = ShortDisk::first(&own_disks(kernel, device, &all));
        ground.disks = fitting(kernel, &all, sector);
        Ok(ground)
    }

    /// Compares a device's sectors with `filesystem`, the sectors for which its filesystem was made, in bytes.
    pub(super) fn sectors(&self, device: &Device, filesystem: u64) -> Sectors {
        let kernel = self.subject.host.kernel;
        let sector = |device: &Device| sector_of(kernel, &device.number.in_sysfs(""));
        // The device inside an encrypted volume keeps the sectors that it had when it was opened.
        let below = self.facts.device.as_ref().unwrap_or(device);
        let filesystem = Bytes::new(filesystem);
        let on = sector(device).max(sector(below));
        let larger = if filesystem < on {
            larger_disks(kernel, below, filesystem)
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

/// The size of the volume above which this filesystem cannot use the space. `top`: the device that the filesystem is
/// on.
fn largest(kernel: &Kernel, device: &Device, top: &Device, found: &Superblock) -> Option<Bytes> {
    let sizes = [device, top].map(|one| one.size(kernel).ok());
    let [Some(size), Some(inside)] = sizes else {
        return None;
    };
    let header = size.get().saturating_sub(inside.get());
    Some(Bytes::new(found.largest?.saturating_add(header)))
}

/// The largest blocks with which this kernel mounts a filesystem of this type. Source: Linux'
/// `fs/xfs/xfs_super.c` since 6.12, `fs/ext4/sysfs.c` since 6.19, `fs/btrfs/sysfs.c`.
pub(super) fn largest_block(kernel: &Kernel, fs: FsType) -> Bytes {
    const ANY: u64 = u64::MAX;
    let page = kernel.page_size();
    Bytes::new(match Family::of(fs) {
        // The kernel's cache can then hold blocks that are larger than a page.
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
    // If the release is not known, the driver leaves the decision to the kernel.
    release.is_none_or(|release| release >= (6, 12))
}

/// The size of the sectors of each device of the node.
fn all_sectors(kernel: &Kernel) -> impl Iterator<Item = Bytes> {
    let all = Path::new("/sys/block");
    let names = kernel.list(all).unwrap_or_default().into_iter();
    names.map(|name| sector_of(kernel, &all.join(name)))
}

/// The size of the sectors of a device with this directory in /sys. A partition has the sectors of its disk.
fn sector_of(kernel: &Kernel, dir: &Path) -> Bytes {
    let size = |queue| {
        let size = kernel.read(&dir.join(queue).join("logical_block_size"));
        size.ok()?.trim_end().parse().ok().map(Bytes::new)
    };
    size("queue")
        .or_else(|| size("../queue"))
        .unwrap_or(SMALLEST)
}

/// The disks below this volume's device whose sectors are larger than `than`.
fn larger_disks(kernel: &Kernel, device: &Device, than: Bytes) -> BTreeSet<String> {
    let all = disks_below(kernel, &device.number.in_sysfs("slaves"), DEEPEST);
    let larger = all.iter().filter(|disk| sector_of(kernel, disk) > than);
    // The disk's name in /dev. Source: Linux' `block/genhd.c`.
    let name = |disk: &PathBuf| Some(in_dev(disk.file_name()?.to_str()?));
    larger.filter_map(name).collect()
}

/// The disks that this volume is on, from `all` disks of its group.
fn own_disks(kernel: &Kernel, device: &Device, all: &[GroupDisk]) -> Vec<GroupDisk> {
    let below = disks_below(kernel, &device.number.in_sysfs("slaves"), DEEPEST);
    let number = |disk: &PathBuf| kernel.read(&disk.join("dev")).ok()?.trim_end().parse().ok();
    let below: Vec<DeviceNumber> = below.iter().filter_map(number).collect();
    let is_own = |disk: &&GroupDisk| {
        let number = kernel.device_number(&disk.path).ok().flatten();
        number.is_some_and(|number| below.contains(&number))
    };
    all.iter().filter(is_own).cloned().collect()
}

/// The disks that a volume may grow onto. `None`: all disks of its group. `sector`: the largest sector that the
/// volume's filesystem can use. `None`: it can use the sectors of every device of the node.
fn fitting(kernel: &Kernel, all: &[GroupDisk], sector: Option<Bytes>) -> Option<Fitting> {
    let short = ShortDisk::first(all);
    if sector.is_none() && short.is_none() {
        return None;
    }
    let fits = |disk: &&GroupDisk| {
        let number = || kernel.device_number(&disk.path).ok()?;
        let is_on = |most| number().is_some_and(|it| sector_of(kernel, &it.in_sysfs("")) <= most);
        disk.usable().get() > 0 && sector.is_none_or(is_on)
    };
    let disks: Vec<GroupDisk> = all.iter().filter(fits).cloned().collect();
    Some(Fitting {
        sector,
        free: lvm::usable(&disks),
        of_group: lvm::usable(all),
        disks: disks.into_iter().map(|disk| disk.path).collect(),
        short,
    })
}

/// The directories in /sys of LVM's disks below the devices in `dir`. A device of LVM itself is no disk: its own disks
/// are listed instead.
fn disks_below(kernel: &Kernel, dir: &Path, deepest: usize) -> Vec<PathBuf> {
    let mut disks = Vec::new();
    let Some(deepest) = deepest.checked_sub(1) else {
        return disks;
    };
    for name in kernel.list(dir).unwrap_or_default() {
        let below = dir.join(&name);
        let uuid = kernel.read(&below.join("dm/uuid")).unwrap_or_default();
        if uuid.starts_with("LVM-") {
            disks.extend(disks_below(kernel, &below.join("slaves"), deepest));
        } else {
            disks.push(below);
        }
    }
    disks
}
