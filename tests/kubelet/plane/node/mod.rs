//! Cases on the node, which is the guest.

mod claims;
mod down;
mod growth;
mod in_progress;
mod meanwhile;
mod scheduled;
mod secrets;
