//! Encrypted volumes: LUKS2 on real dm-crypt.

mod adopted;
mod again;
mod attacks;
mod forge;
mod headers;
mod hostile;
mod lacks;
pub mod life;
mod lost;
mod page;
mod reduced;
mod reencrypted;
mod secrets;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::prelude::*;

/// A passphrase, and below in base64, as kubelet has it.
pub const PASSPHRASE: &str = "canary-of-a-passphrase";
pub const IN_BASE64: &str = "Y2FuYXJ5LW9mLWEtcGFzc3BocmFzZQ==";

/// Filesystems, each with a size that is enough for it beside a LUKS2 header of 16 MiB.
pub const SIZES: [(&str, &str); 3] = [("ext4", "48m"), ("xfs", "320m"), ("btrfs", "144m")];

/// Options of the config with which a passphrase is tried quickly.
pub const QUICK: &str = "pbkdf_memory = '32k'\npbkdf_iterations = 4\n";

/// A file with the passphrase, as `key_file` names it.
pub fn key_file(name: &str) -> PathBuf {
    let file = PathBuf::from(format!("/run/{name}.key"));
    written(&file, PASSPHRASE, 0o600);
    file
}

pub fn written(file: &Path, content: &str, mode: u32) {
    fs::write(file, content).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

/// A node that has the passphrase in a file.
pub fn with_key(mode: Mode, name: &str) -> Node {
    let file = key_file(name);
    Node::with_config(mode, &config(&file))
}

pub fn config(file: &Path) -> String {
    format!("[encryption]\nkey_file = '{}'\n{QUICK}", file.display())
}

/// The same volume with a Secret, which has this passphrase in base64.
pub fn with_secret(volume: &Volume, passphrase: &str) -> Volume {
    volume
        .clone()
        .with("kubernetes.io/secret/passphrase", passphrase)
}

/// Whether the volume is open.
pub fn is_open(volume: &Volume) -> bool {
    fs::exists(volume.mounted()).unwrap()
}

/// Options of cryptsetup with which a passphrase is tried quickly.
pub const QUICKLY: &str = "--batch-mode --pbkdf-memory 32 --pbkdf-force-iterations 4";

/// A closed encrypted volume, with a page that has the volume's own name.
pub fn filled(node: &Node, group: &Group, lv: &str) -> Volume {
    let volume = group.linear(lv, "48m").encrypted();
    node.write("pod", &volume, lv);
    assert!(!is_open(&volume));
    volume
}

/// A node with the key, a group, and in the group such a volume `data`.
pub fn with_filled(name: &str) -> (Node, Group, Volume) {
    let (node, group) = (with_key(Mode::MountOnly, name), Group::new(name));
    let volume = filled(&node, &group, "data");
    (node, group, volume)
}

/// Checks that the mount is refused in these words, writes nothing, by the kernel's count of writes, and leaves nothing
/// open.
#[track_caller]
pub fn refuses_unchanged(node: &Node, volume: &Volume, words: &[&str]) {
    node.refuses_mount(volume, words);
    assert!(!is_open(volume), "{words:?}");
}

#[track_caller]
pub fn still_holds(node: &Node, volume: &Volume, page: &str) {
    node.finds(volume, page);
    assert!(!is_open(volume));
}

/// The UUID of the header.
pub fn luks_uuid(volume: &Volume) -> String {
    run("cryptsetup", &["luksUUID", &volume.device()])
}

/// The name of the device inside, without its directory.
pub fn name_inside(volume: &Volume) -> String {
    volume.mounted().replace("/dev/mapper/", "")
}

/// Opens the volume with the key of its group, under this name: the driver's, or another.
pub fn opens(volume: &Volume, name: &str) {
    let (vg, device) = (volume.vg(), volume.device());
    sh(&format!(
        "cryptsetup open --key-file /run/{vg}.key {device} {name}"
    ));
}

pub fn closes(name: &str) {
    run("cryptsetup", &["close", name]);
}

/// Writes bytes of a source to a device, in pages of 4 KiB.
pub fn overwrite(device: &str, source: &str, from: u32, count: u32) {
    sh(&format!(
        "dd if={source} of={device} bs=4k seek={from} count={count} conv=fsync status=none"
    ));
}
