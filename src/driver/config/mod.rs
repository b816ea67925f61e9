//! The node's config: `config.toml` beside the executable. Every key is optional. A missing file counts
//! as an empty one.

#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::env::split_paths;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use crate::names::{Bytes, Encryption, FsType, LvName, VgName, folded};
use crate::options::MountOptions;

pub const FILE_VARIABLE: &str = "FLEXVOLUME_LVM_CONFIG";

/// All settings. [`Config::default`] is the config of an empty file; `examples/config.toml` explains each key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // kubelet's own capabilities, under kubelet's names
pub struct Config {
    /// The path of the config file, for messages that tell the reader to edit it.
    #[serde(skip)]
    pub file: String,
    pub attach: bool,
    pub selinux_relabel: bool,
    pub supports_metrics: bool,
    pub fs_group: bool,
    pub requires_fs_resize: bool,
    /// The node's name in Kubernetes. `None`: the host's name.
    #[serde(deserialize_with = "values::node_name")]
    pub node_name: Option<String>,
    #[serde(deserialize_with = "values::dirs")]
    pub kubelet_dirs: Vec<PathBuf>,
    /// The directories in which container runtimes mount the volumes of pods that run in virtual machines.
    #[serde(deserialize_with = "values::dirs")]
    pub runtime_dirs: Vec<PathBuf>,
    pub default_fs: FsType,
    #[serde(deserialize_with = "values::dirs")]
    pub tool_dirs: Vec<PathBuf>,
    pub deactivate: bool,
    #[serde(deserialize_with = "values::percent")]
    pub thin_pool_limit: u8,
    pub log: LogTarget,
    pub limits: Limits,
    #[serde(rename = "encryption")]
    pub luks: Luks,
    #[serde(rename = "filesystem", deserialize_with = "values::filesystems")]
    pub filesystems: BTreeMap<FsType, FsConfig>,
    /// The volume groups that may be used. All, if the table is empty.
    #[serde(rename = "volume_group", deserialize_with = "values::volume_groups")]
    pub volume_groups: BTreeMap<VgName, VolumeGroup>,
}

impl Default for Config {
    fn default() -> Self {
        const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        Self {
            file: "config.toml".to_owned(),
            attach: true,
            selinux_relabel: true,
            supports_metrics: false,
            fs_group: true,
            requires_fs_resize: true,
            node_name: None,
            kubelet_dirs: vec![PathBuf::from("/var/lib/kubelet")],
            runtime_dirs: vec![PathBuf::from("/run/kata-containers")],
            default_fs: FsType::Ext4,
            tool_dirs: split_paths(PATH).collect(),
            deactivate: false,
            thin_pool_limit: 95,
            log: LogTarget::default(),
            limits: Limits::default(),
            luks: Luks::default(),
            filesystems: BTreeMap::new(),
            volume_groups: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Parses the bytes of the config `file`. An error is one line about the first mistake: `file`, the number of the
    /// line, the key.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Self, String> {
        match str::from_utf8(bytes) {
            Ok(text) => Self::parse(text, file),
            Err(e) => {
                let line = line_of(bytes, e.valid_up_to());
                Err(format!("{file}, line {line}: this is not valid UTF-8 text"))
            }
        }
    }

    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        let document = DeTable::parse(text).map_err(|error| {
            // A syntax error's line is not quoted: somebody may have written a passphrase there.
            mistake(text, file, &error, error.message())
        })?;
        match Self::deserialize(Deserializer::from(document)) {
            Ok(config) => Ok(Self {
                file: file.to_owned(),
                ..config
            }),
            Err(error) => Err(mistake(text, file, &error, &in_one_line(&error))),
        }
    }

    /// The config for a file that cannot be used: the defaults, but with the file's `attach` and `log` if these can be
    /// read.
    pub fn saved_from(bytes: &[u8], file: &str) -> Self {
        let text = str::from_utf8(bytes).unwrap_or_default();
        let (table, _) = DeTable::parse_recoverable(text);
        let value = |key| table.get_ref().get(key).map(Spanned::get_ref);
        let Self { attach, log, .. } = Self::default();
        let named = value("log").and_then(|log| LogTarget::try_from(log.as_str()?.to_owned()).ok());
        Self {
            file: file.to_owned(),
            attach: value("attach").and_then(DeValue::as_bool).unwrap_or(attach),
            log: named.unwrap_or(log),
            ..Self::default()
        }
    }

    /// The settings of a volume group. `None`: the config names no groups, so any group may be used. Fails if the
    /// config names groups, but not this group.
    pub fn policy(&self, vg: &VgName) -> Result<Option<&VolumeGroup>> {
        if self.volume_groups.is_empty() {
            return Ok(None);
        }
        match self.volume_groups.get(vg) {
            Some(policy) => Ok(Some(policy)),
            None => bail!(
                "this node's config does not allow the volume group {vg}: add a table \
                 [volume_group.\"{vg}\"] to {}, or name another group",
                self.file
            ),
        }
    }

    /// The encryption that the config demands for each volume of the group. `None`: the pod decides.
    pub fn encryption(&self, vg: &VgName) -> Option<Encryption> {
        self.volume_groups.get(vg)?.encryption
    }

