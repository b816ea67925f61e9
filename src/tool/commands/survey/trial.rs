//! What keeps the decided mount from succeeding on this node: what the node lacks, and the objections of the
//! filesystem's tools, which write nothing to the volume.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::look::{Look, Request};
use super::verdict::Outcome;
use crate::files;
use driver::config::Config;
use driver::crypt::HEADER_SIZE;
use driver::fs::{self, Condition, Judged};
use driver::host::Host;
use driver::host::trust::require_secret;
use driver::names::{Bytes, FsType, Shown};
use driver::options::Options;
use driver::volume::lock::{self, LOCK_DIR};
use driver::volume::{Content, Decision, Facts, Making, Subject};

/// What the node lacks, and if asked to try, the objection of the tool that the decided mount would run.
pub fn objection(subject: Subject, request: Request, seen: &Look) -> Option<Outcome> {
    let tried = || tried(subject.host, subject.config, seen);
    let lack = lack(subject, request.options, &seen.decision);
    lack.or_else(|| request.tries.then(tried).flatten())
}

/// The tool or the passphrase that the decided mount needs and this node does not have.
fn lack(subject: Subject, options: Option<&Options>, decision: &Decision) -> Option<Outcome> {
    let Subject { host, config, id } = subject;
    let (is_encrypted, mkfs) = match decision {
        Decision::Open { .. } => (true, None),
        Decision::Make { permit, how } => {
            let is_encrypted = matches!(how, Making::InLuks { .. });
            (is_encrypted, Some(format!("mkfs.{}", permit.fs())))
        }
        _ => (false, None),
    };
    let tools = is_encrypted.then(|| "cryptsetup".to_owned());
    for tool in tools.into_iter().chain(mkfs) {
        if let Some(why) = host.tools.lacks(&tool) {
            let words = format!("{id} cannot be mounted: {why}");
            return Some(Outcome::Tried("no-tool", words));
        }
    }
    let has_secret = options.is_some_and(|options| options.passphrase.is_some());
    let key = config
        .key_file(id.vg())
        .filter(|_| is_encrypted && !has_secret)?;
    let problem = require_secret(key).err()?;
    let key = key.shown();
    let words = format!("{id} cannot be mounted: reading the key_file {key}: {problem}");
    Some(Outcome::Tried("no-key", words))
}

/// `None`: no objection, or the mount runs no tool.
fn tried(host: &Host, config: &Config, seen: &Look) -> Option<Outcome> {
    // Of an encrypted volume the device inside, if it is open.
    let device = seen.facts.top()?;
    match &seen.decision {
        Decision::Mount(mount) if mount.check => {
            let tried = |words| Some(Outcome::Tried("fsck", words));
            let file = match device.open(host.kernel, false) {
                Ok(file) => Arc::new(file),
                Err(error) => return tried(error.to_string()),
            };
            match fs::judged(host, &device.node(host.kernel), (&file, &device.path)) {
                Ok(Judged::Errors) if !is_left_by_a_crash(&seen.facts) => {
                    Some(Outcome::Repair(format!(
                        "e2fsck finds errors on {}, and the mount succeeds if `e2fsck -p` can repair them; `e2fsck -n {}` \
                     lists them",
                        device.id,
                        device.path.shown()
                    )))
                }
                Ok(Judged::Not) => tried(fs::TOO_OLD.to_owned()),
                Ok(Judged::Well | Judged::Errors) => None,
                Err(error) => tried(error.to_string()),
            }
        }
        Decision::Make { permit, how } => {
            let size = device.size(host.kernel).ok()?;
            let header = match how {
                Making::InLuks { .. } => HEADER_SIZE.get(),
                Making::Plain { .. } | Making::Inside => 0,
            };
            let size = Bytes::new(size.get().saturating_sub(header));
            let more = config.mkfs_options(device.id.vg(), permit.fs());
            let made = mkfs(host, &more, permit.fs(), size);
            made.err().map(|error| {
                let words = format!(
                    "mkfs would refuse {} ({}): {error:#}",
                    device.id,
                    size.rounded()
                );
                Outcome::Tried("mkfs", words)
            })
        }
        _ => None,
    }
}

/// `e2fsck -n` replays no log, and would take for errors what the log mends.
fn is_left_by_a_crash(facts: &Facts) -> bool {
    let content = facts.top_content();
    matches!(content, Some(Content::Filesystem(found)) if found.condition == Condition::LogToReplay)
}

/// Tries whether mkfs takes the node's options, and a volume of this size, on a file of the driver's own.
fn mkfs(host: &Host, more: &[&str], fs: FsType, size: Bytes) -> Result<()> {
    let lock = lock::hold_trial(host.kernel, host.limits.lock)?;
    let image = Path::new(LOCK_DIR).join("trial.image");
    let made = files::sparse(&image, size.get());
    let tried = made.and_then(|()| fs::try_mkfs(host, fs, &image, more, &lock));
    let _ = files::remove(&image);
    tried
}
