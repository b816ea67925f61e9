//! Words of earlier versions, and what to use in place of each.

use clap::error::{ContextKind, ContextValue, Error};

/// A command that is gone, or a command and one of its flags, and what to use in its place.
const GONE: &[(&str, &str, &str)] = &[
    ("man", "", PAGES),
    ("completions", "", PAGES),
    ("config", "", "use `check --config FILE`"),
    ("handover", "", "use `check --idle VG/LV`"),
    ("export", "", MOVING),
    ("import", "", MOVING),
    (
        "rename",
        "",
        "use `check --idle VG/LV`, and then `lvrename VG LV NAME`",
    ),
    ("key", "", KEYS),
    ("header-backup", "", BACKUP),
    (
        "adopt",
        "--key-file",
        "open it with `cryptsetup open` first, as encryption.md of the documentation says",
    ),
    ("log", "-f", FOLLOW),
    ("log", "--follow", FOLLOW),
    (
        "log",
        "--local",
        "use `journalctl -t flexvolume-lvm`, whose times are those of this host",
    ),
    ("status", "--watch", "use `watch flexvolume-lvm status`"),
    ("status", "--sort", JSON),
    ("status", "--bytes", JSON),
    ("status", "--columns", JSON),
    ("status", "-o", JSON),
    ("status", "--noheadings", JSON),
    ("status", "-n", JSON),
    ("status", "-w", WIDE),
    ("status", "--wide", WIDE),
    ("check", "-f", MANIFEST),
    ("check", "--file", MANIFEST),
    ("check", "--name", "use `check --idle VG/NAME`"),
];

const PAGES: &str = "packages and archive carry man pages and completions; from the sources, `cargo xtask DIR` writes both";
const KEYS: &str = "use `cryptsetup luksAddKey`, `luksRemoveKey` and `luksDump`: encryption.md of the documentation has the lines";
const BACKUP: &str = "use `cryptsetup luksHeaderBackup --header-backup-file FILE /dev/VG/LV`";
const MOVING: &str = "moving.md of the documentation has the objects, and a line of jq that makes them of `status --json`";
const JSON: &str = "use `status --json` and jq, such as `jq -r '.volumes | sort_by(.size_bytes)[] | \
                    [.volume, .size_bytes, .health] | @tsv'`";
const WIDE: &str = "`status VG/LV` shows device, UUID, record, mounts and last calls of a volume, and `status --json` \
                    all but the calls of all volumes";
const MANIFEST: &str = "use `check VG/LV` with `--fs`, `--ro`, or `-o KEY=VALUE` for each option of the pod; \
                        replace-the-script.md of the documentation has a line of jq that makes these of all pods";

const FOLLOW: &str = "use `journalctl -t flexvolume-lvm -f`";

/// What to use in place of a command that is gone.
pub fn command(name: &str) -> Option<String> {
    said(name, "")
}

/// What to use in place of the command or flag that clap does not know.
pub fn of_error(error: &Error, command: Option<&str>) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    if let Some(name) = word(ContextKind::InvalidSubcommand) {
        return said(name, "");
    }
    said(command?, word(ContextKind::InvalidArg)?)
}

fn said(command: &str, flag: &str) -> Option<String> {
    let (.., instead) = GONE
        .iter()
        .find(|(name, its, _)| *name == command && *its == flag)?;
    let word = format!("{command} {flag}");
    Some(format!(
        "there is no `{}` any more: {instead}\n",
        word.trim_end()
    ))
}
