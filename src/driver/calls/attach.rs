//! The call-outs about a volume's device: `attach`, `waitforattach`, `isattached`, `detach`.

use anyhow::Result;

use super::{config_of, is_here};
use crate::config::Loaded;
use crate::host::Host;
use crate::lvm::{self, Found, find};
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{Device, Job, Reason, Refusal, give_up, release_named};

/// `attach <options> <node>`: activates the volume, and answers with the path of its device. On a controller's host
/// that is not the node, it activates nothing, and answers with the path that the device will have on the node.
pub fn attach(host: &Host, config: &Loaded, options: &Options, node: &str) -> Result<Reply> {
    let elsewhere = Reply::device(&options.id.device());
    if !is_here(host, config, node) {
        return Ok(elsewhere);
    }
    let config = config_of(config)?;
    if !host.tools.has("lvs") {
        return Ok(elsewhere);
    }
    let job = Job::new(host, config, options, None);
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

/// `waitforattach <device> <options>`: runs on the node before every pod's mount. Activates the volume, and makes sure
/// that the device is this volume's.
pub fn waitforattach(job: &Job) -> Result<Reply> {
    let device = job.ensure_active().inspect_err(|_| give_up(job.subject))?;
    Ok(Reply::device(&device.path))
}

/// `isattached <options> <node>`: whether the volume is active. The controller asks every minute, and attaches a volume
/// again if the answer is no. So a host that is not the node, and cannot know, answers yes.
pub fn isattached(host: &Host, config: &Loaded, options: &Options, node: &str) -> Result<Reply> {
    let attached = !is_here(host, config, node)
        || Device::find(host.kernel, &options.id)?.is_some()
        || !host.tools.has("lvs")
        || find(host, &options.id)? == Found::NoGroup;
    Ok(Reply {
        attached: Some(attached),
        ..Reply::success()
    })
}

/// `detach <volume name> <node>`: deactivates a volume that nothing uses, if the config asks for that or nodes share
/// the volume's group. A volume that cannot be found counts as detached.
pub fn detach(host: &Host, config: &Loaded, volume: &str, node: &str) -> Result<Reply> {
    let deactivate = config.config.deactivate;
    let may_be = (deactivate || lvm::has_lvmlockd(host)) && host.tools.has("lvchange");
    if may_be && is_here(host, config, node) {
        release_named(host, &config.config, volume, deactivate)?;
    }
    Ok(Reply::success())
}
