//! A LUKS2 volume that an operator made, and `adopt`.

use super::*;

const QUICKLY: &str = "--batch-mode --pbkdf-memory 32 --pbkdf-force-iterations 4";
const CLOSED: &str = "only who opens it sees what is inside";

/// Encrypts a volume by hand, with an ext4 and a page inside.
fn encrypts(volume: &Volume, type_of: &str) {
    let (device, key) = (volume.device(), key_file(volume.vg()));
    let key = key.display();
    shell(&format!(
        "cryptsetup luksFormat {QUICKLY} --type {type_of} --key-file {key} {device}
        cryptsetup open --key-file {key} {device} byhand
        mkfs.ext4 -q /dev/mapper/byhand
        mount /dev/mapper/byhand /mnt; echo kept > /mnt/page; umount /mnt; cryptsetup close byhand"
    ));
}

fn opens(volume: &Volume, name: &str) {
    let key = format!("/run/{}.key", volume.vg());
    let open = ["open", "--key-file", &key, &volume.device(), name];
    run("cryptsetup", &open);
}

fn is_recorded(group: &Group, volume: &Volume) {
    let header = run("cryptsetup", &["luksUUID", &volume.device()]);
    let tags = group.tags(volume.lv());
    let its = format!("flexvolume.luks={}", header.trim());
    assert!(
        tags.contains(&its) && tags.contains("flexvolume.fs=ext4:"),
        "{tags}"
    );
}

#[test]
fn a_luks_volume_that_an_operator_has_opened_is_recorded_and_a_closed_one_is_not() {
    let group = Group::new("by-hand");
    let node = Node::with_config(Mode::MountOnly, &format!("[encryption]\n{QUICK}"));
    let plain = group.linear("data", "48m");
    let volume = with_secret(&plain.clone().encrypted(), IN_BASE64);
    encrypts(&volume, "luks2");
    // Foreign, whoever asks.
    let told = [
        "cryptsetup open /dev/mapper/by--hand-data NAME",
        "adopt by-hand/data",
    ];
    node.refuses_mount(&volume, &told);
    node.refuses_mount(&plain, &told);
    let adopt = ["adopt", "by-hand/data"];
    node.prints(&adopt, CLOSED, 1);
    assert_eq!(group.tags("data"), "");

    // By whatever name.
    let own = volume.mounted().replace("/dev/mapper/", "");
    for name in ["byhand", "by-hand.2", &own] {
        opens(&volume, name);
        let said = node.says(&adopt);
        assert!(
            said.1 == 0 && said.0.contains("is recorded as ext4"),
            "{said:?}"
        );
        let close = format!("cryptsetup close /dev/mapper/{name}");
        assert_eq!(said.0.contains(&close), name != own, "{said:?}");
        is_recorded(&group, &volume);
        run("cryptsetup", &["close", name]);
        if name != own {
            for tag in group.tags("data").split(',') {
                group.lv("lvchange", &["--deltag", tag], "data");
            }
        }
    }
    let tags = group.tags("data");
    assert_eq!(read(&node.up("pod", &volume).join("page")), "kept\n");
    // Mounted: the filesystem inside is recorded, and the header stays.
    node.prints(&adopt, "is recorded as ext4", 0);
    assert_eq!(group.tags("data"), tags);
    node.down("pod", &volume);
    assert!(!is_open(&volume));

    // Another filesystem inside, and then none.
    opens(&volume, "byhand");
    run("mkfs.ext4", &["-qF", "/dev/mapper/byhand"]);
    run("cryptsetup", &["close", "byhand"]);
    node.refuses_mount(&volume, &["inside according to its tag"]);
    node.prints(&adopt, CLOSED, 1);
    opens(&volume, "byhand");
    node.prints(&adopt, "is recorded as ext4", 0);
    let tags = group.tags("data");
    run("wipefs", &["-qa", "/dev/mapper/byhand"]);
    node.prints(&adopt, "no filesystem inside", 1);
    run("cryptsetup", &["close", "byhand"]);
    assert_eq!(group.tags("data"), tags);
}

/// The record still names the plain filesystem.
#[test]
fn a_plain_volume_that_an_operator_has_encrypted_is_told_from_one_that_is_plain() {
    let group = Group::new("then-luks");
    let file = key_file("then-luks");
    let policy = "[volume_group.then-luks]\nencryption = 'luks2'\n";
    let mut node = Node::with_config(Mode::MountOnly, &config(&file));
    let plain = group.linear("data", "48m");
    let volume = plain.clone().encrypted();
    node.write("pod", &plain, "plain");
    node.refuses_mount(&volume, &["holds a filesystem that is not encrypted"]);
    run("wipefs", &["-qa", &plain.device()]);
    encrypts(&volume, "luks2");
    for more in ["", policy] {
        node.configure(Mode::MountOnly, &(config(&file) + more));
        for asked in [&plain, &volume] {
            let message = node.mount("pod", asked).message;
            assert!(message.contains("adopt then-luks/data"), "{message}");
            assert!(!message.contains("lvremove"), "{message}");
        }
        node.prints(&["adopt", "then-luks/data"], CLOSED, 1);
    }
    opens(&volume, "byhand");
    node.prints(&["adopt", "then-luks/data"], "is recorded as ext4", 0);
    run("cryptsetup", &["close", "byhand"]);
    is_recorded(&group, &volume);
    assert_eq!(read(&node.up("pod", &volume).join("page")), "kept\n");
    node.down("pod", &volume);
}

#[test]
fn luks1_is_converted_first() {
    let group = Group::new("luks-one");
    let node = with_key(Mode::MountOnly, "luks-one");
    let volume = group.linear("data", "48m").encrypted();
    let device = volume.device();
    shell(&format!(
        "cryptsetup luksFormat -q --type luks1 --iter-time 1 --key-file /run/luks-one.key {device}
        cryptsetup open --key-file /run/luks-one.key {device} byhand
        mkfs.ext4 -q /dev/mapper/byhand; cryptsetup close byhand"
    ));
    let convert = format!("cryptsetup convert --type luks2 {device}");
    node.refuses_mount(&volume, &[&convert]);
    node.prints(&["adopt", "luks-one/data"], &convert, 1);
    shell(&format!("{convert} --batch-mode"));
    node.prints(&["adopt", "luks-one/data"], CLOSED, 1);
    opens(&volume, "byhand");
    node.prints(&["adopt", "luks-one/data"], "is recorded as ext4", 0);
    run("cryptsetup", &["close", "byhand"]);
    node.write("pod", &volume, "kept");
}
