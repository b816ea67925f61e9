//! Signs of data that count only inside an encrypted volume, where a removed volume cannot have left them. These signs
//! have no time, so on a plain volume a removed volume may have left them.

use super::primary::{btrfs, xfs};
use super::remains::Remains;
use super::superblock::Fields;

/// The offsets of the pages where xfs and btrfs keep copies of their superblocks on a device of `size` bytes.
///
/// Each group of an xfs has a copy. mkfs.xfs makes 4 groups, or 8 to 32 on a striped device, none larger than 1 TiB.
/// Not covered: other numbers of groups (`-d agcount`), and groups that mkfs.xfs has moved by a stripe.
pub(super) fn copies(size: u64) -> impl Iterator<Item = u64> {
    const BTRFS: [u64; 2] = [64 << 20, 256 << 30];
    const LARGEST_GROUP: u64 = 1 << 40;
    const PAGE: u64 = 4 << 10;
    let groups = [4_u64, 8, 16, 32].into_iter();
    let second_of = move |groups: u64| {
        size.div_ceil(groups.saturating_mul(PAGE))
            .saturating_mul(PAGE)
    };
    let all = groups.map(second_of).chain(BTRFS).chain([LARGEST_GROUP]);
    all.filter(move |at| *at < size)
}

/// The content whose sign is at the beginning of `bytes`, which lie at `offset`. `None`: there is no sign, or the
/// device is not inside an encrypted volume.
pub(super) fn in_sector(bytes: &[u8], offset: u64, remains: Remains) -> Option<&'static str> {
    if remains != Remains::None {
        return None;
    }
    let fields = Fields(bytes);
    let is = |is: Option<bool>| is.unwrap_or(false);
    if is(is_xfs_copy(&fields, offset)) {
        Some("a copy of an xfs superblock")
    } else if is(is_xfs_block(&fields)) {
        Some("a block of xfs")
    } else if btrfs(&fields, offset).is_some() {
        Some("a copy of a btrfs superblock")
    } else if fields.is_ext_journal() && is(fields.is_used_journal()) {
        Some("an ext journal")
    } else {
        None
    }
}

/// Whether an xfs group other than the first begins here. Each group begins with a copy of the superblock.
fn is_xfs_copy(fields: &Fields, offset: u64) -> Option<bool> {
    let found = xfs(fields, offset)?;
    let group = found.block_size.checked_mul(fields.be32(84)?.into())?;
    Some(offset != 0 && offset.is_multiple_of(group))
}

/// Whether this is a header of an xfs group, or the root of one of its trees. A root has no neighbours. Source: the
/// kernel's `fs/xfs/libxfs/xfs_format.h`, `xfs_agf`, `xfs_agi` and `xfs_btree_block`.
fn is_xfs_block(fields: &Fields) -> Option<bool> {
    const HEADERS: [&[u8; 4]; 2] = [b"XAGF", b"XAGI"];
    const TREES: [&[u8; 4]; 7] = [
        b"AB3B", b"AB3C", b"IAB3", b"FIB3", b"ABTB", b"ABTC", b"IABT",
    ];
    let magic: [u8; 4] = fields.array(0)?;
    let is_header = HEADERS.contains(&&magic) && fields.be32(4)? == 1;
    let is_root = TREES.contains(&&magic) && fields.array(8)? == [0xFF; 8];
    Some(is_header || is_root)
}
