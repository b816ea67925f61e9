//! `flexvolume-lvm key` and `flexvolume-lvm header-backup`: the passphrases and the header of an encrypted volume.
//! Only a volume whose header is the one of its record is touched, under its lock, and nothing inside it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::operator;
use super::survey::{Look, Request, look};
use crate::files;
use crate::output::{Printed, columns, counted, printed, titles};
use crate::passphrase::{From, require_two};
use driver::config::{Config, Loaded};
use driver::crypt::{self, Keyslot, MOST_KEYSLOTS};
use driver::host::{Host, Lock, Writing};
use driver::names::{Bytes, LvId, Shown};
use driver::volume::{Decision, Pinned, Subject, Uses, of_header};

#[derive(Serialize)]
struct Report<'a> {
    volume: String,
    /// Of its LUKS2 header.
    uuid: &'a str,
    keys: &'a [Keyslot],
    most: usize,
}

/// `flexvolume-lvm key list VG/LV`.
pub fn list(host: &Host, config: &Loaded, id: &LvId, json: bool) -> Result<Printed> {
    let config = config.require()?;
    let found = Encrypted::find(host, config, id)?;
    let report = Report {
        volume: id.to_string(),
        uuid: &found.uuid,
        keys: &found.slots,
        most: MOST_KEYSLOTS,
    };
    let mut rows = vec![titles(["SLOT", "KDF", "MEMORY", "PASSES", "TOKEN"])];
    let shown = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    for key in report.keys {
        let memory = key.memory.map(Bytes::new);
        rows.push(vec![
            key.slot.to_string(),
            key.kdf.shown().to_string(),
            memory.map_or("-".to_owned(), |memory| memory.to_string()),
            shown(key.passes),
            key.token.as_deref().unwrap_or("-").shown().to_string(),
        ]);
    }
    printed(&report, columns(&rows), json)
}

/// `flexvolume-lvm key add VG/LV`. `opens`: the file of a passphrase that does; `new`: of the one to be added.
pub fn add(
    host: &Writing,
    config: &Loaded,
    id: &LvId,
    (opens, new): (Option<&Path>, Option<&Path>),
) -> Result<Printed> {
    let config = config.require()?;
    let (from, to) = (stays(config, id, opens), From::of(new, None));
    require_two(from, to, "--new-key-file")?;
    // Neither the lock nor the device is held while a person is asked.
    Encrypted::find(host, config, id)?.require_room()?;
    let old = from.read(host, "Passphrase that opens it", false)?;
    let new = to.read(host, "New passphrase", true)?;
    let found = Encrypted::find(host, config, id)?;
    if crypt::opens(host, &found.on.node, None, &new)? {
        let said = format!("{id} has this passphrase already. Nothing was changed.\n");
        return Ok(Printed::text(said));
    }
    found.require_room()?;
    let keys = [&old, &new];
    host.add_key(&config.luks, (id, &found.on.node), keys, found.lock()?)?;
    operator::log(host, config, "key-add", id, "a passphrase");
    let now = found.slots.len().saturating_add(1);
    Ok(Printed::text(format!(
        "{id} has {} now, and each of them opens it.\nNext: have pods use the new one, then `{} key remove {id}` \
         takes the old one away\n",
        counted(now, "key"),
        driver::host::own_name()
    )))
}

/// `flexvolume-lvm key remove VG/LV`. `stays`: the file of a passphrase that does; `old`: of the one that goes.
pub fn remove(
    host: &Writing,
    config: &Loaded,
    id: &LvId,
    (stays, old): (Option<&Path>, Option<&Path>),
) -> Result<Printed> {
    let config = config.require()?;
    let (keep, go) = (self::stays(config, id, stays), From::of(old, None));
    require_two(keep, go, "--old-key-file")?;
    Encrypted::find(host, config, id)?.require_second()?;
    let stays = keep.read(host, "Passphrase that stays", false)?;
    let goes = go.read(host, "Passphrase that goes", false)?;
    if stays == goes {
        bail!(
            "the passphrase that is to go from {id} is the one that is to stay: give two that differ"
        );
    }
    let found = Encrypted::find(host, config, id)?;
    found.require_second()?;
    if !crypt::opens(host, &found.on.node, None, &stays)? {
        bail!(
            "the passphrase that is to stay does not open {id}, so none is removed. Add it first with `{} key add \
             {id}`",
            driver::host::own_name()
        );
    }
    let mut removed = 0_usize;
    for slot in &found.slots {
        if crypt::opens(host, &found.on.node, Some(slot.slot), &goes)? {
            host.remove_key(&found.on.node, slot.slot, &stays, found.lock()?)?;
            removed = removed.saturating_add(1);
        }
    }
    if removed == 0 {
        bail!(
            "no key of {id} is the passphrase that is to go: if this was run before, nothing is left to do; else \
             look whether its file ends with a newline too many"
        );
    }
    operator::log(host, config, "key-remove", id, "a passphrase");
    let now = found.slots.len().saturating_sub(removed);
    Ok(Printed::text(format!(
        "{id} has {} now. The passphrase that went still opens each backup of its header that was made before: make \
         a new one (`{} header-backup {id} FILE`), and destroy those\n",
        counted(now, "key"),
        driver::host::own_name()
    )))
}

