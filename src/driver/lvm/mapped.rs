//! The devices of device-mapper, as the kernel shows them in /sys.

use std::path::{Path, PathBuf};

use crate::host::Kernel;

/// More layers than anybody builds: LVM on RAID on a cache on LUKS on multipath.
pub const DEEPEST: usize = 16;

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

    /// The name of the suspended device: this one, or the first that it is built on.
    pub fn suspended(&self, kernel: &Kernel) -> Option<String> {
        self.suspended_within(kernel, DEEPEST)
    }

    fn suspended_within(&self, kernel: &Kernel, deepest: usize) -> Option<String> {
        if self.is_suspended(kernel) {
            return Some(self.name(kernel).unwrap_or_default());
        }
        let deepest = deepest.checked_sub(1)?;
        let below = self.0.join("slaves");
        let names = kernel.list(&below).unwrap_or_default();
        let mut all = names.iter().map(|name| Self(below.join(name)));
        all.find_map(|one| one.suspended_within(kernel, deepest))
    }
}

/// The command that resumes a device of this name with the table that it has. A killed LVM command may have loaded a
/// second table, with extents that the volume does not have by LVM's metadata.
pub fn with_its_table(name: &str) -> String {
    format!("dmsetup clear {name} && dmsetup resume {name}")
}
