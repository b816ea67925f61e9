//! The pages agree with the driver, and their links lead somewhere.
#![allow(clippy::restriction, clippy::disallowed_methods)]

use std::collections::BTreeSet;
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

/// Whether a text in the code is this message, which has `…` where the text has a value in braces.
fn is_given(code: &str, message: &str) -> bool {
    let mut parts = message.trim_matches(['…', ' ']).split('…');
    let first = parts.next().unwrap();
    let follow = |rest: &str| {
        let mut rest = rest;
        parts.clone().all(|part| {
            let value = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let after = value.and_then(|(_, after)| after.strip_prefix(part));
            rest = after.unwrap_or_default();
            after.is_some()
        })
    };
    let mut begins = code.match_indices(first);
    begins.any(|(at, _)| follow(&code[at..][first.len()..]))
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The words in backticks in the first column of the table after `title`.
fn messages(file: &str, title: &str) -> Vec<String> {
    let text = page(file);
    let (_, section) = text.split_once(title).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    cells.flat_map(spans).map(str::to_owned).collect()
}

#[test]
fn every_message_that_is_explained_is_one_that_the_driver_gives() {
    let code = code_below(&top().join("src"));
    let tables = [
        ("docs/on-call.md", "What else a call may say"),
        ("docs/start.md", "## What can go wrong"),
        ("docs/shared-groups.md", "## What the driver says"),
    ];
    for (file, title) in tables {
        let mut messages = messages(file, title);
        assert!(messages.len() > 4, "{file}: {messages:?}");
        messages.retain(|message| !is_given(&code, message));
        assert_eq!(messages, Vec::<String>::new(), "{file}");
    }
}

/// That this Rust will do is shown by `tests/run.sh msrv`.
#[test]
fn the_rust_of_the_readme_is_that_of_cargo() {
    let rust = format!("Rust {} or newer", env!("CARGO_PKG_RUST_VERSION"));
    assert!(page("README.md").contains(&rust), "{rust}");
}

#[test]
fn every_link_leads_to_a_file_or_a_heading() {
    let mut pages = vec![];
    for dir in ", docs/, docs/developers/, install/, tests/, .github/".split(", ") {
        pages.extend(names_in(dir, ".md").map(|name| format!("{dir}{name}")));
    }
    assert!(pages.len() > 18, "{pages:?}");
    for name in pages {
        let (text, dir) = (page(&name), Path::new(&name).parent().unwrap());
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.starts_with("https:") {
                println!("{name}: {link} (not fetched)");
                continue;
            }
            let file = if file.is_empty() {
                PathBuf::from(&name)
            } else {
                dir.join(file)
            };
            let path = top().join(&file);
            assert!(path.exists(), "{name}: {link}");
            if !heading.is_empty() {
                let text = fs::read_to_string(path).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let is_there = headings.any(|line| anchor(line) == heading);
                assert!(is_there, "{name}: {link}");
            }
        }
    }
}

