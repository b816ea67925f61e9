use anyhow::Error;

use crate::host::holders;
use crate::host::{Effect, Host, ToolError};
use crate::names::VgName;

/// If an LVM command had to be stopped at its limit, adds what it was waiting for: whoever holds
/// the lock of the volume group, or what else makes LVM wait. `vg` is None for a command on all.
pub(super) fn explain(host: &Host, vg: Option<&VgName>, error: ToolError) -> Error {
    let ToolError::TimedOut { effect, .. } = error else {
        return error.into();
    };
    let holders = holders::of_lvm_lock(host.kernel, vg);
    let cause = if !holders.is_empty() {
        format!("LVM is locked by {}", holders::name_them(&holders))
    } else if effect == Effect::Reads {
        "LVM waits, perhaps for a disk: check that each answers (`pvs`, `dmesg`)".to_owned()
    } else {
        "LVM waits for udev or for a disk: check that udevd runs (`udevadm settle`, `dmsetup \
         udevcookies`) and that each disk answers (`pvs`, `dmesg`)"
            .to_owned()
    };
    Error::from(error).context(cause)
}
