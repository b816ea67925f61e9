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
    /// An edited config that outlives the driver; others have `.1`, `.2` … after this name.
    kept_config: PathBuf,
    /// Somebody else's driver that outlives this one; others likewise.
    kept_previous: PathBuf,
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
    fn contents(&self) -> [&Path; 9] {
        [
            &self.exe,
            &self.config,
            &self.staged,
            &self.previous,
            &self.staged_previous,
            &self.undoing,
            &self.no_config,
            &self.staged_config,
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
    pub fn remove(&self, own_configs: &[String]) -> Result<Vec<String>> {
        for name in files::list(&self.dir).with_context(|| reading(&self.dir))? {
            let path = self.dir.join(name);
            if !self.contents().contains(&path.as_path()) {
                bail!(
                    "{} was not put there by the installer; move it away and try again",
                    path.display()
                );
            }
        }
        remove(&self.exe)?;
        let mut kept = Vec::from_iter(self.keep_config(own_configs)?);
        if exists(&self.previous)? && !exists(&self.first)? {
            let path = keep(&self.previous, &self.kept_previous)?;
            kept.push(format!("{}, the driver before this one", path.display()));
        }
        for path in self.contents() {
            remove(path)?;
        }
        files::remove_dir(&self.dir).with_context(|| removing(&self.dir))?;
        files::sync_parent(&self.dir).with_context(|| removing(&self.dir))?;
        Ok(kept)
    }

    /// Moves the config out of the directory if it is none of the driver's own, and says where to.
    pub fn keep_config(&self, own_configs: &[String]) -> Result<Option<String>> {
        if !exists(&self.config)? {
            return Ok(None);
        }
        // What cannot be read, a link that leads nowhere among them, is none of the driver's own.
        let text = files::read(&self.config).unwrap_or_default();
        if own_configs.iter().any(|own| own.as_bytes() == text) {
            return Ok(None);
        }
        let path = keep(&self.config, &self.kept_config)?;
        Ok(Some(format!("{}, because it was edited", path.display())))
    }

    /// The edited configs that were kept here.
    pub fn kept_configs(&self) -> Result<Vec<PathBuf>> {
        let first = self.kept_config.file_name().unwrap_or_default();
        let is_number = |end: &str| {
            end.strip_prefix('.')
                .is_some_and(|n| n.parse::<u32>().is_ok())
        };
        let is_one = |name: &str| {
            let end = name.strip_prefix(&*first.to_string_lossy());
            end.is_some_and(|end| end.is_empty() || is_number(end))
        };
        let names = files::list(&self.plugin_dir).with_context(|| reading(&self.plugin_dir))?;
        Ok(names
            .iter()
            .filter(|name| name.to_str().is_some_and(is_one))
            .map(|name| self.plugin_dir.join(name))
            .collect())
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

/// Moves a file to this name, or to the first one with a number that takes nothing from another.
/// The same file kept twice is kept once.
fn keep(from: &Path, first: &Path) -> Result<PathBuf> {
    let mut to = first.to_owned();
    for number in 1_u32.. {
        if !exists(&to)? || is_same(from, &to)? {
            break;
        }
        first.clone_into(&mut to);
        to.as_mut_os_string().push(format!(".{number}"));
    }
    rename(from, &to)?;
    Ok(to)
}

/// Whether two regular files have the same content. Links do not count: what they lead to changes.
fn is_same(one: &Path, other: &Path) -> Result<bool> {
    if kind(one)? != Kind::File || kind(other)? != Kind::File {
        return Ok(false);
    }
    let read = |path: &Path| files::read(path).with_context(|| reading(path));
    Ok(read(one)? == read(other)?)
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
