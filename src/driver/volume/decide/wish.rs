//! The request of a call, or of a person, for a volume.

use std::collections::BTreeMap;

use nix::mount::MsFlags;

use crate::config::VolumeGroup;
use crate::mount::Row;
use crate::names::{Bytes, FsType, LvName};

/// What a call or a person wants of a volume, with the node's config applied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is asked for by itself
pub struct Wish {
    pub purpose: Purpose,
    pub fs: Option<FsType>,
    /// The type that a blank volume gets if `fs` is `None`.
    pub default_fs: FsType,
    pub read_only: bool,
    /// Whether the mount options name a subvolume of btrfs.
    pub subvolume: bool,
    /// The flags, such as `nosuid`, that the node's config or the pod asks for on each mount, by type of filesystem.
    pub flags: BTreeMap<FsType, MsFlags>,
    /// Whether the directory is that of kubelet's global mount, which serves all pods of a volume name.
    pub global: bool,
    /// Whether a person calls the driver by hand: the directory is not one of kubelet's.
    pub by_hand: bool,
    /// Whether the volume is to be encrypted. `None`: a person asks, and the pod's options are not known.
    pub encrypted: Option<bool>,
    /// Whether there is a passphrase: in the call, or in a file of the node. True also if a person asks and `attach` is
    /// false, since kubelet may pass a passphrase then.
    pub has_key: bool,
    /// Whether the disk may be told which blocks of an encrypted volume are free.
    pub allow_discards: bool,
    /// Why the node's config does not let pods use this volume group.
    pub not_allowed: Option<String>,
    /// If a thin pool is filled to this percentage, none of its volumes is mounted for writing.
    pub pool_limit: u8,
    /// The group's table in the node's config, or the default. Only the keys about creation and growth are read here.
    pub group: VolumeGroup,
    /// The size that the volume gets if it is created.
    pub size: Option<Bytes>,
    /// The thin pool that the volume's options name.
    pub asked_pool: Option<LvName>,
}

impl Wish {
    /// The flags that the mount `row`, or a bind from it, is to have: the flags that it has, and those of this wish.
    /// Read-only is an exception: only the wish decides that.
    pub fn flags_of(&self, row: &Row) -> MsFlags {
        let fs = FsType::parse(&row.fs_type).ok();
        let asked = fs.and_then(|fs| self.flags.get(&fs));
        let mut flags = row.flags() | asked.copied().unwrap_or(MsFlags::empty());
        flags.set(MsFlags::MS_RDONLY, self.read_only);
        flags
    }

    /// The thin pool in which the volume would be created. `None`: in no pool.
    pub fn thin_pool(&self) -> Option<&LvName> {
        self.group.thin_pool.as_ref().or(self.asked_pool.as_ref())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The volume is to be active, and no more.
    Device,
    /// The volume's filesystem is to be mounted at a directory.
    Filesystem,
    /// The volume and its filesystem are to have at least this size.
    Size(Bytes),
}
