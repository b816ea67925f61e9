//! One file per call-out. Each handler reads as the sentence that describes it.

mod attach;
mod detach;
mod expand;
mod init;
mod isattached;
mod mount;
mod parse;
mod unmount;
mod waitforattach;

pub use parse::{CallOut, NAMES, usage};

use anyhow::Result;

use crate::config::Loaded;
use crate::host::Host;
use crate::names::same_host;
use crate::reply::Reply;

pub fn answer(call: &CallOut, host: &Host, config: &Loaded) -> Result<Reply> {
    for name in call.options().iter().flat_map(|options| &options.ignored) {
        host.log.about("ignored", name);
    }
    match call {
        CallOut::Init => Ok(init::run(config)),
        CallOut::Attach { options, node } => attach::run(host, config, options, node.as_deref()),
        CallOut::WaitForAttach { device, options } => {
            waitforattach::run(host, config, device, options)
        }
        CallOut::IsAttached { options, node } => isattached::run(host, config, options, node),
        CallOut::MountDevice {
            dir,
            device,
            options,
        }
        | CallOut::Mount {
            dir,
            device,
            options,
        } => mount::run(host, config, dir, device, options),
        CallOut::Unmount { dir } | CallOut::UnmountDevice { dir } => {
            unmount::run(host, config, dir)
        }
        CallOut::Detach { volume, node } => detach::run(host, config, volume, node.as_deref()),
        CallOut::ExpandFs { options, dir, size } | CallOut::ExpandVolume { options, dir, size } => {
            expand::run(host, config, options, dir, *size)
        }
        CallOut::NotSupported(name) => Ok(Reply::not_supported(&format!(
            "flexvolume-lvm has no call-out {name:?}; see `lvm --help`"
        ))),
    }
}

/// Whether a call that names `node` is for this host. Without a name (kubelet before 1.6) it is.
fn is_here(host: &Host, config: &Loaded, node: Option<&str>) -> bool {
    let Some(node) = node.filter(|node| !node.is_empty()) else {
        return true;
    };
    match &config.or_default().node_name {
        Some(name) => same_host(node, name),
        None => same_host(node, &host.kernel.host_name()),
    }
}
