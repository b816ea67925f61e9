//! Encrypted volumes: LUKS2 on real dm-crypt.

mod adopted;
mod again;
mod headers;
pub mod life;
mod lost;
mod page;
mod secrets;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::prelude::*;

/// A passphrase, and the same as kubelet has it.
pub const PASSPHRASE: &str = "canary-of-a-passphrase";
pub const IN_BASE64: &str = "Y2FuYXJ5LW9mLWEtcGFzc3BocmFzZQ==";

/// Filesystems, each with a size that is enough for it beside a LUKS2 header of 16 MiB.
pub const SIZES: [(&str, &str); 3] = [("ext4", "48m"), ("xfs", "320m"), ("btrfs", "144m")];

/// What makes it quick to try a passphrase.
pub const QUICK: &str = "pbkdf_memory = '32k'\npbkdf_iterations = 4\n";

/// A file with the passphrase, as `key_file` names it.
pub fn key_file(name: &str) -> PathBuf {
    let file = PathBuf::from(format!("/run/{name}.key"));
    fs::write(&file, PASSPHRASE).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// A node that has the passphrase in a file.
pub fn with_key(mode: Mode, name: &str) -> Node {
    let file = key_file(name);
    Node::with_config(mode, &config(&file))
}

pub fn config(file: &Path) -> String {
    format!("[encryption]\nkey_file = '{}'\n{QUICK}", file.display())
}

/// The volume with a Secret that has this passphrase, in base64.
pub fn with_secret(volume: &Volume, passphrase: &str) -> Volume {
    volume
        .clone()
        .with("kubernetes.io/secret/passphrase", passphrase)
}

/// Whether the volume is open.
pub fn is_open(volume: &Volume) -> bool {
    fs::exists(volume.mounted()).unwrap()
}

/// Runs these lines in a shell, which ends at the first that fails.
pub fn shell(lines: &str) -> String {
    run("bash", &["-c", &format!("set -e -o pipefail; {lines}")])
}
