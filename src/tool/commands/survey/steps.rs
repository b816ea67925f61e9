//! What was seen of a volume, and what its next mount does, as steps in words.

use driver::names::{Shown, folded};
use driver::volume::{Content, Decision, Facts, Lvm, Making, When};

/// The steps of the next mount, in order.
pub fn to_do(decision: &Decision) -> Vec<String> {
    match decision {
        Decision::Refuse(_) | Decision::Restrict { .. } | Decision::Ready => Vec::new(),
        Decision::Bind(row) => vec![format!("bind from {}", row.mount_point.shown())],
        Decision::Mount(mount) => {
            let grow = "grow it to the size of the volume";
            let mut steps = Vec::new();
            for other in mount.alive.iter().flatten() {
                steps.push(format!("mounted elsewhere: {other}"));
            }
            if mount.check {
                let check =
                    "check it with e2fsck -p, which must find nothing that it cannot repair";
                steps.push(check.to_owned());
            }
            if mount.grow == When::Before {
                steps.push(grow.to_owned());
            }
            steps.push(format!("mount {}", mount.filesystem));
            if mount.record != When::Not {
                steps.push("record it in the volume's tags".to_owned());
            }
            if mount.grow == When::After {
                steps.push(grow.to_owned());
            }
            steps
        }
        Decision::Make { permit, how } => {
            let fs = permit.fs();
            let mut steps = match how {
                Making::Plain { again: false } => vec![format!("make {fs}")],
                Making::Plain { again: true } => {
                    vec![format!("make {fs} again: its mkfs was stopped")]
                }
                Making::InLuks { uuid } => {
                    let again = uuid.as_ref().map_or("", |_| " again: it was stopped");
                    vec![format!("encrypt it{again}"), format!("make {fs}")]
                }
                Making::InOpenLuks => {
                    vec![format!("make {fs} inside, again: its mkfs was stopped")]
                }
            };
            steps.push(format!("mount {fs}"));
            steps
        }
        // Without the passphrase, nobody knows the further steps.
        Decision::Open { .. } => vec![
            "open it with its passphrase".to_owned(),
            "mount what is inside, which only the passphrase tells".to_owned(),
        ],
        Decision::Resume => {
            vec!["resume what a killed LVM command left suspended".to_owned()]
        }
        Decision::Look(_) => vec!["read what is on it".to_owned()],
        Decision::Create(size) => {
            vec![format!(
                "create it with {size}, make its filesystem and mount it"
            )]
        }
        Decision::Activate | Decision::Extend(_) => {
            vec!["activate it, and look at what is on it".to_owned()]
        }
    }
}

/// What was seen of the volume, in order: its device, its mounts, its record and its content.
pub fn found(facts: &Facts) -> Vec<String> {
    let mut steps = vec![match &facts.device {
        Some(device) => format!("active: {} ({})", device.path.shown(), device.number),
        None if matches!(facts.lvm, Some(Lvm::NoVolume)) => "there is none yet".to_owned(),
        None => "not active".to_owned(),
    }];
    if let Some(uses) = &facts.uses {
        for mounted in &uses.mounts {
            steps.push(format!("mounted at {}", mounted.row.mount_point.shown()));
        }
    }
    if let Some(Lvm::Volume { volume, .. }) = &facts.lvm {
        let tags = volume.record.tags.join(", ");
        steps.push(if tags.is_empty() {
            "no record in its tags".to_owned()
        } else {
            format!("its record: {tags}")
        });
    }
    steps.extend(facts.content.as_ref().map(content_in_words));
    if let Some(inside) = &facts.decrypted {
        steps.push(format!("inside: {}", content_in_words(&inside.content)));
    }
    steps
}

/// The content in a few words.
pub fn content_in_words(content: &Content) -> String {
    match content {
        Content::Blank { zero: true, .. } => {
            "blank: all that could hold a signature reads as zero".to_owned()
        }
        Content::Blank { .. } => "no known signature".to_owned(),
        Content::Filesystem(found) => format!(
            "{}, covering {} of {}",
            found.filesystem, found.covers, found.device
        ),
        Content::Luks(header) => {
            let uuid = header.uuid.as_deref().unwrap_or("without a UUID");
            let state = if header.is_whole {
                ""
            } else {
                ", not both copies are whole"
            };
            format!("a LUKS2 header {uuid}{state}")
        }
        Content::Damaged(fs) => format!("{fs}, damaged"),
        Content::Other(what) => what.to_string(),
        Content::Several => "several signatures at once".to_owned(),
        Content::Unreadable { at, .. } => format!("cannot be read at byte {at}"),
        Content::Claimed(_) => "in use".to_owned(),
        Content::Failed(why) => folded(why),
    }
}
