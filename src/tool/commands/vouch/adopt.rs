//! `flexvolume-lvm adopt`: an operator vouches that the filesystem on a volume is the right one.

use anyhow::{Context, Result, anyhow, bail};

use super::{held, log, retag, suspended};
use crate::commands::survey::{SeenVolume, look};
use crate::output::Printed;
use driver::config::Loaded;
use driver::crypt;
use driver::fs::{self, Probed};
use driver::host::Writing;
use driver::names::{Filesystem, LvId, Shown};
use driver::volume::{
    Content, Decision, Device, Reason, Subject, not_active, require_header, require_opened,
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
    let top = inside.as_ref().or(seen.facts.top());
    let luks = top.and_then(|device| device.luks.as_deref());
    let record = &seen.facts.require_volume()?.record;
    retag(host, &seen, &record.holding(&filesystem, luks))?;
    log(host, config, "adopt", id, &filesystem.to_string());
    let within = luks.map_or_else(String::new, |luks| {
        format!(", inside the LUKS2 header {luks}")
    });
    let close = match inside {
        Some(device) if !device.path.ends_with(crypt::name_of(&device.lv_uuid)) => format!(
            "Next: `cryptsetup close {}`, before a pod uses it\n",
            device.path.quoted()
        ),
        Some(_) | None => String::new(),
    };
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
    let Some(usable) = header.as_ref().filter(|header| header.is_usable()) else {
        return Ok(None);
    };
    let uuid = usable.uuid.clone().unwrap_or_default();
    let refuse = |reason: Reason| anyhow!("{}", reason.message(id));
    require_header(&uuid, header.as_ref()).map_err(refuse)?;
    let opened = pinned.device.opened_by_anybody(host.kernel);
    let inside = opened.with_context(|| {
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

fn top_of(seen: &SeenVolume) -> Result<&Device> {
    let device = seen.facts.top();
    device.with_context(|| format!("{} is not active", seen.facts.id))
}
