//! Cases on the controller's host. Their nodes are objects, which no kubelet keeps up to date, but
//! for the one that was the guest.

mod attachment;
mod down;
mod manifests;
