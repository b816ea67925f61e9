//! All volumes of this node looked at once: what `status`, `check`, `doctor` and `metrics` share.

mod pods;
mod trial;
mod verdict;
mod walk;

pub use pods::{Pods, uid_of, uids_of};
pub use trial::{Trial, mkfs as try_mkfs, tried};
pub use verdict::{Ask, Outcome, Seen, Verdict, content_in_words, look};
pub use walk::{Choice, Walk};
