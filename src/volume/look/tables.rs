//! What the kernel says of all devices at once.

use std::cell::OnceCell;

use anyhow::Result;

use super::device;
use super::openers::Openings;
use crate::host::{DeviceNumber, Host, Kernel};
use crate::mount::Table;

/// The kernel's tables, read once for a look at many volumes.
pub struct Tables {
    pub mounts: Table,
    pub(super) swaps: Vec<DeviceNumber>,
    /// Read when the first volume is found open.
    openings: OnceCell<Openings>,
}

impl Tables {
    pub fn read(kernel: &Kernel) -> Result<Self> {
        Ok(Self {
            mounts: Table::read(kernel)?,
            swaps: device::swaps(kernel),
            openings: OnceCell::new(),
        })
    }

    pub(super) fn openings(&self, host: &Host) -> Result<&Openings> {
        if let Some(openings) = self.openings.get() {
            return Ok(openings);
        }
        let read = Openings::read(host, None)?;
        Ok(self.openings.get_or_init(|| read))
    }
}
