//! Where the passphrase of a volume comes from: its Secret, or a file of the node.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result};

use crate::config::Config;
use crate::host::Host;
use crate::host::trust::require_secret;
use crate::names::{LvId, Shown};
use crate::options::{LONGEST_PASSPHRASE, Passphrase};

/// The source of a volume's passphrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// The Secret of the volume, which kubelet passes to `mount`.
    Secret(Passphrase),
    /// `key_file` of the node's config.
    File(PathBuf),
}

/// The key of a volume: that of its Secret if it has one, else that of its group, else that of the node.
pub fn key_of(config: &Config, id: &LvId, secret: Option<&Passphrase>) -> Option<Key> {
    let secret = secret.cloned().map(Key::Secret);
    secret.or_else(|| config.key_file(id.vg()).map(Path::to_owned).map(Key::File))
}

impl Key {
    /// The passphrase itself. From now on this process and its tools leave no core.
    pub fn read(&self, host: &Host) -> Result<Passphrase> {
        let file = match self {
            Self::Secret(passphrase) => return Ok(passphrase.clone()),
            Self::File(file) => file,
        };
        host.kernel
            .leave_no_core()
            .context("keeping this process from leaving a core")?;
        require_secret(host.kernel, file)
            .map_err(Error::msg)
            .and_then(|()| {
                let bytes = host.kernel.read_secret(file, LONGEST_PASSPHRASE)?;
                Passphrase::of(bytes)
            })
            .with_context(|| format!("reading the key_file {}", file.shown()))
    }

    /// How people call its source.
    pub fn source(&self) -> String {
        match self {
            Self::Secret(_) => "the passphrase of the volume's Secret".to_owned(),
            Self::File(file) => format!("the key_file {}", file.shown()),
        }
    }
}
