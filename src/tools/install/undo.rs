//! Taking the driver back or away.

use anyhow::{Result, bail};

use super::Report;
use super::place::{Place, exists, remove, rename, write};
use super::put::config_text;
use crate::host::files;

/// Brings back what was there before the last run that changed something.
pub fn undo(place: &Place) -> Result<Report> {
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
        finish(place)?;
        report.say(
            "restored",
            format_args!("{exe}, as it was before (finished an undo that was cut short)"),
        );
    } else if exists(&place.previous)? {
        take_back(place)?;
        report.say("restored", format_args!("{exe}, as it was before"));
        if exists(&place.first)? {
            report.next(format_args!(
                "to take the driver off this node: {}",
                place.command("uninstall")
            ));
        }
    } else if exists(&place.first)? {
        take_away(place, &mut report)?;
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
pub fn uninstall(place: &Place) -> Result<Report> {
    let mut report = Report::default();
    if !place.has_dir()? {
        report.say(
            "nothing",
            format_args!("to remove: there is no {}", place.dir.display()),
        );
        return Ok(report);
    }
    place.clean()?;
    take_away(place, &mut report)?;
    Ok(report)
}

fn take_away(place: &Place, report: &mut Report) -> Result<()> {
    place.require_no_mounts()?;
    for kept in place.remove(&[config_text(true), config_text(false)])? {
        let why = if kept == place.kept_config {
            "because it was edited"
        } else {
            "the driver before this one"
        };
        report.say("kept", format_args!("{}, {why}", kept.display()));
    }
    report.say("removed", place.dir.display());
    Ok(())
}

/// The second half of taking back an upgrade: it begins when the old driver has its name again.
pub fn finish(place: &Place) -> Result<()> {
    if exists(&place.no_config)? && exists(&place.config)? {
        rename(&place.config, &place.undone_config)?;
    }
    remove(&place.no_config)?;
    remove(&place.undoing)
}

/// Gives the driver before its name again.
pub fn take_back(place: &Place) -> Result<()> {
    if !exists(&place.previous)? {
        bail!("{} has gone", place.previous.display());
    }
    write(&place.undoing, b"", 0o644)?;
    rename(&place.previous, &place.exe)?;
    finish(place)
}
