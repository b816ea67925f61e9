//! `flexvolume-lvm doctor` on the options of mkfs in the config.

use super::findings::Checks;
use crate::commands::survey::try_mkfs;
use driver::config::Config;
use driver::host::Host;
use driver::names::Bytes;

/// Large enough for any filesystem; the file is sparse.
const SIZE: u64 = 400 << 20;

/// Options of mkfs in the config that it does not take.
pub fn look_at(checks: &mut Checks, host: &Host, config: &Config) {
    let with_options = config.filesystems.iter();
    for (fs, _) in with_options.filter(|(_, options)| !options.mkfs_options.is_empty()) {
        if !host.tools.has(&format!("mkfs.{fs}")) {
            continue; // Said already.
        }
        if let Err(error) = try_mkfs(host, config, *fs, None, Bytes::new(SIZE)) {
            checks
                .failed("mkfs-options", format!("{error:#}"))
                .on(fs)
                .why("no new volume can be formatted")
                .run(format!(
                    "correct mkfs_options in [filesystem.{fs}] of {}",
                    config.file
                ));
        }
    }
}
