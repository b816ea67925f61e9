//! Taking the driver back or away.

use std::time::Duration;

use anyhow::{Result, bail};

use super::place::{Place, exists, remove, rename, write};
use super::put::config_text;
use super::{Report, answer};
use crate::host::{Host, files};

/// Brings back what was there before the last run that changed something.
pub fn undo(host: &Host, place: &Place) -> Result<Report> {
    let mut report = Report::default();
    let exe = place.exe.display();
    if !place.has_dir()? {
        report.say(
            "nothing",
            format_args!("to undo: there is no {}", place.dir.display()),
        );
        return Ok(report);
    }
    place.clean()?;
    if exists(&place.undoing)? && !exists(&place.previous)? {
        let kept = finish(place)?;
        report.say(
            "restored",
            format_args!("{exe}, as it was before (finished an undo that was cut short)"),
        );
        report.kept(kept);
    } else if exists(&place.previous)? {
        let kept = take_back(place)?;
        report.say("restored", format_args!("{exe}, as it was before"));
        report.kept(kept);
        if exists(&place.first)? {
            report.next(format_args!(
                "to take the driver off this node: {}",
                place.command("uninstall")
            ));
        }
    } else if exists(&place.first)? {
        take_away(host, place, &mut report)?;
    } else if files::remove_dir(&place.dir).is_ok() {
        report.say(
            "removed",
            format_args!("{}: it was empty", place.dir.display()),
        );
    } else {
        report.say(
            "nothing",
            format_args!("to undo: {exe} was not installed like this, or was already taken back"),
        );
    }
    Ok(report)
}

/// Takes the driver off this node.
pub fn uninstall(host: &Host, place: &Place) -> Result<Report> {
    let mut report = Report::default();
    if !place.has_dir()? {
        report.say(
            "nothing",
            format_args!("to remove: there is no {}", place.dir.display()),
        );
        return Ok(report);
    }
    place.clean()?;
    take_away(host, place, &mut report)?;
    Ok(report)
}

fn take_away(host: &Host, place: &Place, report: &mut Report) -> Result<()> {
    place.require_no_mounts()?;
    require_own_driver(host, place)?;
    report.kept(place.remove(&own_configs())?);
    report.say("removed", place.dir.display());
    Ok(())
}

/// Fails when what would be removed is somebody else's: there may be no copy of it.
fn require_own_driver(host: &Host, place: &Place) -> Result<()> {
    if !exists(&place.exe)? || answer::version(host, &place.exe).is_some() {
        return Ok(());
    }
    if host.kernel.pause(Duration::ZERO) {
        bail!("told to stop before anything was removed");
    }
    bail!(
        "{} is not this driver; move it away, then try again",
        place.exe.display()
    )
}

/// The configs that nobody edited.
fn own_configs() -> [String; 2] {
    [true, false].map(config_text)
}

/// The second half of taking back an upgrade: it begins when the old driver has its name again.
/// Says what was kept.
pub fn finish(place: &Place) -> Result<Option<String>> {
    let kept = if exists(&place.no_config)? {
        let kept = place.keep_config(&own_configs())?;
        remove(&place.config)?;
        kept
    } else {
        None
    };
    remove(&place.no_config)?;
    remove(&place.undoing)?;
    Ok(kept)
}

/// Gives the driver before its name again. Says what was kept.
pub fn take_back(place: &Place) -> Result<Option<String>> {
    if !exists(&place.previous)? {
        bail!("{} has gone", place.previous.display());
    }
    write(&place.undoing, b"", 0o644)?;
    rename(&place.previous, &place.exe)?;
    finish(place)
}
