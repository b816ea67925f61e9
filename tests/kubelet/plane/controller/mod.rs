//! Cases on the controller's host, where no kubelet runs. Each node is an object of the API, and no kubelet
//! updates the object.

mod attachment;
mod manifests;
