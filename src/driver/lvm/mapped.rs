//! The devices of device-mapper, as the kernel shows them in /sys.

use std::path::{Path, PathBuf};

use crate::host::Kernel;

/// The directory of a device in /sys.
pub struct Mapped(pub PathBuf);

impl Mapped {
    pub fn all(kernel: &Kernel) -> Vec<Self> {
        let all = Path::new("/sys/block");
        let mut names = kernel.list(all).unwrap_or_default();
        names.retain(|name| name.starts_with("dm-"));
        names.iter().map(|name| Self(all.join(name))).collect()
    }

    /// `None`: device-mapper has no such device, or no longer.
    pub fn name(&self, kernel: &Kernel) -> Option<String> {
        let name = kernel.read(&self.0.join("dm/name")).ok()?;
        Some(name.trim_end().to_owned())
    }

    pub fn is_suspended(&self, kernel: &Kernel) -> bool {
        let suspended = kernel.read(&self.0.join("dm/suspended"));
        suspended.is_ok_and(|suspended| suspended.trim_end() == "1")
    }
}
