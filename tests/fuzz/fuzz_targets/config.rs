//! The config file, which people write.
#![no_main]

use driver::config::Config;
use driver::names::{FsType, VgName};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Config::from_bytes(bytes, "/etc/x.toml") {
        Ok(config) => only_what_is_safe(&config),
        Err(problem) => {
            assert!(problem.starts_with("/etc/x.toml, line "), "{problem:?}");
            assert!(!problem.contains(['\n', '\r', '\0', '\x1b']), "{problem:?}");
        }
    }
});

fn only_what_is_safe(config: &Config) {
    assert!(!config.tool_dirs.is_empty() && !config.kubelet_dirs.is_empty());
    let dirs = config.tool_dirs.iter().chain(&config.kubelet_dirs);
    assert!(
        dirs.into_iter()
            .all(|dir| dir.is_absolute() && dir.parent().is_some())
    );
    for vg in config.volume_groups.keys() {
        assert!(config.policy(vg).unwrap().is_some());
        for fs in FsType::ALL {
            let options = config.mkfs_options(vg, fs);
            assert!(
                !options
                    .iter()
                    .any(|word| ["", "--", "-F", "-f"].contains(word))
            );
            assert!(!config.mount_options(vg, fs).is_read_only());
        }
    }
    // One group named: no other may be used.
    let other = VgName::parse("a.group.that.nobody.has").unwrap();
    let is_open = config.policy(&other).is_ok();
    assert!(
        is_open == config.volume_groups.is_empty() || config.volume_groups.contains_key(&other)
    );
}