/// `flexvolume-lvm header-backup VG/LV FILE`.
pub fn back_up(host: &Writing, config: &Loaded, id: &LvId, file: &Path) -> Result<Printed> {
    let config = config.require()?;
    let file = std::path::absolute(file).context("reading the name of the file")?;
    let mut part = file.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    for path in [&file, &part] {
        if files::exists(path)? {
            bail!(
                "{} exists, and nothing is overwritten: name another file, or remove it",
                path.shown()
            );
        }
    }
    let found = Encrypted::find(host, config, id)?;
    let written = || -> Result<()> {
        host.back_up_header(&found.on.node, &part, found.lock()?)?;
        let made = files::synced(&part, 0o600)?;
        let header = crypt::read(&made).context("reading the backup again")?;
        if !header
            .is_some_and(|header| header.is_whole() && header.uuid.as_deref() == Some(&found.uuid))
        {
            bail!("what cryptsetup wrote is not the header {}", found.uuid);
        }
        // A link, because a file that has come meanwhile is to stay.
        files::other_name(&part, &file)
    };
    let written = written();
    files::remove(&part)?;
    written.with_context(|| format!("backing up the header of {id}"))?;
    operator::log(host, config, "header-backup", id, &file.shown().to_string());
    Ok(Printed::text(format!(
        "The header {} of {id}, with {}, is in {} (mode 0600). With a passphrase of today it opens the volume \
         whatever is changed later: keep it elsewhere, and as safe as the passphrase.\nTo restore it, with the \
         volume closed: cryptsetup luksHeaderRestore --header-backup-file {} {}\n",
        found.uuid,
        counted(found.slots.len(), "key"),
        file.shown(),
        file.shown(),
        id.device().shown()
    )))
}

fn stays<'a>(config: &'a Config, id: &LvId, file: Option<&'a Path>) -> From<'a> {
    From::of(file, config.key_file(id.vg()))
}

/// An encrypted volume that is active here, with its recorded header, under its lock.
struct Encrypted {
    seen: Look,
    /// Pinned: while cryptsetup works, its number is no other device's.
    on: Pinned,
    uuid: String,
    slots: Vec<Keyslot>,
}

impl Encrypted {
    fn find(host: &Host, config: &Config, id: &LvId) -> Result<Self> {
        let request = Request {
            patience: config.limits.lock,
            unread: true,
            ..Request::default()
        };
        let seen = look(Subject { host, config, id }, None, request)?;
        let facts = &seen.facts;
        if let Some(reason) = facts.uses.as_ref().and_then(Uses::waits) {
            bail!("{}", reason.of(id));
        }
        let Some(device) = facts.device.clone() else {
            match &seen.decision {
                Decision::Refuse(reason) => bail!("{}", reason.of(id)),
                _ => bail!("{id} is not active; run `lvchange -ay {id}` first"),
            }
        };
        let Some(uuid) = facts.require_volume()?.record.luks.clone() else {
            bail!(
                "{id} is not encrypted, as far as its tags say: it has no key that could be changed"
            );
        };
        let pinned = device.pin(host.kernel)?;
        let file = (&pinned.file, pinned.device.path.as_path());
        let header = crypt::header_of(host, file)?;
        if let Err(reason) = of_header(&uuid, header.as_ref()) {
            bail!("{}", reason.of(id));
        }
        let slots = crypt::keyslots_of(host, file)?;
        Ok(Self {
            slots: slots.with_context(|| format!("the key slots of {id} cannot be read"))?,
            on: pinned,
            uuid,
            seen,
        })
    }

    fn lock(&self) -> Result<&Lock> {
        let lock = self.seen.lock.as_ref();
        lock.context("the volume's lock is not held")
    }

    fn require_room(&self) -> Result<()> {
        if self.slots.len() >= MOST_KEYSLOTS {
            bail!(
                "{} has {MOST_KEYSLOTS} keys, the most that a header may have: remove one",
                self.seen.facts.id
            );
        }
        Ok(())
    }

    fn require_second(&self) -> Result<()> {
        if self.slots.len() < 2 {
            let id = &self.seen.facts.id;
            bail!(
                "{id} has one key alone, and without it nobody could read it: add another before it goes"
            );
        }
        Ok(())
    }
}
