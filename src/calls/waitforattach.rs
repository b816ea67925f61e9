use anyhow::Result;

use super::bring_up::{ensure_active, note_name, require_same};
use crate::config::Loaded;
use crate::host::Host;
use crate::options::Options;
use crate::reply::Reply;

/// `waitforattach <device> <options>`: on the node, before every pod's mount, activates the volume
/// and makes sure that the device is this volume's.
pub fn run(host: &Host, config: &Loaded, word: &str, options: &Options) -> Result<Reply> {
    let config = config.require()?;
    let device = ensure_active(host, config, options)?.map_err(|m| m.error(options))?;
    require_same(host, word, &device, options)?;
    note_name(host, config, options, &device);
    Ok(Reply::success().with_device(device.path.to_string_lossy()))
}
