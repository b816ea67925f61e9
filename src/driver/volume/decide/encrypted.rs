//! Decides for a volume that is encrypted, is getting so, or is to be. Pure. Two layers: the LUKS2 header is the
//! volume's content; the filesystem is inside.
//!
//! What is inside a fresh LUKS2 is noise, so "blank inside" is never asked: a filesystem is made there only after
//! the header was made by the same call, and nothing here leads to mkfs once a filesystem was recorded.

use super::content::{claimed, make, of_filesystem, read_only, unreadable, unwritable, wrong_type};
use super::decision::{Decision, Level, Purpose, Wish};
use super::facts::{Content, Facts, Inside};
use super::reason::Reason;
use crate::crypt::{CopyState, Header};
use crate::lvm::Volume;
use crate::names::FsType;

/// Decides by the kind of the volume: whether it is encrypted, if LVM's tags or the device that is mounted tell.
pub fn wrong_kind(is_encrypted: Option<bool>, wish: &Wish) -> Option<Reason> {
    match (wish.purpose, wish.encrypted?, is_encrypted?) {
        (Purpose::Filesystem, false, true) => Some(Reason::Encrypted),
        (Purpose::Filesystem, true, false) => Some(Reason::NotEncrypted),
        _ => None,
    }
}

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
    let inside = facts.uses.as_ref().and_then(|uses| uses.inside.as_ref());
    let (recorded, found) = match (&record.luks, record.making_in_luks(), content) {
        (_, _, Content::Failed(_) | Content::Unreadable { .. }) => return None,
        (Some(_), _, Content::Claimed(_)) => return Some(claimed(facts, None, volume, wish)),
        (Some(uuid), _, Content::Luks(header)) if is_usable_as(header, uuid) => {
            return Some(open(facts, inside, volume, wish));
        }
        (Some(uuid), ..) => (uuid.as_str(), instead(content)),
        (None, Some((_, uuid)), Content::Luks(header)) => {
            // The driver's own luksFormat, or the mkfs after it, was killed; no pod ever had it.
            return Some(if record.made.is_none() && is_of_making(header, uuid) {
                made_again(facts, uuid, volume, wish)
            } else if record.made.is_none() && header.is_marked && is_usable_as(header, uuid) {
                Decision::Refuse(Reason::OldMetadata(uuid.to_owned()))
            } else {
                Decision::Refuse(Reason::NewNotBlank(instead(content)))
            });
        }
        // It is open, and nothing is where its header was: somebody wiped that.
        (None, Some((_, uuid)), _) if inside.is_some() => (uuid, instead(content)),
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

/// Fails if the header is not the recorded one: no other is a person's to change or to keep.
pub fn of_header(recorded: &str, header: Option<&Header>) -> Result<(), Reason> {
    match header {
        Some(header) if is_usable_as(header, recorded) => Ok(()),
        found => Err(Reason::Header {
            recorded: recorded.to_owned(),
            found: found.map_or("none".to_owned(), in_words),
        }),
    }
}

fn is_usable_as(header: &Header, uuid: &str) -> bool {
    header.is_usable() && header.uuid.as_deref() == Some(uuid)
}

/// Whether a luksFormat with this UUID, cut short at any time, may have left this, and no filesystem inside was ever
/// recorded.
fn is_of_making(header: &Header, uuid: &str) -> bool {
    !header.is_marked && header.uuids().all(|one| one == uuid) && header.uuids().next().is_some()
}

fn made_again(facts: &Facts, uuid: &str, volume: &Volume, wish: &Wish) -> Decision {
    let making = volume.record.making_in_luks();
    let fs = making.and_then(|(fs, _)| FsType::parse(fs).ok());
    let fs = wish.fs.or(fs).unwrap_or(wish.default_fs);
    if wish.encrypted == Some(false) {
        return Decision::Refuse(Reason::Encrypted);
    }
    unwritable(facts, volume, wish).map_or_else(
        || encrypt(facts, fs, Some(uuid.to_owned()), wish),
        Decision::Refuse,
    )
}

/// The last arm of an encrypted volume.
pub fn encrypt(facts: &Facts, fs: FsType, uuid: Option<String>, wish: &Wish) -> Decision {
    match make(facts, fs, false) {
        Decision::Make { fs, .. } => match wish.no_key {
            Some(why) => Decision::Refuse(Reason::NoKey(why)),
            None => Decision::Encrypt { fs, uuid },
        },
        refused => refused,
    }
}

/// Header and record agree.
fn open(facts: &Facts, inside: Option<&Inside>, volume: &Volume, wish: &Wish) -> Decision {
    let is_mounted = facts.is_mounted_here();
    if inside.is_none() && is_mounted {
        // Of the device below, which LUKS2 has not claimed.
        return Decision::Refuse(Reason::InUse(Vec::new()));
    }
    let is_to_be_opened = inside.is_none_or(|inside| inside.read_only && !wish.read_only);
    if is_to_be_opened && !is_mounted {
        let reason = read_only(facts, volume, wish).or(wish.no_key.map(Reason::NoKey));
        return reason.map_or(Decision::Open, Decision::Refuse);
    }
    match &facts.inside {
        None => Decision::Look(Level::Inside),
        Some(content) => of_inside(facts, content, volume, wish),
    }
}

/// Decides by what is inside. Nothing here leads to mkfs.
fn of_inside(facts: &Facts, content: &Content, volume: &Volume, wish: &Wish) -> Decision {
    let made = volume.record.made.as_ref();
    Decision::Refuse(match content {
        Content::Failed(words) => Reason::Failed(words.clone()),
        Content::Unreadable { at, error } => unreadable(*at, error),
        Content::Claimed(found) => return claimed(facts, found.as_ref(), volume, wish),
        Content::Filesystem(found)
            if made.is_some_and(|made| made.uuid == found.filesystem.uuid) && !found.half =>
        {
            return of_filesystem(facts, found, volume, wish);
        }
        other => {
            let reason = made.and_then(|made| wrong_type(&made.fs, wish));
            reason.unwrap_or_else(|| Reason::Inside {
                recorded: made.map_or("a filesystem".to_owned(), ToString::to_string),
                found: instead(other),
            })
        }
    })
}

fn in_words(header: &Header) -> String {
    let uuid = header.uuid.as_deref();
    match (uuid, header.is_usable()) {
        (Some(uuid), true) => format!("the header {uuid}"),
        _ if [header.first, header.second].contains(&CopyState::Missing) => {
            "one copy of a header, which is damaged".to_owned()
        }
        _ => "a header of which both copies are damaged".to_owned(),
    }
}

fn instead(content: &Content) -> String {
    match content {
        Content::Blank { .. } => "nothing that blkid knows".to_owned(),
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
