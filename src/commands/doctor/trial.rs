//! `lvm doctor --try-mkfs`: whether the running kernel mounts what this node's mkfs makes. Tools that
//! are newer than the kernel may use features that it does not know.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::findings::Checks;
use crate::config::Config;
use crate::fs;
use crate::host::{Command, Host, Node, files};
use crate::mount::mounted_at;
use crate::names::FsType;
use crate::volume::lock::LOCK_DIR;

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

fn make_and_mount(host: &Host, config: &Config, fs: FsType) -> Result<()> {
    let top = Path::new(LOCK_DIR);
    let (image, dir) = (top.join("trial.image"), top.join("trial"));
    let Some(lock) = host.kernel.try_lock(&top.join("trial.lock"))? else {
        bail!("another doctor is trying it just now");
    };
    let run = |tool, args: &[&str], operands: &[&Path]| {
        let mut command = Command::writes(tool, config.limits.mount).args(args);
        for operand in operands {
            command = command.operand(operand);
        }
        host.run(&command.stdin(lock.file()))
    };
    let clear = || -> Result<()> {
        if mounted_at(host.kernel, &dir)?.is_some() {
            run("umount", &[], &[&dir])?;
        }
        files::remove_dir(&dir)?;
        files::remove(&image)
    };
    clear().context("clearing away what an earlier try left")?;
    let tried = || -> Result<()> {
        files::make_dirs(&dir)?;
        files::sparse(&image, SIZE)?;
        let options = config.filesystems.get(&fs);
        let options = options.map(|fs| fs.mkfs_options.iter().map(String::as_str).collect());
        let options: Vec<&str> = options.unwrap_or_default();
        let node = Node {
            path: image.clone(),
            name: image.clone(),
        };
        fs::mkfs(host, fs, &node, &options, false, &lock)?;
        let mounted = run("mount", &["-t", fs.as_str(), "-o", "loop"], &[&image, &dir]);
        mounted.with_context(|| format!("this kernel does not mount the {fs} that mkfs makes"))?;
        Ok(())
    };
    let tried = tried();
    let cleared = clear();
    tried.and(cleared)
}
