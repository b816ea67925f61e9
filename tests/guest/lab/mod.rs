//! The parts of a case: a group, its disks and volumes, a node, and scripts that run before the real tools.

pub mod disk;
pub mod failure;
pub mod group;
pub mod layout;
pub mod node;
pub mod page;
pub mod recorder;
pub mod signatures;
pub mod snapshot;
pub mod tools;
pub mod volume;
