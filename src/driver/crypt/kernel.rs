//! Whether the kernel can open an encrypted volume.

use std::path::Path;

use anyhow::{Result, bail};

use crate::host::{Command, Host, Kernel};

/// The kernel's module that opens LUKS. Source: Linux' Documentation/admin-guide/device-mapper/dm-crypt.rst.
const MODULE: &str = "dm-crypt";

/// Fails if dm-crypt is neither in the kernel nor a module of its release. The driver asks this before it makes a
/// header: without dm-crypt, cryptsetup would make the header, and then could not open it. If this mount namespace has
/// no modules at all, the kernel may load the host's: then this function succeeds.
///
/// Source: modules.dep(5), and Linux' Documentation/kbuild/kbuild.rst, "modules.builtin".
pub fn require_dm_crypt(host: &Host) -> Result<()> {
    let kernel = host.kernel;
    if kernel.exists(Path::new("/sys/module/dm_crypt")) {
        return Ok(());
    }
    let dir = Path::new("/lib/modules").join(kernel.release().unwrap_or_default());
    let loadable = lists_dm_crypt(kernel, &dir.join("modules.dep"));
    let built_in = lists_dm_crypt(kernel, &dir.join("modules.builtin"));
    let (Some(loadable), Some(built_in)) = (loadable, built_in) else {
        return require_modules(host);
    };
    if !loadable && !built_in {
        bail!(
            "this kernel has no dm-crypt, without which no encrypted volume can be opened: install the package with its \
             modules (`modinfo {MODULE}`), or boot another kernel"
        );
    }
    Ok(())
}

/// Whether this list of modules has dm-crypt. `None`: the list cannot be read.
fn lists_dm_crypt(kernel: &Kernel, list: &Path) -> Option<bool> {
    let text = kernel.read(list).ok()?;
    Some(text.lines().any(|line| is_of_module(line, MODULE)))
}

/// Fails if the modules of the running kernel are gone, as after an upgrade that has removed them, and the kernel does
/// not have the target `crypt` yet.
fn require_modules(host: &Host) -> Result<()> {
    let Some(gone) = modules_are_gone(host.kernel) else {
        return Ok(());
    };
    let targets = Command::reads("dmsetup", host.limits.query).args(["targets"]);
    let targets = host.run(&targets)?.text();
    if targets.lines().any(|line| line.starts_with("crypt ")) {
        return Ok(());
    }
    bail!("the kernel cannot load dm-crypt: {gone}")
}

/// The message if /lib/modules has the modules of other kernels only. `None`: it has those of the running kernel, or
/// none.
pub fn modules_are_gone(kernel: &Kernel) -> Option<String> {
    let release = kernel.release()?;
    let has = kernel.list(Path::new("/lib/modules")).ok()?;
    let is_gone = !has.is_empty() && !has.contains(&release);
    is_gone.then(|| {
        format!(
            "the modules of the running kernel are gone (/lib/modules/{release}), as after an upgrade: reboot the node"
        )
    })
}

/// Whether a line of a list of modules begins with the path of this module. The module's file may be compressed.
fn is_of_module(line: &str, module: &str) -> bool {
    let path = line.split(':').next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    file.split_once(".ko")
        .is_some_and(|(name, _)| name == module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_found_by_its_own_line() {
        let cases = [
            (
                "kernel/drivers/md/dm-crypt.ko: kernel/drivers/md/dm-mod.ko",
                true,
            ),
            ("kernel/drivers/md/dm-crypt.ko.xz:", true),
            ("kernel/drivers/md/dm-crypt.ko", true),
            (
                "kernel/drivers/md/dm-verity.ko: kernel/drivers/md/dm-crypt.ko",
                false,
            ),
            ("kernel/drivers/md/dm-crypt-more.ko:", false),
        ];
        for (line, want) in cases {
            assert_eq!(is_of_module(line, MODULE), want, "{line}");
        }
    }
}
