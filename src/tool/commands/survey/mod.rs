//! The survey of all volumes of this node, which `status`, `check`, `doctor` and `metrics` share.

mod choice;
mod faults;
mod finding;
mod group;
mod health;
mod inventory;
mod look;
mod next_mount;
mod node;
mod objection;
mod pods;
mod recorded;
mod snapshot;
mod steps;
mod verdict;

pub use choice::Choice;
pub use finding::{Finding, OK, Severity};
pub use group::GroupHealth;
pub use health::Health;
pub use inventory::Inventory;
pub use look::{Request, SeenVolume, look};
pub use next_mount::NextMount;
pub use node::NodeHealth;
pub use pods::{Pods, uid_of, uids_of};
pub use steps::content_in_words;
#[cfg(test)]
pub use verdict::Outcome;
pub use verdict::Verdict;
