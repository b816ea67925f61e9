//! Two pods whose inline volumes have one name, but are two logical volumes. In attach mode kubelet takes them for one
//! volume. The driver must not.

use crate::prelude::*;

/// Another volume of the same name.
fn namesake(group: &Group, lv: &str, of: &Volume) -> Volume {
    let mut namesake = Volume::new(group, lv);
    namesake.name.clone_from(&of.name);
    namesake.with("kubernetes.io/pvOrVolumeName", &of.name)
}

#[test]
fn in_attach_mode_the_second_volume_of_a_name_is_refused() {
    let node = Node::new(Mode::Attach);
    let group = Group::new("namesakes");
    let [first, _] = ["data", "other"].map(|lv| group.linear(lv, "32m"));
    let dir = node.up("one", &first);
    write_synced(&dir.join("page"), "of data");
    let second = namesake(&group, "other", &first);
    let json = second.json();
    let global = node.global_dir(&second);
    let pod = precreated(node.pod_dir("two", &second));

    // kubelet believes that the volume is attached: it hands on the device of the first.
    let words = [
        &*first.device(),
        "(namesakes/data)",
        "the options name namesakes/other",
        "give the volumes of the two pods different names",
        "PersistentVolumes",
        "attach = false",
    ];
    node.refuses(&["waitforattach", &first.device(), &json], &words);
    let args = ["mountdevice", text(&global), &first.device(), &json];
    node.refuses(&args, &words);

    // With its own device, the directory tells.
    let holds = "holds namesakes/data, not namesakes/other";
    let args = ["mountdevice", text(&global), &second.device(), &json];
    node.refuses(&args, &[text(&global), holds, words[3]]);
    node.refuses(&["mount", text(&pod), &json], &[text(&global), holds]);
    let bytes = (64_u64 << 20).to_string();
    let words = ["namesakes/other", text(&global)];
    node.refuses(&["expandfs", &json, "", text(&global), &bytes, "0"], &words);

    assert_eq!(read(&dir.join("page")), "of data");

    // When the first is gone the second comes up, with its own data.
    node.all_down(&["one"], &first);
    let dir = node.up("two", &second);
    assert!(!dir.join("page").exists());
    node.all_down(&["two"], &second);
}
