//! The permission to run mkfs.

use crate::names::FsType;

/// The permission to make this filesystem. It can be used once: mkfs and luksFormat take it by value. Only
/// [`decide`](super::decide) gives one:
///
/// ```compile_fail,E0451
/// driver::volume::Permit { fs: driver::names::FsType::Ext4 };
/// ```
#[derive(Debug, PartialEq)]
pub struct Permit {
    fs: FsType,
}

impl Permit {
    pub(super) fn of(fs: FsType) -> Self {
        Self { fs }
    }

    pub fn fs(&self) -> FsType {
        self.fs
    }

    /// Uses the permit up, for mkfs. Returns the filesystem to make.
    pub fn used(self) -> FsType {
        self.fs
    }
}
