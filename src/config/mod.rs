//! The node's config: `config.toml` beside the executable. Every key is optional; no file is an
//! empty file.

mod check;
mod file;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use crate::names::{Bytes, FsType, LvName, VgName};
use crate::options::MountOptions;

/// The environment variable that names another config file.
pub const FILE_VARIABLE: &str = "FLEXVOLUME_LVM_CONFIG";

/// Where the config is: what the environment names, else `config.toml` beside the executable.
#[must_use]
pub fn config_path(exe: &Path, env: Option<&OsStr>) -> PathBuf {
    match env.filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => exe.with_file_name("config.toml"),
    }
}

/// All that can be configured. [`Config::default`] is what an empty file says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // kubelet's own capabilities, under kubelet's names
pub struct Config {
    /// The file, for messages that tell the reader to edit it.
    pub file: String,
    /// Capability: kubelet calls `attach` and what belongs to it, not `mount` alone.
    pub attach: bool,
    /// Capability: kubelet may have the volume relabelled for `SELinux`.
    pub selinux_relabel: bool,
    /// Capability: kubelet publishes the size and use of the mounted filesystem.
    pub supports_metrics: bool,
    /// Capability: kubelet applies the pod's fsGroup.
    pub fs_group: bool,
    /// Capability: kubelet calls `expandfs` when a claim grows.
    pub requires_fs_resize: bool,
    /// What the cluster calls this node; None: the host's name.
    pub node_name: Option<String>,
    /// kubelet's root directories: a mount below them is not the host's own use of a volume.
    pub kubelet_dirs: Vec<PathBuf>,
    /// What a blank volume gets if nobody says otherwise.
    pub default_fs: FsType,
    /// Where tools are looked for, in this order.
    pub tool_dirs: Vec<PathBuf>,
    /// Whether a volume that nothing uses any more is deactivated.
    pub deactivate: bool,
    /// What secondary superblocks of xfs and btrfs on a volume that looks blank mean.
    pub stale_backups: StaleBackups,
    /// Percent of a thin pool's data or metadata; above it nothing is formatted or mounted for
    /// writing.
    pub thin_pool_limit: u8,
    /// Where the one line per call goes.
    pub log: LogTarget,
    /// How long each step may take.
    pub limits: Limits,
    /// Options for each filesystem, in every volume group.
    pub filesystems: BTreeMap<FsType, FsConfig>,
    /// The volume groups that may be used; none: all.
    pub volume_groups: BTreeMap<VgName, VolumeGroup>,
}

impl Default for Config {
    fn default() -> Self {
        let dirs = |dirs: &[&str]| dirs.iter().map(PathBuf::from).collect();
        Self {
            file: "config.toml".to_owned(),
            attach: true,
            selinux_relabel: true,
            supports_metrics: false,
            fs_group: true,
            requires_fs_resize: true,
            node_name: None,
            kubelet_dirs: dirs(&["/var/lib/kubelet"]),
            default_fs: FsType::Ext4,
            tool_dirs: dirs(&[
                "/usr/local/sbin",
                "/usr/local/bin",
                "/usr/sbin",
                "/usr/bin",
                "/sbin",
                "/bin",
            ]),
            deactivate: false,
            stale_backups: StaleBackups::Refuse,
            thin_pool_limit: 95,
            log: LogTarget::Syslog,
            limits: Limits::default(),
            filesystems: BTreeMap::new(),
            volume_groups: BTreeMap::new(),
        }
    }
}

impl Config {
    /// What the config says of a volume group: None if it names no group at all, so that any may
    /// be used.
    ///
    /// # Errors
    /// When it names groups and this is none of them.
    pub fn policy(&self, vg: &VgName) -> Result<Option<&VolumeGroup>> {
        if self.volume_groups.is_empty() {
            return Ok(None);
        }
        match self.volume_groups.get(vg) {
            Some(policy) => Ok(Some(policy)),
            None => bail!(
                "the volume group {vg} is not one that this node's config allows ({}); add a \
                 [volume_group.{}] table",
                self.file,
                read::as_key(vg.as_str())
            ),
        }
    }

    /// Options for mkfs, after the driver's own: the general ones, then the group's.
    #[must_use]
    pub fn mkfs_options(&self, vg: &VgName, fs: FsType) -> Vec<&str> {
        self.of_filesystem(vg, fs)
            .flat_map(|config| &config.mkfs_options)
            .map(String::as_str)
            .collect()
    }

    /// Options for mount, before the volume's own: the general ones, then the group's.
    #[must_use]
    pub fn mount_options(&self, vg: &VgName, fs: FsType) -> MountOptions {
        self.of_filesystem(vg, fs)
            .map(|config| &config.mount_options)
            .fold(MountOptions::default(), |all, more| all.and(more))
    }

