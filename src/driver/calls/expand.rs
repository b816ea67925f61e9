//! Grows a volume with its filesystem while it is mounted.

use anyhow::Result;

use crate::reply::Reply;
use crate::volume::{Job, grow};

/// `expandfs <options> <device> <dir> <new> <old>` and `expandvolume <options> <dir> <new> <old>`: makes the volume and
/// the filesystem on it at least as large as the call wants, while it is mounted. Never shrinks, and may be repeated.
/// Each of the two call-outs does all of this, because kubelet's controller never calls `expandvolume`.
pub fn run(job: &Job) -> Result<Reply> {
    let (size, later) = grow(job)?;
    let reply = Reply::success();
    Ok(match later {
        None => reply,
        Some(when) => reply.with_message(&format!(
            "{} is {size} large; its filesystem grows {when}",
            job.subject.id
        )),
    })
}
