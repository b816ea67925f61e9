use anyhow::Result;

use super::bring_up::{Missing, ensure_active, note_name};
use super::is_here;
use crate::config::Loaded;
use crate::host::Host;
use crate::options::Options;
use crate::reply::Reply;

/// `attach <options> <node>`: activates the volume, and says what its device is.
///
/// The controller calls this on a host that is not the node and has no LVM. There the answer is
/// where the device will be; the node finds out in `waitforattach` whether it is.
pub fn run(host: &Host, config: &Loaded, options: &Options, node: Option<&str>) -> Result<Reply> {
    let config_of_node = config;
    let elsewhere = || Ok(Reply::success().with_device(options.id.device().to_string_lossy()));
    if !is_here(host, config_of_node, node) {
        return elsewhere();
    }
    let config = config.require()?;
    if !host.tools.has("lvs") {
        return elsewhere();
    }
    match ensure_active(host, config, options)? {
        Ok(device) => {
            note_name(host, config, options, &device);
            Ok(Reply::success().with_device(device.path.to_string_lossy()))
        }
        Err(Missing::Group) => elsewhere(),
        Err(missing) => Err(missing.error(options)),
    }
}
