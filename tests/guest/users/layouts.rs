//! kubelet's directory may be a link, or be seen at two places. Then the kernel has another path for a mount than
//! kubelet.

use std::path::Path;

use crate::prelude::*;

#[test]
fn a_global_mount_goes_after_a_change_of_mode_wherever_it_is() {
    let group = Group::new("clearing");
    for layout in LAYOUTS {
        let mut node = Node::new(Mode::Attach);
        let _layout = layout.of(&node);
        let volume = group.linear(&layout.name(), "32m");
        for pod in ["first", "second"] {
            node.bring(pod, &volume);
        }
        node.configure(Mode::MountOnly, "");
        let [first, second] = ["first", "second"].map(|pod| node.pod_dir(pod, &volume));
        node.does(&["unmount", text(&first)]);
        assert!(seen(&volume) > 1, "{layout:?}: a pod has it still");
        node.does(&["unmount", text(&second)]);
        assert_eq!(seen(&volume), 0, "{layout:?}");
        assert!(!node.global_dir(&volume).exists());
    }
}

#[test]
fn who_keeps_a_volume_busy_is_named_wherever_it_is() {
    let group = Group::new("keeping");
    for layout in LAYOUTS {
        let node = Node::new(Mode::MountOnly);
        let _layout = layout.of(&node);
        let volume = group.linear(&layout.name(), "32m");
        node.bring("pod", &volume);
        let dir = node.pod_dir("pod", &volume);
        let mut places = vec![dir.clone()];
        if layout == Layout::Bound {
            let below = dir.strip_prefix(node.kubelet_dir()).unwrap();
            places.push(Path::new(&other_disk(&node)).join("kubelet").join(below));
        }
        for place in places {
            let busy = Process::new("exec sleep 1000", &place);
            let who = format!("sleep (pid {}, working directory", busy.0.id());
            eventually("the process", || read(&busy.proc("comm")) == "sleep\n");
            let reply = node.call(&["unmount", text(&dir)]);
            reply.is_failure(&["is in use by", &who]);
        }
        node.take(&["pod"], &volume);
    }
}
