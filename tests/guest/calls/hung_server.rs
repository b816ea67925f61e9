//! A filesystem whose server does not answer any more, and volumes that have nothing to do with it.

use crate::data::lvm_conf::LvmConf;
use crate::data::meanwhile::ends;
use crate::fuse::Fuse;
use crate::prelude::*;

/// Every call-out of a volume's life, and what people ask, end well beside it.
fn lives_beside(group: &Group, node: &Node, lv: &str, page: Option<&str>) {
    let volume = Volume::new(group, lv);
    let (json, device, host) = (volume.json(), volume.device(), host_name());
    let [global, pod] = [node.global_dir(&volume), node.pod_dir("pod", &volume)].map(precreated);
    let for_pod = volume.json_for("pod");
    let does = |args: &[&str]| {
        println!("{args:?}");
        Reply::of(args, &ends(node, args)).is_success();
    };
    let mount = ["mount", text(&pod), &for_pod];
    if node.mode == Mode::Attach {
        does(&["attach", &json, &host]);
        does(&["isattached", &json, &host]);
        does(&["waitforattach", &device, &json]);
        does(&["mountdevice", text(&global), &device, &json]);
    }
    does(&mount);
    if let Some(page) = page {
        assert_eq!(read(&pod.join("page")), page);
    }
    write_synced(&pod.join("page"), "goes on");
    does(&mount);
    let id = group.path(lv);
    for args in [&["status"][..], &["status", &id], &["check", &id]] {
        let output = ends(node, args);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains(lv),
            "{args:?}: {said}"
        );
    }
    // It may find anything on this machine.
    ends(node, &["doctor"]);
    does(&["unmount", text(&pod)]);
    if node.mode == Mode::Attach {
        does(&["unmountdevice", text(&global)]);
        does(&["detach", &volume.name, &host]);
    }
    assert_eq!(mount_at(&pod), None);
}

#[test]
fn a_stopped_server_holds_up_no_other_volume() {
    const LIMITS: &str = "[limits]\nquery = 60\nactivate = 60\nmount = 60\nlock = 60\n";
    for (vg, looped) in [("hungloop", true), ("hungpod", false)] {
        for mode in BOTH_MODES {
            println!("{vg}, {mode:?}");
            let node = Node::with_config(mode, LIMITS);
            let group = Group::new(vg);
            for lv in ["blank", "data"] {
                group.linear(lv, "32m");
            }
            Node::new(Mode::MountOnly).write("pod", &Volume::new(&group, "data"), "kept");
            // LVM itself would read the loop device.
            let disk = run("vgs", &["--noheadings", "-o", "pv_name", vg]);
            let _conf = LvmConf::new(&format!(
                "devices {{\n global_filter = [ \"a|^{disk}$|\", \"r|.*|\" ]\n}}\n"
            ));
            let dir = if looped {
                "/run/hung-server".into()
            } else {
                node.kubelet_dir()
                    .join("pods/other/volumes/kubernetes.io~csi/pv/mount")
            };
            let fuse = Fuse::at(&dir);
            let on_top = looped.then(|| {
                let name = run("losetup", &["--find", "--show", text(&fuse.disk())]);
                Finally(format!("losetup --detach {name}"))
            });
            run("udevadm", &["settle"]);
            fuse.stop();
            lives_beside(&group, &node, "blank", None);
            lives_beside(&group, &node, "data", Some("kept"));
            drop(fuse);
            drop(on_top);
        }
    }
}
