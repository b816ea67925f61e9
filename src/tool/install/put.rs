//! Putting the driver in place, so that kubelet never sees half of it.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::answer::{self, Init};
use super::layout::{DriverDir, Layout};
use super::{Attach, InstallReport, New};
use crate::files::{self, Kind};
use crate::kubelet;
use driver::host::Host;
use driver::host::trust::{load, require_roots};
use driver::names::Shown;

/// Mode of an executable and of a file.
const EXECUTABLE: u32 = 0o755;
const READABLE: u32 = 0o644;

const CONFIG: &str = include_str!("../../../examples/config.toml");

/// The config of a new installation: every key explained, and the mode set.
pub fn config_text(attach: bool) -> String {
    CONFIG.replacen("\n#attach = true\n", &format!("\nattach = {attach}\n"), 1)
}

/// Where the config comes from.
#[derive(Clone, PartialEq, Eq)]
enum ConfigSource {
    Found,
    /// An earlier installation left it.
    Kept,
    /// The one of another plugin directory, which stays there.
    Copied(PathBuf),
    Written,
    /// The one that was given, where there was none.
    Given,
    /// The one that was given, which comes after the driver: an older driver may not know its keys.
    Replaced,
}

/// Installs or upgrades. Running it again, also after it was interrupted, is safe.
pub fn put(host: &Host, layout: &Layout, new: &New) -> Result<InstallReport> {
    layout.clean()?;
    let done = put_whole(host, layout, new);
    // After any error, no half-made file stays.
    let cleaned = layout.clean();
    done.and_then(|report| cleaned.map(|()| report))
}

/// The order is: config, copy of the driver before, driver. An interruption leaves one driver whole,
/// with a config that is right for it. A directory that is new gets its own name last.
fn put_whole(host: &Host, layout: &Layout, new: &New) -> Result<InstallReport> {
    let is_new = !layout.has_dir()?;
    let dir = if is_new { &layout.new } else { &layout.dir };
    if is_new {
        files::make_dirs(&dir.path)?;
    }
    if files::kind(&dir.exe)? == Kind::Dir {
        bail!("{} is a directory; move it away", dir.exe.shown());
    }
    files::write(&dir.staged, &new.driver, EXECUTABLE)?;
    let config = configure(host, layout, dir, new)?;
    let prepared = prepare(host, layout, dir, &config, new.attach);
    if prepared.is_err() && !matches!(config, ConfigSource::Found | ConfigSource::Replaced) {
        files::remove(&dir.config)?;
    }
    let (init, is_foreign) = prepared?;
    let mut report = InstallReport::default();
    let exe = layout.dir.exe.shown();
    let is_there = || files::read(&dir.exe).is_ok_and(|have| have == new.driver);
    if config == ConfigSource::Found && files::is_executable(&dir.exe) && is_there() {
        report.say("unchanged", format_args!("{exe} is this driver already"));
        next(host, layout, &init, &mut report);
        return Ok(report);
    }
    files::rename(&dir.staged, &dir.exe)?;
    if config == ConfigSource::Replaced {
        files::rename(&layout.new.config, &dir.config)?;
    }
    if is_new {
        files::rename(&dir.path, &layout.dir.path)?;
    }
    report.say("installed", exe);
    if is_foreign {
        let original = layout.dir.original.shown();
        let back = layout.uninstall();
        report.say(
            "kept",
            format_args!("{original}, the driver before; to put it back: {back}"),
        );
    }
    let file = layout.dir.config.shown();
    match config {
        ConfigSource::Found => report.say("kept", format_args!("{file}, as it is")),
        ConfigSource::Written | ConfigSource::Given => {
            report.say("config", format_args!("{file}: attach = {}", init.attach));
        }
        ConfigSource::Replaced => report.say(
            "config",
            format_args!("{file}: replaced, attach = {}", init.attach),
        ),
        ConfigSource::Kept => {
            files::remove(&layout.kept_config)?;
            report.say(
                "config",
                format_args!("{file}: the one of an earlier installation"),
            );
        }
        ConfigSource::Copied(from) => report.say(
            "config",
            format_args!("{file}: that of {}, attach = {}", from.shown(), init.attach),
        ),
    }
    next(host, layout, &init, &mut report);
    Ok(report)
}

/// Makes sure that there is a config. A new one has the mode of the driver that is there, so a run that is
/// interrupted after this has changed nothing.
fn configure(host: &Host, layout: &Layout, dir: &DriverDir, new: &New) -> Result<ConfigSource> {
    if files::exists(&dir.config)? {
        return match &new.config {
            Some(text) if files::read(&dir.config)? != *text => {
                // The new driver tries it in a directory that kubelet ignores.
                files::make_dirs(&layout.new.path)?;
                files::write(&layout.new.config, text, READABLE)?;
                files::second_name(&dir.staged, &layout.new.staged)?;
                Ok(ConfigSource::Replaced)
            }
            _ => Ok(ConfigSource::Found),
        };
    }
    let from = if let Some(text) = &new.config {
        files::write(&dir.staged_config, text, READABLE)?;
        ConfigSource::Given
    } else if files::exists(&layout.kept_config)? {
        files::second_name(&layout.kept_config, &dir.staged_config)?;
        ConfigSource::Kept
    } else if let Some((from, text)) = layout.config_elsewhere(&new.elsewhere)? {
        files::write(&dir.staged_config, &text, READABLE)?;
        ConfigSource::Copied(from)
    } else {
        let text = config_text(mode(host, dir, new.attach)?);
        files::write(&dir.staged_config, text.as_bytes(), READABLE)?;
        ConfigSource::Written
    };
    files::rename(&dir.staged_config, &dir.config)?;
    Ok(from)
}

