//! The commands with which an operator vouches for a volume's content: `adopt`, `allow-format`. They are no options of
//! a volume, since an author of pods must not vouch. Each command looks and decides as the next mount does.

mod adopt;
mod allow_format;

use anyhow::{Context, Result};

use super::survey::{Request, SeenVolume};
pub use adopt::adopt;
pub use allow_format::allow_format;
use driver::config::Config;
use driver::host::{Host, Writing};
use driver::lvm::Tags;
use driver::names::LvId;
use driver::reply::Status;
use driver::volume::Reason;

/// The refusal for a suspended volume. The volume cannot be read until the next mount resumes it.
fn suspended(seen: &SeenVolume) -> Reason {
    Reason::Suspended(seen.facts.id.dm_name())
}

/// Requests a look under the volume's lock, as a mount has it: the look waits until other calls have ended.
fn held(config: &Config) -> Request<'static> {
    Request {
        patience: config.limits.lock,
        ..Request::default()
    }
}

fn retag(host: &Writing, seen: &SeenVolume, tags: &Tags) -> Result<()> {
    let volume = seen.facts.require_volume()?;
    let lock = seen.lock.as_ref();
    let tagged = host.retag(volume.target(), tags, lock);
    tagged.context("writing the record")
}

/// Logs the command, with the user who ran it.
pub(super) fn log(host: &Host, config: &Config, command: &str, id: &LvId, what: &str) {
    let variable = |name| std::env::var(name).ok();
    let user = variable("SUDO_USER").or_else(|| variable("USER"));
    host.log.about("volume", &id.to_string());
    host.log.about("user", user.as_deref().unwrap_or("root"));
    host.log.about("what", what);
    host.log.write(&config.log, command, Status::Success, "");
}
