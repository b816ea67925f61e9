//! Compares the pages with the driver and its tests.
#![allow(clippy::restriction, clippy::disallowed_methods)]

mod changes;
#[path = "../guest/refusals/commands.rs"]
mod commands;
mod links;
mod messages;
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust sources below a directory.
fn sources_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap();
    let below = entries.flat_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return sources_below(&path);
        }
        let is_source = path.extension().is_some_and(|ending| ending == "rs");
        is_source.then_some(path).into_iter().collect()
    });
    below.collect()
}

/// The Rust sources below a directory, as one text.
fn text_below(dir: &Path) -> String {
    let texts = sources_below(dir).into_iter();
    texts
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// The driver's code without its tests and comments, with each text in one line and with `…` for its values.
fn code_below(dir: &Path) -> String {
    let mut text = String::new();
    let is_of_tests = |part: &Path| part.file_stem().is_some_and(|stem| stem == "tests");
    for path in sources_below(dir) {
        if path.strip_prefix(dir).unwrap().ancestors().any(is_of_tests) {
            continue;
        }
        let code = fs::read_to_string(&path).unwrap();
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().map(str::trim_start);
        for line in lines.filter(|line| !line.starts_with("//")) {
            text.push_str(line.strip_suffix('\\').unwrap_or(&format!("{line}\n")));
        }
    }
    text.replace("\\\"", "\"")
}

/// What is in backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of the files in a directory of the repository that end so.
fn names_in(dir: &str, ending: &'static str) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(top().join(dir)).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(move |name| name.ends_with(ending))
}

fn has_row(name: &str) -> bool {
    row(name).is_some()
}

/// The text from the row of this name in tests/guest/refusals on, if there is one. `loop` is a word of Rust's, too.
fn row(name: &str) -> Option<String> {
    let name = name.replace('-', "_").replace("loop", "r#loop");
    let rows = page("tests/guest/refusals/mod.rs");
    let (_, row) = rows.split_once(&format!("\n    {name} {{"))?;
    Some(row.to_owned())
}
