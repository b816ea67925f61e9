//! An encrypted volume that somebody has reduced: nothing inside is cut off, and the message has the size that helps.

use super::*;

/// As lvreduce does it that asks nobody and looks at no filesystem.
fn reduce(volume: &Volume, size: &str) {
    let (vg, lv) = (volume.vg(), volume.lv());
    bash(&format!(
        "ignore=; case $(lvreduce --help) in *'--fs '*) ignore='--fs ignore' ;; esac
        lvreduce -qq $ignore -f -L {size} {vg}/{lv}"
    ));
}

#[test]
fn one_that_ends_in_its_header_is_named_and_extended_again() {
    let (node, group, volume) = with_filled("crypt-cut");
    reduce(&volume, "12m");
    let words = ["the LUKS2 header on it covers", "[reduced]"];
    refuses_unchanged(&node, &volume, &words);
    node.prints(&["check", "crypt-cut/data"], words[0], 1);
    // The header says no more than where the data begins, and what is inside says the rest.
    let reply = node.mount("pod", &volume);
    sh(reply.command("lvextend").unwrap());
    let reply = node.refuses_mount(&volume, &["the ext4 on it covers", "[reduced]"]);
    sh(reply.command("lvextend").unwrap());
    still_holds(&node, &volume, "data");
    assert_eq!(group.size("data"), 48 << 20);
}

#[test]
fn one_that_was_reduced_under_a_pod_does_not_lose_its_end_when_it_grows() {
    let (node, group, volume) = with_filled("crypt-under");
    node.up("pod", &volume);
    reduce(&volume, "36m");
    let reply = node.grow("pod", &volume, 40 << 20);
    reply.is_failure(&["was reduced while it was open", "Nothing was written"]);
    assert_eq!(group.size("data"), 36 << 20);
    sh(reply.command("lvextend").unwrap());
    assert_eq!(group.size("data"), 48 << 20);
    node.grow("pod", &volume, 64 << 20).is_success();
    node.down("pod", &volume);
    still_holds(&node, &volume, "data");
}

/// Its key is in the kernel's keyring, which no call of kubelet can read.
#[test]
fn one_that_was_opened_by_hand_grows_when_its_pods_have_ended() {
    let (node, _group, volume) = with_filled("crypt-hand");
    opens(&volume, &name_inside(&volume));
    node.up("pod", &volume);
    let grown = node.grow("pod", &volume, 64 << 20);
    grown.is_failure(&["opened that by hand, end its pods"]);
    node.down("pod", &volume);
    node.up("pod", &volume);
    node.grow("pod", &volume, 64 << 20).is_success();
    node.down("pod", &volume);
    still_holds(&node, &volume, "data");
}
