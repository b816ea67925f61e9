//! Puts the driver in place. kubelet never sees a driver that is only partly there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::answer::{self, Init};
use super::layout::{DriverDir, InstallLayout};
use super::{Attach, New, say};
use crate::files::{self, Kind};
use crate::kubelet;
use driver::host::Host;
use driver::host::config_file::load;
use driver::host::trust::require_roots;
use driver::names::Shown;

/// The file permissions of the executable, and of other files.
const EXECUTABLE: u32 = 0o755;
const READABLE: u32 = 0o644;

const CONFIG: &str = include_str!("../../../examples/config.toml");

/// The config of a new installation: `examples/config.toml`, which explains every key, with the key `attach` set.
pub fn config_text(attach: bool) -> String {
    CONFIG.replacen("\n#attach = true\n", &format!("\nattach = {attach}\n"), 1)
}

/// The config that the new driver gets.
struct NewConfig {
    text: Vec<u8>,
    from: Origin,
}

enum Origin {
    /// The existing config stays.
    Found,
    /// The config of `--config` replaces the existing one.
    Replaced,
    /// There was no config. The new one is a copy of this file, which an earlier installation left, or which is in
    /// another plugin directory.
    Taken(PathBuf),
    /// There was no config. That of `--config` is written, or else [`config_text`].
    Written,
}

impl NewConfig {
    fn choose(host: &Host, layout: &InstallLayout, new: &New) -> Result<Self> {
        let file = &layout.dir.config;
        let of = |from, text| Ok(Self { text, from });
        let there = files::exists(file)?
            .then(|| files::read(file))
            .transpose()?;
        match (new.config.clone(), there) {
            (Some(given), Some(there)) if given != there => return of(Origin::Replaced, given),
            (_, Some(there)) => return of(Origin::Found, there),
            (Some(given), None) => return of(Origin::Written, given),
            (None, None) => {}
        }
        let others = if files::is_file(&layout.kept_config) {
            vec![layout.kept_config.clone()]
        } else {
            let dirs = new.elsewhere.iter();
            dirs.filter_map(|dir| config_in(dir, layout)).collect()
        };
        let Some((file, others)) = others.split_first() else {
            let attach = mode(host, &layout.dir, new.attach)?;
            return of(Origin::Written, config_text(attach).into_bytes());
        };
        let text = files::read(file)?;
        for other in others {
            if files::read(other)? != text {
                bail!(
                    "{} and {} are configs of this driver, and differ: say which one it is to have, with --config",
                    file.shown(),
                    other.shown()
                );
            }
        }
        of(Origin::Taken(file.clone()), text)
    }
}

/// This driver's config in another plugin directory: that of an installed driver, or that which `uninstall` kept.
/// `None`: neither exists.
fn config_in(plugin_dir: &Path, layout: &InstallLayout) -> Option<PathBuf> {
    let other = InstallLayout::new(plugin_dir, layout.plugin.clone());
    let files = [other.dir.config, other.kept_config];
    files.into_iter().find(|file| files::is_file(file))
}

/// Installs or upgrades. It is safe to run this again, even after an interruption.
pub fn put(host: &Host, layout: &InstallLayout, new: &New) -> Result<()> {
    layout.clean()?;
    let done = prepare(host, layout, new).and_then(|ready| {
        commit(layout, new, &ready)?;
        next(host, layout, &ready.init);
        Ok(())
    });
    // Removes half-made files, also after an error.
    let cleaned = layout.clean();
    done.and(cleaned)
}

/// A new driver that was put into the staged directory and tried there.
struct Ready {
    config: NewConfig,
    init: Init,
    is_first: bool,
    /// Whether the executable that is installed now is another driver, such as the bash script.
    is_foreign: bool,
}

/// Does every step that is likely to fail. Changes nothing that kubelet sees.
fn prepare(host: &Host, layout: &InstallLayout, new: &New) -> Result<Ready> {
    let InstallLayout { dir, staged, .. } = layout;
    let is_first = !layout.has_dir()?;
    if files::kind(&dir.exe)? == Kind::Dir {
        bail!("{} is a directory; move it away", dir.exe.shown());
    }
    files::make_dirs(&staged.path)?;
    if host.kernel.is_noexec(&staged.path).unwrap_or(false) {
        let dir = layout.plugin_dir.shown();
        bail!(
            "{dir} is on a filesystem that is mounted noexec (`findmnt -T {}`), where kubelet can start no \
             driver either; nothing was changed",
            layout.plugin_dir.quoted()
        );
    }
    let config = NewConfig::choose(host, layout, new)?;
    files::write(&staged.exe, &new.driver, EXECUTABLE)?;
    files::write(&staged.config, &config.text, READABLE)?;
    let init = answer::init(host, &staged.exe)
        .context("init of the new driver does not say Success; nothing was changed")?;
    require_wanted_mode(dir, new, &config, &init)?;
    let is_foreign = files::exists(&dir.exe)? && !answer::is_this_driver(host, &dir.exe)?;
    if is_foreign {
        stage_original(layout)?;
    }
    Ok(Ready {
        config,
        init,
        is_first,
        is_foreign,
    })
}

