//! `flexvolume-lvm install` and `flexvolume-lvm uninstall`: put this executable where kubelet looks for it, and take it
//! away again.

mod answer;
mod layout;
mod link;
mod plugin;
mod put;
mod remove;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use clap::{Args, ValueEnum};

use crate::files::{self, take_turn};
use crate::kubelet;
use crate::output::tell;
use driver::config::Config;
use driver::host::Host;
use driver::names::Shown;
use layout::InstallLayout;
use plugin::Plugin;

#[derive(Debug, Args)]
pub struct Where {
    /// kubelet's --volume-plugin-dir
    #[arg(long, value_name = "DIR", value_parser = absolute,
          default_value = kubelet::PLUGIN_DIR)]
    plugin_dir: PathBuf,
    #[command(flatten)]
    plugin: Plugin,
    /// Directory below which the link for people is made
    #[arg(long, hide = true, value_parser = absolute, default_value = "/usr/local")]
    prefix: PathBuf,
}

#[derive(Debug, Args)]
pub struct Install {
    #[command(flatten)]
    place: Where,
    /// The mode, which is written into a new config.toml
    #[arg(long, value_enum, default_value_t = Attach::Keep)]
    attach: Attach,
    /// The driver to install, if it is not this executable
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The node's config, which takes the place of the config.toml that is there
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Install, then wait for SIGTERM, as the container of a DaemonSet has to
    #[arg(long)]
    follow: bool,
    /// Make /usr/local/sbin/flexvolume-lvm too, a name that LVM's own `lvm` does not take
    #[arg(long, conflicts_with = "follow")]
    link: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Attach {
    /// The control plane attaches and needs the driver too, as with the bash script
    True,
    /// kubelet alone calls the driver
    False,
    /// The present mode, or false if there is no driver yet
    Keep,
}

impl Attach {
    fn wanted(self) -> Option<bool> {
        match self {
            Self::True => Some(true),
            Self::False => Some(false),
            Self::Keep => None,
        }
    }
}

/// The driver to install, and how to choose its config.
struct New {
    /// The executable itself.
    driver: Vec<u8>,
    /// The mode that a person asks for.
    attach: Attach,
    /// `None`: the existing config stays.
    config: Option<Vec<u8>>,
    /// Other plugin directories. If the driver has no config in its own, a config is taken from one of these.
    elsewhere: Vec<PathBuf>,
}

/// Prints what was done, or what a person may do next. Prints it at once, since an error may follow.
fn say(what: &str, text: impl Display) {
    tell(&format!("{what:<10} {text}\n"));
}

pub fn install(host: &Host, options: &Install) -> Result<()> {
    let (place, layout) = (&options.place, options.place.layout());
    let exe = &layout.dir.exe;
    if options.link {
        link::is_linked(&place.prefix, exe).context("nothing was changed")?;
    }
    let source = options.binary.as_deref();
    let driver = files::read(source.unwrap_or(Path::new("/proc/self/exe")))?;
    require_plugin_dir(&layout)?;
    let _turn = take_turn(host.kernel, &layout.plugin_dir)?;
    let config = options.config.as_deref();
    let config = config.map(|file| given(file, options.attach)).transpose()?;
    let new = New {
        driver,
        attach: options.attach,
        config,
        elsewhere: place.elsewhere(host),
    };
    put::put(host, &layout, &new)?;
    if options.link {
        link::link(&place.prefix, exe)?;
    }
    if options.follow {
        while !host.kernel.pause(Duration::from_secs(3600)) {}
        say("stopped", "by a signal; the driver stays on the node");
    }
    Ok(())
}

/// Reads the config that `--config` names. Fails if the config has a mistake, or another mode than `attach` asks for.
fn given(file: &Path, attach: Attach) -> Result<Vec<u8>> {
    let text = files::read(file)?;
    let shown = file.shown().to_string();
    let config = Config::from_bytes(&text, &shown)
        .map_err(|mistake| Error::msg(format!("{mistake}; nothing was changed")))?;
    if attach
        .wanted()
        .is_some_and(|wanted| wanted != config.attach)
    {
        bail!(
            "{shown} says attach = {}, and --attach does not; nothing was changed",
            config.attach
        );
    }
    Ok(text)
}

pub fn uninstall(host: &Host, place: &Where) -> Result<()> {
    let layout = place.layout();
    if layout.has_dir()? {
        let _turn = take_turn(host.kernel, &layout.plugin_dir)?;
        remove::uninstall(host, &layout)?;
    } else {
        let dir = layout.dir.path.shown();
        say("nothing", format_args!("to remove: there is no {dir}"));
    }
    link::unlink(&place.prefix, &layout.dir.exe)
}

impl Where {
    /// Other plugin directories in which kubelet may have looked for this driver before: kubelet's default, the one
    /// with this executable, and the one to which the link for people leads.
    fn elsewhere(&self, host: &Host) -> Vec<PathBuf> {
        let plugin_dir = |exe: PathBuf| Some(exe.parent()?.parent()?.to_owned());
        let links = [PathBuf::from("/proc/self/exe"), link::link_in(&self.prefix)];
        let leads = links
            .iter()
            .filter_map(|link| plugin_dir(host.kernel.link(link).ok()?));
        let all = leads.chain([PathBuf::from(kubelet::PLUGIN_DIR)]);
        all.filter(|dir| *dir != self.plugin_dir).collect()
    }

    fn layout(&self) -> InstallLayout {
        InstallLayout::new(&self.plugin_dir, self.plugin.clone())
    }
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if path.is_absolute() {
        Ok(path.to_owned())
    } else {
        Err("not an absolute path".to_owned())
    }
}

/// Makes kubelet's default plugin directory if it is missing, as kubelet would. Another missing directory is an error,
/// since it is probably mistyped.
fn require_plugin_dir(layout: &InstallLayout) -> Result<()> {
    let dir = &layout.plugin_dir;
    if dir == Path::new(kubelet::PLUGIN_DIR) {
        return files::make_dirs(dir);
    }
    if !files::exists(dir)? {
        bail!(
            "there is no directory {}; if kubelet's --volume-plugin-dir is that, make it: mkdir -p {}",
            dir.shown(),
            dir.quoted()
        );
    }
    Ok(())
}
