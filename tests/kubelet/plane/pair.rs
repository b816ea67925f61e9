//! The driver on both sides: on the node, and for the controller.

use crate::prelude::*;

pub struct Pair {
    pub node: Driver,
    /// The controller's driver. `None`: the mode is not attach mode.
    pub controller: Option<Driver>,
}

impl Pair {
    pub fn new(case: &str, mode: Mode) -> Self {
        let node = Driver::new(case, mode);
        let attaches = mode == Mode::Attach;
        let controller = attaches.then(|| Driver::for_controller(case));
        Self { node, controller }
    }

    /// Takes the pods from the node. Waits until nothing is left of the pods and their volume, neither on the node nor
    /// in what the controller knows.
    pub fn all_end(&self, volume: &Volume, pods: &[Pod]) {
        let detached = self.controller.as_ref().map(|side| side.count("detach"));
        pods.iter().for_each(Pod::delete);
        for pod in pods {
            pod.is_gone();
        }
        volume.is_unmounted();
        if let (Some(side), Some(detached)) = (&self.controller, detached) {
            side.has_answered("detach", detached + 1);
        }
        self.is_detached(volume);
    }

    pub fn is_detached(&self, volume: &Volume) {
        let name = unique_name(&self.node, volume);
        wait_until(&format!("{name} is detached"), || {
            attached(NODE, &self.node, volume).is_none()
        });
    }

    pub fn assert_no_failure(&self) {
        self.node.assert_no_failure();
        if let Some(controller) = &self.controller {
            controller.assert_no_failure();
        }
    }
}

/// Starts kubelet, installs the case's driver on both sides, and makes a blank volume.
pub fn scene_of_pair(case: &str, mode: Mode) -> (impl Drop, String, Pair, Volume) {
    let (running, case) = (shared(), mode.case(case));
    let pair = Pair::new(&case, mode);
    let volume = Volume::new(&case, "data").called(&format!("{case}-data"));
    (running, case, pair, volume)
}
