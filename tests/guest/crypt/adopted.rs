//! A LUKS2 volume that an operator made, and `adopt`.

use super::*;

const QUICKLY: &str = "--batch-mode --pbkdf-memory 32 --pbkdf-force-iterations 4";

#[test]
fn a_luks_volume_of_an_operator_is_recorded_with_a_key_at_hand_and_not_without() {
    let group = Group::new("by-hand");
    let node = Node::with_config(Mode::MountOnly, &format!("[encryption]\n{QUICK}"));
    let plain = group.linear("data", "48m");
    let volume = with_secret(&plain.clone().encrypted(), IN_BASE64);
    let (device, key) = (volume.device(), key_file("by-hand"));
    let key = key.to_str().unwrap();
    shell(&format!(
        "cryptsetup luksFormat {QUICKLY} --type luks2 --key-file {key} {device}
        cryptsetup open --key-file {key} {device} byhand
        mkfs.ext4 -q /dev/mapper/byhand
        mount /dev/mapper/byhand /mnt; echo kept > /mnt/page; umount /mnt; cryptsetup close byhand"
    ));
    let foreign = "/run/by-hand.foreign";
    fs::write(foreign, "nobody's").unwrap();
    fs::set_permissions(foreign, fs::Permissions::from_mode(0o600)).unwrap();
    // Foreign, whoever asks.
    node.refuses_mount(&volume, &["by-hand/data"]);
    let written = || read(Path::new(&format!("/sys/class/block/{}/stat", dm(&device))));
    let writes = || written().split_whitespace().nth(6).unwrap().to_owned();
    let before = writes();
    let adopt = ["adopt", "by-hand/data"];
    let mut asked = assert_cmd::Command::new(node.exe());
    let asked = asked.args(adopt).write_stdin("").output().unwrap();
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(
        said.contains("only a passphrase tells what is inside"),
        "{said}"
    );
    let with = |key: &'static str| [&adopt[..], &["--key-file", key]].concat();
    node.prints(&with(foreign), "does not open by-hand/data", 1);
    assert_eq!((group.tags("data").as_str(), is_open(&volume)), ("", false));

    node.prints(&with("/run/by-hand.key"), "is recorded as ext4", 0);
    assert_eq!(writes(), before);
    assert!(!is_open(&volume));
    let header = run("cryptsetup", &["luksUUID", &device]);
    let tags = group.tags("data");
    assert!(
        tags.contains(&format!("flexvolume.luks={}", header.trim())),
        "{tags}"
    );
    assert!(tags.contains("flexvolume.fs=ext4:"), "{tags}");
    assert_eq!(read(&node.up("pod", &volume).join("page")), "kept\n");
    // Mounted: the filesystem inside is recorded, and the header stays.
    node.prints(&adopt, "is recorded as ext4", 0);
    assert_eq!(group.tags("data"), tags);
    node.down("pod", &volume);
    assert!(!is_open(&volume));

    // Nothing is inside that could be recorded.
    shell(&format!(
        "cryptsetup open --key-file {key} {device} byhand; wipefs -qa /dev/mapper/byhand; cryptsetup close byhand"
    ));
    node.prints(&with("/run/by-hand.key"), "no filesystem inside", 1);
    assert_eq!(group.tags("data"), tags);
    assert!(!is_open(&volume));
}

fn dm(device: &str) -> String {
    let path = fs::canonicalize(device).unwrap();
    path.file_name().unwrap().to_str().unwrap().to_owned()
}
