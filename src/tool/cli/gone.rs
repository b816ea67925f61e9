//! Words of earlier versions, and what to use in place of each.

/// A command that is gone, and what to use in its place.
const GONE: &[(&str, &str)] = &[
    ("man", PAGES),
    ("completions", PAGES),
    (
        "key",
        "use `cryptsetup luksAddKey`, `luksRemoveKey` and `luksDump`: encryption.md of the documentation has the lines",
    ),
    (
        "header-backup",
        "use `cryptsetup luksHeaderBackup --header-backup-file FILE /dev/VG/LV`",
    ),
];

const PAGES: &str = "packages and archive carry man pages and completions; from the sources, `cargo xtask DIR` writes both";

/// What to use in place of a command that is gone.
pub fn command(name: &str) -> Option<String> {
    let (_, instead) = GONE.iter().find(|(gone, _)| *gone == name)?;
    Some(format!("there is no `{name}` any more: {instead}\n"))
}
