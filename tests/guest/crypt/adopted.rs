//! A LUKS2 volume that an operator made, and `adopt`.

use super::*;

const CLOSED: &str = "only who opens it sees what is inside";
const RECORDED: &str = "is recorded as ext4";

/// Encrypts a volume by hand, with an ext4 and a page inside.
fn encrypts(volume: &Volume, options: &str) {
    let (device, key) = (volume.device(), key_file(volume.vg()));
    let key = key.display();
    bash(&format!(
        "cryptsetup luksFormat {options} --key-file {key} {device}
        cryptsetup open --key-file {key} {device} byhand
        mkfs.ext4 -q /dev/mapper/byhand
        mount /dev/mapper/byhand /mnt; printf kept > /mnt/page; umount /mnt; cryptsetup close byhand"
    ));
}

/// `adopt` records it once it is open, and not before.
fn is_adopted(node: &Node, group: &Group, volume: &Volume, names: &[&str]) {
    let adopt = ["adopt", &group.path("data")];
    let own = name_inside(volume);
    node.prints(&adopt, CLOSED, 1);
    for name in names {
        opens(volume, name);
        let said = node.prints(&adopt, RECORDED, 0);
        let close = format!("cryptsetup close /dev/mapper/{name}");
        assert_eq!(said.contains(&close), *name != own, "{said}");
        let tags = group.tags("data");
        let its = format!("flexvolume.luks={}", luks_uuid(volume));
        assert!(tags.contains(&its), "{tags}");
        assert!(tags.contains("flexvolume.fs=ext4:"), "{tags}");
        closes(name);
        if name != names.last().unwrap() {
            group.forget("data");
        }
    }
}

#[test]
fn a_luks_volume_that_an_operator_has_opened_is_recorded_and_a_closed_one_is_not() {
    let group = Group::new("by-hand");
    let node = Node::with_config(Mode::MountOnly, &format!("[encryption]\n{QUICK}"));
    let plain = group.linear("data", "48m");
    let volume = with_secret(&plain.clone().encrypted(), IN_BASE64);
    encrypts(&volume, &format!("{QUICKLY} --type luks2"));
    // Foreign, whoever asks.
    let told = [
        "cryptsetup open /dev/mapper/by--hand-data NAME",
        "adopt by-hand/data",
    ];
    node.refuses_mount(&volume, &told);
    node.refuses_mount(&plain, &told);
    assert_eq!(group.tags("data"), "");
    // The operator may open the volume under any name.
    let own = name_inside(&volume);
    is_adopted(&node, &group, &volume, &["byhand", "by-hand.2", &own]);

    let (tags, adopt) = (group.tags("data"), ["adopt", "by-hand/data"]);
    assert_eq!(read(&node.up("pod", &volume).join("page")), "kept");
    // Mounted: the filesystem inside is recorded, and the header stays.
    node.prints(&adopt, RECORDED, 0);
    assert_eq!(group.tags("data"), tags);
    node.down("pod", &volume);
    assert!(!is_open(&volume));

    // Another filesystem inside, and then none.
    opens(&volume, "byhand");
    run("mkfs.ext4", &["-qF", "/dev/mapper/byhand"]);
    closes("byhand");
    node.refuses_mount(&volume, &["inside according to its tag"]);
    node.prints(&adopt, CLOSED, 1);
    opens(&volume, "byhand");
    node.prints(&adopt, RECORDED, 0);
    let tags = group.tags("data");
    run("wipefs", &["-qa", "/dev/mapper/byhand"]);
    node.prints(&adopt, "no filesystem inside", 1);
    closes("byhand");
    assert_eq!(group.tags("data"), tags);
}

/// A backup of the older header would destroy the only one that opens what is there.
#[test]
fn a_header_that_an_operator_has_made_anew_is_adopted_and_no_older_one_restored() {
    let (node, group, volume) = with_filled("header-anew");
    let key = "--key-file /run/header-anew.key";
    encrypts(&volume, &format!("{QUICKLY} --type luks2"));
    let said = node.mount("pod", &volume);
    said.is_failure(&["[luks-header]"]);
    let open = said.command("cryptsetup open").unwrap();
    let adopt = said.command(text(&node.exe())).unwrap();
    assert!(!said.message.contains("luksHeaderRestore"), "{said:?}");
    sh(&open
        .replace("open ", &format!("open {key} "))
        .replace("NAME", "byhand"));
    let words: Vec<&str> = adopt.split(' ').skip(1).collect();
    node.prints(&words, RECORDED, 0);
    closes("byhand");
    still_holds(&node, &volume, "kept");
    let its = format!("flexvolume.luks={}", luks_uuid(&volume));
    assert!(group.tags("data").contains(&its));
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
    encrypts(&volume, &format!("{QUICKLY} --type luks2"));
    for more in ["", policy] {
        node.configure(Mode::MountOnly, &(config(&file) + more));
        for asked in [&plain, &volume] {
            let message = node.mount("pod", asked).message;
            assert!(message.contains("adopt then-luks/data"), "{message}");
            assert!(!message.contains("lvremove"), "{message}");
        }
    }
    is_adopted(&node, &group, &volume, &["byhand"]);
    node.finds(&volume, "kept");
}

