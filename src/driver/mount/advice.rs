//! Advice for a filesystem that cannot be mounted or unmounted.

use std::path::{Path, PathBuf};

use super::source::Source;
use super::table::Table;
use crate::host::{Kernel, Node, holders, own_name};
use crate::names::{FsType, LvId, Shown};

/// Why the kernel does not mount a btrfs that has a copy. The kernel knows a btrfs only by its UUID, and takes the copy
/// for the original. While one of them is mounted, it refuses the other. If neither is, it refuses the one that was
/// written to earlier.
pub fn twin(source: &Source) -> String {
    let Source { id, node, .. } = source;
    let own = by_hand(id, node, "btrfstune -u DEVICE");
    format!(
        "a btrfs with the same UUID as that of {id} is mounted on this node, or the kernel remembers one that was \
         written to later: a snapshot or a copy. Unmount or remove the other one, or give this one a UUID of its own \
         ({own}) and run `{} adopt {id}`. What the kernel remembers goes with `btrfs device scan --forget`; where there \
         is a btrfs of several disks, `btrfs device scan` follows",
        own_name()
    )
}

/// The message if the call wants to write, and the kernel has mounted the filesystem read-only.
pub fn unwritable(source: &Source) -> String {
    let Source { id, node, .. } = source;
    let helps = match source.filesystem.fs {
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => format!(
            "It may have the feature `read-only`: {} takes that away. Or the kernel has met an error",
            by_hand(id, node, "tune2fs -O ^read-only DEVICE")
        ),
        FsType::Btrfs => {
            "It may be a seed for other devices (`btrfstune -S`). Or the kernel has met an error"
                .to_owned()
        }
        FsType::Xfs => "The kernel has met an error".to_owned(),
    };
    format!(
        "{id} cannot be written: the kernel mounts its {} to be read only, and the mount was undone. {helps} (`dmesg`). To \
         read what it holds, set readOnly in the pod",
        source.filesystem.fs
    )
}

/// Whether the kernel refuses a filesystem because of unknown features. `said`: the kernel's log, since the error code
/// EINVAL has many meanings. Sources: Linux' fs/ext4/super.c, fs/btrfs/disk-io.c and `xfs_sb.c`.
pub fn has_unknown_features(said: &str) -> bool {
    let features = ["unsupported optional features", "compatible features"];
    features.iter().any(|words| said.contains(words))
}

/// The message if the node has too many mounts. The kernel's error code is the same as for a full disk, so this
/// function counts the mounts. `None`: there are not too many. Source: Linux' Documentation/admin-guide/sysctl/fs.rst,
/// "mount-max".
pub fn too_many_mounts(kernel: &Kernel) -> Option<String> {
    /// A mount appears at each place where its directory is visible, and each place counts.
    const PLACES: usize = 64;
    let most = kernel.read(Path::new("/proc/sys/fs/mount-max")).ok()?;
    let most: usize = most.trim().parse().ok()?;
    let has = Table::read(kernel).ok()?.rows().len();
    let is_near = has.saturating_add(PLACES) > most;
    is_near.then(|| {
        format!(
            "the kernel allows {most} mounts in a mount namespace (`sysctl fs.mount-max`), and {has} are there: run \
             `sysctl -w fs.mount-max={}`, and look who leaves so many (`findmnt`)",
            most.saturating_mul(2)
        )
    })
}

/// A command on the filesystem of a volume, which it names `DEVICE`, for a person. If the volume is encrypted, the person
/// must open it first, since the driver closes it.
pub fn by_hand(id: &LvId, node: &Node, command: &str) -> String {
    let device = id.device();
    let shown = device.shown();
    if node.name == device {
        return format!("`{}`", command.replace("DEVICE", &shown.to_string()));
    }
    let command = command.replace("DEVICE", "/dev/mapper/repair");
    format!("`cryptsetup open {shown} repair`, `{command}` and `cryptsetup close repair`")
}

/// Advice for a filesystem that this node's mkfs has made, and that perhaps no kernel has ever mounted.
pub fn without_data(fs: FsType, id: &LvId, encrypted: bool) -> String {
    let empty = if encrypted {
        format!("remove the volume (`lvremove {id}`) and create it anew")
    } else {
        let device = id.device();
        let (device, me) = (device.shown(), own_name());
        format!("run `wipefs --all {device} && {me} allow-format {id}`")
    };
    format!(
        "If the driver has made it and no pod of any node has had it, nothing is in it: have mkfs make what this kernel mounts \
         (`mkfs_options` of {fs} in config.toml), and {empty}"
    )
}

/// A loop device or a swap file on a file of this mount, and the command that ends it. `fuser` shows neither.
fn kernels_user(kernel: &Kernel, places: &[PathBuf]) -> Option<String> {
    let is_there = |file: &str| {
        places
            .iter()
            .any(|place| Path::new(file).starts_with(place))
    };
    let all = Path::new("/sys/block");
    let looped = kernel.list(all).unwrap_or_default().into_iter().find_map(|name| {
        let file = kernel.read(&all.join(&name).join("loop/backing_file")).ok()?;
        let file = file.trim_end();
        is_there(file).then(|| {
            format!("the loop device /dev/{name} is on {}; if nobody needs it, run `losetup --detach /dev/{name}`", file.shown())
        })
    });
    looped.or_else(|| {
        let swaps = kernel.read(Path::new("/proc/swaps")).ok()?;
        let files = swaps
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next());
        let file = files
            .map(|file| file.replace("\\040", " "))
            .find(|file| is_there(file))?;
        Some(format!(
            "it swaps on {}; run `swapoff {}`",
            file.shown(),
            file.quoted()
        ))
    })
}

/// Why a mount cannot be unmounted.
pub fn busy(kernel: &Kernel, dir: &Path, id: u64) -> String {
    let table = Table::read(kernel).unwrap_or_default();
    // The kernel shows the files of a process by their real path. The unmount also takes copies of the mount at other
    // places, so all of these paths count.
    let row = table.by_id(id);
    let mut places: Vec<PathBuf> = row.into_iter().flat_map(|row| table.paths(row)).collect();
    places.push(dir.to_owned());
    let users = holders::of_mount(kernel, &places);
    let on_top: Vec<String> = table
        .on_top_of(id)
        .map(|row| row.mount_point.shown().to_string())
        .collect();
    let (command, dir) = (format!("fuser -vm {}", dir.quoted()), dir.shown());
    if !users.is_empty() {
        format!(
            "{dir} is in use by {}; it is unmounted when they have ended",
            holders::name_them(&users)
        )
    } else if !on_top.is_empty() {
        format!(
            "{dir} has other mounts on it ({}); unmount those first",
            on_top.join(", ")
        )
    } else if let Some(user) = kernels_user(kernel, &places) {
        format!("{dir} is in use by the kernel: {user}")
    } else {
        format!(
            "{dir} is in use by the kernel or by a process that cannot be seen from here: a loop \
             device (`losetup`), a swap file (`swapon`), an NFS export, another PID namespace, a \
             mapped file; see `{command}` on the host"
        )
    }
}
