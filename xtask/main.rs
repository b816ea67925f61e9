//! `cargo xtask DIR` writes the man pages into `DIR/man/man5` and `DIR/man/man8`, and the completions of bash, fish
//! and zsh into `DIR/completions`.

#![allow(clippy::disallowed_methods)] // it runs where the sources are, on no node

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

const NAME: &str = driver::host::NAME;
const CONFIG: &str = include_str!("../examples/config.toml");
const SOURCE: &str = concat!("flexvolume-lvm ", env!("CARGO_PKG_VERSION"));
const CHANGES: &str = include_str!("../CHANGELOG.md");

fn main() -> Result<()> {
    let dir = std::env::args_os()
        .nth(1)
        .context("usage: cargo xtask DIR")?;
    let dir = PathBuf::from(dir);
    let pages = dir.join("man/man8");
    fs::create_dir_all(&pages)?;
    let mut command = tool::command().disable_help_subcommand(true);
    // Gives each subcommand a name such as `flexvolume-lvm-status`.
    command.build();
    page(&command, &pages)?;
    let pages = dir.join("man/man5");
    fs::create_dir_all(&pages)?;
    fs::write(pages.join(format!("{NAME}.toml.5")), of_config()?)?;
    completions(&dir.join("completions"))
}

fn completions(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    let mut command = tool::command();
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut command, NAME, dir)?;
    }
    // clap_complete writes a name with a hyphen in two ways: https://github.com/clap-rs/clap/issues/6421.
    let bash = dir.join(format!("{NAME}.bash"));
    let script = fs::read_to_string(&bash)?;
    let script = script.replace("flexvolume__subcmd__lvm", "flexvolume__lvm");
    Ok(fs::write(bash, script)?)
}

/// Writes the man page of a command, and those of its subcommands.
fn page(command: &Command, dir: &Path) -> Result<()> {
    let below = command.get_after_long_help().map(ToString::to_string);
    let alone = command.clone().after_help(None).after_long_help(None);
    let man = Man::new(alone).section("8").date(date()?).source(SOURCE);
    let mut text = Vec::new();
    man.render(&mut text)?;
    let text = String::from_utf8(text)? + &sections(&below.unwrap_or_default());
    // A terminal may know no other character than those of ASCII.
    let text = text.replace('…', r"\&...");
    fs::write(dir.join(man.get_filename()), text)?;
    command
        .get_subcommands()
        .try_for_each(|below| page(below, dir))
}

/// When this version was released, or that it was not.
fn date() -> Result<&'static str> {
    let title = concat!("## [", env!("CARGO_PKG_VERSION"), "] - ");
    let mut lines = CHANGES.lines();
    let date = |line: &'static str| match line {
        "## [Unreleased]" => Some("unreleased"),
        _ => line.strip_prefix(title),
    };
    lines
        .find_map(date)
        .context("CHANGELOG.md has neither this version nor [Unreleased]")
}

/// What stands below the options in `--help`: paragraphs, some with a title such as `Examples:`.
fn sections(text: &str) -> String {
    let mut page = Roff::new();
    for paragraph in text.split("\n\n") {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let lines = match first.split_once([',', ':']) {
            Some((title, _)) if first.ends_with(':') => {
                let title = title.replace("Exit codes", "Exit status").to_uppercase();
                page.control("SH", [&*title]);
                rest
            }
            _ => paragraph,
        };
        // As wide as in `--help`.
        page.control("in", ["0"]).control("nf", []);
        for line in lines.lines() {
            page.text([roman(line)]);
        }
        page.control("fi", []);
    }
    page.to_roff()
}

/// The page of the config: the prose and the keys of the file that `install` writes.
fn of_config() -> Result<String> {
    let mut page = Roff::new();
    page.control("TH", ["flexvolume-lvm.toml", "5", date()?, SOURCE]);
    page.control("SH", ["NAME"]);
    page.text([roman("flexvolume-lvm.toml - config.toml of flexvolume-lvm")]);
    page.control("SH", ["DESCRIPTION"]);
    for line in CONFIG.lines() {
        if let Some(prose) = line.strip_prefix("# ") {
            page.text([roman(prose)]);
        } else if line.trim_start_matches('#').is_empty() {
            page.control("PP", []);
        } else {
            page.control("br", []);
            page.text([bold(line.trim_start_matches('#'))]);
            page.control("br", []);
        }
    }
    Ok(page.render())
}
