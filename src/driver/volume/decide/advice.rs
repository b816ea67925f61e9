//! The longer messages of a [`Reason`](super::reason::Reason), and advice that several of them share.

use std::path::Path;

use super::reason::Needed;
use super::uses::Place;
use crate::crypt::{Luks, Unlocked};
use crate::host::holders::name_them;
use crate::host::own_name;
use crate::lvm::{GroupDisk, Holder, ReadOnlyBy};
use crate::names::{Bytes, FsType, LvId, Shown};
use crate::volume::mounted_filesystem::Failure;

/// The option with which LVM adds a disk to a group whose disks have sectors of another size.
const MIXED: &str = "--config devices/allow_mixed_block_sizes=1 ";

pub fn filesystem_failed(id: &LvId, place: &Place, failure: Failure) -> String {
    let what = match failure {
        Failure::Errors => {
            "met errors in its filesystem (`dmesg`), so no other pod may write to it"
        }
        Failure::ShutDown => {
            "has shut its filesystem down because of an error (`dmesg`), so nothing can be read"
        }
    };
    let (me, device) = (own_name(), id.device());
    let mounted = match place {
        Place::Here(at) => format!("at {}", at.shown()),
        Place::Elsewhere(by) if by.is_empty() => "where no mount table shows it".to_owned(),
        Place::Elsewhere(by) => format!("in another mount namespace ({})", name_them(by)),
    };
    format!(
        "{id} is mounted {mounted}, but has failed: the kernel {what}. When the disk works again, end all pods and \
         processes that use it (`{me} status {id}`, `fuser -vm {}`). The next mount after that works; it checks an \
         ext filesystem first",
        device.shown()
    )
}

/// What to do if the group has too little free space. kubelet starts no pod of a claim whose growth fails, so the
/// message also says how to lower the claim's request. The API server refuses what is not above the capacity.
pub fn no_room(id: &LvId, needed: &Needed) -> String {
    let Needed {
        has, more, free, ..
    } = needed;
    let vg = id.vg();
    let short = needed.short.as_ref().map(not_counted).unwrap_or_default();
    if has.get() == 0 {
        return format!(
            "{id} needs {more}, but {vg} has only {free} free{short}: ask for a smaller `size`, or add a disk (`vgextend \
             {vg} DISK`). If a disk of {vg} has become larger, `pvresize DISK` makes its new space free"
        );
    }
    let (only, such, mixed) = needed.sector.map_or_else(Default::default, |sector| {
        let only = format!(
            " on disks with sectors of at most {} bytes, as its device has, and its filesystem may be unable to use \
             larger ones",
            sector.get()
        );
        (only, "such ", MIXED)
    });
    format!(
        "{id} needs {more} more to be {} large, but {vg} has only {free} free{only}{short}: add {such}a disk (`vgextend \
         {mixed}{vg} DISK`), or lower the claim's request to just above its `status.capacity` (Kubernetes 1.32 and \
         later). If a disk of {vg} has become larger, `pvresize DISK` makes its new space free",
        needed.size.rounded()
    )
}

/// Why the free space leaves out this disk, and the command after which its space counts.
fn not_counted(disk: &GroupDisk) -> String {
    let path = disk.path.shown();
    format!(
        ", without {path}: that disk has {}, and LVM's metadata counts with {} of it (`pvresize {path}` corrects that)",
        disk.size.rounded(),
        disk.end().rounded()
    )
}

/// The commands that give an ext filesystem block numbers of 64 bits. resize2fs itself refuses a harmful change.
pub fn wider(id: &LvId) -> String {
    let device = id.device();
    let device = device.shown();
    format!(
        "If it has no feature `64bit` (`dumpe2fs -h {device}`), end its pods, run `e2fsck -f {device} && resize2fs -b \
         {device}`, and it grows at the next mount (of an encrypted volume, these commands want the device inside)"
    )
}

/// What to do if a person has opened the volume. `cryptsetup close` refuses a device that is in use.
pub fn opened_by_hand(id: &LvId, unlocked: &Unlocked) -> String {
    let Unlocked { kind, name } = unlocked;
    let then = match kind {
        Luks::One => {
            ". It is LUKS1, which the driver does not open: once it is closed, the next mount says how to make it LUKS2"
        }
        Luks::Two => "",
    };
    format!(
        "{id} is encrypted, and open on this host ({}), so no pod can have it. If nobody needs it there, run \
         `cryptsetup close {}`{then}",
        Path::new("/dev/mapper").join(name).shown(),
        name.quoted()
    )
}

