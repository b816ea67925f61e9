use anyhow::Result;

use crate::config::Loaded;
use crate::host::Host;
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{Job, require_same};

/// `waitforattach <device> <options>`: on the node, before every pod's mount, activates the volume
/// and makes sure that the device is this volume's.
pub fn run(host: &Host, config: &Loaded, word: &str, options: &Options) -> Result<Reply> {
    let job = Job::new(host, config.require()?, options);
    let device = job.ensure_active()?;
    require_same(&job, word, &device)?;
    job.note_name(&device);
    Ok(Reply::device(&device.path))
}
