//! Removes the driver from a node, and puts back the driver that was there before.

use std::path::Path;

use anyhow::{Result, bail};

use super::layout::InstallLayout;
use super::put::{config_text, is_original, mode};
use super::{Attach, answer, say};
use crate::files;
use driver::host::Host;
use driver::mount::Table;
use driver::names::Shown;

/// Removes the driver from this node. After an interruption, another run finishes the removal. The executable and then
/// its directory are unlinked, which makes a running kubelet forget the driver. If the directory were renamed instead,
/// the driver would stay as an error in kubelet's queue. The config is removed after the executable, so the driver
/// never runs in another mode.
pub fn uninstall(host: &Host, layout: &InstallLayout) -> Result<()> {
    require_no_mounts(host, layout)?;
    require_own_driver(host, layout)?;
    let dir = &layout.dir;
    let comes_back = files::exists(&dir.original)?;
    if !comes_back {
        require_nothing_else(layout)?;
    }
    layout.clean()?;
    if comes_back {
        let back = &layout.staged.exe;
        files::make_dirs(&layout.staged.path)?;
        files::second_name(&dir.original, back)?;
        files::rename(back, &dir.exe)?;
        layout.clean()?;
        let exe = dir.exe.shown();
        say(
            "restored",
            format_args!("{exe}, which was there before the first installation"),
        );
    } else {
        files::remove(&dir.exe)?;
    }
    remove_config(host, layout)?;
    if comes_back {
        files::remove(&dir.original)?;
    } else {
        files::remove_dir(&dir.path)?;
        say("removed", dir.path.shown());
    }
    files::sync_parent(&dir.path)
}

/// Moves the config out of the directory, so that the next installation finds it. Deletes a config that equals the one
/// that a new installation would write.
fn remove_config(host: &Host, layout: &InstallLayout) -> Result<()> {
    let config = &layout.dir.config;
    if !files::exists(config)? {
        return Ok(());
    }
    // Empty if it cannot be read, for example a dangling link.
    let text = files::read(config).unwrap_or_default();
    let is_new = text == config_text(false).into_bytes();
    if is_new && mode(host, &layout.dir, Attach::Keep).is_ok_and(|attach| !attach) {
        return files::remove(config);
    }
    files::rename(config, &layout.kept_config)?;
    let kept = layout.kept_config.shown();
    say(
        "kept",
        format_args!(
            "{kept}, which the next installation takes; in another plugin directory it wants --config {kept}"
        ),
    );
    Ok(())
}

/// Fails if the installed executable is another driver, since there may be no copy of it.
fn require_own_driver(host: &Host, layout: &InstallLayout) -> Result<()> {
    let dir = &layout.dir;
    if !files::exists(&dir.exe)? || answer::is_this_driver(host, &dir.exe)? {
        return Ok(());
    }
    // The original driver is there if an interrupted run has put it back already, or has not replaced it yet.
    if is_original(dir)? {
        return Ok(());
    }
    bail!(
        "{} is not this driver; move it away, then try again",
        dir.exe.shown()
    )
}

fn require_nothing_else(layout: &InstallLayout) -> Result<()> {
    let dir = &layout.dir;
    for name in files::list(&dir.path)? {
        let path = dir.path.join(name);
        if !dir.names().contains(&path.as_path()) {
            bail!(
                "{} was not put there by the installer; move it away and try again",
                path.shown()
            );
        }
    }
    Ok(())
}

/// Fails while volumes of this driver are mounted: kubelet could not unmount them without the driver.
fn require_no_mounts(host: &Host, layout: &InstallLayout) -> Result<()> {
    let file = |process: &str| files::identity(&Path::new("/proc").join(process).join("exe"));
    if file("self").is_some() && file("self") == file("1") {
        bail!(
            "this runs in a container, where the mounts of the host cannot be seen; run `{}` on \
             the host itself",
            layout.uninstall()
        );
    }
    // Process 1 has the host's mounts, even if this process has its own mount namespace.
    let first = host.kernel.read(Path::new("/proc/1/mountinfo"));
    let first = Table::parse(&first.unwrap_or_default());
    let tables = [Table::read(host.kernel)?, first];
    let rows = tables.iter().flat_map(Table::rows);
    let mut mounted: Vec<String> = rows
        .filter(|row| layout.plugin.is_mounted_at(&row.mount_point))
        .map(|row| row.mount_point.shown().to_string())
        .collect();
    mounted.sort_unstable();
    mounted.dedup();
    if mounted.is_empty() {
        return Ok(());
    }
    bail!(
        "volumes of {} are mounted; delete their pods first: {}",
        layout.plugin,
        mounted.join(", ")
    )
}
