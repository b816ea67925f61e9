//! Who has a volume: pods, the host, processes, other volumes with the same content.

mod busy;
pub mod clones;
mod collisions;
mod descriptors;
pub mod host;
mod layouts;
mod names;
mod openers;
mod parts;
mod propagation;
mod read_only;
mod runtimes;
