//! Words of earlier versions, and what to use in place of each.

/// A command that is gone, and what to use in its place.
const GONE: &[(&str, &str)] = &[("man", PAGES), ("completions", PAGES)];

const PAGES: &str = "packages and archive carry man pages and completions; from the sources, `cargo xtask DIR` writes both";

/// What to use in place of a command that is gone.
pub fn command(name: &str) -> Option<String> {
    let (_, instead) = GONE.iter().find(|(gone, _)| *gone == name)?;
    Some(format!("there is no `{name}` any more: {instead}\n"))
}
