//! Finds where a volume may grow: on which disks, and up to which size.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::Look;
use crate::fs::{self, Family, Superblock};
use crate::host::{DeviceNumber, Kernel};
use crate::lvm::{self, GroupDisk, Mapped};
use crate::names::{Bytes, FsType};
use crate::volume::decide::{DiskToGrowOn, Ground, Purpose, Wish};
use crate::volume::device::Device;

/// This directory exists if the kernel's cache can hold blocks that are larger than a page. Source: Linux'
/// `mm/huge_memory.c`, and `mapping_max_folio_size_supported` in `include/linux/pagemap.h`.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

/// Every ext filesystem can become this large: 2^32 blocks of the smallest size, with as many inodes as mke2fs may
/// make.
const ANY_EXT: Bytes = Bytes::new(4 << 40);

impl Look<'_> {
    /// Where the volume may grow. Reads the volume only if the wanted size is larger than every ext filesystem can
    /// become. Asks LVM only if some device of the node has larger sectors than the volume's device, or if LVM has
    /// warned of something, such as a disk that is too small.
    pub(super) fn ground(&self, wish: &Wish) -> Result<Ground> {
        let (host, facts) = (self.subject.host, &self.facts);
        let kernel = host.kernel;
        let (Some(top), Some(device), Some(volume)) = (facts.top(), &facts.device, facts.volume())
        else {
            return Ok(Ground::default());
        };
        let mapped = device.mapped();
        let mut ground = Ground {
            device: device.size(kernel).ok(),
            sector: mapped.sector(kernel),
            ..Ground::default()
        };
        if matches!(wish.purpose, Purpose::Size(size) if size > ANY_EXT) {
            let file = top.open(kernel, false)?;
            let found = fs::superblock_of(host, (&Arc::new(file), &top.path))?;
            ground.largest = found.and_then(|found| largest(kernel, device, top, &found));
        }
        let is_larger = |one: Mapped| one.sector(kernel) > ground.sector;
        let is_mixed = Mapped::of_every_kind(kernel).any(is_larger);
        let is_thin = volume.pool.is_some();
        if is_thin || !is_mixed && !volume.warned {
            return Ok(ground);
        }
        let all = lvm::disks_of(host, facts.id.vg())?;
        ground.short = own_short(kernel, &mapped, &all).cloned();
        let with_sector = |disk: GroupDisk| DiskToGrowOn {
            sector: disk
                .number(kernel)
                .map(|number| Mapped::of(number).sector(kernel)),
            disk,
        };
        ground.disks = all.into_iter().map(with_sector).collect();
        Ok(ground)
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
            let list = Path::new("/sys/fs/btrfs/features/supported_sectorsizes");
            let text = kernel.read(list).unwrap_or_default();
            let sizes = text.split_whitespace().filter_map(|size| size.parse().ok());
            sizes.max().unwrap_or(ANY)
        }
    })
}

fn is_since_6_12(kernel: &Kernel) -> bool {
    let text = kernel.release().unwrap_or_default();
    let mut numbers = text
        .split(['.', '-'])
        .map_while(|number| number.parse::<u32>().ok());
    let release = numbers.next().zip(numbers.next());
    // If the release is not known, the driver leaves the decision to the kernel.
    release.is_none_or(|release| release >= (6, 12))
}

/// The first disk that this volume is on and that is smaller than LVM's metadata says. `all`: the disks of its group.
fn own_short<'a>(kernel: &Kernel, device: &Mapped, all: &'a [GroupDisk]) -> Option<&'a GroupDisk> {
    let below = device.stack(kernel);
    let below: Vec<DeviceNumber> = below.iter().filter_map(|one| one.number(kernel)).collect();
    let is_own = |disk: &GroupDisk| disk.number(kernel).is_some_and(|own| below.contains(&own));
    all.iter().find(|disk| disk.is_short() && is_own(disk))
}
