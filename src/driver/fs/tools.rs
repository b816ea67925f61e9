//! The tools of each filesystem.

use std::path::Path;

use anyhow::{Context, Result};

use crate::host::{Command, Host, Lock, Node, ToolError};
use crate::names::FsType;
use crate::volume::Permit;

/// No blocks kept for root, which a pod's volume has no use for; tables are cleared by the kernel
/// after mounting; no discard on a volume that was just allocated.
const EXT: &str = "-q -m 0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=0";
/// The journal, up to 1 GiB, is not cleared either: with this feature each of its blocks has a checksum
/// made with the UUID. Without it, after a power cut the kernel could replay blocks that a removed
/// volume's journal left in the same place.
const EXT4: &str = "-q -m 0 -O metadata_csum -E nodiscard,lazy_itable_init=1,lazy_journal_init=1";
/// No discard.
const XFS_AND_BTRFS: &str = "-q -K";

/// Runs mkfs on a device that holds nothing. `again`: it may overwrite what a killed mkfs left.
pub fn mkfs(
    host: &Host,
    permit: Permit,
    device: &Node,
    more: &[&str],
    again: bool,
    lock: &Lock,
) -> Result<(), ToolError> {
    let fs = permit.used();
    let (tool, options) = mkfs_of(fs, more);
    // mke2fs needs no -F for a device that is neither mounted nor busy, and with it would not look.
    let force = (again && !fs.is_ext()).then_some("-f");
    let command = Command::writes(tool, host.limits.make)
        .stdin(lock.file())
        .args(options.split(' ').chain(force))
        .args(more);
    host.run(&command.device(device)).map(drop)
}

/// The tool, and the driver's own options, which `more` follow.
fn mkfs_of(fs: FsType, more: &[&str]) -> (&'static str, &'static str) {
    match fs {
        FsType::Ext2 => ("mkfs.ext2", EXT),
        FsType::Ext3 => ("mkfs.ext3", EXT),
        FsType::Ext4 if more.iter().any(|word| may_decide_features(word)) => ("mkfs.ext4", EXT),
        FsType::Ext4 => ("mkfs.ext4", EXT4),
        FsType::Xfs => ("mkfs.xfs", XFS_AND_BTRFS),
        FsType::Btrfs => ("mkfs.btrfs", XFS_AND_BTRFS),
    }
}

/// Whether an option of mke2fs may leave out a feature that was asked for: `-O`, or a type of use, a
/// type, an operating system, a revision. Several may be in one word, with a value at its end.
fn may_decide_features(word: &str) -> bool {
    word.starts_with('-') && word.contains(['O', 'T', 't', 'o', 'r'])
}

/// Checks an ext before it is mounted for writing, and repairs what is safe to repair. `all`: even a clean one, as
/// resize2fs demands before it grows one that is not mounted. xfs and btrfs recover when they are mounted, and
/// repairing them before that destroys data.
pub fn check(host: &Host, device: &Node, all: bool, lock: &Lock) -> Result<(), ToolError> {
    // e2fsck(8): 1 is "errors corrected", 2 is "reboot", which only a mounted root would need.
    let command = Command::writes("e2fsck", host.limits.check)
        .stdin(lock.file())
        .args(["-p"])
        .args(all.then_some("-f"))
        .accept(&[0, 1, 2, 3])
        .device(device);
    host.run(&command).map(drop)
}

/// Advice for an e2fsck that failed: it may not know a feature of the filesystem. It exits with the same code then as
/// for errors.
pub const IF_E2FSCK_IS_OLD: &str = "if e2fsck asks for a newer version, install a newer e2fsprogs or mount the volume \
     on another node";

/// Whether e2fsck finds errors in an ext, which [`check`] would have to repair. Writes nothing, and so does not replay
/// the journal. Only an ext that says that something is wrong is read as a whole.
pub fn has_errors(host: &Host, device: &Node) -> Result<bool, ToolError> {
    // e2fsck(8): 4 is "errors left uncorrected". With 8 it gave up, also where it does not know a feature.
    let command = Command::reads("e2fsck", host.limits.check)
        .args(["-n"])
        .accept(&[0, 4]);
    Ok(host.run(&command.device(device))?.code != 0)
}

/// Grows a filesystem to the size of its volume, and succeeds if there is nothing to grow. All but ext2
/// must be mounted at `mount_point`.
pub fn grow(host: &Host, fs: FsType, device: &Node, mount_point: &Path, lock: &Lock) -> Result<()> {
    let tool = |name| Command::writes(name, host.limits.resize).stdin(lock.file());
    let command = match fs {
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => tool("resize2fs").device(device),
        FsType::Xfs => tool("xfs_growfs").args(["-d"]).operand(mount_point),
        FsType::Btrfs => tool("btrfs")
            .args(["filesystem", "resize"])
            .operand("max")
            .operand(mount_point),
    };
    let grown = host.run(&command).map(drop);
    grown.with_context(|| format!("growing the {fs} filesystem"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_may_take_a_feature_back_are_known() {
        for word in "-O -O^metadata_csum -cO -T -Tlargefile -ohurd -r0 -text3".split(' ') {
            assert!(may_decide_features(word), "{word}");
        }
        for word in "-i 65536 -I256 -E stride=4,root_owner -L OTTO -j -G".split(' ') {
            assert!(!may_decide_features(word), "{word}");
        }
    }
}
