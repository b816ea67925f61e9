use anyhow::Result;

use super::is_here;
use crate::config::Loaded;
use crate::host::Host;
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{Job, Reason, Refusal, give_up};

/// `attach <options> <node>`: activates the volume, and says what its device is. On the controller's host, which is not
/// the node and has no LVM, the answer is the path that the device will have on the node.
pub fn run(host: &Host, config: &Loaded, options: &Options, node: &str) -> Result<Reply> {
    let elsewhere = Reply::device(&options.id.device());
    if !is_here(host, config, node) {
        return Ok(elsewhere);
    }
    let config = config.require()?;
    if !host.tools.has("lvs") {
        return Ok(elsewhere);
    }
    let job = Job::new(host, config, options);
    match job.ensure_active() {
        Ok(device) => Ok(Reply::device(&device.path)),
        Err(error) => match error.downcast_ref::<Refusal>() {
            Some(refusal) if refusal.reason == Reason::NoGroup => Ok(elsewhere),
            _ => {
                give_up(job.subject);
                Err(error)
            }
        },
    }
}
