//! What the README files say is what the driver does.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

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

/// Every message in the driver's source, with `…` for its values.
fn messages_below(dir: &Path, messages: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            messages_below(&path, messages);
        } else if is_drivers(&path) {
            let code = fs::read_to_string(&path).unwrap();
            literals(code.parse().unwrap(), messages);
        }
    }
}

fn is_drivers(path: &Path) -> bool {
    const TESTS: [&str; 4] = ["messages", "sample", "table", "tests"];
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
    path.extension().is_some_and(|ending| ending == "rs") && !TESTS.contains(&stem)
}

fn literals(code: TokenStream, messages: &mut Vec<String>) {
    let mut before = [String::new(), String::new()];
    for token in code {
        let text = token.to_string();
        let is_code = before[1] != "#" && before != ["mod", "tests"];
        match token {
            TokenTree::Group(group) if is_code => literals(group.stream(), messages),
            TokenTree::Literal(_) if text.starts_with('"') => messages.push(template(&text)),
            _ => {}
        }
        before = [std::mem::take(&mut before[1]), text];
    }
}

/// A literal as the source has it, in one line and with `…` for its values.
fn template(literal: &str) -> String {
    let text = literal.trim_matches('"').replace("\\\"", "\"");
    let lines: Vec<&str> = text.split("\\\n").map(str::trim_start).collect();
    let text = lines.concat();
    let mut parts = text.split('{');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| match part.split_once('}') {
        Some((_, rest)) => format!("{text}…{rest}"),
        None => format!("{text}{part}"),
    })
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What stands in backticks in the first column of the table after `title`.
fn messages(file: &str, title: &str) -> Vec<String> {
    let text = page(file);
    let (_, section) = text.split_once(title).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    spans.map(str::to_owned).collect()
}

#[test]
fn every_message_that_is_explained_is_one_that_the_driver_gives() {
    let mut given = Vec::new();
    messages_below(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut given,
    );
    let tables = [
        ("docs/on-call.md", "What else a call may say"),
        ("install/README.md", "## What can go wrong"),
        ("docs/shared-groups.md", "## What the driver says"),
    ];
    for (file, title) in tables {
        let mut messages = messages(file, title);
        assert!(messages.len() > 5, "{file}: {messages:?}");
        messages.retain(|message| {
            let words = message.trim_matches(['…', ' ']);
            !given.iter().any(|given| given.contains(words))
        });
        assert_eq!(messages, Vec::<String>::new(), "{file}");
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

    // The table's properties, by the names of their functions or in their own words.
    let model = text_below(&top.join("src/volume/decide/tests"));
    let (table, _) = text.split_once("## Data").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let cells: String = rows
        .flat_map(|row| row.split('|').skip(2).take(2))
        .collect();
    let spans = |mark: char| cells.split(mark).skip(1).step_by(2);
    assert!(spans('"').count() > 4, "{cells}");
    let functions = spans('`').map(|name| format!("fn {name}("));
    for words in functions.chain(spans('"').map(str::to_owned)) {
        assert!(model.contains(&words), "{words}");
    }
}

/// Whether tests/guest/refusals has a row of this name; `loop` is a word of Rust's, too.
fn has_row(name: &str) -> bool {
    let name = name.replace('-', "_").replace("loop", "r#loop");
    page("tests/guest/refusals/mod.rs").contains(&format!("\n    {name} {{"))
}

#[test]
fn every_word_for_who_is_on_call_has_a_row_in_refusals() {
    // Those of groups that nodes share are in tests/shared.
    let others = "no-locks held-elsewhere active-shared active-without-lock";
    let page = page("docs/on-call.md");
    let words = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let words = words.filter_map(|line| Some(line.split_once("` | `")?.0));
    let words = words.filter(|word| !others.split(' ').any(|other| other == *word));
    let words: Vec<&str> = words.collect();
    assert!(words.len() > 40, "{words:?}");
    let missing: Vec<&&str> = words.iter().filter(|word| !has_row(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
