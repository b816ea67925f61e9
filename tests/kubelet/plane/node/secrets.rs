//! kubelet hands a Secret to the driver, which shows it nowhere.

use serde_json::json;

use crate::prelude::*;

/// The text "the secret of this test" in base64.
const ENCODED: &str = "dGhlIHNlY3JldCBvZiB0aGlzIHRlc3Q=";

in_both_modes! {
    a_secret_is_in_no_log
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

fn a_secret_is_in_no_log(mode: Mode) {
    let (_running, case, pair, volume) = scene_of_pair("secret", mode);
    make_secret(&pair.node);
    let volume = claim(&pair.node, &volume.secret(&case));
    let pod = Pod::written(&pair.node, "web", &volume);
    pair.all_end(&volume, &[pod]);
    pair.assert_no_failure();
    if mode == Mode::MountOnly {
        // kubelet logs all the arguments of a call that ends with another status than 0.
        let wrong = Volume::new(&case, "wrong")
            .secret(&case)
            .with("size", "32%s");
        let pod = Pod::writing(&pair.node, "wrong", &wrong, "never");
        event(&pod.name, "FailedMount", "option size");
        assert!(!pair.node.failures().is_empty());
        pod.ends();
    }
    for log in std::fs::read_dir(LOGS).unwrap() {
        let log = log.unwrap().path();
        let text = std::fs::read(&log).unwrap();
        let has_it = String::from_utf8_lossy(&text).contains(ENCODED);
        assert!(!has_it, "{} has it", log.display());
    }
}