/// Fails if the new driver's config has another mode than the person asks for.
fn require_wanted_mode(dir: &DriverDir, new: &New, config: &NewConfig, init: &Init) -> Result<()> {
    if new
        .attach
        .wanted()
        .is_none_or(|wanted| wanted == init.attach)
    {
        return Ok(());
    }
    let file = match &config.from {
        Origin::Taken(file) => file,
        Origin::Found | Origin::Replaced | Origin::Written => &dir.config,
    };
    bail!(
        "{} says attach = {} and is never changed here: edit it, then run this again",
        file.shown(),
        init.attach
    )
}

/// Gives another driver's executable a second name in the staged directory. [`commit`] moves it to the name under which
/// the other driver is kept. Does nothing if this executable is kept already, and fails if a different one is.
fn stage_original(layout: &InstallLayout) -> Result<()> {
    let InstallLayout { dir, staged, .. } = layout;
    if is_original(dir)? {
        return Ok(());
    }
    if files::exists(&dir.original)? {
        bail!(
            "{} is not this driver, and neither is {}, which was there before; move one of them away",
            dir.exe.shown(),
            dir.original.shown()
        );
    }
    files::second_name(&dir.exe, &staged.original)
}

/// Puts all files in place. If the driver's directory does not exist, the staged directory gets its name. Otherwise the
/// files are renamed in this order: the other driver's second name, the config if there was none, the driver, the
/// config if it replaces another. So after an interruption there is one whole driver, with a config that it
/// understands: an older driver may not know all keys of a newer config.
fn commit(layout: &InstallLayout, new: &New, ready: &Ready) -> Result<()> {
    let InstallLayout { dir, staged, .. } = layout;
    if matches!(ready.config.from, Origin::Found)
        && files::is_executable(&dir.exe)
        && files::read(&dir.exe).is_ok_and(|have| have == new.driver)
    {
        say(
            "unchanged",
            format_args!("{} is this driver already", dir.exe.shown()),
        );
        return Ok(());
    }
    if ready.is_first {
        files::rename(&staged.path, &dir.path)?;
    } else {
        if files::exists(&staged.original)? {
            files::rename(&staged.original, &dir.original)?;
        }
        if matches!(ready.config.from, Origin::Taken(_) | Origin::Written) {
            files::rename(&staged.config, &dir.config)?;
        }
        files::rename(&staged.exe, &dir.exe)?;
        if matches!(ready.config.from, Origin::Replaced) {
            files::rename(&staged.config, &dir.config)?;
        }
    }
    tell(layout, ready);
    match &ready.config.from {
        Origin::Taken(from) if *from == layout.kept_config => files::remove(from),
        Origin::Taken(_) | Origin::Found | Origin::Replaced | Origin::Written => Ok(()),
    }
}

/// Prints which files are in place now.
fn tell(layout: &InstallLayout, ready: &Ready) {
    let dir = &layout.dir;
    say("installed", dir.exe.shown());
    if ready.is_foreign {
        let (original, back) = (dir.original.shown(), layout.uninstall());
        let kept = format_args!("{original}, the driver before; to put it back: {back}");
        say("kept", kept);
    }
    let (file, attach) = (dir.config.shown(), ready.init.attach);
    match &ready.config.from {
        Origin::Found => say("kept", format_args!("{file}, as it is")),
        Origin::Replaced => say(
            "config",
            format_args!("{file}: replaced, attach = {attach}"),
        ),
        Origin::Taken(from) => {
            let from = from.shown();
            say(
                "config",
                format_args!("{file}: that of {from}, attach = {attach}"),
            );
        }
        Origin::Written => say("config", format_args!("{file}: attach = {attach}")),
    }
}

/// The mode for a new config: `attach`, else the mode of the installed driver, else false. Fails if the installed
/// driver does not say its mode.
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

/// Whether the installed driver is the one from before the first installation.
pub fn is_original(dir: &DriverDir) -> Result<bool> {
    Ok(files::exists(&dir.original)?
        && files::read(&dir.exe).ok() == files::read(&dir.original).ok())
}

/// Says which mode the driver has, and what is to be done now.
fn next(host: &Host, layout: &InstallLayout, init: &Init) {
    let plugin_dir = &layout.plugin_dir;
    warn(host, layout, init);
    say(
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
    say(
        "next",
        format_args!("pods say `driver: {}`; {finds}", layout.plugin),
    );
    if init.attach {
        say(
            "next",
            "install it on the control-plane hosts too, or set enableControllerAttachDetach to \
             false in kubelet's config",
        );
    }
}

/// Says what the driver, its directory and the running kubelets lack.
fn warn(host: &Host, layout: &InstallLayout, init: &Init) {
    let plugin_dir = &layout.plugin_dir;
    let config = load(host.kernel, &layout.dir.exe, None);
    let config = &config.config;
    let host_name = host.kernel.host_name();
    let kubelets = kubelet::running(host.kernel);
    let of_kubelets = kubelets
        .iter()
        .flat_map(|one| one.problems(&host_name, Some(plugin_dir), config));
    let of_driver = Some(init.message.clone()).filter(|message| !message.is_empty());
    let of_dir = require_roots(plugin_dir).err();
    for warning in of_driver.into_iter().chain(of_dir).chain(of_kubelets) {
        say("warning", warning);
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