    fn of_filesystem(&self, vg: &VgName, fs: FsType) -> impl Iterator<Item = &FsConfig> {
        let group = self.volume_groups.get(vg);
        let group = group.and_then(|group| group.filesystems.get(&fs));
        self.filesystems.get(&fs).into_iter().chain(group)
    }

    /// Parses the text of a config file. `file` is only for the message.
    ///
    /// # Errors
    /// One line with the file, the line and the key.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        file::parse(text, file)
    }

    /// Parses the bytes of a config file. `file` is only for the message.
    ///
    /// # Errors
    /// One line with the file, the line and the key.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Self, String> {
        match str::from_utf8(bytes) {
            Ok(text) => Self::parse(text, file),
            Err(e) => {
                let line = read::line_of(bytes, e.valid_up_to());
                Err(format!("{file}, line {line}: this is not valid UTF-8 text"))
            }
        }
    }

    /// The defaults, but with the `attach` of a text in which something else is wrong.
    #[must_use]
    pub fn default_in_mode_of(bytes: &[u8]) -> Self {
        let default = Self::default();
        let text = String::from_utf8_lossy(bytes);
        let attach = match text.parse::<toml::Table>() {
            Ok(table) => table.get("attach").and_then(toml::Value::as_bool),
            Err(_) => file::attach_of_broken(&text),
        };
        Self {
            attach: attach.unwrap_or(default.attach),
            ..default
        }
    }
}

/// What secondary superblocks of xfs and btrfs mean, which carry no time, on a volume that looks
/// blank and fits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleBackups {
    /// The volume held data: it is not formatted.
    Refuse,
    /// A removed volume left them.
    Ignore,
}

/// Where the log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// `/dev/log`, which journald reads too.
    Syslog,
    /// Nowhere.
    None,
    /// Appended to this file, which is absolute.
    File(PathBuf),
}

/// How long each step may take. At least one second, at most a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// A question to LVM or blkid.
    pub query: Duration,
    /// lvchange: activating, deactivating, tagging.
    pub activate: Duration,
    /// lvcreate and mkfs.
    pub make: Duration,
    /// A check of the filesystem before it is mounted.
    pub check: Duration,
    /// mount(8), with the recovery of a journal.
    pub mount: Duration,
    /// lvextend and growing the filesystem.
    pub resize: Duration,
    /// Waiting for another call that works on the same volume.
    pub lock: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            query: Duration::from_secs(30),
            activate: Duration::from_secs(60),
            make: Duration::from_secs(900),
            check: Duration::from_secs(1800),
            mount: Duration::from_secs(300),
            resize: Duration::from_secs(900),
            lock: Duration::from_secs(120),
        }
    }
}

/// What may be done in one volume group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeGroup {
    /// The thin pool for volumes that name none; None: they are thick.
    pub thin_pool: Option<LvName>,
    /// Whether a volume that is missing is made, from its option `size`.
    pub create: bool,
    /// The largest size that a volume is made with or grown to; None: no bound.
    pub max_size: Option<Bytes>,
    /// How much of the group is left free when a volume is made or grown.
    pub reserve: Bytes,
    /// Added to lvcreate's command line.
    pub lvcreate_options: Vec<String>,
    /// Options for each filesystem, after the general ones.
    pub filesystems: BTreeMap<FsType, FsConfig>,
}

/// Options for one type of filesystem.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FsConfig {
    /// Added to mkfs's command line.
    pub mkfs_options: Vec<String>,
    /// Given to mount.
    pub mount_options: MountOptions,
}

/// A config that was looked for: call-outs that bring a volume up need it whole, the others go on
/// with the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The config; with a problem, the defaults.
    pub config: Config,
    /// Why the file could not be used: one line with the file, the line and the key.
    pub problem: Option<String>,
}

impl From<Result<Config, String>> for Loaded {
    fn from(result: Result<Config, String>) -> Self {
        match result {
            Ok(config) => Self {
                config,
                problem: None,
            },
            Err(problem) => Self {
                config: Config::default(),
                problem: Some(problem),
            },
        }
    }
}

impl Loaded {
    /// The config, or the defaults if there is a problem with it.
    #[must_use]
    pub fn or_default(&self) -> &Config {
        &self.config
    }

    /// The config.
    ///
    /// # Errors
    /// The problem with it.
    pub fn require(&self) -> Result<&Config> {
        match &self.problem {
            None => Ok(&self.config),
            Some(problem) => Err(anyhow!("{problem}")),
        }
    }
}
