//! Where the driver goes, and the names of all that is put there.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::plugin::Plugin;
use crate::files::{self, Kind};
use driver::names::Shown;

/// The bash script's names.
pub const VENDOR: &str = "kubernetes.io";
pub const DRIVER: &str = "lvm";

pub struct Layout {
    pub plugin: Plugin,
    pub plugin_dir: PathBuf,
    pub dir: DriverDir,
    /// Its name while it is being filled, which kubelet ignores.
    pub new: DriverDir,
    /// A config that outlives the driver; the next installation takes it.
    pub kept_config: PathBuf,
}

/// A driver's directory, `<vendor>~<driver>`, and every name in it.
///
/// kubelet ignores names that begin with a dot, so all that is not the driver or its config has
/// one.
pub struct DriverDir {
    pub path: PathBuf,
    pub exe: PathBuf,
    pub config: PathBuf,
    /// Somebody else's driver, which was there before the first installation. It is kept until
    /// it takes its place again.
    pub original: PathBuf,
    /// Temporary names, until each file is whole.
    pub staged: PathBuf,
    pub staged_config: PathBuf,
    pub staged_original: PathBuf,
}

impl Layout {
    pub fn new(plugin_dir: &Path, plugin: Plugin) -> Self {
        let name = plugin.directory();
        let dir = |name: &str| DriverDir::new(plugin_dir.join(name), &plugin.driver);
        Self {
            dir: dir(&name),
            new: dir(&format!(".{name}.new")),
            kept_config: plugin_dir.join(format!(".{name}.config.toml")),
            plugin_dir: plugin_dir.to_owned(),
            plugin,
        }
    }

    /// The config of this driver in another plugin directory of this node, as after kubelet's has changed: that in
    /// use there, or that which an earlier installation there has left. An error if they differ.
    pub fn config_elsewhere(&self, dirs: &[PathBuf]) -> Result<Option<(PathBuf, Vec<u8>)>> {
        let mut found: Option<(PathBuf, Vec<u8>)> = None;
        for dir in dirs {
            let plugin = self.plugin.clone();
            let other = Self::new(dir, plugin);
            let Some(file) = [other.dir.config, other.kept_config]
                .into_iter()
                .find(|file| files::is_file(file))
            else {
                continue;
            };
            let text = files::read(&file)?;
            match &found {
                Some((first, before)) if *before != text => bail!(
                    "{} and {} are configs of this driver, and differ: say which one it is to have, with --config",
                    first.shown(),
                    file.shown()
                ),
                Some(_) => {}
                None => found = Some((file, text)),
            }
        }
        Ok(found)
    }

    /// How a person takes the driver off this node.
    pub fn uninstall(&self) -> String {
        let (exe, plugin_dir) = (self.dir.exe.shown(), self.plugin_dir.shown());
        let Plugin { vendor, driver } = &self.plugin;
        format!("{exe} uninstall --plugin-dir {plugin_dir} --vendor {vendor} --driver {driver}")
    }

    pub fn has_dir(&self) -> Result<bool> {
        let dir = self.dir.path.shown();
        match files::kind(&self.dir.path)? {
            Kind::Missing => Ok(false),
            Kind::Dir => Ok(true),
            Kind::Link => bail!(
                "{dir} is a symbolic link, which kubelet does not follow; replace it by a directory"
            ),
            Kind::File => bail!("{dir} is not a directory; move it away"),
        }
    }

    /// Removes what an interrupted run left: only names that this command makes.
    pub fn clean(&self) -> Result<()> {
        self.new.names().into_iter().try_for_each(files::remove)?;
        files::remove_dir(&self.new.path)?;
        let staged = self.dir.staged_names();
        staged.into_iter().try_for_each(files::remove)
    }
}

impl DriverDir {
    fn new(path: PathBuf, driver: &str) -> Self {
        let name = |name: String| path.join(name);
        Self {
            exe: name(driver.to_owned()),
            config: name("config.toml".to_owned()),
            original: name(format!(".{driver}.original")),
            staged: name(format!(".{driver}.new")),
            staged_config: name(".config.toml.new".to_owned()),
            staged_original: name(format!(".{driver}.original.new")),
            path,
        }
    }

    pub fn names(&self) -> Vec<&Path> {
        let whole: [&Path; 3] = [&self.exe, &self.config, &self.original];
        [whole, self.staged_names()].concat()
    }

    fn staged_names(&self) -> [&Path; 3] {
        [&self.staged, &self.staged_config, &self.staged_original]
    }
}
