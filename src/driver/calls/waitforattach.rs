use anyhow::Result;

use crate::config::Loaded;
use crate::host::Host;
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{Job, give_up};

/// `waitforattach <device> <options>`: on the node, before every pod's mount, activates the volume
/// and makes sure that the device is this volume's.
pub fn run(host: &Host, config: &Loaded, word: &str, options: &Options) -> Result<Reply> {
    let job = Job {
        handed: word,
        ..Job::new(host, config.require()?, options)
    };
    let device = job.ensure_active();
    let device = device.inspect_err(|_| give_up(job.subject))?;
    Ok(Reply::device(&device.path))
}
