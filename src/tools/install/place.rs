//! Where the driver goes, and the names of all that is put there.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::host::files::{self, Kind};
use crate::mount::{Table, is_of_driver};
use crate::names::Plugin;

/// kubelet's own default.
pub const PLUGIN_DIR: &str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";
/// The bash script's names.
pub const VENDOR: &str = "kubernetes.io";
pub const DRIVER: &str = "lvm";

/// A driver's directory in kubelet's plugin directory, and every name in it.
///
/// kubelet ignores names that begin with a dot, so all that is not the driver or its config has
/// one.
pub struct Place {
    pub plugin: Plugin,
    pub plugin_dir: PathBuf,
    /// `<vendor>~<driver>`.
    pub dir: PathBuf,
    /// The driver.
    pub exe: PathBuf,
    pub config: PathBuf,
    /// The directory to be, complete but not yet seen by kubelet.
    pub new_dir: PathBuf,
    /// The driver to be.
    pub staged: PathBuf,
    pub staged_config: PathBuf,
    /// The driver that the last run replaced.
    pub previous: PathBuf,
    pub staged_previous: PathBuf,
    /// The last run wrote the config; there was none before.
    pub no_config: PathBuf,
    /// There was no driver before.
    pub first: PathBuf,
    /// An undo has begun.
    pub undoing: PathBuf,
    /// The config that an undo took away.
    pub undone_config: PathBuf,
    /// An edited config that outlives the driver.
    pub kept_config: PathBuf,
    /// Somebody else's driver that outlives this one.
    pub kept_previous: PathBuf,
}

impl Place {
    pub fn new(plugin_dir: &Path, plugin: Plugin) -> Self {
        let name = plugin.directory();
        let dir = plugin_dir.join(&name);
        let hidden = |end: &str| dir.join(format!(".{}.{end}", plugin.driver()));
        let beside = |end: &str| plugin_dir.join(format!(".{name}.{end}"));
        Self {
            exe: dir.join(plugin.driver()),
            config: dir.join("config.toml"),
            new_dir: beside("new"),
            staged: hidden("new"),
            staged_config: dir.join(".config.toml.new"),
            previous: hidden("previous"),
            staged_previous: hidden("previous.new"),
            no_config: hidden("noconfig"),
            first: hidden("first"),
            undoing: hidden("undoing"),
            undone_config: dir.join(".config.toml.undone"),
            kept_config: beside("config.toml"),
            kept_previous: beside("previous"),
            plugin_dir: plugin_dir.to_owned(),
            dir,
            plugin,
        }
    }

    /// The installed driver as a person calls it, to do something else here.
    pub fn command(&self, words: &str) -> String {
        let mut line = format!("{} {words}", self.exe.display());
        let given = [
            (
                "plugin-dir",
                self.plugin_dir.to_string_lossy().into_owned(),
                PLUGIN_DIR,
            ),
            ("vendor", self.plugin.vendor().to_owned(), VENDOR),
            ("driver", self.plugin.driver().to_owned(), DRIVER),
        ];
        for (option, value, default) in given {
            if value != default {
                let _ = write!(line, " --{option} {value}");
            }
        }
        line
    }

    /// The same name in the directory to be.
    pub fn in_new_dir(&self, path: &Path) -> PathBuf {
        self.new_dir.join(path.file_name().unwrap_or_default())
    }

    /// All that is ever put into the directory, in the order in which it may be removed: the marker
    /// stays until all else is gone, so that a removal that was cut short can be finished.
    fn contents(&self) -> [&Path; 10] {
        [
            &self.exe,
            &self.config,
            &self.staged,
            &self.previous,
            &self.staged_previous,
            &self.undoing,
            &self.no_config,
            &self.staged_config,
            &self.undone_config,
            &self.first,
        ]
    }

    /// Whether there is a directory for the driver.
    ///
    /// # Errors
    /// When something that kubelet would not read has that name.
    pub fn has_dir(&self) -> Result<bool> {
        let dir = self.dir.display();
        match kind(&self.dir)? {
            Kind::Missing => Ok(false),
            Kind::Dir => Ok(true),
            Kind::Link => bail!(
                "{dir} is a symbolic link, which kubelet does not follow; replace it by a directory"
            ),
            Kind::File => bail!("{dir} is not a directory; move it away"),
        }
    }

