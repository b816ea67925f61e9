//! Where the driver goes, and the names of all that is put there.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::plugin::Plugin;
use crate::files::{self, Kind};
use driver::names::Shown;

pub struct InstallLayout {
    pub plugin: Plugin,
    pub plugin_dir: PathBuf,
    pub dir: DriverDir,
    /// Where all is made and tried before any of it is put in place. kubelet ignores the name.
    pub staged: DriverDir,
    /// A config that outlives the driver; the next installation takes it.
    pub kept_config: PathBuf,
}

/// A driver's directory, `<vendor>~<driver>`, and every name in it.
pub struct DriverDir {
    pub path: PathBuf,
    pub exe: PathBuf,
    pub config: PathBuf,
    /// Somebody else's driver, which was there before the first installation. It is kept until
    /// it takes its place again. kubelet ignores names that begin with a dot.
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
