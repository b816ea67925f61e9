//! The directories and file names of an installation.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::plugin::Plugin;
use crate::files::{self, Kind};
use driver::names::Shown;

pub struct InstallLayout {
    pub plugin: Plugin,
    pub plugin_dir: PathBuf,
    pub dir: DriverDir,
    /// The directory where all files are made and tried before they are put in place. Its name begins with a dot, so
    /// kubelet ignores it.
    pub staged: DriverDir,
    /// The config that `uninstall` keeps. The next installation uses it.
    pub kept_config: PathBuf,
}

/// A driver's directory, `<vendor>~<driver>`, and every name in it.
pub struct DriverDir {
    pub path: PathBuf,
    pub exe: PathBuf,
    pub config: PathBuf,
    /// Another driver, which was there before the first installation. It is kept until `uninstall` puts it back. Its
    /// name begins with a dot, so kubelet ignores it.
    pub original: PathBuf,
}

impl InstallLayout {
    pub fn new(plugin_dir: &Path, plugin: Plugin) -> Self {
        let name = plugin.directory();
        let dir = |name: &str| DriverDir::new(plugin_dir.join(name), &plugin.driver);
        Self {
            dir: dir(&name),
            staged: dir(&format!(".{name}.new")),
            kept_config: plugin_dir.join(format!(".{name}.config.toml")),
            plugin_dir: plugin_dir.to_owned(),
            plugin,
        }
    }

    /// The command with which a person removes the driver from this node.
    pub fn uninstall(&self) -> String {
        let (exe, plugin_dir) = (self.dir.exe.quoted(), self.plugin_dir.quoted());
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

    /// Removes the staged directory, which an interrupted run may have left. Only the three files that this command
    /// makes are removed. If the directory has any other file, this fails.
    pub fn clean(&self) -> Result<()> {
        let names = self.staged.names();
        names.into_iter().try_for_each(files::remove)?;
        files::remove_dir(&self.staged.path)
    }
}

impl DriverDir {
    fn new(path: PathBuf, driver: &str) -> Self {
        Self {
            exe: path.join(driver),
            config: path.join("config.toml"),
            original: path.join(format!(".{driver}.original")),
            path,
        }
    }

    pub fn names(&self) -> [&Path; 3] {
        [&self.exe, &self.config, &self.original]
    }
}
