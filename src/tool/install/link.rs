//! A link to the driver for people, since `lvm` in a shell is LVM's own command.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::say;
use crate::files::{self, Kind};
use driver::host::NAME;
use driver::names::Shown;

pub fn link_in(prefix: &Path) -> PathBuf {
    prefix.join("sbin").join(NAME)
}

/// Whether the link exists and leads to this driver. Fails if something else has the link's name.
pub fn is_linked(prefix: &Path, exe: &Path) -> Result<bool> {
    let link = link_in(prefix);
    match files::kind(&link)? {
        Kind::Link if files::is_link_to(&link, exe)? => Ok(true),
        Kind::Missing => Ok(false),
        _ => bail!(
            "{} is there already, and does not lead to this driver; move it away, or leave out --link",
            link.shown()
        ),
    }
}

/// `install --link`: makes the link in `sbin`.
pub fn link(prefix: &Path, exe: &Path) -> Result<()> {
    let link = link_in(prefix);
    let make = || {
        files::make_dirs(&prefix.join("sbin"))?;
        files::link(&link, exe)
    };
    if !is_linked(prefix, exe)? {
        make().context("the driver is installed, and has no link for people")?;
    }
    say("linked", link.shown());
    Ok(())
}

/// Removes the link if it leads to this driver.
pub fn unlink(prefix: &Path, exe: &Path) -> Result<()> {
    let link = link_in(prefix);
    if files::is_link_to(&link, exe)? {
        files::remove(&link).context("removing the link for people")?;
        say("removed", link.shown());
    }
    Ok(())
}
