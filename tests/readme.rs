//! What the README files say is what the driver does.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};

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

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What stands in backticks in this column of the table after `title`.
fn messages(file: &str, title: &str, column: usize) -> Vec<String> {
    let text = page(file);
    let (_, section) = text.split_once(title).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(column).unwrap());
    let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    spans.map(str::to_owned).collect()
}

#[test]
fn every_message_that_is_explained_is_one_that_the_driver_gives() {
    let source = source();
    let tables = [
        ("docs/on-call.md", "Each refusal, with its word", 2),
        ("docs/on-call.md", "What else a call may say", 1),
        ("install/README.md", "## What can go wrong", 1),
        ("docs/shared-groups.md", "## What the driver says", 1),
    ];
    for (file, title, column) in tables {
        let messages = messages(file, title, column);
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
fn every_link_leads_to_a_file_or_a_heading() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let docs = fs::read_dir(docs).unwrap().map(|entry| entry.unwrap());
    let docs = docs.map(|entry| format!("docs/{}", entry.file_name().display()));
    let others = ["README.md", "CONTRIBUTING.md", "install/README.md"].map(str::to_owned);
    for name in docs.filter(|name| name.contains(".md")).chain(others) {
        let (text, dir) = (page(&name), Path::new(&name).parent().unwrap());
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.starts_with("https:") {
                continue;
            }
            let file = if file.is_empty() {
                PathBuf::from(&name)
            } else {
                dir.join(file)
            };
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
            assert!(path.exists(), "{name}: {link}");
            if !heading.is_empty() {
                let headings = fs::read_to_string(path).unwrap();
                assert!(
                    headings.lines().any(|line| anchor(line) == heading),
                    "{name}: {link}"
                );
            }
        }
    }
}

/// The anchor that a heading gets, as GitHub makes it.
fn anchor(line: &str) -> String {
    let title = line.trim_start_matches('#').trim().to_lowercase();
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn the_picture_and_its_source_name_the_same_call_outs() {
    let [picture, source] = ["docs/who-calls.svg", "docs/who-calls.mmd"].map(page);
    for name in
        "attach isattached detach waitforattach mountdevice mount unmount unmountdevice expandfs"
            .split(' ')
    {
        assert!(picture.contains(name) && source.contains(name), "{name}");
    }
    assert!(
        page("README.md").lines().count() <= 180,
        "one reads it once"
    );
}

#[test]
fn every_key_of_the_config_is_in_the_reference() {
    let [reference, example] = ["docs/reference.md", "examples/config.toml"].map(page);
    let keys: Vec<&str> = example
        .lines()
        .filter_map(|line| line.trim_start_matches('#').split_once(" = "))
        .map(|(key, _)| key)
        .filter(|key| !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .collect();
    assert!(keys.len() > 20, "{keys:?}");
    for key in keys {
        let ways = [format!("`{key}`"), format!("`{key} =")];
        assert!(ways.iter().any(|way| reference.contains(way)), "{key}");
    }
}

#[test]
fn the_readme_says_which_rust_is_needed() {
    let wanted = concat!("Rust ", env!("CARGO_PKG_RUST_VERSION"), " or newer");
    assert!(page("README.md").contains(wanted), "{wanted}");
}

#[test]
fn every_test_that_docs_safety_names_exists() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = page("docs/safety.md");
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
        .filter(|name| !tests.contains(&format!("fn {name}(")) && !has_row(name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Whether tests/guest/refusals has a row of this name; `loop` is a word of Rust's, too.
fn has_row(name: &str) -> bool {
    let name = name.replace('-', "_").replace("loop", "r#loop");
    page("tests/guest/refusals/mod.rs").contains(&format!("\n    {name} {{"))
}

#[test]
fn every_word_for_who_is_on_call_has_a_row_in_refusals() {
    // Those of groups that nodes share are in tests/shared; LVM shows a thin volume's pool, unless
    // its metadata is damaged in a way that nobody has seen yet.
    let others = "no-locks held-elsewhere active-shared active-without-lock no-pool";
    let page = page("docs/on-call.md");
    let words = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let words = words.filter_map(|line| Some(line.split_once("` | `")?.0));
    let words = words.filter(|word| !others.split(' ').any(|other| other == *word));
    let words: Vec<&str> = words.collect();
    assert!(words.len() > 40, "{words:?}");
    let missing: Vec<&&str> = words.iter().filter(|word| !has_row(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
