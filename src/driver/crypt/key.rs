//! A passphrase in a file of the node.

use std::path::Path;

use anyhow::{Context, Error, Result};

use crate::host::trust::require_secret;
use crate::host::{Host, leave_no_core};
use crate::names::Shown;
use crate::options::{LONGEST_PASSPHRASE, Passphrase};

/// Reads it. From now on this process and its tools leave no core.
pub fn read_key_file(host: &Host, file: &Path) -> Result<Passphrase> {
    leave_no_core().context("keeping this process from leaving a core")?;
    require_secret(file)
        .map_err(Error::msg)
        .and_then(|()| {
            let bytes = host.kernel.read_secret(file, LONGEST_PASSPHRASE)?;
            Passphrase::of(bytes)
        })
        .with_context(|| format!("reading the key_file {}", file.shown()))
}
