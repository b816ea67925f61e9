//! The passphrase of an encrypted volume, and the UUID of a header that is to be made.

use anyhow::{Context, Result};

use crate::crypt::{self, require_dm_crypt};
use crate::failed_step::FailedStep;
use crate::host::leave_no_core;
use crate::names::Shown;
use crate::options::Passphrase;
use crate::volume::job::Job;
use crate::volume::subject::Subject;

/// A passphrase, and the name of its source for messages.
pub type Key = (Passphrase, String);

/// What the driver was doing if there is no new UUID.
pub const CHOOSING: &str = "choosing a UUID";

/// A LUKS2 header that is to be made.
pub struct NewHeader {
    pub uuid: String,
    pub(super) key: Key,
}

impl Job<'_> {
    /// The passphrase of the volume's Secret if it has one, else that of its group, else that of the node.
    pub(super) fn key(&self) -> Result<Key> {
        let Subject { host, config, id } = self.subject;
        if let Some(secret) = &self.options.passphrase {
            // A person's call may have read the options from a file (`@file`). Then nothing has switched core dumps off
            // yet.
            let no_core = leave_no_core();
            no_core.context("keeping this process from leaving a core")?;
            let source = "the passphrase of the volume's Secret".to_owned();
            return Ok((secret.clone(), source));
        }
        let file = config
            .key_file(id.vg())
            .with_context(|| format!("no passphrase came for {id}"))?;
        let source = format!("the key_file {}", file.shown());
        Ok((crypt::read_key_file(host, file)?, source))
    }

    /// The UUID and the key for a header that is to be made. `uuid`: the UUID of a header that a killed call was
    /// making. `None`: the header gets a new UUID.
    pub fn new_header(&self, uuid: Option<&str>) -> Result<NewHeader> {
        let id = self.subject.id;
        require_dm_crypt(self.subject.host).map_err(|error| {
            FailedStep::LuksFormat.of(self.subject.host, error, format!("encrypting {id}"))
        })?;
        let key = self.key()?;
        let uuid = match uuid {
            Some(uuid) => uuid.to_owned(),
            None => self.subject.host.kernel.new_uuid().context(CHOOSING)?,
        };
        Ok(NewHeader { uuid, key })
    }
}
