//! What the README files say is what the driver does.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::fs;
use std::path::Path;

/// All files below a directory, as one text.
fn text_below(dir: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&text_below(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

/// All of the driver's source in one line, so that a message that goes over two can be found.
fn source() -> String {
    let text = text_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| *word != "\\")
        .collect();
    words.join(" ")
}

/// The messages in the first column of the table after `title`.
fn messages(file: &str, title: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once(title).unwrap();
    section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .flat_map(|row| {
            let cell = row.split('|').nth(1).unwrap().trim();
            let spans = cell.split('`').skip(1).step_by(2);
            spans.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_message_that_is_explained_is_one_that_the_driver_gives() {
    let source = source();
    let tables = [
        ("README.md", "## When something fails"),
        ("install/README.md", "## What can go wrong"),
    ];
    for (file, title) in tables {
        let messages = messages(file, title);
        assert!(messages.len() > 5, "{file}: {messages:?}");
        let unknown: Vec<&str> = messages
            .iter()
            .flat_map(|message| message.split('…').map(str::trim))
            .filter(|part| !source.contains(part))
            .collect();
        assert!(unknown.is_empty(), "{file}: {unknown:#?}");
    }
}

#[test]
fn every_key_of_the_config_is_in_the_readme() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(top.join("README.md")).unwrap();
    let example = fs::read_to_string(top.join("examples/config.toml")).unwrap();
    let keys: Vec<&str> = example
        .lines()
        .filter_map(|line| line.trim_start_matches('#').split_once(" = "))
        .map(|(key, _)| key)
        .filter(|key| !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .collect();
    assert!(keys.len() > 20, "{keys:?}");
    for key in keys {
        assert!(
            readme.contains(&format!("`{key}`")) || readme.contains(&format!("`{key} =")),
            "{key}"
        );
    }
}

#[test]
fn the_readme_says_which_rust_is_needed() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let wanted = concat!("Rust ", env!("CARGO_PKG_RUST_VERSION"), " or newer");
    assert!(
        fs::read_to_string(readme).unwrap().contains(wanted),
        "{wanted}"
    );
}

#[test]
fn every_test_that_docs_safety_names_exists() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(top.join("docs/safety.md")).unwrap();
    let tests = text_below(&top.join("tests"));
    let named: Vec<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|span| span.rsplit_once("::"))
        .map(|(_, name)| name)
        .collect();
    assert!(named.len() > 30, "{named:?}");
    let missing: Vec<&str> = named
        .into_iter()
        .filter(|name| !tests.contains(&format!("fn {name}(")))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}
