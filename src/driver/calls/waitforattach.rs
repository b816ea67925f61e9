use anyhow::Result;

use crate::config::Loaded;
use crate::host::Host;
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{Job, give_up, require_same};

/// `waitforattach <device> <options>`: on the node, before every pod's mount, activates the volume
/// and makes sure that the device is this volume's.
pub fn run(host: &Host, config: &Loaded, word: &str, options: &Options) -> Result<Reply> {
    let job = Job::new(host, config.require()?, options);
    let device = job.ensure_active().and_then(|device| {
        require_same(host, options, word, &device)?;
        Ok(device)
    });
    let device = device.inspect_err(|_| give_up(job.subject))?;
    job.note_name(&device);
    Ok(Reply::device(&device.path))
}
