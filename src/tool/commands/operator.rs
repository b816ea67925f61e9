//! An operator's word on what is on a volume. These are commands and not options of a volume, so
//! that nobody who writes a pod can give it. Each looks and decides as the next mount does.

use std::io::{IsTerminal, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::survey::{Look, Request, look};
use crate::output::Printed;
use crate::passphrase::From;
use driver::config::{Config, Loaded};
use driver::crypt::{self, Header};
use driver::fs::{self, Found};
use driver::host::{Host, Writing};
use driver::lvm::{self, Tags};
use driver::names::{Filesystem, LvId, Shown};
use driver::options::Passphrase;
use driver::reply::Status;
use driver::volume::{Content, Decision, Device, Doubt, Reason, Subject};

/// `flexvolume-lvm adopt VG/LV`: records the filesystem that is there now as the one that belongs there. Of a LUKS2
/// volume that is the one inside, which takes a passphrase to see.
pub fn adopt(
    host: &Writing,
    config: &Loaded,
    id: &LvId,
    key_file: Option<&Path>,
) -> Result<Printed> {
    let config = config.require()?;
    let look = || look(Subject { host, config, id }, None, held(config));
    let mut seen = look()?;
    let mut luks = None;
    if let Some(found) = header(host, &seen)? {
        // Neither the lock nor the device, while a person is asked.
        drop(seen);
        let from = From::of(key_file, config.key_file(id.vg()));
        let asked = from.read(host, "Passphrase that opens it", false);
        let passphrase = asked.with_context(|| {
            format!(
                "{id} is LUKS2, and only a passphrase tells what is inside, so nothing is recorded"
            )
        })?;
        seen = look()?;
        let now = header(host, &seen)?;
        if now.as_ref() != Some(&found) {
            bail!("{id} has changed since it was looked at, and is left as it is; run this again");
        }
        luks = Some((found, inside(host, config, &seen, &passphrase)?));
    }
    let volume = seen.facts.require_volume()?;
    let filesystem = match &luks {
        Some((_, inside)) => inside.clone(),
        None => found(host, &seen)?,
    };
    let mut tags = volume.record.replaced_by(lvm::made_tag(&filesystem));
    if let Some((header, _)) = &luks {
        let old = volume.record.luks.iter().filter(|old| *old != header);
        tags.remove.extend(old.map(|old| lvm::luks_tag(old)));
        tags.add.push(lvm::luks_tag(header));
    }
    retag(host, &seen, &tags)?;
    log(host, config, "adopt", id, &filesystem.to_string());
    let within = luks.map_or_else(String::new, |(header, _)| {
        format!(", inside the LUKS2 header {header}")
    });
    Ok(Printed::text(format!(
        "{id} is recorded as {filesystem}{within}.\n"
    )))
}

/// The filesystem that a volume has, if it may be recorded.
fn found(host: &Writing, seen: &Look) -> Result<Filesystem> {
    let id = &seen.facts.id;
    let refuse = |reason: &Reason| bail!("{}", reason.of(id));
    let content = seen.facts.inside.as_ref().or(seen.facts.content.as_ref());
    Ok(match (&seen.decision, content) {
        (
            Decision::Refuse(Reason::Swapped { .. } | Reason::NewNotBlank(_)),
            Some(Content::Filesystem(found)),
        ) => found.filesystem.clone(),
        (Decision::Mount(mount), _) => mount.filesystem.clone(),
        // The volume is mounted: blkid reads it meanwhile.
        (Decision::Bind(_), _) => match fs::probe(host, &top_of(seen)?.node(host.kernel))? {
            Found::Filesystem(filesystem) => filesystem,
            _ => bail!("{id} is mounted, but blkid cannot name what is on it"),
        },
        (Decision::Activate, _) => bail!("{id} is not active; run `lvchange -ay {id}` first"),
        (Decision::Refuse(reason), _) => return refuse(reason),
        (Decision::Resume, _) => return refuse(&suspended(seen)),
        _ => bail!("nothing can be found on {id}, so there is nothing to adopt"),
    })
}

/// The UUID of the LUKS2 header that could be recorded of a volume that is closed, and that nobody uses.
fn header(host: &Writing, seen: &Look) -> Result<Option<String>> {
    let is_closed = matches!(
        &seen.decision,
        Decision::Open
            | Decision::Refuse(
                Reason::Other { .. }
                    | Reason::NewNotBlank(_)
                    | Reason::OldMetadata(_)
                    | Reason::Header { .. }
                    | Reason::NoKey(_)
            )
    );
    let device = seen.facts.device.as_ref().filter(|_| is_closed);
    // Of a volume that is open the filesystem inside is found as that of any other.
    let Some(device) = device.filter(|device| seen.facts.top() == Some(device)) else {
        return Ok(None);
    };
    let pinned = device.clone().pin(host.kernel)?;
    let header = crypt::header_of(host, (&pinned.file, &pinned.device.path))?;
    Ok(header
        .filter(Header::is_usable)
        .and_then(|header| header.uuid))
}

/// The filesystem inside.
fn inside(
    host: &Writing,
    config: &Config,
    seen: &Look,
    passphrase: &Passphrase,
) -> Result<Filesystem> {
    let id = &seen.facts.id;
    let device = seen.facts.device.clone();
    let device = device.with_context(|| format!("{id} is not active"))?;
    let pinned = device.pin(host.kernel)?;
    let lock = seen
        .lock
        .as_ref()
        .context("the volume's lock is not held")?;
    let volume = (id, &pinned.device.lv_uuid, &pinned.node);
    let found = host.look_inside(&config.luks, volume, passphrase, lock, |node| {
        fs::probe(host, node)
    });
    match found.context("nothing is recorded")? {
        Found::Filesystem(filesystem) => Ok(filesystem),
        _ => bail!(
            "{id} was opened, and has no filesystem inside that blkid knows: there is nothing to adopt"
        ),
    }
}

/// `flexvolume-lvm allow-format VG/LV`: lets the next mount, within a day, format a volume on which nothing
/// is found, although its record or remains on it say that it held data.
pub fn allow_format(host: &Writing, config: &Loaded, id: &LvId, yes: bool) -> Result<Printed> {
    let config = config.require()?;
    let look = || look(Subject { host, config, id }, None, held(config));
    let mut seen = look()?;
    if let (false, Some(doubts)) = (yes, doubts_of(&seen)?) {
        let shown = doubts.to_vec();
        let uuid = seen.facts.require_volume()?.uuid.clone();
        // Neither the lock nor the device: nobody may ever answer, and pods wait for both.
        drop(seen);
        if !confirmed(id, &listed(&shown))? {
            bail!("{id} is left as it is");
        }
        seen = look()?;
        let is_other = doubts_of(&seen)?.is_some_and(|doubts| doubts != shown);
        if is_other || seen.facts.require_volume()?.uuid != uuid {
            bail!("{id} has changed since you were asked, and is left as it is; run this again");
        }
    }
    let Some(doubts) = doubts_of(&seen)? else {
        let given = match &seen.facts.require_volume()?.record.permission {
            Some((what, _)) => format!("an operator gave up {what} less than a day ago"),
            None => "nothing is on it, and its record says nothing else".to_owned(),
        };
        return Ok(Printed::text(format!(
            "The next mount formats {id} in any case: {given}. Nothing was changed.\n"
        )));
    };
    let given_up = listed(doubts);
    let volume = seen.facts.require_volume()?;
    let tag = lvm::permission_tag(&Doubt::names(doubts), seen.facts.now);
    let old = volume.record.tags.iter();
    let old = old.filter(|old| lvm::is_permission(old) && **old != tag);
    let tags = Tags {
        add: vec![tag.clone()],
        remove: old.cloned().collect(),
    };
    retag(host, &seen, &tags)?;
    log(host, config, "allow-format", id, &given_up);
    Ok(Printed::text(format!(
        "The next mount for writing may format {id}, within a day. Given up: {given_up}.\nTo take \
         this back: lvchange --deltag {tag} {id}\n"
    )))
}

/// Why the next mount does not format it, if an operator may overrule that. None: it formats it.
fn doubts_of(seen: &Look) -> Result<Option<&[Doubt]>> {
    let id = &seen.facts.id;
    match &seen.decision {
        Decision::Make { .. } | Decision::Encrypt { .. } => Ok(None),
        Decision::Refuse(Reason::Doubts(doubts)) => Ok(Some(doubts)),
        Decision::Refuse(reason) => bail!("{}", reason.of(id)),
        Decision::Resume => bail!("{}", suspended(seen).of(id)),
        Decision::Activate => bail!("{id} is not active; run `lvchange -ay {id}` first"),
        Decision::Bind(row) => bail!("{id} is mounted at {}", row.mount_point.shown()),
        _ => bail!("{id} holds a filesystem, which the next mount uses; nothing was changed"),
    }
}

fn listed(doubts: &[Doubt]) -> String {
    let doubts: Vec<String> = doubts.iter().map(ToString::to_string).collect();
    doubts.join(", and ")
}

/// The next mount resumes it. What is on it cannot be read before.
fn suspended(seen: &Look) -> Reason {
    Reason::Suspended(seen.facts.id.dm_name())
}

fn top_of(seen: &Look) -> Result<&Device> {
    let device = seen.facts.top();
    device.with_context(|| format!("{} is not active", seen.facts.id))
}

/// Looks as a mount does, and waits for other calls.
fn held(config: &Config) -> Request<'static> {
    Request {
        patience: config.limits.lock,
        ..Request::default()
    }
}

/// Asks on a terminal. Elsewhere only `--yes` will do.
fn confirmed(id: &LvId, given_up: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "this gives up what is on {id}: {given_up}. If that may go, run this again with --yes"
        );
    }
    let mut terminal = std::io::stderr();
    let question = format!("This gives up what is on {id}: {given_up}.\nType yes to go on: ");
    terminal.write_all(question.as_bytes()).context("asking")?;
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.context("reading the answer")?;
    Ok(answer.trim() == "yes")
}

fn retag(host: &Writing, seen: &Look, tags: &Tags) -> Result<()> {
    let volume = seen.facts.require_volume()?;
    let lock = seen.lock.as_ref();
    let tagged = host.retag(volume.target(), tags, lock);
    tagged.context("writing the record")
}

/// Logs who did it.
pub(super) fn log(host: &Host, config: &Config, command: &str, id: &LvId, what: &str) {
    let variable = |name| std::env::var(name).ok();
    let user = variable("SUDO_USER").or_else(|| variable("USER"));
    host.log.about("volume", &id.to_string());
    host.log.about("user", user.as_deref().unwrap_or("root"));
    host.log.about("what", what);
    host.log.write(&config.log, command, Status::Success, "");
}
