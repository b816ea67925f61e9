//! The calls that start no process, one by one.

use std::fs;
use std::path::Path;

use crate::contest::Contest;
use crate::lvm::Group;
use crate::race::{Runner, race, run};
use crate::report::Report;
use crate::words;

/// The calls that need no LVM, on any machine.
pub fn without_lvm(contest: &Contest, report: &mut Report) {
    let json = options("nosuch", "data", "ext4");
    let missing = "/run/flexvolume-lvm-nothing";
    contest.compare(report, "init", &words!["init"], true);
    contest.compare(
        report,
        "isattached, another node",
        &words!["isattached", json, "another-node"],
        true,
    );
    // The script answers this one with a failure: it has no device to show.
    contest.compare(
        report,
        "attach, another node",
        &words!["attach", json, "another-node"],
        false,
    );
    contest.compare(
        report,
        "detach",
        &words!["detach", "data", "another-node"],
        true,
    );
    contest.compare(
        report,
        "unmountdevice, nothing there",
        &words!["unmountdevice", missing],
        true,
    );
}

/// The calls on a volume that is up.
pub fn on_lvm(contest: &Contest, report: &mut Report) {
    let group = Group::new("bench", 1 << 30);
    group.linear("data", "64m");
    let (json, device) = (options("bench", "data", "ext4"), group.device("data"));
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let top = "/var/lib/kubelet";
    let global = format!("{top}/plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/data");
    let pod = format!("{top}/pods/1/volumes/kubernetes.io~lvm/data");
    let bound = format!("{top}/pods/2/volumes/kubernetes.io~lvm/data");
    for dir in [&global, &pod, &bound] {
        fs::create_dir_all(dir).unwrap();
    }

    let attach = words!["attach", json, host];
    contest.compare(report, "attach, active", &attach, true);
    let wait = words!["waitforattach", device, json];
    contest.compare(report, "waitforattach, active", &wait, true);
    let ask = words!["isattached", json, host];
    contest.compare(report, "isattached, this node", &ask, true);
    let unmount_device = words!["unmountdevice", global];
    contest.compare(report, "unmountdevice, not mounted", &unmount_device, true);

    let mount_device = words!["mountdevice", global, device, json];
    contest.driver(&mount_device);
    contest.compare(report, "mountdevice, mounted", &mount_device, true);
    contest.driver(&words!["mount", pod, json]);
    let repeated = words!["mount", pod, json];
    contest.compare(report, "mount, mounted", &repeated, false);
    binds(contest, report, &bound, &json);
    contest.driver(&words!["unmount", pod]);
    contest.driver(&unmount_device);
}

/// A bind mount and its end: each is prepared by the other.
fn binds(contest: &Contest, report: &mut Report, dir: &str, json: &str) {
    let mount = contest.argv_of_driver(&words!["mount", dir, json]);
    let unmount = contest.argv_of_driver(&words!["unmount", dir]);
    let floor = || Runner::command("floor", contest.argv_of_floor());
    let binding = [
        Runner::command("driver", mount.clone()).after(|| run(&unmount)),
        floor(),
    ];
    report.row("mount, bind", &race(&binding, contest.rounds));
    let unbinding = [
        Runner::command("driver", unmount.clone()).after(|| run(&mount)),
        floor(),
    ];
    report.row("unmount", &race(&unbinding, contest.rounds));
    assert!(Path::new(dir).is_dir());
}

/// The options that kubelet passes for a volume.
pub fn options(vg: &str, lv: &str, fs: &str) -> String {
    serde_json::json!({
        "kubernetes.io/fsType": fs,
        "kubernetes.io/pvOrVolumeName": lv,
        "kubernetes.io/readwrite": "rw",
        "size": "64m",
        "volumeID": lv,
        "volumegroup": vg,
    })
    .to_string()
}
