//! The commands with which an operator vouches for a volume's content: `adopt`, `allow-format`. They are no options of
//! a volume, since an author of pods must not vouch. Each command looks and decides as the next mount does.

use std::io::{IsTerminal, Write as _};

use anyhow::{Context, Result, anyhow, bail};

use super::survey::{Request, SeenVolume, look};
use crate::output::Printed;
use driver::config::{Config, Loaded};
use driver::crypt;
use driver::fs::{self, Probed};
use driver::host::{Host, Writing};
use driver::lvm::{self, Tags};
use driver::names::{Filesystem, LvId, Shown};
use driver::reply::Status;
use driver::volume::{
    Content, Decision, Device, Doubt, Reason, Subject, not_active, require_header, require_opened,
};

/// `flexvolume-lvm adopt VG/LV`: records the filesystem that is on the volume now as the right one. If the volume is
/// LUKS2, the operator opens it first, and this records the filesystem inside.
pub fn adopt(host: &Writing, config: &Loaded, id: &LvId) -> Result<Printed> {
    let config = config.require()?;
    let seen = look(Subject { host, config, id }, None, held(config))?;
    let inside = opened_by_operator(host, &seen)?;
    let filesystem = match &inside {
        Some(device) => inside_of(host, device)?,
        None => found(host, &seen)?,
    };
    let luks = inside.as_ref().or(seen.facts.top());
    let luks = luks.and_then(|device| device.luks.as_deref());
    let record = &seen.facts.require_volume()?.record;
    retag(host, &seen, &record.holding(&filesystem, luks))?;
    log(host, config, "adopt", id, &filesystem.to_string());
    let within = luks.map_or_else(String::new, |luks| {
        format!(", inside the LUKS2 header {luks}")
    });
    let own = |device: &Device| crypt::name_of(&device.lv_uuid);
    let close = inside.filter(|device| !device.path.ends_with(own(device)));
    let close = close.map_or_else(String::new, |device| {
        format!(
            "Next: `cryptsetup close {}`, before a pod uses it\n",
            device.path.quoted()
        )
    });
    Ok(Printed::text(format!(
        "{id} is recorded as {filesystem}{within}.\n{close}"
    )))
}

/// The filesystem on a volume. Fails if `adopt` must not record it.
fn found(host: &Writing, seen: &SeenVolume) -> Result<Filesystem> {
    let id = &seen.facts.id;
    let refuse = |reason: &Reason| bail!("{}", reason.message(id));
    let content = seen.facts.top_content();
    Ok(match (&seen.decision, content) {
        (
            Decision::Refuse(Reason::Swapped { .. } | Reason::NewNotBlank(_)),
            Some(Content::Filesystem(found)),
        ) => found.filesystem.clone(),
        (Decision::Mount(mount), _) => mount.filesystem.clone(),
        // The volume is mounted, so only blkid can name its filesystem.
        (Decision::Bind(_), _) => match fs::probe(host, &top_of(seen)?.node(host.kernel))? {
            Probed::Filesystem(filesystem) => filesystem,
            _ => bail!("{id} is mounted, but blkid cannot name what is on it"),
        },
        (Decision::Activate, _) => bail!("{}", not_active(id)),
        (Decision::Refuse(reason), _) => return refuse(reason),
        (Decision::Resume, _) => return refuse(&suspended(seen)),
        (
            Decision::Look(_)
            | Decision::Ready
            | Decision::Extend(_)
            | Decision::Create(_)
            | Decision::Restrict { .. }
            | Decision::Open { .. }
            | Decision::Make { .. },
            _,
        ) => bail!("nothing can be found on {id}, so there is nothing to adopt"),
    })
}

/// The decrypted device of a LUKS2 volume, which an operator has opened. It is looked for only if the driver refuses
/// the volume, or would open the volume itself. `None`: the driver decides otherwise, or the volume is not active or
/// has no usable LUKS2 header. Fails if the volume is not open, if the header does not encrypt as the driver does, or
/// if the kernel's table of the open device does not match the header.
fn opened_by_operator(host: &Writing, seen: &SeenVolume) -> Result<Option<Device>> {
    let id = &seen.facts.id;
    let may_be_adopted = matches!(
        &seen.decision,
        Decision::Open { .. }
            | Decision::Refuse(
                Reason::PartOfDevice { .. }
                    | Reason::Other { .. }
                    | Reason::Header { .. }
                    | Reason::Inside { .. }
                    | Reason::NoKey
            )
    );
    let Some(device) = seen.facts.device.clone().filter(|_| may_be_adopted) else {
        return Ok(None);
    };
    let pinned = device.pin(host.kernel)?;
    let header = crypt::header_of(host, (&pinned.file, &pinned.device.path))?;
    let Some(uuid) = header.as_ref().filter(|header| header.is_usable()) else {
        return Ok(None);
    };
    let uuid = uuid.uuid.clone().unwrap_or_default();
    let refuse = |reason: Reason| anyhow!("{}", reason.message(id));
    require_header(&uuid, header.as_ref()).map_err(refuse)?;
    let inside = pinned.device.opened_by_anybody(host.kernel);
    let inside = inside.with_context(|| {
        format!(
            "{id} is LUKS2, and only who opens it sees what is inside, so nothing is recorded. Run `cryptsetup open \
             {} NAME`, and then this again",
            pinned.device.path.shown()
        )
    })?;
    let of = inside.luks.as_deref().unwrap_or_default();
    let table = crypt::table_of(host, inside.number)?;
    require_opened(of, header.as_ref(), &table, Some(pinned.device.number)).map_err(refuse)?;
    Ok(Some(inside))
}

