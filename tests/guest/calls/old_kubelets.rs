//! The shorter forms of Kubernetes 1.2 to 1.5, which know no node name and no global mount.

use crate::prelude::*;

#[test]
fn the_forms_of_kubernetes_1_2_to_1_5_work_twice_in_a_row() {
    let (node, _group, volume) = Node::with_data(Mode::Attach, "old");
    let dir = node.pod_dir("pod", &volume);
    let before = mounts();
    for round in 0..2 {
        let json = volume.json();
        let device = node.does(&["attach", &json]).device;
        assert_eq!(device, Some(volume.device()));
        // That kubelet did not make the directory.
        node.does(&["mount", text(&dir), &volume.device(), &json]);
        assert_eq!(mount_at(&dir).unwrap().source, volume.device());
        if round == 0 {
            write_synced(&dir.join("page"), "kept");
        }
        assert_eq!(read(&dir.join("page")), "kept");
        node.does(&["unmount", text(&dir)]);
        node.does(&["detach", &volume.device()]);
        assert_eq!(mounts(), before);
        std::fs::remove_dir(&dir).unwrap();
    }
}
