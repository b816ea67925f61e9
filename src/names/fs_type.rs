use std::fmt;

use anyhow::{Error, Result};
use serde::Deserialize;

use super::invalid;

/// The filesystems that this driver makes, checks, mounts and grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum FsType {
    Ext2,
    Ext3,
    Ext4,
    Xfs,
    Btrfs,
}

impl FsType {
    pub const ALL: [Self; 5] = [Self::Ext2, Self::Ext3, Self::Ext4, Self::Xfs, Self::Btrfs];

    /// Takes a name as mkfs(8), blkid(8) and kubelet's `fsType` write it.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|fs| fs.as_str() == name)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::as_str).join(", ");
                invalid(
                    name,
                    &format!("filesystem of this driver; it knows {known}"),
                )
            })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    pub fn is_ext(self) -> bool {
        matches!(self, Self::Ext2 | Self::Ext3 | Self::Ext4)
    }
}

impl fmt::Display for FsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl TryFrom<String> for FsType {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        Self::parse(&name)
    }
}