#[test]
fn every_alert_leads_to_a_heading_of_a_page() {
    let alerts = page("examples/monitoring/alerts.yaml");
    let pages = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/");
    let urls = alerts.split("runbook_url: \"").skip(1);
    let urls: Vec<&str> = urls.map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(urls.len(), alerts.matches("- alert:").count());
    for url in urls {
        let (file, heading) = url
            .strip_prefix(pages)
            .and_then(|rest| rest.split_once('#'))
            .unwrap_or_else(|| panic!("{url}: the pages are in {pages}"));
        let text = page(&format!("docs/{file}"));
        assert!(text.lines().any(|line| anchor(line) == heading), "{url}");
    }
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

/// The anchor that a heading gets, as GitHub makes it.
fn anchor(line: &str) -> String {
    let title = line.trim_start_matches('#').trim().to_lowercase();
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_page_is_in_the_book() {
    let summary = page("docs/SUMMARY.md");
    for dir in ["", "developers/"] {
        for name in names_in(&format!("docs/{dir}"), ".md") {
            let is_there = name == "SUMMARY.md" || summary.contains(&format!("({dir}{name})"));
            assert!(is_there, "docs/{dir}{name} is not in docs/SUMMARY.md");
        }
    }
}

#[test]
fn every_picture_has_the_words_of_the_source_beside_it() {
    for name in names_in("docs/pictures", ".dot") {
        let picture = page(&format!("docs/pictures/{}", name.replace(".dot", ".svg")));
        let picture = picture.replace("&#39;", "'").replace("&#45;", "-");
        let source = page(&format!("docs/pictures/{name}"));
        let labels = source.split("label=\"").skip(1);
        let labels = labels.map(|label| label.split('"').next().unwrap());
        let labels: Vec<&str> = labels.flat_map(|label| label.split("\\n")).collect();
        assert!(labels.len() > 2, "{name}: {labels:?}");
        for words in labels {
            let is_drawn = picture.contains(words.trim());
            assert!(is_drawn, "{name}: {words} is not drawn: draw it anew");
        }
    }
}

#[test]
fn the_readme_is_read_in_one_go() {
    let readme = page("README.md");
    assert!(readme.lines().count() <= 150, "{}", readme.lines().count());
    assert!(readme.lines().all(|line| line.chars().count() <= 110));
}

#[test]
fn downloads_in_the_pages_are_of_this_version() {
    for (name, files) in [
        ("README.md", 3),
        ("docs/start.md", 4),
        ("docs/daemonset.md", 2),
    ] {
        let text = page(name).replace("flexvolume-lvm_", "flexvolume-lvm-");
        let named = text.split("flexvolume-lvm-").skip(1);
        let named: Vec<&str> = named
            .filter(|rest| rest.starts_with(char::is_numeric))
            .collect();
        assert_eq!(named.len(), files, "{name}");
        for file in named {
            assert!(
                file.starts_with(env!("CARGO_PKG_VERSION")),
                "{name}: {file:.20}"
            );
        }
    }
}

#[test]
fn the_readme_says_which_rust_is_needed() {
    let wanted = concat!("Rust ", env!("CARGO_PKG_RUST_VERSION"), " or newer");
    assert!(page("README.md").contains(wanted), "{wanted}");
}

#[test]
fn every_promise_has_tests_and_every_test_that_is_named_exists() {
    let text = page("tests/SAFETY.md");
    let promises = page("docs/safety.md");
    let promises: Vec<&str> = promises.split("**").skip(1).step_by(2).collect();
    assert!(promises.len() > 30, "{promises:?}");
    for promise in promises {
        let (_, proof) = text
            .split_once(&format!("**{promise}**"))
            .unwrap_or_else(|| panic!("{promise}: not there"));
        let proof = proof.split("\n\n").next().unwrap();
        assert!(proof.contains("\n`"), "{promise}: no test");
    }
    let tests = text_below(&top().join("tests"));
    let named = spans(&text).filter_map(|span| span.rsplit_once("::"));
    let named: Vec<&str> = named.map(|(_, name)| name).collect();
    assert!(named.len() > 30, "{named:?}");
    let is_there = |name: &str| tests.contains(&format!("fn {name}(")) || has_row(name);
    let missing: Vec<&str> = named.into_iter().filter(|name| !is_there(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());

    // The table's properties, by the names of their functions.
    let proof = text_below(&top().join("src/driver/volume/decide/tests"));
    let (table, _) = text.split_once("## Data").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let cells: String = rows.filter_map(|row| row.split('|').nth(2)).collect();
    let properties: Vec<&str> = spans(&cells).collect();
    assert!(properties.len() > 4, "{cells}");
    for name in properties {
        assert!(proof.contains(&format!("fn {name}(")), "{name}");
    }
}

/// The rows of the tables of the page of LVM's states that have the column of this title, with that cell.
fn states(title: &str) -> Vec<(String, String)> {
    let text = page("docs/developers/lvm-states.md");
    let (mut column, mut rows) = (None, Vec::new());
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if !line.starts_with('|') {
            column = None;
        } else if column.is_none() {
            column = Some(cells.iter().position(|cell| *cell == title));
        } else if let Some(Some(at)) = column {
            rows.push((cells[1].to_owned(), cells[at].to_owned()));
        }
    }
    assert!(rows.len() > 30, "{rows:?}");
    rows
}

#[test]
fn what_the_page_of_lvms_states_names_is_there() {
    let tests = text_below(&top().join("tests"));
    let code = text_below(&top().join("src/driver/lvm"));
    let told = page("docs/on-call.md") + &page("docs/schemas/doctor.json");
    let is_there = |title: &str, span: &str| match title {
        "case" => {
            let name = span.rsplit("::").next().unwrap();
            span == "tests/shared" || tests.contains(&format!("fn {name}(")) || has_row(name)
        }
        "asked" => code.contains(span),
        _ => told.contains(span),
    };
    for title in ["case", "asked", "told by"] {
        for (state, cell) in states(title) {
            let missing: Vec<&str> = spans(&cell).filter(|span| !is_there(title, span)).collect();
            assert_eq!(missing, Vec::<&str>::new(), "{title}: {state}");
        }
    }
}

/// The features of filesystems that the code has by name, and the members of a LUKS2 header that it reads.
#[test]
fn each_feature_and_member_that_the_code_knows_is_on_the_page_of_other_states() {
    let text = page("docs/developers/other-states.md");
    let named: Vec<&str> = spans(&text).collect();
    let code = code_below(&top().join("src/driver/fs"));
    let consts = code.split("const ").skip(1);
    let consts = consts.filter_map(|rest| rest.split(':').next());
    let is_feature = |name: &&str| {
        let begins = ["COMPAT_", "INCOMPAT_", "RO_COMPAT_"];
        begins.iter().any(|prefix| name.starts_with(prefix))
    };
    let features: Vec<&str> = consts.filter(is_feature).collect();
    assert!(features.len() > 6, "{features:?}");

    let layout = page("src/driver/crypt/layout.rs");
    let mut members = Vec::new();
    let mut renamed = None;
    for line in layout.lines().map(str::trim) {
        if let Some((_, name)) = line.split_once("rename = \"") {
            renamed = name.split('"').next();
        } else if let Some((name, _)) = line
            .strip_prefix("pub ")
            .and_then(|rest| rest.split_once(": "))
        {
            members.push(renamed.take().unwrap_or(name));
        }
    }
    // What no version is known to write is a refusal.
    members.retain(|name| {
        *name != "others" && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    });
    assert!(members.len() > 30, "{members:?}");
    let missing: BTreeSet<&str> = features
        .into_iter()
        .chain(members)
        .filter(|name| !named.contains(name))
        .collect();
    assert_eq!(missing, BTreeSet::new());
}

/// The parts of names in a list of tests/guest.
fn listed(name: &str) -> Vec<String> {
    let list = page(&format!("tests/guest/{name}.txt"));
    let names = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.map(str::to_owned).collect()
}

#[test]
fn each_part_of_a_name_in_a_list_is_one_of_a_test_in_the_guest() {
    let tests = text_below(&top().join("tests/guest"));
    for list in ["core", "versioned"] {
        for part in listed(list) {
            let name = part.trim_end_matches("::").rsplit("::").next().unwrap();
            let is_test = |line: &str| line.starts_with("fn ") && line.contains(name);
            let is_module = tests.contains(&format!("mod {name};"));
            assert!(
                is_module || tests.lines().any(is_test) || has_row(name),
                "tests/guest/{list}.txt has {part}, which no test is called"
            );
        }
    }
}

#[test]
fn each_promise_has_a_test_that_a_contributor_runs() {
    // It takes two nodes.
    let others = "A volume of a group that nodes share is on one node at a time";
    let text = page("tests/SAFETY.md");
    let core = listed("core");
    let dirs = ["src", "tests/cli", "tests/hostile", "tests/install"];
    let mut on_host: String = dirs.map(|dir| text_below(&top().join(dir))).concat();
    for file in ["tests/hangs.rs", "tests/superblocks/main.rs"] {
        on_host.push_str(&page(file));
    }
    for part in text.split("\n**").skip(1) {
        let (promise, proof) = part.split_once("**").unwrap();
        let proof = proof.split("\n\n").next().unwrap();
        let is_run = spans(proof).any(|name| {
            let function = name.rsplit("::").next().unwrap();
            core.iter().any(|part| name.contains(part.as_str()))
                || name == "tests/hostile/"
                || on_host.contains(&format!("fn {function}("))
        });
        assert!(
            is_run || promise.trim_end_matches('.') == others,
            "{promise}: add one of its tests in tests/SAFETY.md to tests/guest/core.txt"
        );
    }
}

/// The text from the row of this name in tests/guest/refusals on, if there is one. `loop` is a word of Rust's, too.
fn row(name: &str) -> Option<String> {
    let name = name.replace('-', "_").replace("loop", "r#loop");
    let rows = page("tests/guest/refusals/mod.rs");
    let (_, row) = rows.split_once(&format!("\n    {name} {{"))?;
    Some(row.to_owned())
}

fn has_row(name: &str) -> bool {
    row(name).is_some()
}

#[path = "guest/refusals/commands.rs"]
mod commands;

/// Whether the row of this word in refusals runs this command of its message.
fn row_runs(word: &str, command: &str) -> bool {
    let row = row(word).unwrap_or_default();
    let row = row.split("\n    }").next().unwrap();
    let told = row.split("told ").skip(1);
    let mut begins = told.filter_map(|told| told.split(['$', ';', '|', '"', '\n']).next());
    begins.any(|words| {
        let is_its = |word: &&str| !word.contains('=') && !word.is_empty();
        let words = words.split(' ').filter(is_its);
        words.clone().count() > 0 && words.zip(command.split(' ')).all(|(is, want)| is == want)
    })
}

#[test]
fn every_command_in_a_message_is_run_by_its_row_or_the_list_says_why_not() {
    let mut word = String::new();
    let (mut unused, mut missing) = (commands::ELSEWHERE.to_vec(), Vec::new());
    let text = page("src/driver/volume/decide/tests/messages.txt");
    for line in text.lines() {
        if !line.starts_with(' ') {
            line.clone_into(&mut word);
            continue;
        }
        for command in commands::commands_in(line) {
            let is_it =
                |(of, begins, _): &(&str, &str, &str)| *of == word && command.starts_with(begins);
            let listed = commands::ELSEWHERE.iter().find(|one| is_it(one));
            unused.retain(|one| !is_it(one));
            let is_run = match listed {
                Some((.., place)) if place.contains(' ') => true,
                Some((_, begins, place)) => commands::is_run_in(place, begins),
                None => commands::only_looks(&command) || row_runs(&word, command),
            };
            if !is_run {
                missing.push(format!("{word}: {command}"));
            }
        }
    }
    assert!(
        missing.is_empty() && unused.is_empty(),
        "{missing:#?} {unused:#?}"
    );
}

#[test]
fn every_word_for_who_is_on_call_has_a_row_in_refusals() {
    // Those of groups that nodes share are in tests/shared; the others in crypt/lost.rs and calls/failed_growth.rs.
    let others = "no-locks held-elsewhere active-shared active-without-lock suspended-inside filesystem-limit";
    let page = page("docs/on-call.md");
    let words = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let words = words.filter_map(|line| Some(line.split_once("` | `")?.0));
    let words = words.filter(|word| !others.split(' ').any(|other| other == *word));
    let words: Vec<&str> = words.collect();
    assert!(words.len() > 40, "{words:?}");
    let missing: Vec<&&str> = words.iter().filter(|word| !has_row(word)).collect();
    assert!(
        missing.is_empty(),
        "tests/guest/refusals/mod.rs has no row for {missing:?}"
    );
}
