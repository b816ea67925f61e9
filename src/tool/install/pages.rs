//! Man pages and completions, made from the definitions of the commands; and a link to the driver, since
//! a shell takes `lvm` for LVM's own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::{completion, man};
use crate::files::{self, Kind};
use driver::names::Shown;

/// The link's name.
pub const NAME: &str = driver::host::NAME;
const READABLE: u32 = 0o644;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// The script by which a shell asks `driver` for completions.
pub fn completions(shell: Shell, driver: &Path) -> Result<String> {
    let name = shell.to_possible_value();
    let name = name.as_ref().map_or("", |value| value.get_name());
    let script = completion::script(name, driver).context("writing completions")?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Writes all man pages below `dir`, in `man5` and `man8`, and returns their paths.
pub fn write_man(dir: &Path, command: clap::Command) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (place, page) in man::pages(command) {
        let path = dir.join(place);
        files::make_dirs(path.parent().unwrap_or(dir))?;
        files::write(&path, page.as_bytes(), READABLE)?;
        written.push(path);
    }
    Ok(written)
}

/// Where each of them goes below `/usr/local`: only if the host has a place for its kind there or
/// in `/usr`.
fn places(prefix: &Path, command: &clap::Command) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let has =
        |dir: &str| files::is_dir(&prefix.join(dir)) || files::is_dir(&Path::new("/usr").join(dir));
    let mut all = Vec::new();
    if has("share/man") {
        for (place, page) in man::pages(command.clone()) {
            all.push((prefix.join("share/man").join(place), page.into_bytes()));
        }
    }
    for (kind, shell, file) in [
        (
            "share/bash-completion",
            Shell::Bash,
            "completions/flexvolume-lvm",
        ),
        ("share/zsh", Shell::Zsh, "site-functions/_flexvolume-lvm"),
        (
            "share/fish",
            Shell::Fish,
            "vendor_completions.d/flexvolume-lvm.fish",
        ),
    ] {
        if has(kind) {
            let text = completions(shell, &link_in(prefix))?;
            all.push((prefix.join(kind).join(file), text.into_bytes()));
        }
    }
    Ok(all)
}

pub fn link_in(prefix: &Path) -> PathBuf {
    prefix.join("sbin").join(NAME)
}

/// Whether the link is there and leads to this driver. Fails if something else has its place.
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

/// `install --link`: a name for people in `sbin`, with man pages and completions.
pub fn link(prefix: &Path, exe: &Path, command: &clap::Command) -> Result<String> {
    let link = link_in(prefix);
    if !is_linked(prefix, exe)? {
        files::make_dirs(&prefix.join("sbin"))?;
        files::link(&link, exe)?;
    }
    let places = places(prefix, command)?;
    for (path, text) in &places {
        files::make_dirs(path.parent().unwrap_or(prefix))?;
        files::write(path, text, READABLE)?;
    }
    let pages = if places.is_empty() {
        ""
    } else {
        ", with man pages and completions"
    };
    Ok(format!("linked     {}{pages}\n", link.shown()))
}

/// Takes all of that away again, if the link leads to this driver.
pub fn unlink(prefix: &Path, exe: &Path, command: &clap::Command) -> Result<String> {
    let link = link_in(prefix);
    if !files::is_link_to(&link, exe)? {
        return Ok(String::new());
    }
    files::remove(&link)?;
    for (path, _) in places(prefix, command)? {
        files::remove(&path)?;
    }
    Ok(format!("removed    {}\n", link.shown()))
}
