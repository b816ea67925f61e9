//! A volume goes from node to node, and is on one at a time.

use crate::prelude::*;

#[test]
fn a_volume_moves_with_its_data_and_the_node_that_waits_is_told_who_has_it() {
    let pair = pair();
    for mode in BOTH_MODES {
        let volume = Volume::new(&pair.a, &mode.case("move"));
        pair.a.up(mode, &volume).is_success();
        pair.a.write(mode, &volume, "from a");
        pair.b.up(mode, &volume).is_failure(&[
            "is held by another node, host 1 (node-a)",
            "`lvchange -an vg/move-",
        ]);
        assert!(!pair.b.has(&volume));
        pair.a.down(mode, &volume);
        pair.b.up(mode, &volume).is_success();
        assert_eq!(pair.b.read(mode, &volume), "from a");
        pair.b.write(mode, &volume, "from b");
        pair.a.up(mode, &volume).is_failure(&["host 2 (node-b)"]);
        pair.b.down(mode, &volume);
        pair.a.up(mode, &volume).is_success();
        assert_eq!(pair.a.read(mode, &volume), "from b");
        pair.a.down(mode, &volume);
    }
}

#[test]
fn an_encrypted_volume_is_open_on_one_node_and_moves() {
    let pair = pair();
    for mode in BOTH_MODES {
        let volume = Volume::new(&pair.a, &mode.case("sealed")).encrypted();
        let dir = pod_dir(mode, &volume);
        pair.a.up(mode, &volume).is_success();
        pair.a.write(mode, &volume, "from a");
        assert_eq!((pair.a.opened(), pair.b.opened()), (1, 0));
        pair.b.up(mode, &volume).is_failure(&["host 1 (node-a)"]);
        assert_eq!(pair.b.opened(), 0);
        pair.a.down(mode, &volume);
        assert_eq!(pair.a.opened(), 0);
        pair.b.up(mode, &volume).is_success();
        assert_eq!(pair.b.read(mode, &volume), "from a");
        pair.b.write(mode, &volume, "from b");
        // The call that unmounts was killed before it closed the volume: kubelet makes it again.
        pair.b.sh(&format!("umount {dir}"));
        if mode == Mode::Attach {
            pair.b.sh(&format!("umount {}", global_dir(mode, &volume)));
        }
        pair.a.up(mode, &volume).is_failure(&["host 2 (node-b)"]);
        pair.b.down(mode, &volume);
        assert_eq!(pair.b.opened(), 0);
        pair.a.up(mode, &volume).is_success();
        assert_eq!(pair.a.read(mode, &volume), "from b");
        pair.a.down(mode, &volume);
    }
}

#[test]
fn two_nodes_that_bring_up_one_blank_volume_make_one_filesystem() {
    let pair = pair();
    let blank = |mode: Mode| (mode, Volume::new(&pair.a, &mode.case("blank")), 0);
    let sealed = Volume::new(&pair.a, "sealed-once").encrypted();
    let sealed = (Mode::MountOnly, sealed, 1);
    for (mode, volume, opened) in BOTH_MODES.map(blank).into_iter().chain([sealed]) {
        let replies = at_once(|| pair.a.up(mode, &volume), || pair.b.up(mode, &volume));
        let (winner, loser) = pair.winner(&replies);
        assert_eq!((winner.opened(), loser.opened()), (opened, 0));
        winner.write(mode, &volume, "once");
        winner.down(mode, &volume);
        loser.up(mode, &volume).is_success();
        assert_eq!(loser.read(mode, &volume), "once");
        loser.down(mode, &volume);
    }
}

#[test]
fn two_nodes_that_create_one_name_make_one_volume() {
    let pair = pair();
    let (mode, volume) = (Mode::MountOnly, Volume::named("made"));
    let replies = at_once(|| pair.a.up(mode, &volume), || pair.b.up(mode, &volume));
    assert_eq!(pair.a.sh("lvs --noheadings -o lv_name vg/made"), "made");
    let (winner, loser) = pair.winner(&replies);
    winner.down(mode, &volume);
    loser.can_have(mode, &volume);
}

#[test]
fn a_volume_grows_where_it_is_mounted() {
    let pair = pair();
    let (mode, volume) = (Mode::MountOnly, Volume::new(&pair.a, "grows"));
    pair.a.up(mode, &volume).is_success();
    let (dir, size) = (pod_dir(mode, &volume), (64 << 20).to_string());
    let args = ["expandfs", &volume.json(), "", &dir, &size, "0"];
    pair.b.call(mode, &args).is_failure(&["host 1 (node-a)"]);
    pair.a.call(mode, &args).is_success();
    pair.a.down(mode, &volume);
    pair.b.up(mode, &volume).is_success();
    let blocks = pair.b.sh(&format!("stat -fc %b {dir}"));
    let block = pair.b.sh(&format!("stat -fc %S {dir}"));
    let bytes = blocks.parse::<u64>().unwrap() * block.parse::<u64>().unwrap();
    assert!(bytes > 48 << 20, "{bytes}");
    pair.b.down(mode, &volume);
}

#[test]
fn a_thin_volume_is_refused_while_another_node_has_its_pool() {
    let pair = pair();
    let [one, two] = Volume::thin(&pair.a, "pool", ["thin1", "thin2"]);
    let mode = Mode::MountOnly;
    pair.a.up(mode, &one).is_success();
    pair.b
        .up(mode, &two)
        .is_failure(&["vg/thin2", "host 1 (node-a)"]);
    pair.a.up(mode, &two).is_success();
    pair.a.down(mode, &one);
    pair.a.down(mode, &two);
    pair.b.can_have(mode, &two);
}

#[test]
fn a_call_gives_back_what_a_killed_command_left() {
    let pair = pair();
    let (mode, volume) = (Mode::MountOnly, Volume::new(&pair.a, "killed"));
    let [thin] = Volume::thin(&pair.a, "pool2", ["killed-thin"]);
    for volume in [&volume, &thin] {
        let (dir, device) = (pod_dir(mode, volume), volume.device());
        pair.a.up(mode, volume).is_success();
        // The call that unmounts was killed before it began to deactivate, and LVM before its end.
        for left in [
            format!("umount {dir}"),
            format!(
                "lvchange -ay -K vg/{0} && dmsetup remove {device}",
                volume.lv()
            ),
        ] {
            pair.a.sh(&left);
            pair.b.up(mode, volume).is_failure(&["host 1 (node-a)"]);
            pair.a.call(mode, &["unmount", &dir]).is_success();
            assert!(!pair.a.has(volume));
            pair.b.can_have(mode, volume);
        }
    }
}

#[test]
fn a_node_keeps_no_volume_that_it_could_not_mount() {
    let pair = pair();
    for mode in BOTH_MODES {
        let volume = Volume::new(&pair.a, &mode.case("refused"));
        pair.a.can_have(mode, &volume);
        let reply = pair.a.up(mode, &volume.clone().fs("xfs"));
        reply.is_failure(&["holds ext4, not xfs"]);
        assert!(!pair.a.has(&volume));
        pair.b.can_have(mode, &volume);
    }
}
