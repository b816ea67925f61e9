//! The tools that the driver and its commands run, and what needs each.

use super::facts::NodeFacts;
use crate::commands::survey::Severity;
use driver::names::FsType;

/// What needs a tool.
#[derive(Clone, Copy)]
pub enum Need {
    /// Each volume.
    All,
    /// A volume that gets this filesystem.
    New(FsType),
    /// The growth of a filesystem.
    Growth(&'static str),
    /// An encrypted volume.
    Encryption,
    /// A volume in a group that nodes share.
    Shared,
    /// The name of the node that has a shared volume, where locks are sanlock's.
    Holder,
    /// `log`, which itself says if it cannot read the journal.
    Log,
}

pub struct Tool {
    pub name: &'static str,
    pub need: Need,
    /// Debian's package.
    pub package: &'static str,
}

#[rustfmt::skip] // a row is a line
pub const TOOLS: [Tool; 24] = [
    Tool { name: "lvs", need: Need::All, package: "lvm2" },
    Tool { name: "vgs", need: Need::All, package: "lvm2" },
    Tool { name: "pvs", need: Need::All, package: "lvm2" },
    Tool { name: "pvscan", need: Need::All, package: "lvm2" },
    Tool { name: "lvchange", need: Need::All, package: "lvm2" },
    Tool { name: "lvcreate", need: Need::All, package: "lvm2" },
    Tool { name: "lvextend", need: Need::All, package: "lvm2" },
    Tool { name: "dmsetup", need: Need::All, package: "dmsetup" },
    Tool { name: "blkid", need: Need::All, package: "util-linux" },
    Tool { name: "wipefs", need: Need::All, package: "util-linux" },
    Tool { name: "mount", need: Need::All, package: "mount" },
    Tool { name: "e2fsck", need: Need::All, package: "e2fsprogs" },
    Tool { name: "mkfs.ext2", need: Need::New(FsType::Ext2), package: "e2fsprogs" },
    Tool { name: "mkfs.ext3", need: Need::New(FsType::Ext3), package: "e2fsprogs" },
    Tool { name: "mkfs.ext4", need: Need::New(FsType::Ext4), package: "e2fsprogs" },
    Tool { name: "resize2fs", need: Need::Growth("ext"), package: "e2fsprogs" },
    Tool { name: "mkfs.xfs", need: Need::New(FsType::Xfs), package: "xfsprogs" },
    Tool { name: "xfs_growfs", need: Need::Growth("xfs"), package: "xfsprogs" },
    Tool { name: "mkfs.btrfs", need: Need::New(FsType::Btrfs), package: "btrfs-progs" },
    Tool { name: "btrfs", need: Need::Growth("btrfs"), package: "btrfs-progs" },
    Tool { name: "cryptsetup", need: Need::Encryption, package: "cryptsetup-bin" },
    Tool { name: "lvmlockctl", need: Need::Shared, package: "lvm2-lockd" },
    Tool { name: "sanlock", need: Need::Holder, package: "sanlock" },
    Tool { name: "journalctl", need: Need::Log, package: "systemd" },
];

impl Need {
    /// How bad it is on this node if the tool is missing. `None`: nothing here needs it, or a command itself says so.
    pub fn severity(self, facts: &NodeFacts) -> Option<Severity> {
        let failed_if = |is_needed| {
            if is_needed {
                Severity::Failed
            } else {
                Severity::Warning
            }
        };
        match self {
            Self::All => Some(Severity::Failed),
            Self::New(fs) => Some(failed_if(fs == facts.config.default_fs)),
            Self::Growth(_) => Some(Severity::Warning),
            Self::Encryption => Some(failed_if(facts.has_encryption())),
            Self::Shared => facts.has_shared_group().then_some(Severity::Failed),
            Self::Holder | Self::Log => None,
        }
    }

    /// What needs the tool, in words.
    pub fn in_words(self, facts: &NodeFacts) -> String {
        match self {
            Self::All => "each volume needs".to_owned(),
            Self::New(fs) if fs == facts.config.default_fs => {
                format!("{fs} needs, and it is this node's default_fs")
            }
            Self::New(fs) => format!("{fs} needs"),
            Self::Growth(fs) => format!("growing {fs} needs"),
            Self::Encryption if facts.has_encryption() => {
                "encryption needs, and this node has encrypted volumes or is to make them"
                    .to_owned()
            }
            Self::Encryption => "encryption needs".to_owned(),
            Self::Shared => "a shared volume group needs".to_owned(),
            Self::Holder => "naming the node that has a shared volume needs".to_owned(),
            Self::Log => "`log` needs".to_owned(),
        }
    }
}
