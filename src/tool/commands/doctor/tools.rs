//! The tools that the driver runs, with the filesystems or features that need them.

/// The tools that the driver always needs.
pub const NEEDED: [&str; 10] = [
    "lvs", "vgs", "lvchange", "lvcreate", "lvextend", "dmsetup", "blkid", "wipefs", "mount",
    "e2fsck",
];

/// A tool that only some filesystems or features need.
pub struct ForSome {
    pub tool: &'static str,
    pub needed_for: &'static str,
    pub package: &'static str,
}

#[rustfmt::skip] // a row is a line
pub const FOR_SOME: [ForSome; 8] = [
    ForSome { tool: "mkfs.ext2", needed_for: "ext2", package: "e2fsprogs" },
    ForSome { tool: "mkfs.ext3", needed_for: "ext3", package: "e2fsprogs" },
    ForSome { tool: "mkfs.ext4", needed_for: "ext4", package: "e2fsprogs" },
    ForSome { tool: "resize2fs", needed_for: "growing ext", package: "e2fsprogs" },
    ForSome { tool: "mkfs.xfs", needed_for: "xfs", package: "xfsprogs" },
    ForSome { tool: "xfs_growfs", needed_for: "growing xfs", package: "xfsprogs" },
    ForSome { tool: "mkfs.btrfs", needed_for: "btrfs", package: "btrfs-progs" },
    ForSome { tool: "btrfs", needed_for: "growing btrfs", package: "btrfs-progs" },
];

/// Each tool that the driver ever runs.
pub fn all_tools() -> impl Iterator<Item = &'static str> {
    let some = FOR_SOME.iter().map(|one| one.tool);
    NEEDED.into_iter().chain(some)
}
