//! Decides for a volume that is encrypted, half encrypted, or to be encrypted. Pure. Such a volume has two layers:
//! a LUKS2 header, and the filesystem inside.
//!
//! A fresh LUKS2 volume holds noise inside, so no rule asks whether the inside is blank. There are two ways to mkfs:
//! - The same call made the LUKS2 header just before.
//! - The volume's tag says that an earlier call was cut short between header and filesystem; the header was opened,
//!   and no known signature is inside.
//!
//! Once a filesystem is recorded, nothing here leads to mkfs.

use super::cipher;
use super::decision::{Decision, Level, Wish};
use super::doubt::Doubt;
use super::facts::{Content, Decrypted, Facts};
use super::filesystem::{
    claimed, make, of_filesystem, read_only, unreadable, unwritable, wrong_kind, wrong_type,
};
use super::reason::Reason;
use crate::crypt::{DmTable, HEADER_SIZE, Header};
use crate::lvm::Volume;
use crate::names::{FsType, Shown};

/// Decides by the content of a volume with a LUKS2 header, or with a record of one. `None`: it is decided as
/// that of any other volume.
pub fn of_content(
    facts: &Facts,
    content: &Content,
    volume: &Volume,
    wish: &Wish,
) -> Option<Decision> {
    let record = &volume.record;
    let refuse = |reason| Some(Decision::Refuse(reason));
    let is_open = facts
        .uses
        .as_ref()
        .is_some_and(|uses| uses.inside.is_some());
    let (recorded, found) = match (&record.luks, record.making_in_luks(), content) {
        (_, _, Content::Failed(_) | Content::Unreadable { .. }) => return None,
        (Some(_), _, Content::Claimed(_)) => return Some(claimed(facts, None, volume, wish)),
        (Some(uuid), _, Content::Luks(header))
            if is_usable_as(header, uuid) && header.has_keys() =>
        {
            return Some(open(facts, header, volume, wish));
        }
        (Some(uuid), ..) => (uuid.as_str(), instead(content)),
        // The driver's own luksFormat, or the mkfs after it, was killed; or LVM's metadata was restored from then.
        (None, Some((_, uuid)), Content::Luks(header))
            if record.made.is_none()
                && is_usable_as(header, uuid)
                && (header.has_keys() || !is_open) =>
        {
            return Some(if header.has_keys() {
                open(facts, header, volume, wish)
            } else {
                made_again(facts, Some(uuid), volume, wish)
            });
        }
        // It is open, and nothing is where its header was: somebody wiped that.
        (None, Some((_, uuid)), _) if is_open => (uuid, instead(content)),
        (None, _, Content::Filesystem(_)) if wish.encrypted == Some(true) => {
            return refuse(Reason::NotEncrypted);
        }
        _ => return None,
    };
    refuse(Reason::Header {
        recorded: recorded.to_owned(),
        found,
    })
}

/// A header that nobody has recorded.
pub fn foreign(header: &Header, wish: &Wish) -> Reason {
    Reason::Other {
        what: in_words(header).shown(),
        wanted: wish.fs,
    }
}

/// Fails if the header is not the recorded one, or is no header for a volume's secrets.
pub fn of_header(recorded: &str, header: Option<&Header>) -> Result<(), Reason> {
    match header {
        Some(header) if is_usable_as(header, recorded) && header.has_keys() => {
            cipher::of_header(header)
        }
        found => Err(Reason::Header {
            recorded: recorded.to_owned(),
            found: found.map_or("none".to_owned(), in_words),
        }),
    }
}

/// The same of a volume that is open, by this table.
pub fn of_opened(
    recorded: &str,
    header: Option<&Header>,
    table: &DmTable,
    facts: &Facts,
) -> Result<(), Reason> {
    of_header(recorded, header)?;
    header.map_or(Ok(()), |header| cipher::of_table(table, header, facts))
}

fn is_usable_as(header: &Header, uuid: &str) -> bool {
    header.is_usable() && header.uuid.as_deref() == Some(uuid)
}

/// What was cut short is made again: without `uuid` inside the header that stands, which is open.
fn made_again(facts: &Facts, uuid: Option<&str>, volume: &Volume, wish: &Wish) -> Decision {
    let making = volume.record.making_in_luks();
    let fs = making.and_then(|(fs, _)| FsType::parse(fs).ok());
    let fs = wish.fs.or(fs).unwrap_or(wish.default_fs);
    let reason = wrong_kind(Some(true), wish).or_else(|| unwritable(facts, volume, wish));
    if let Some(reason) = reason {
        return Decision::Refuse(reason);
    }
    match uuid {
        Some(uuid) => encrypt(facts, fs, Some(uuid.to_owned()), wish),
        None => made_inside(facts, fs),
    }
}

fn made_inside(facts: &Facts, fs: FsType) -> Decision {
    match make(facts, fs, true) {
        Decision::Make { permit, .. } => Decision::MakeInside { permit },
        refused => refused,
    }
}

