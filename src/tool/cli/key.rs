//! The words of `flexvolume-lvm key`.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::help;
use super::people::volume;
use crate::commands::key;
use crate::output::Printed;
use driver::config::Loaded;
use driver::host::{Host, Writing};
use driver::names::LvId;

#[derive(Debug, Subcommand)]
pub enum Key {
    /// Add a passphrase beside one that opens the volume
    ///
    /// The volume may be mounted meanwhile. Where a passphrase comes from: --key-file, else the `key_file` of
    /// config.toml, else standard input; a terminal asks, and does not show it. All bytes of a file count, a
    /// newline at its end too.
    #[command(after_long_help = help::KEY)]
    Add {
        #[command(flatten)]
        of: Of,
        /// The file with the new passphrase, or - for standard input
        #[arg(long, value_name = "FILE")]
        new_key_file: Option<PathBuf>,
    },
    /// Remove a passphrase, if another one opens the volume
    ///
    /// It takes the passphrase that goes and one that stays, and tries both before anything is removed. So the
    /// last one stays, and the `key_file` of config.toml too.
    #[command(after_long_help = help::KEY)]
    Remove {
        #[command(flatten)]
        of: Of,
        /// The file with the passphrase that goes, or - for standard input
        #[arg(long, value_name = "FILE")]
        old_key_file: Option<PathBuf>,
    },
    /// List the key slots, a passphrase each; it takes none
    #[command(after_long_help = help::KEY)]
    List {
        /// The volume, as VG/LV or /dev/VG/LV
        #[arg(value_parser = volume)]
        volume: LvId,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Of {
    /// The volume, as VG/LV or /dev/VG/LV
    #[arg(value_parser = volume)]
    volume: LvId,
    /// The file with a passphrase that opens the volume and stays, or - for standard input
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

pub fn run(host: &Host, writing: &Writing, config: &Loaded, task: &Key) -> Result<Printed> {
    match task {
        Key::Add { of, new_key_file } => {
            let files = (of.key_file.as_deref(), new_key_file.as_deref());
            key::add(writing, config, &of.volume, files)
        }
        Key::Remove { of, old_key_file } => {
            let files = (of.key_file.as_deref(), old_key_file.as_deref());
            key::remove(writing, config, &of.volume, files)
        }
        Key::List { volume, json } => key::list(host, config, volume, *json),
    }
}
