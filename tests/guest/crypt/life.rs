//! A whole life of an encrypted volume, as kubelet has it.

use super::*;

/// Two pods, one after the other and at once, a growth and a read-only pod; closed after the last of them.
fn lives(node: &Node, group: &Group, volume: &Volume, fs: &str) {
    let tags = || group.tags(volume.lv());
    let dir = node.up("first", volume);
    write_synced(&dir.join("page"), "written");
    let (made, luks) = tags()
        .split_once(',')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert!(made.starts_with(&format!("flexvolume.fs={fs}:")), "{made}");
    let header = run("cryptsetup", &["luksUUID", &volume.device()]);
    assert_eq!(luks, format!("flexvolume.luks={}", header.trim()));
    let on_disk = run(
        "blkid",
        &["-p", "-o", "value", "-s", "TYPE", &volume.device()],
    );
    assert_eq!(on_disk.trim(), "crypto_LUKS");

    // Another pod needs no passphrase while it is mounted.
    let second = node.up("second", volume);
    assert_eq!(read(&second.join("page")), "written");
    node.down("first", volume);
    assert!(is_open(volume));
    let before = filesystem_size(&second);
    // The kernel grows no btrfs to less than 256 MiB.
    let least = if fs == "btrfs" { 288 << 20 } else { 0 };
    let larger = (group.size(volume.lv()) + (32 << 20)).max(least);
    node.grow("second", volume, larger).is_success();
    assert!(filesystem_size(&second) > before + (24 << 20), "{fs}");
    node.down("second", volume);
    node.down_globally(volume);
    assert!(!is_open(volume));

    let reader = volume.clone().read_only();
    let dir = node.up("reader", &reader);
    assert_eq!(read(&dir.join("page")), "written");
    let ro = run("blockdev", &["--getro", &volume.mounted()]);
    assert_eq!(ro.trim(), "1");
    node.down("reader", &reader);
    node.down_globally(&reader);
    assert!(!is_open(volume));
    node.write("last", volume, "again");
    node.down_globally(volume);
    assert!(!is_open(volume));
    assert_eq!(tags(), format!("{made},{luks}"));
}

#[test]
fn a_volume_lives_with_the_key_of_its_node_in_both_modes() {
    let group = Group::new("crypt-key");
    for mode in BOTH_MODES {
        let node = with_key(mode, "crypt-key");
        for (fs, size) in SIZES {
            let lv = format!("{}-{fs}", mode.lv());
            let volume = group.linear(&lv, size).fs(fs).encrypted();
            let before = mounts();
            lives(&node, &group, &volume, fs);
            assert_eq!(mounts(), before);
            group.lv("lvremove", &[], &lv);
        }
    }
}

#[test]
fn a_volume_lives_with_the_key_of_its_secret() {
    let group = Group::new("crypt-secret");
    let node = Node::with_config(Mode::MountOnly, &format!("[encryption]\n{QUICK}"));
    for (fs, size) in SIZES {
        let volume = group.linear(fs, size).fs(fs).encrypted();
        lives(&node, &group, &with_secret(&volume, IN_BASE64), fs);
    }
}

#[test]
fn a_group_is_encrypted_whatever_a_pod_asks_for() {
    let group = Group::new("crypt-group");
    let file = key_file("crypt-group");
    let policy = "[volume_group.crypt-group]\nencryption = 'luks2'\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, &(config(&file) + policy));
    let plain = Volume::new(&group, "made").with("size", "64m");
    let dir = precreated(node.pod_dir("pod", &plain));
    node.does(&["mount", text(&dir), &plain.json_for("pod")]);
    assert_eq!(
        mount_at(&dir).unwrap().source,
        plain.clone().encrypted().mounted()
    );
    node.down("pod", &plain);
    assert!(!is_open(&plain.encrypted()));
}