/// The last arm of an encrypted volume.
pub fn encrypt(facts: &Facts, fs: FsType, uuid: Option<String>, wish: &Wish) -> Decision {
    let size = facts.volume().map(|volume| volume.size);
    if let Some(size) = size.filter(|size| *size <= HEADER_SIZE) {
        return Decision::Refuse(Reason::TooSmall(size));
    }
    match make(facts, fs, false) {
        Decision::Make { permit, .. } => match wish.no_key {
            Some(why) => Decision::Refuse(Reason::NoKey(why)),
            None => Decision::Encrypt { permit, uuid },
        },
        refused => refused,
    }
}

/// Header and record agree.
fn open(facts: &Facts, header: &Header, volume: &Volume, wish: &Wish) -> Decision {
    let inside = facts.uses.as_ref().and_then(|uses| uses.inside.as_ref());
    let is_mounted = facts.is_mounted_here();
    if let Some(reason) = wrong_kind(Some(true), wish) {
        return Decision::Refuse(reason);
    }
    if let Err(reason) = cipher::of_header(header) {
        return Decision::Refuse(reason);
    }
    if inside.is_none() && is_mounted {
        // Of the device below, which LUKS2 has not claimed.
        return Decision::Refuse(Reason::InUse(Vec::new()));
    }
    // A pod that only reads plays back the log of a filesystem, too, where the volume lets it.
    let may_be_written = read_only(
        facts,
        volume,
        &Wish {
            read_only: false,
            ..wish.clone()
        },
    );
    let may_be_written = may_be_written.is_none();
    let is_to_be_opened = inside.is_none_or(|inside| inside.read_only && may_be_written);
    if is_to_be_opened && !is_mounted {
        let reason = read_only(facts, volume, wish).or(wish.no_key.map(Reason::NoKey));
        let open = Decision::Open {
            read_only: !may_be_written,
        };
        return reason.map_or(open, Decision::Refuse);
    }
    let Some(Decrypted { content, table }) = &facts.inside else {
        return Decision::Look(Level::Inside);
    };
    match cipher::of_table(table, header, facts) {
        Ok(()) => of_inside(facts, content, volume, wish),
        Err(reason) => Decision::Refuse(reason),
    }
}

/// Decides by what is inside. Only of what was cut short does it lead to mkfs.
fn of_inside(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Decision {
    let record = &volume.record;
    let made = record.made.as_ref();
    let making = record.making_in_luks();
    let making = making.filter(|_| made.is_none() && record.luks.is_none());
    let making = making.map(|(fs, _)| fs);
    let is_ext = making.is_some_and(|fs| FsType::parse(fs).is_ok_and(FsType::is_ext));
    let is_left = |doubt: &Doubt| match doubt {
        Doubt::Data(_) => true,
        Doubt::Backup(_) => is_ext,
        Doubt::Mark(_) | Doubt::Recorded(_) => false,
    };
    let is_its = |uuid: &str| match made {
        Some(made) => made.uuid == uuid,
        None => making.is_some(),
    };
    Decision::Refuse(match content {
        Content::Failed(words) => Reason::Failed(words.clone()),
        Content::Unreadable { at, error } => unreadable(*at, error),
        Content::Claimed(found) => return claimed(facts, found.as_ref(), volume, wish),
        Content::Filesystem(found) if is_its(&found.filesystem.uuid) && !found.half => {
            return of_filesystem(facts, found, volume, wish);
        }
        Content::Filesystem(found) if making == Some(found.filesystem.fs.as_str()) => {
            let fs = found.filesystem.fs;
            return match wrong_type(fs.as_str(), wish) {
                Some(reason) => Decision::Refuse(reason),
                None => made_again(facts, None, volume, wish),
            };
        }
        Content::Blank { doubts, .. } if making.is_some() && doubts.iter().all(is_left) => {
            return made_again(facts, None, volume, wish);
        }
        other => {
            let reason = made.and_then(|made| wrong_type(&made.fs, wish));
            let recorded = || match (made, making) {
                (Some(made), _) => made.to_string(),
                (None, Some(fs)) => format!("a new {fs}"),
                (None, None) => "a filesystem".to_owned(),
            };
            reason.unwrap_or_else(|| Reason::Inside {
                recorded: recorded(),
                found: instead(other),
            })
        }
    })
}

/// Before the UUID of a header that can be opened.
pub const WHOLE_LUKS2: &str = "the LUKS2 header ";

fn in_words(header: &Header) -> String {
    let uuid = header.uuid.as_deref();
    match (uuid, header.is_usable()) {
        (Some(uuid), true) if header.has_keys() => format!("{WHOLE_LUKS2}{uuid}"),
        (Some(uuid), true) => format!("a LUKS2 header {uuid} without a key slot"),
        _ => "a damaged LUKS2 header".to_owned(),
    }
}

fn instead(content: &Content) -> String {
    match content {
        Content::Blank { .. } => "no known signature".to_owned(),
        Content::Filesystem(found) => found.filesystem.to_string(),
        Content::Damaged(fs) => format!("{fs}, damaged"),
        Content::Other(what) => what.to_string(),
        Content::Several => "several signatures at once".to_owned(),
        Content::Luks(header) => in_words(header),
        Content::Unreadable { .. } | Content::Claimed(_) | Content::Failed(_) => {
            "what cannot be read".to_owned()
        }
    }
}