/// The mode that an installation writes into a new config.
pub fn mode(host: &Host, dir: &DriverDir, attach: Attach) -> Result<bool> {
    if let Some(wanted) = attach.wanted() {
        return Ok(wanted);
    }
    if !files::exists(&dir.exe)? {
        return Ok(false);
    }
    let before = answer::init(host, &dir.exe).with_context(|| {
        format!(
            "{} cannot be asked for its mode (in a container there is no shell); say it with \
             --attach true or --attach false. The bash script's mode is true",
            dir.exe.shown()
        )
    })?;
    Ok(before.attach)
}

/// Does all that can still fail. Returns the driver's answer, and whether it replaces somebody else's
/// driver.
fn prepare(
    host: &Host,
    layout: &Layout,
    dir: &DriverDir,
    config: &ConfigSource,
    attach: Attach,
) -> Result<(Init, bool)> {
    if host.kernel.is_noexec(&dir.path).unwrap_or(false) {
        let dir = layout.plugin_dir.shown();
        bail!(
            "{dir} is on a filesystem that is mounted noexec (`findmnt -T {dir}`), where kubelet can start no \
             driver either; nothing was changed"
        );
    }
    let tried = match config {
        ConfigSource::Replaced => &layout.new.staged,
        _ => &dir.staged,
    };
    let init = answer::init(host, tried)
        .context("init of the new driver does not say Success; nothing was changed")?;
    if attach.wanted().is_some_and(|wanted| wanted != init.attach) {
        let file = match config {
            ConfigSource::Kept => &layout.kept_config,
            ConfigSource::Copied(from) => from,
            _ => &layout.dir.config,
        };
        bail!(
            "{} says attach = {} and is never changed here: edit it, then run this again",
            file.shown(),
            init.attach
        );
    }
    let is_foreign = files::exists(&dir.exe)? && !answer::is_this_driver(host, &dir.exe)?;
    if is_foreign {
        keep_original(dir)?;
    }
    Ok((init, is_foreign))
}

/// Whether the driver that is there is the one from before the first installation.
pub fn is_original(dir: &DriverDir) -> Result<bool> {
    let same = || files::read(&dir.exe).ok() == files::read(&dir.original).ok();
    Ok(files::exists(&dir.original)? && same())
}

fn keep_original(dir: &DriverDir) -> Result<()> {
    if !files::exists(&dir.original)? {
        files::second_name(&dir.exe, &dir.staged_original)?;
        return files::rename(&dir.staged_original, &dir.original);
    }
    if is_original(dir)? {
        return Ok(());
    }
    bail!(
        "{} is not this driver, and neither is {}, which was there before; move one of them away",
        dir.exe.shown(),
        dir.original.shown()
    )
}

fn next(host: &Host, layout: &Layout, init: &Init, report: &mut InstallReport) {
    let plugin_dir = &layout.plugin_dir;
    let config = load(host.kernel, &layout.dir.exe, None);
    let config = config.or_default();
    let (of_kubelets, host_name) = (kubelet::running(host), host.kernel.host_name());
    let of_kubelets = of_kubelets.iter();
    let of_kubelets = of_kubelets.flat_map(|one| {
        let problems = one.problems(&host_name, Some(plugin_dir), config);
        problems.into_iter().chain(one.faults(config))
    });
    let warnings = init.message.clone().into_iter();
    let warnings = warnings
        .chain(require_roots(host.kernel, plugin_dir).err())
        .chain(kubelet::broken_drivers(plugin_dir))
        .chain(of_kubelets);
    for warning in warnings {
        report.say("warning", warning);
    }
    report.say(
        "checked",
        format_args!("init says Success, attach = {}", init.attach),
    );
    let dir = plugin_dir.shown();
    let is_link = host.kernel.link(plugin_dir).is_ok();
    let finds = match host.kernel.real_path(plugin_dir) {
        Ok(target) if is_link => format!(
            "{dir} is a symbolic link, behind which kubelet sees nothing new: restart kubelet, or give it {} as its \
             --volume-plugin-dir",
            target.shown()
        ),
        _ => format!("kubelet finds it by itself if its --volume-plugin-dir is {dir}"),
    };
    report.say(
        "next",
        format_args!("pods say `driver: {}`; {finds}", layout.plugin),
    );
    if init.attach {
        report.say(
            "next",
            "install it on the control-plane hosts too, or set enableControllerAttachDetach to \
             false in kubelet's config",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::config::Config;

    #[test]
    fn the_config_of_a_new_node_has_the_defaults_but_its_mode() {
        for attach in [true, false] {
            let text = config_text(attach);
            assert!(text.contains(&format!("\nattach = {attach}\n")));
            let want = Config {
                file: "f".to_owned(),
                attach,
                ..Config::default()
            };
            let got = Config::parse(&text, "f").unwrap();
            assert_eq!(got.attach, want.attach);
            assert_eq!(got.limits, want.limits);
            assert!(got.volume_groups.is_empty());
        }
    }
}
