use anyhow::Result;

use super::is_here;
use crate::config::Loaded;
use crate::host::Host;
use crate::lvm;
use crate::reply::Reply;
use crate::volume::release_named;

/// `detach <volume name> <node>`: deactivates the volume if the config asks for that, or nodes share
/// its group, and nothing uses it. Anything that cannot be found is detached already.
pub fn run(host: &Host, config: &Loaded, volume: &str, node: &str) -> Result<Reply> {
    let config_here = &config.config;
    let asked = config_here.deactivate;
    let may_be = (asked || lvm::has_lvmlockd(host)) && host.tools.has("lvchange");
    if may_be && is_here(host, config, node) {
        release_named(host, config_here, volume, asked)?;
    }
    Ok(Reply::success())
}
