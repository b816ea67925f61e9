//! Runs the tools of each filesystem.

use std::path::Path;

use anyhow::Error;

use super::backup::REPAIR_FIRST;
use crate::host::{Command, Host, Lock, Node, Output, ToolError};
use crate::names::{FsType, Shown};
use crate::volume::Permit;

/// Options of mke2fs. Reserve no blocks for root, which a pod's volume does not need. Let the kernel clear the inode
/// tables after the mount. Do not discard the blocks of a new volume.
const EXT: &str = "-q -m 0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=0";
/// As above, but mke2fs does not clear the journal, which has up to 1 GiB. This is safe only with `metadata_csum`, by
/// which each block of the journal has a checksum that depends on the UUID. Otherwise, after a power cut, the kernel
/// could replay blocks that the journal of a removed volume left in the same place.
const EXT4: &str = "-q -m 0 -O metadata_csum -E nodiscard,lazy_itable_init=1,lazy_journal_init=1";
/// Options of mkfs.xfs and mkfs.btrfs: do not discard.
const XFS_AND_BTRFS: &str = "-q -K";

/// Runs mkfs on a blank device. `uuid`: the UUID that the filesystem gets, unless it is a btrfs. `overwrites`: whether
/// mkfs may overwrite what it sees: half a filesystem of the driver's own, or the noise of a fresh LUKS2 device, in which
/// it might see a signature. mkfs opens the device exclusively, and inherits `lock`.
pub fn mkfs(
    host: &Host,
    permit: Permit,
    device: &Node,
    (uuid, more): (&str, &[&str]),
    overwrites: bool,
    lock: &Lock,
) -> Result<(), ToolError> {
    let fs = permit.used();
    let (tool, options) = mkfs_of(fs, more);
    // mke2fs gets no -F: it needs none for a device that is neither mounted nor busy, and with -F it would not check
    // that.
    let force = (overwrites && !fs.is_ext()).then_some("-f");
    let command = Command::writes(tool, host.limits.make)
        .stdin(lock.file())
        .args(options.split(' ').chain(force))
        .args(uuid_options(fs, uuid))
        .args(more);
    host.run(&command.device(device)).map(drop)
}

/// The name of the tool, and the driver's own options. `more`: the config's options, which the tool gets after them.
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

/// The options with which a filesystem gets this UUID. With `--uuid`, mkfs.btrfs before 6.13 opens and reads each block
/// device of the node, and would wait for a dead disk (source: btrfs-progs' common/device-scan.c, `test_uuid_unique`).
/// A btrfs needs no UUID of the driver's: until mkfs.btrfs has ended, the device has no superblock of it.
fn uuid_options(fs: FsType, uuid: &str) -> Vec<String> {
    match fs {
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => vec!["-U".to_owned(), uuid.to_owned()],
        FsType::Xfs => vec!["-m".to_owned(), format!("uuid={uuid}")],
        FsType::Btrfs => Vec::new(),
    }
}

/// Whether this option of mke2fs may switch off a feature: `-O`, a usage type (`-T`), a type (`-t`), an operating
/// system (`-o`), a revision (`-r`). One word may have several letters, and a value at its end.
fn may_decide_features(word: &str) -> bool {
    word.starts_with('-') && word.contains(['O', 'T', 't', 'o', 'r'])
}

/// Checks an ext before it is mounted for writing, and repairs what is safe to repair. `all`: also checks a clean
/// filesystem, as resize2fs demands before it grows an unmounted ext. xfs and btrfs are not checked: they recover when
/// they are mounted, and a repair before that destroys data.
pub fn check(host: &Host, device: &Node, all: bool, lock: &Lock) -> Result<(), ToolError> {
    // e2fsck(8): 1 is "errors corrected"; 2 is "reboot", which only a mounted root filesystem would need.
    let command = Command::writes("e2fsck", host.limits.check)
        .stdin(lock.file())
        .args(["-p"])
        .args(all.then_some("-f"))
        .accept(&[0, 1, 2, 3])
        .device(device);
    host.run(&command).map(drop)
}

/// Advice for a failed e2fsck. e2fsck may be too old for a feature of the filesystem. Its exit code is then the same as
/// for errors.
pub const IF_E2FSCK_IS_OLD: &str = "if e2fsck asks for a newer version, install a newer e2fsprogs or mount the volume \
     on another node";

/// What e2fsck says of an ext whose first superblock has a wrong checksum. Source: libext2fs,
/// `EXT2_ET_SB_CSUM_INVALID`.
const WRONG_CHECKSUM: &str = "Superblock checksum does not match";

/// What e2fsck says of an ext that a killed e2fsck may have left. `e2fsck -p` gives up then. The words of the multi-mount
/// protection also mean that a node uses the ext. Source: libext2fs, `EXT2_ET_MMP_*`.
const IF_KILLED: [&str; 4] = [
    WRONG_CHECKSUM,
    "MMP: device currently active",
    "MMP: e2fsck being run",
    "MMP: filesystem still in use",
];

