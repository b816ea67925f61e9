//! What is to be mounted.

use crate::host::{DeviceNumber, Node};
use crate::names::{Filesystem, LvId};
use crate::options::MountOptions;

/// A filesystem to mount.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub id: &'a LvId,
    pub node: &'a Node,
    pub number: DeviceNumber,
    pub filesystem: &'a Filesystem,
    pub options: &'a MountOptions,
    pub read_only: bool,
    /// Whether this call has made the filesystem.
    pub is_new: bool,
}