    /// Removes what a killed run left half-made. Only names that this command makes are removed.
    pub fn clean(&self) -> Result<()> {
        for path in self.contents() {
            remove(&self.in_new_dir(path))?;
        }
        files::remove_dir(&self.new_dir).with_context(|| removing(&self.new_dir))?;
        for path in [&self.staged, &self.staged_config, &self.staged_previous] {
            remove(path)?;
        }
        Ok(())
    }

    /// Takes the driver away, and says what was kept of its files.
    ///
    /// The order matters. A running kubelet forgets a driver when its executable and its directory
    /// are unlinked; one that is renamed away stays an error in its queue. The mode is never changed
    /// under a driver that is still there.
    pub fn remove(&self, own_configs: &[String]) -> Result<Vec<PathBuf>> {
        for name in files::list(&self.dir).with_context(|| reading(&self.dir))? {
            let path = self.dir.join(name);
            if !self.contents().contains(&path.as_path()) {
                bail!(
                    "{} was not put there by the installer; move it away and try again",
                    path.display()
                );
            }
        }
        let mut kept = Vec::new();
        remove(&self.exe)?;
        if exists(&self.config)? {
            let text = files::read(&self.config).with_context(|| reading(&self.config))?;
            if !own_configs.iter().any(|own| own.as_bytes() == text) {
                rename(&self.config, &self.kept_config)?;
                kept.push(self.kept_config.clone());
            }
        }
        if exists(&self.previous)? && !exists(&self.first)? {
            rename(&self.previous, &self.kept_previous)?;
            kept.push(self.kept_previous.clone());
        }
        for path in self.contents() {
            remove(path)?;
        }
        files::remove_dir(&self.dir).with_context(|| removing(&self.dir))?;
        files::sync_parent(&self.dir).with_context(|| removing(&self.dir))?;
        Ok(kept)
    }

    /// Fails while volumes of this driver are mounted: without it, kubelet could not unmount them.
    pub fn require_no_mounts(&self) -> Result<()> {
        let own_exe = Path::new("/proc/self/exe");
        if files::is_one_file(own_exe, Path::new("/proc/1/exe")) {
            bail!(
                "this runs in a container, where the mounts of the host cannot be seen; run `{}` \
                 on the host itself",
                self.command("uninstall")
            );
        }
        let mut mounted: Vec<String> = Vec::new();
        // Process 1 sees the host's mounts, also when this one has a namespace of its own.
        for table in ["/proc/self/mountinfo", "/proc/1/mountinfo"] {
            let text = match files::read(Path::new(table)) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(e) if table.contains("self") => {
                    return Err(e).context(format!("reading {table}"));
                }
                Err(_) => continue,
            };
            for row in Table::parse(&text).rows() {
                if is_of_driver(&row.mount_point, &self.plugin) {
                    mounted.push(row.mount_point.display().to_string());
                }
            }
        }
        mounted.sort_unstable();
        mounted.dedup();
        if mounted.is_empty() {
            return Ok(());
        }
        bail!(
            "volumes of {} are mounted; delete their pods first: {}",
            self.plugin,
            mounted.join(", ")
        )
    }
}

pub fn exists(path: &Path) -> Result<bool> {
    Ok(kind(path)? != Kind::Missing)
}

pub fn kind(path: &Path) -> Result<Kind> {
    files::kind(path).with_context(|| format!("looking at {}", path.display()))
}

pub fn remove(path: &Path) -> Result<()> {
    files::remove(path).with_context(|| removing(path))
}

pub fn rename(from: &Path, to: &Path) -> Result<()> {
    files::rename(from, to)
        .with_context(|| format!("renaming {} to {}", from.display(), to.display()))
}

pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    files::write(path, bytes, mode).with_context(|| format!("writing {}", path.display()))
}

fn removing(path: &Path) -> String {
    format!("removing {}", path.display())
}

fn reading(path: &Path) -> String {
    format!("reading {}", path.display())
}