/// The words of [`IF_KILLED`] that e2fsck itself says in this line, with a program's name before them or none. Other lines
/// may have names of files, which a tenant chose.
fn words_if_killed(line: &str) -> Option<&'static str> {
    IF_KILLED.into_iter().find(|words| {
        let before = line.split_once(words).map(|(before, _)| before);
        before.is_some_and(|name| !name.trim_end_matches(": ").contains(char::is_whitespace))
    })
}

/// Advice for a failed e2fsck that says why it failed, where a killed e2fsck may be the cause. `by_hand`: shows a person a
/// command that names the device `DEVICE`. `None`: e2fsck says something else. Source: ext4(5), `mmp`.
pub fn if_e2fsck_was_killed(error: &Error, by_hand: impl Fn(&str) -> String) -> Option<String> {
    let Some(ToolError::Failed { stderr, .. }) = error.downcast_ref() else {
        return None;
    };
    Some(
        match IF_KILLED.into_iter().find(|words| stderr.contains(words))? {
            WRONG_CHECKSUM => format!(
                "a killed e2fsck leaves a wrong checksum: if the disk works, copy the volume, and run {}",
                by_hand(REPAIR_FIRST)
            ),
            _ => format!(
                "its multi-mount protection says that it is in use on a node, or that e2fsck was killed: if no node has it \
             mounted, and no e2fsck runs, run {}",
                by_hand("tune2fs -f -E clear_mmp DEVICE")
            ),
        },
    )
}

/// What e2fsck finds in an ext, if it may not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    None,
    /// Errors. If there is a log, they may be gone once it is replayed.
    BeforeLog,
    /// An error that e2fsck must repair before it replays the log and goes on, as of the journal itself.
    BeforeAll,
}

/// What e2fsck finds in an ext, which [`check`] would have to repair. e2fsck writes nothing here, so it does
/// not replay the journal. It reads the whole filesystem only if the superblock says that something is wrong.
pub fn faults(host: &Host, device: &Node) -> Result<Faults, ToolError> {
    // e2fsck(8): 4 is "errors left uncorrected". 8 means that e2fsck gave up. 12 is both: e2fsck would have to repair an
    // error first, or it cannot check the filesystem, for example because it does not know a feature.
    let command = Command::reads("e2fsck", host.limits.check)
        .args(["-n"])
        .accept(&[0, 4, 12]);
    let Output {
        code,
        stdout,
        stderr,
    } = host.run(&command.device(device))?;
    let failed = |stderr| ToolError::Failed {
        line: format!("e2fsck -n {}", device.name.shown()),
        code,
        stderr,
    };
    let asked = String::from_utf8_lossy(&stdout);
    let mut lines = asked.lines().chain(stderr.lines());
    if let Some(words) = lines.find_map(words_if_killed) {
        return Err(failed(words.to_owned()));
    }
    match code {
        0 => Ok(Faults::None),
        4 => Ok(Faults::BeforeLog),
        // With `-n`, e2fsck itself answers its question whether to repair the error.
        _ if asked.lines().any(|line| line.ends_with("? no")) => Ok(Faults::BeforeAll),
        _ => Err(failed(stderr)),
    }
}

/// Grows a filesystem to the size of its volume, and succeeds if there is nothing to grow. An xfs and a
/// btrfs must be mounted at `mount_point`.
pub fn grow(
    host: &Host,
    fs: FsType,
    device: &Node,
    mount_point: &Path,
    lock: &Lock,
) -> Result<(), ToolError> {
    let tool = |name| Command::writes(name, host.limits.resize).stdin(lock.file());
    let command = match fs {
        FsType::Ext2 | FsType::Ext3 | FsType::Ext4 => tool("resize2fs").device(device),
        FsType::Xfs => tool("xfs_growfs").args(["-d"]).operand(mount_point),
        FsType::Btrfs => tool("btrfs")
            .args(["filesystem", "resize"])
            .operand("max")
            .operand(mount_point),
    };
    host.run(&command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_is_not_taken_for_what_e2fsck_says() {
        for line in [
            "e2fsck: MMP: filesystem still in use while trying to open /dev/dm-0",
            "ext2fs_open2: Superblock checksum does not match superblock",
        ] {
            assert!(words_if_killed(line).is_some(), "{line}");
        }
        for line in [
            "Entry 'MMP: filesystem still in use' in / (2) has an incorrect filetype (was 1, should be 2).",
            "File /MMP: e2fsck being run (inode #12, mod time Sun Nov 29 2026) has 1 block",
            "\t/e2fsck: MMP: device currently active",
        ] {
            assert_eq!(words_if_killed(line), None, "{line}");
        }
    }

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
