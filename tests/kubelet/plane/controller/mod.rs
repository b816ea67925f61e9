//! Cases on the controller's host, where no kubelet runs. Each node is an object of the API, and no kubelet
//! updates the object. Only [`crate::prelude::NODE_DOWN`] had a kubelet, which went down with its guest.

mod attachment;
mod manifests;
