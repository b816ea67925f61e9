//! All volumes of this node looked at once: what `status`, `check`, `doctor` and `metrics` share.

mod pods;
mod verdict;
mod walk;

pub use pods::{Pods, uid_of, uids_of};
pub use verdict::{Ask, Outcome, Seen, Verdict, content_in_words, look};
pub use walk::{Choice, Walk};
