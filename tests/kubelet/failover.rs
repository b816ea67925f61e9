//! Two guests are nodes of one control plane and share a volume group; one dies under its pods:
//! `tests/run.sh failover`. This runs on the host, where the control plane is too.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::prelude::*;

#[path = "../support/pair.rs"]
#[allow(dead_code)]
mod guests;

const CASE: &str = "failover";

/// A Deployment on a claim that names no node.
struct App {
    mode: Mode,
    /// The logical volume.
    volume: guests::Volume,
    deployment: Deployment,
}

impl App {
    fn new(mode: Mode, guest: &guests::Guest) -> Self {
        let case = mode.case(CASE);
        if mode == Mode::Attach {
            driver_of_controller(&case);
        }
        let driver = Driver::installed(&case);
        let lv = guests::Volume::new(guest, &case);
        let volume = Volume::that_is_there(&case, "data").called(&case);
        let volume = volume.with("volumegroup", "vg").with("volumeID", &case);
        let volume = claim(&driver, &volume);
        Self {
            mode,
            volume: lv,
            deployment: Deployment::of(&Pod::new(&driver, "web", &volume, crate::power::LINES)),
        }
    }

    /// Waits until its pod on this node has printed a line.
    fn says(&self, guest: &guests::Guest, node: &str, line: &str) {
        let pod = self.deployment.pod_on(node).name;
        guest.sh(&until(&format!(
            "cat /var/log/pods/default_{pod}_*/main/* 2> /dev/null | grep -q ' {line}$'"
        )));
    }
}

/// Shell: waits until this is so, and prints when that was.
fn until(condition: &str) -> String {
    format!("until {condition}; do sleep 0.5; done; date +%s.%N")
}

#[test]
#[ignore = "runs in a guest, which is a node from then on"]
fn a_guest_becomes_a_node() {
    let _running = shared();
    for mode in BOTH_MODES {
        Driver::new(&mode.case(CASE), mode);
    }
}

fn becomes_a_node(guest: &guests::Guest, name: &str) {
    guest.sh(
        "set -e; mkdir -p /run/log $SHARE/$NODE/log; mount --bind $SHARE/$NODE/log /run/log
        . $SHARE/cases; export FLEXVOLUME_LVM_RECORD=$SHARE/$NODE/calls.jsonl
        $SHARE/kubelet-cases --ignored --exact failover::a_guest_becomes_a_node",
    );
    wait_until(&format!("{name} is ready"), || {
        let node = api::get(&format!("/api/v1/nodes/{name}"));
        node.is_some_and(|node| node["spec"]["taints"].is_null())
    });
}

#[test]
fn pods_run_on_the_other_node_with_their_data_when_theirs_has_died() {
    let pair = guests::pair();
    let (a, b) = (&pair.a, &pair.b);
    becomes_a_node(a, "node-a");
    let apps = BOTH_MODES.map(|mode| App::new(mode, a));
    for app in &apps {
        app.says(a, "node-a", "written");
    }
    becomes_a_node(b, "node-b");

    let cut = SystemTime::now();
    let since_cut = || cut.elapsed().unwrap();
    let when = |begun: guests::Begun| {
        let printed = String::from_utf8(begun.end().stdout).unwrap();
        let then = Duration::from_secs_f64(printed.trim().parse().unwrap());
        (SystemTime::UNIX_EPOCH + then).duration_since(cut).unwrap()
    };
    let lease = b.begin(&until("sanlock client gets -h 1 | grep -q '^h 1 .* DEAD'"));
    let mounts = apps.each_ref().map(|app| {
        let device = app.volume.device();
        b.begin(&until(&format!("grep -q '^{device} ' /proc/mounts")))
    });
    a.cut_power();
    out_of_service("node-a", true);
    println!("taint: {:.1?} after the power went", since_cut());
    for app in &apps {
        app.deployment.pod_on("node-b");
    }
    println!("the pods are put on the other node: {:.1?}", since_cut());
    let lease = when(lease);
    println!("the lease has run out: {lease:.1?}");
    // It was renewed less than three seconds before.
    assert!(lease > Duration::from_secs(65), "{lease:?}");
    for (app, mounted) in apps.iter().zip(mounts) {
        let mounted = when(mounted);
        println!("mount, {:?}: {mounted:.1?}", app.mode);
        assert!(mounted + Duration::from_secs(2) > lease, "{mounted:?}");
        app.says(b, "node-b", "found kept");
        println!(
            "the pod has found its data, {:?}: {:.1?}",
            app.mode,
            since_cut()
        );
    }

    let root = std::env::var("FLEXVOLUME_LVM_SHARED").unwrap();
    for app in &apps {
        let driver = Driver::that_controller_has(&app.mode.case(CASE), &Path::new(&root).join("b"));
        match app.mode {
            // The pod that was on the other node has to be gone first.
            Mode::Attach => {
                let driver = Driver::that_controller_has(&driver.case, &controller_root());
                assert_eq!(driver.order(), "attach detach attach");
            }
            Mode::MountOnly => {
                let failures = driver.failures();
                assert!(failures[0].contains("host 1 (node-a)"), "{failures:?}");
            }
        }
        app.deployment.stop();
    }
    for app in &apps {
        wait_until("the other node has given it back", || !b.has(&app.volume));
    }

    a.boot();
    a.join();
    out_of_service("node-a", false);
    becomes_a_node(a, "node-a");
    let cordon = json!({"spec": {"unschedulable": true}});
    api::patch("/api/v1/nodes/node-b", &cordon);
    for app in &apps {
        app.deployment.start();
    }
    for app in &apps {
        app.says(a, "node-a", "found kept");
    }
}
