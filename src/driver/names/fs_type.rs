//! The types of filesystems that the driver makes.

use std::fmt;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use super::invalid;

/// The filesystems that this driver makes, checks, mounts and grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(Display, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum FsType {
    Ext2,
    Ext3,
    Ext4,
    Xfs,
    Btrfs,
}

impl FsType {
    pub const ALL: [Self; 5] = [Self::Ext2, Self::Ext3, Self::Ext4, Self::Xfs, Self::Btrfs];

    /// Parses a name as mkfs(8), blkid(8) and kubelet's `fsType` write it.
    pub fn parse(name: &str) -> Result<Self> {
        name.parse().map_err(|_| {
            let known = Self::VARIANTS.join(", ");
            let why = format!("filesystem of this driver; it knows {known}");
            invalid(name, &why)
        })
    }

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn is_ext(self) -> bool {
        matches!(self, Self::Ext2 | Self::Ext3 | Self::Ext4)
    }
}

/// How a volume is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Encryption {
    Luks2,
}

impl Encryption {
    pub fn parse(name: &str) -> Result<Self> {
        name.parse()
            .map_err(|_| invalid(name, "kind of encryption of this driver; it knows luks2"))
    }
}

/// A filesystem by its type and UUID. In a volume's tag the type is text, since the tag may name a type that this
/// driver does not know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filesystem<T = FsType> {
    pub fs: T,
    /// As blkid prints it. Empty: the filesystem has no UUID.
    pub uuid: String,
}

impl<T: fmt::Display> fmt::Display for Filesystem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.fs, self.uuid)
    }
}