/// The filesystem inside an encrypted volume.
fn inside_of(host: &Writing, inside: &Device) -> Result<Filesystem> {
    match fs::probe(host, &inside.node(host.kernel))? {
        Probed::Filesystem(filesystem) => Ok(filesystem),
        _ => bail!(
            "{} is open, and has no filesystem inside that blkid knows: there is nothing to adopt",
            inside.id
        ),
    }
}

/// `flexvolume-lvm allow-format VG/LV`: lets the next mount within a day format a volume that looks blank, though its
/// record or remains on it show that it held data.
pub fn allow_format(host: &Writing, config: &Loaded, id: &LvId, yes: bool) -> Result<Printed> {
    let config = config.require()?;
    let look = || look(Subject { host, config, id }, None, held(config));
    let mut seen = look()?;
    if let (false, Some(doubts)) = (yes, doubts_of(&seen)?) {
        let shown = doubts.to_vec();
        let uuid = seen.facts.require_volume()?.uuid.clone();
        // Gives up the lock and the device before it asks: an answer may never come, and pods would wait for both.
        drop(seen);
        if !confirmed(id, &Doubt::listed(&shown))? {
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
    let given_up = Doubt::listed(doubts);
    let volume = seen.facts.require_volume()?;
    let tag = lvm::permission_tag(&Doubt::names(doubts), seen.facts.now);
    retag(host, &seen, &volume.record.setting(tag.clone()))?;
    log(host, config, "allow-format", id, &given_up);
    Ok(Printed::text(format!(
        "The next mount for writing may format {id}, within a day. Given up: {given_up}.\nTo take \
         this back: lvchange --deltag {tag} {id}\n"
    )))
}

/// The doubts for which the next mount refuses to format, and which an operator may overrule. `None`: the next mount
/// formats the volume. Fails if that mount is refused for another reason, or would not format.
fn doubts_of(seen: &SeenVolume) -> Result<Option<&[Doubt]>> {
    let id = &seen.facts.id;
    match &seen.decision {
        Decision::Make { .. } => Ok(None),
        Decision::Refuse(Reason::Doubts(doubts)) => Ok(Some(doubts)),
        Decision::Refuse(reason) => bail!("{}", reason.message(id)),
        Decision::Resume => bail!("{}", suspended(seen).message(id)),
        Decision::Activate => bail!("{}", not_active(id)),
        Decision::Bind(row) => bail!("{id} is mounted at {}", row.mount_point.shown()),
        Decision::Open { .. } => bail!(
            "{id} is encrypted, and only who opens it sees what is inside, so it is never formatted by a permission; \
             nothing was changed. If the data may go, run `lvremove {id}` and make the volume anew"
        ),
        Decision::Mount(_) => {
            bail!("{id} holds a filesystem, which the next mount uses; nothing was changed")
        }
        Decision::Look(_)
        | Decision::Ready
        | Decision::Extend(_)
        | Decision::Create(_)
        | Decision::Restrict { .. } => {
            bail!("nothing is known of what {id} holds; nothing was changed")
        }
    }
}

/// The refusal for a suspended volume. The volume cannot be read until the next mount resumes it.
fn suspended(seen: &SeenVolume) -> Reason {
    Reason::Suspended(seen.facts.id.dm_name())
}

fn top_of(seen: &SeenVolume) -> Result<&Device> {
    let device = seen.facts.top();
    device.with_context(|| format!("{} is not active", seen.facts.id))
}

/// The request for a look like a mount's, which waits for other calls.
fn held(config: &Config) -> Request<'static> {
    Request {
        patience: config.limits.lock,
        ..Request::default()
    }
}

/// Asks on a terminal. Without a terminal, `--yes` is needed.
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
