//! What the kernel and the config have for encrypted volumes.

use std::path::Path;

use super::lvm::Lvm;
use driver::config::Config;
use driver::host::trust::require_secret;
use driver::host::{Command, Host};
use driver::names::Shown;

pub struct Crypto {
    pub has_dm_crypt: bool,
    pub has_cipher: bool,
    /// Why a `key_file` of the config cannot be used, a line each.
    pub key_problems: Vec<String>,
}

impl Crypto {
    /// Asks only if the config, or a volume's record, wants encryption.
    pub(super) fn ask(host: &Host, config: &Config, lvm: Option<&Lvm>) -> Option<Self> {
        let of_groups = config.volume_groups.values();
        let of_groups = of_groups.filter_map(|group| group.key_file.as_deref());
        let keys: Vec<&Path> = config
            .luks
            .key_file
            .as_deref()
            .into_iter()
            .chain(of_groups)
            .collect();
        let mut groups = config.volume_groups.values();
        let is_recorded = |lvm: &Lvm| {
            let mut volumes = lvm.volumes.iter();
            volumes.any(|one| one.volume.record.luks_uuid().is_some())
        };
        let is_wanted = !keys.is_empty()
            || groups.any(|group| group.encryption.is_some())
            || lvm.is_some_and(is_recorded);
        is_wanted.then(|| Self {
            has_dm_crypt: has_target(host) || has_module(host, "dm-crypt"),
            has_cipher: has_cipher(host) || has_module(host, "xts"),
            key_problems: keys
                .into_iter()
                .filter_map(|key| key_problem(host, key))
                .collect(),
        })
    }
}

/// Whether device-mapper has the target by now.
fn has_target(host: &Host) -> bool {
    let targets = host.run(&Command::dmsetup_targets());
    let is_crypt = |line: &str| line.split_whitespace().next() == Some("crypt");
    targets.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).lines().any(is_crypt))
}

/// Whether somebody has used the cipher since the host was booted, or a driver offers it.
fn has_cipher(host: &Host) -> bool {
    let known = host
        .kernel
        .read(Path::new("/proc/crypto"))
        .unwrap_or_default();
    let mut names = known.lines().filter_map(|line| line.strip_prefix("name"));
    names.any(|name| name.trim_start_matches([' ', '\t', ':']) == "xts(aes)")
}

/// Whether the kernel has this part built in or as a module, which it loads when it is needed.
/// Source: depmod(8), kmod's libkmod/docs; a line of modules.dep begins with the module's file and a colon.
fn has_module(host: &Host, name: &str) -> bool {
    let read = |file: &Path| host.kernel.read(file).unwrap_or_default();
    let release = read(Path::new("/proc/sys/kernel/osrelease"));
    let dir = Path::new("/lib/modules").join(release.trim_end());
    ["modules.builtin", "modules.dep"].iter().any(|list| {
        read(&dir.join(list)).lines().any(|line| {
            let file = line.split(':').next().unwrap_or_default();
            let file = file.rsplit('/').next().unwrap_or_default();
            file.split_once(".ko").is_some_and(|(stem, _)| stem == name)
        })
    })
}

fn key_problem(host: &Host, key: &Path) -> Option<String> {
    let problem = require_secret(host.kernel, key).err()?;
    Some(format!("the key_file {}: {problem}", key.shown()))
}