    /// The file with the passphrase of the group's encrypted volumes.
    pub fn key_file(&self, vg: &VgName) -> Option<&Path> {
        let group = self.volume_groups.get(vg);
        let of_group = group.and_then(|group| group.key_file.as_deref());
        of_group.or(self.luks.key_file.as_deref())
    }

    /// The config's options for mkfs: the filesystem's, then the group's. mkfs gets them after the driver's own
    /// options.
    pub fn mkfs_options(&self, vg: &VgName, fs: FsType) -> Vec<&str> {
        self.of_filesystem(vg, fs)
            .flat_map(|config| &config.mkfs_options)
            .map(String::as_str)
            .collect()
    }

    /// The config's mount options: the filesystem's, then the group's. The caller adds the volume's own options after
    /// them.
    pub fn mount_options(&self, vg: &VgName, fs: FsType) -> MountOptions {
        self.of_filesystem(vg, fs)
            .map(|config| &config.mount_options)
            .fold(MountOptions::default(), |all, more| all.and(more))
    }

    fn of_filesystem(&self, vg: &VgName, fs: FsType) -> impl Iterator<Item = &FsConfig> {
        let group = self.volume_groups.get(vg);
        let of_group = group.and_then(|group| group.filesystems.get(&fs));
        self.filesystems.get(&fs).into_iter().chain(of_group)
    }
}

/// The message about a mistake in the config, with its line.
fn mistake(text: &str, file: &str, error: &Error, why: &str) -> String {
    let at = error.span().map_or(text.len(), |span| span.start);
    let number = line_of(text.as_bytes(), at);
    folded(&format!("{file}, line {number}: {why}"))
}

/// The message of the toml crate on one line. The crate puts the key on a second line.
fn in_one_line(error: &Error) -> String {
    error.to_string().trim_end().replace("\nin `", ", in `")
}

/// The line, counted from 1, of the byte at `offset`.
fn line_of(text: &[u8], offset: usize) -> usize {
    let newlines = text.iter().take(offset).filter(|byte| **byte == b'\n');
    newlines.count().saturating_add(1)
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum LogTarget {
    /// The journal, or `/dev/log` on a host without a journal.
    #[default]
    Syslog,
    None,
    File(PathBuf),
}

/// The most time that each step may take, from one second to one day.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Limits {
    #[serde(deserialize_with = "values::seconds")]
    pub query: Duration,
    #[serde(deserialize_with = "values::seconds")]
    pub activate: Duration,
    #[serde(deserialize_with = "values::seconds")]
    pub make: Duration,
    #[serde(deserialize_with = "values::seconds")]
    pub check: Duration,
    #[serde(deserialize_with = "values::seconds")]
    pub mount: Duration,
    #[serde(deserialize_with = "values::seconds")]
    pub resize: Duration,
    #[serde(deserialize_with = "values::seconds")]
    pub lock: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            query: Duration::from_secs(150),
            activate: Duration::from_secs(150),
            make: Duration::from_secs(900),
            check: Duration::from_secs(1800),
            mount: Duration::from_secs(300),
            resize: Duration::from_secs(900),
            lock: Duration::from_secs(120),
        }
    }
}

/// How volumes are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Luks {
    #[serde(deserialize_with = "values::key_file")]
    pub key_file: Option<PathBuf>,
    #[serde(deserialize_with = "values::pbkdf_memory")]
    pub pbkdf_memory: Bytes,
    /// How many times argon2 passes over `pbkdf_memory`. `None`: as many times as this node can in two seconds.
    #[serde(deserialize_with = "values::pbkdf_iterations")]
    pub pbkdf_iterations: Option<u32>,
    pub allow_discards: bool,
}

impl Default for Luks {
    fn default() -> Self {
        Self {
            key_file: None,
            // RFC 9106, section 4: the second recommended choice, for machines with little memory.
            pbkdf_memory: Bytes::new(64 << 20),
            pbkdf_iterations: None,
            allow_discards: false,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct VolumeGroup {
    /// The only thin pool in which volumes are created. `None`: the pool that a volume's options name, if any.
    pub thin_pool: Option<LvName>,
    pub encryption: Option<Encryption>,
    #[serde(deserialize_with = "values::key_file")]
    pub key_file: Option<PathBuf>,
    pub create: bool,
    /// The largest size that a volume may be created with or grown to. `None`: no limit.
    #[serde(deserialize_with = "values::max_size")]
    pub max_size: Option<Bytes>,
    #[serde(deserialize_with = "values::size")]
    pub reserve: Bytes,
    #[serde(deserialize_with = "values::lvcreate_options")]
    pub lvcreate_options: Vec<String>,
    #[serde(rename = "filesystem", deserialize_with = "values::filesystems")]
    pub filesystems: BTreeMap<FsType, FsConfig>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct FsConfig {
    pub mkfs_options: Vec<String>,
    #[serde(deserialize_with = "values::mount_options")]
    pub mount_options: MountOptions,
}

/// The config as it was read. If the file cannot be used, call-outs that bring a volume up fail; the others go on with
/// the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// If there is a problem: the defaults, but with `attach` and `log` of the file.
    pub config: Config,
    /// Why the file could not be used: one line with the file, the line and the key.
    pub problem: Option<String>,
}

impl Loaded {
    pub fn require(&self) -> Result<&Config> {
        match &self.problem {
            None => Ok(&self.config),
            Some(problem) => Err(anyhow!("{problem}")),
        }
    }
}