/// The options of luksFormat, and what is done after it. `$D` is the device and `$K` a file with the passphrase.
#[rustfmt::skip] // a row is a line
const HEALTHY: [(&str, &str); 11] = [
    ("", "cryptsetup luksAddKey $QUICKLY --key-file $K $D $K"),
    ("", "cryptsetup luksAddKey $QUICKLY --key-file $K $D $K; cryptsetup luksKillSlot -q --key-file $K $D 0"),
    ("--pbkdf argon2i", ""),
    ("--sector-size 4096", ""),
    ("--key-size 256", ""),
    ("--key-size 384", ""),
    ("--hash sha512", ""),
    ("--hash sm3", ""),
    ("", "cryptsetup reencrypt $QUICKLY --key-file $K $D"),
    ("", r#"echo '{"type":"somebodys","keyslots":["0"],"x":"a\nb\u001b"}' | cryptsetup token import --json-file - $D"#),
    ("", r#"echo '{"type":"clevis","keyslots":["0"],"jwe":{"tag":"a"}}' | cryptsetup token import --json-file - $D"#),
];

#[test]
fn a_header_that_cryptsetup_makes_is_opened_whatever_its_options() {
    let (node, group) = (with_key(Mode::MountOnly, "healthy"), Group::new("healthy"));
    let volume = group.linear("data", "48m").encrypted();
    let (device, key) = (volume.device(), "/run/healthy.key");
    for (options, then) in HEALTHY {
        println!("{options}, {then}");
        encrypts(&volume, &format!("{QUICKLY} --type luks2 {options}"));
        bash(&format!("D={device} K={key} QUICKLY='{QUICKLY}'; {then}"));
        opens(&volume, "byhand");
        node.prints(&["adopt", "healthy/data"], RECORDED, 0);
        closes("byhand");
        still_holds(&node, &volume, "kept");
        group.forget("data");
    }
}

#[test]
fn luks1_is_converted_first() {
    let group = Group::new("luks-one");
    let node = with_key(Mode::MountOnly, "luks-one");
    let volume = group.linear("data", "48m").encrypted();
    encrypts(&volume, "--batch-mode --type luks1 --iter-time 1");
    let convert = format!("cryptsetup convert --type luks2 {}", volume.device());
    let (key, device) = (key_file("luks-one"), volume.device());
    let key = text(&key);
    sh(&format!("cryptsetup open --key-file {key} {device} opened"));
    let words = ["luks-one/data is encrypted, and open", "It is LUKS1"];
    let refused = node.refuses_mount(&volume, &words);
    bash(refused.command("cryptsetup close").unwrap());
    node.refuses_mount(&volume, &[&convert]);
    node.prints(&["adopt", "luks-one/data"], &convert, 1);
    bash(&format!("{convert} --batch-mode"));
    is_adopted(&node, &group, &volume, &["byhand"]);
    node.finds(&volume, "kept");
}

#[test]
fn a_snapshot_is_as_large_as_its_origin_whatever_room_its_changes_have() {
    let (node, group, origin) = with_filled("crypt-snap");
    for (lv, room) in [("small", "12m"), ("large", "20m")] {
        println!("{lv}");
        sh(&format!(
            "lvcreate -qq -y -s -n {lv} -L {room} crypt-snap/data"
        ));
        let volume = Volume::new(&group, lv).encrypted();
        opens(&volume, "byhand");
        node.prints(&["adopt", &group.path(lv)], RECORDED, 0);
        closes("byhand");
        node.up("pod", &volume);
        // The snapshot may grow to the size that it has.
        node.grow("pod", &volume, 48 << 20).is_success();
        node.grow("pod", &volume, 64 << 20)
            .is_failure(&["stays as large as that was then: 48 MiB"]);
        let (said, _) = node.json(&["status"]);
        let all = said["volumes"].as_array().unwrap();
        let its = all.iter().find(|one| one["volume"] == *group.path(lv));
        assert_eq!(its.unwrap()["size_bytes"], 48 << 20, "{said}");
        node.down("pod", &volume);
        still_holds(&node, &volume, "data");
    }
    still_holds(&node, &origin, "data");
}
