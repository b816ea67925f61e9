//! Requests that pods may make of a volume, in both modes.

use serde_json::{Value, json};

use crate::prelude::*;

in_both_modes! {
    two_pods_share_one_volume
    fs_group_owns_what_is_in_the_volume
    the_summary_shows_the_size_of_the_volume
}

fn two_pods_share_one_volume(mode: Mode) {
    let (_running, _, driver, volume) = scene("share", mode);
    let one = Pod::writing(&driver, "one", &volume, "shared");
    one.says("written");
    let two = Pod::reading(&driver, "two", &volume);
    if !inline_is_shared(mode) {
        stumbles_over(&driver, &volume);
        assert_eq!(two.log(), "", "it waits for the first");
        one.ends();
    }
    two.says("shared");
    if inline_is_shared(mode) {
        one.ends();
    }
    let mut pods = Vec::new();
    if inline_is_shared(mode) {
        pods.push(two);
    } else {
        two.ends();
    }
    let three = Pod::reading(&driver, "three", &volume);
    three.says("shared");
    pods.push(three);
    all_end(&driver, mode, &volume, &pods);
    driver.assert_no_failure();
}

fn fs_group_owns_what_is_in_the_volume(mode: Mode) {
    let (_running, _, driver, volume) = scene("fsgroup", mode);
    let lines = "touch /data/mine\necho groups $(stat -c %g /data) $(stat -c %g /data/mine)";
    let user = json!({"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000});
    let pod = Pod::new(&driver, "web", &volume, lines);
    let pod = pod.with("/spec", "securityContext", user).started();
    pod.says("groups 2000 2000");
    all_end(&driver, mode, &volume, &[pod]);
    driver.assert_no_failure();
}

fn the_summary_shows_the_size_of_the_volume(mode: Mode) {
    let _running = shared();
    let case = mode.case("metrics");
    let driver = Driver::with_config(&case, mode, "supports_metrics = true");
    let volume = Volume::new(&case, "data");
    let lines = "dd if=/dev/zero of=/data/page bs=1M count=5 && sync && echo written";
    let pod = Pod::new(&driver, "web", &volume, lines).started();
    pod.says("written");
    let (capacity, used) = wait_for("the volume in /stats/summary", || {
        let used_of = |stats: &Value| {
            let number = |key: &str| stats[key].as_u64();
            number("capacityBytes").zip(number("usedBytes"))
        };
        let stats = summary_of(&pod.name, &volume.name)?;
        used_of(&stats).filter(|(_, used)| *used >= 5 << 20)
    });
    assert!((20 << 20..32 << 20).contains(&capacity), "{capacity}");
    assert!(used < 10 << 20, "{used}");
    all_end(&driver, mode, &volume, &[pod]);
    driver.assert_no_failure();
}

/// kubelet's metrics of a pod's volume.
fn summary_of(pod: &str, volume: &str) -> Option<Value> {
    let summary: Value = serde_json::from_str(&get("/stats/summary")?).ok()?;
    let pods = summary["pods"].as_array()?;
    let is_it = |entry: &&Value| {
        let name = entry["podRef"]["name"].as_str().unwrap_or("");
        name.starts_with(&format!("{pod}-"))
    };
    let volumes = pods.iter().find(is_it)?["volume"].as_array()?.clone();
    volumes.into_iter().find(|entry| entry["name"] == volume)
}
