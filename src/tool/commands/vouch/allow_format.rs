//! `flexvolume-lvm allow-format`: an operator vouches that what a volume held may be lost.

use std::io::{IsTerminal, Write as _};

use anyhow::{Context, Result, bail};

use super::{held, log, retag, suspended};
use crate::commands::survey::{SeenVolume, look};
use crate::output::Printed;
use driver::config::Loaded;
use driver::host::Writing;
use driver::lvm;
use driver::names::{LvId, Shown};
use driver::volume::{Decision, Doubt, Reason, Subject, not_active};

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
        if !confirmed(id, &Doubt::in_words(&shown))? {
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
    let given_up = Doubt::in_words(doubts);
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
