//! Cases on the node, which is the guest.

mod growth;
mod pods;
mod secrets;