pub fn short_disk(id: &LvId, disk: &GroupDisk) -> String {
    let path = disk.path.shown();
    format!(
        "{id} is on {path}, which has {}, and LVM's metadata counts with {} of it. The kernel would not take the larger \
         volume, and its pods would wait. Nothing was extended. Run `pvresize {path}`. If LVM refuses that, a volume \
         has extents that are not there (`pvs --segments {path}`): make the disk as large again",
        disk.size.rounded(),
        disk.end().rounded()
    )
}

/// Why the content of an inactive volume is not known.
pub fn not_active(id: &LvId) -> String {
    format!("{id} is not active: run `lvchange -ay {id}`")
}

/// What to do if a device is larger than its volume. The advice names vgcfgrestore, not lvextend: lvextend might
/// allocate other space than the device has.
pub fn larger_device(id: &LvId, has: Bytes, volume: Bytes) -> String {
    let (device, vg) = (id.device(), id.vg());
    format!(
        "{} has {has}, and by LVM's metadata {id} has {volume}: LVM may give the rest to another volume, and each would \
         overwrite the other. Create and extend nothing in {vg} until this is repaired. If somebody restored older \
         metadata, restore the newest that LVM kept (`vgcfgrestore --list {vg}`, `vgcfgrestore --file FILE {vg}`). \
         Only if an lvreduce was cut short, end what uses the volume, and run `lvchange --refresh {id}`: the device \
         then ends where the volume does",
        device.shown()
    )
}

/// The command that makes a thin pool of this size larger: its data by a fifth, or its metadata by 64 MiB, which is
/// enough for most pools. It names no percentage, since a message for kubelet contains no percent sign.
pub fn extend_pool(pool: &LvId, size: Bytes, what: &str) -> String {
    const MIB: u64 = 1 << 20;
    match what {
        "data" => {
            let more = size.get().div_ceil(5).div_ceil(MIB);
            format!("lvextend --size +{more}M {pool}")
        }
        _ => format!("lvextend --poolmetadatasize +64M {pool}"),
    }
}

/// The mount options that name the other parts of a filesystem. The kernel finds those of an ext or a btrfs itself.
pub fn other_parts(fs: FsType) -> &'static str {
    match fs {
        FsType::Xfs => ",logdev=LOG,rtdev=REALTIME",
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 | FsType::Btrfs => "",
    }
}

/// Advice if kubelet gives two volumes on a node the same name.
pub fn same_name_advice(name: Option<&str>) -> String {
    let called = name.map_or_else(
        || "have the same one".to_owned(),
        |name| format!("are called {name:?}"),
    );
    format!(
        "With attach = true kubelet keeps one mount for each volume name, and two different logical \
         volumes {called} on this node. Either give the volumes of the two pods different names, or use \
         PersistentVolumes, or set attach = false on the node"
    )
}

pub fn read_only(by: ReadOnlyBy) -> &'static str {
    match by {
        ReadOnlyBy::Kernel => "read-only here",
        ReadOnlyBy::Metadata | ReadOnlyBy::Origin => "a read-only logical volume",
    }
}

/// What makes a read-only volume, or a copy of what it holds, writable.
pub fn writable_again(id: &LvId, by: ReadOnlyBy) -> String {
    match by {
        ReadOnlyBy::Metadata => format!("run `lvchange --permission rw {id}`"),
        ReadOnlyBy::Origin => format!(
            "name one of the thin volumes that have it as their external origin, which LVM keeps read-only (`lvs -o \
             lv_name,origin {}`)",
            id.vg()
        ),
        ReadOnlyBy::Kernel => format!(
            "take the volume out of `read_only_volume_list` in lvm.conf (`lvmconfig activation`) and run `lvchange \
             --refresh {id}`. If no list has it, run `blockdev --setrw {}`",
            id.device().shown()
        ),
    }
}

pub fn held_elsewhere(id: &LvId, holder: Option<&Holder>) -> String {
    let free = format!(
        "It is free when its pods there have ended. If it has no pods there, run `lvchange -an {id}` on \
         that node"
    );
    let Some(holder) = holder else {
        return format!("{id} is active on another node, and only one can have it. {free}");
    };
    let (host, name) = (holder.host, &holder.name);
    let held =
        format!("{id} is held by another node, host {host} ({name}), and only one can have it");
    // sanlock renews a lease every 20 s. So after 40 s or less, the other node still counts as alive.
    if holder.silent <= 40 {
        return format!("{held}. {free}");
    }
    format!(
        "{held}. That node gave its last sign of life {} s ago. Wait: once sanlock takes it for dead, this node can \
         have the volume. Nobody can safely have it earlier",
        holder.silent
    )
}
