use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::config::Loaded;
use crate::host::Host;
use crate::options::Options;
use crate::reply::Reply;
use crate::volume::{Job, bring_up, close, give_up};

/// `mountdevice <global dir> <device> <options>` and `mount <dir> <options>`: puts the volume's
/// filesystem at `dir`, making it first if the volume is blank. A volume that is mounted already
/// is bound from there. Calling it again succeeds and changes nothing.
pub fn run(
    host: &Host,
    config: &Loaded,
    dir: &Path,
    word: &str,
    options: &Options,
) -> Result<Reply> {
    let job = Job {
        handed: word,
        ..Job::new(host, config.require()?, options)
    };
    let remarks = bring_up(&job, dir).inspect_err(|_| {
        // What this call has opened for nothing.
        if let Err(error) = close(job.subject, Duration::ZERO) {
            host.log.about("left-open", &format!("{error:#}"));
        }
        give_up(job.subject);
    })?;
    Ok(Reply::success().with_message(&remarks.join("; ")))
}
