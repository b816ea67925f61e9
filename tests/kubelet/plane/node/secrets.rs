//! A Secret is for `mount` only, and ends there.

use serde_json::json;

use crate::prelude::*;

/// "the secret of this test".
const ENCODED: &str = "dGhlIHNlY3JldCBvZiB0aGlzIHRlc3Q=";

in_both_modes! {
    a_secret_reaches_mount_and_nothing_else
}

/// Makes a Secret that kubelet hands to this driver.
fn make_secret(driver: &Driver) {
    api::create(
        "secrets",
        &json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": driver.case},
            // kubelet wants the driver's name here.
            "type": driver.name(),
            "data": {"word": ENCODED},
        }),
    );
}

/// The calls that were handed the secret, each name once.
fn calls_with_secret(calls: &[Call]) -> Vec<&str> {
    let with = calls
        .iter()
        .filter(|call| call.args.concat().contains(ENCODED));
    let mut names: Vec<&str> = with.map(|call| call.args[0].as_str()).collect();
    names.dedup();
    names
}

fn a_secret_reaches_mount_and_nothing_else(mode: Mode) {
    let (_running, case, pair, volume) = scene_of_pair("secret", mode);
    make_secret(&pair.node);
    let volume = claim(&pair.node, &volume.secret(&case));
    let pod = Pod::written(&pair.node, "web", &volume);
    pair.all_end(&volume, &[pod]);
    pair.assert_no_failure();
    assert_eq!(calls_with_secret(&pair.node.calls()), ["mount"]);
    if let Some(controller) = &pair.controller {
        assert!(calls_with_secret(&controller.calls()).is_empty());
    }
    if mode == Mode::MountOnly {
        // kubelet logs all the arguments of a call that ends with another status than 0.
        let wrong = Volume::new(&case, "wrong")
            .secret(&case)
            .with("size", "32%s");
        let pod = Pod::writing(&pair.node, "wrong", &wrong, "never");
        event(&pod.name, "FailedMount", "option size");
        assert!(!pair.node.failures().is_empty());
        assert_eq!(calls_with_secret(&pair.node.calls()), ["mount"]);
        pod.ends();
    }
    assert!(!kubelet_log().contains(ENCODED), "kubelet has logged it");
}
