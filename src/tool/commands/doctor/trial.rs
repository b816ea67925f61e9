//! `flexvolume-lvm doctor --try-mkfs`: whether the running kernel mounts what this node's mkfs makes. Tools that
//! are newer than the kernel may use features that it does not know.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::findings::Checks;
use crate::commands::survey::{Trial, try_mkfs};
use crate::files;
use driver::config::Config;
use driver::fs;
use driver::host::{Command, Host};
use driver::mount::mounted_at;
use driver::names::{Bytes, FsType};
use driver::volume::lock::LOCK_DIR;

/// Large enough for any filesystem; the file is sparse.
const SIZE: u64 = 400 << 20;

/// Tries the node's default, and each filesystem that the config names.
pub fn look_at(checks: &mut Checks, host: &Host, config: &Config) {
    let mut wanted: BTreeSet<FsType> = config.filesystems.keys().copied().collect();
    wanted.insert(config.default_fs);
    for fs in wanted {
        let Err(error) = make_and_mount(host, config, fs) else {
            checks.ok("try-mkfs", format!("{fs} is made and mounted"));
            continue;
        };
        checks
            .failed("try-mkfs", format!("{error:#}"))
            .on(&fs)
            .why("a new volume would be formatted, and its pod would wait for ever")
            .run(format!(
                "set mkfs_options in [filesystem.{fs}] of {}, such as -O ^FEATURE; dmesg says \
                 which feature",
                config.file
            ));
    }
}

/// Options of mkfs in the config that it does not take.
pub fn look_at_options(checks: &mut Checks, host: &Host, config: &Config) {
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

fn make_and_mount(host: &Host, config: &Config, fs: FsType) -> Result<()> {
    let trial = Trial::begin(host)?;
    let dir = Path::new(LOCK_DIR).join("trial");
    let run = |tool, args: &[&str], operands: &[&Path]| {
        let mut command = Command::writes(tool, config.limits.mount).args(args);
        for operand in operands {
            command = command.operand(operand);
        }
        host.run(&command.stdin(trial.lock.file()))
    };
    let clear = || -> Result<()> {
        if mounted_at(host.kernel, &dir)?.is_some() {
            run("umount", &[], &[&dir])?;
        }
        files::remove_dir(&dir)
    };
    clear().context("clearing away what an earlier try left")?;
    let tried = || -> Result<()> {
        files::make_dirs(&dir)?;
        files::sparse(&trial.image, SIZE)?;
        let options = config.filesystems.get(&fs);
        let options = options.map(|fs| fs.mkfs_options.iter().map(String::as_str).collect());
        let options: Vec<&str> = options.unwrap_or_default();
        fs::mkfs(host, fs, &trial.node(), &options, false, &trial.lock)?;
        let mounted = run(
            "mount",
            &["-t", fs.as_str(), "-o", "loop"],
            &[&trial.image, &dir],
        );
        mounted.with_context(|| format!("this kernel does not mount the {fs} that mkfs makes"))?;
        Ok(())
    };
    let tried = tried();
    let cleared = clear();
    tried.and(cleared)
}
