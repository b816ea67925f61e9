use anyhow::Result;

use super::is_here;
use crate::config::Loaded;
use crate::host::Host;
use crate::lvm::{Found, find};
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::Device;

/// `isattached <options> <node>`: whether the volume is active. The controller asks every minute, and attaches again
/// what is said to be gone, so a host that is not the node, and cannot know, says yes.
pub fn run(host: &Host, config: &Loaded, options: &Options, node: &str) -> Result<Reply> {
    let attached = !is_here(host, config, node)
        || Device::find(host.kernel, &options.id)?.is_some()
        || !host.tools.has("lvs")
        || find(host, &options.id)? == Found::NoGroup;
    Ok(Reply {
        attached: Some(attached),
        ..Reply::success()
    })
}
