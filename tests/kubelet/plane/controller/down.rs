//! The node has gone down with a pod on it: the guest has ended like that.

use crate::driver::Driver;
use crate::plane::claim::{attached, in_use};
use crate::plane::{NODE, api, controller_root};
use crate::volume::Volume;
use crate::wait_until;

#[test]
fn the_volume_of_a_node_that_is_down_is_detached_when_its_pod_is_given_up() {
    let case = "down";
    let driver = Driver::that_controller_has(case, &controller_root());
    let volume = Volume::that_is_there(case, "data").called("down-data");
    assert_eq!(attached(NODE, &driver, &volume), Some(volume.device()));
    assert!(in_use(NODE, &driver, &volume), "said kubelet at last");

    api::delete_by_force("pods/down-web");
    // Six minutes after that, the controller no longer waits for a kubelet to unmount it.
    driver.has_answered("detach", 1);
    wait_until("the volume is detached", || {
        attached(NODE, &driver, &volume).is_none()
    });
    assert_eq!(driver.order(), "attach detach");
    driver.assert_no_failure();
}
