//! Every test exists that the pages and the lists name.

use super::*;
use std::collections::BTreeSet;

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

#[test]
fn each_rule_that_the_proofs_take_out_is_there_and_its_test_is_that_of_a_promise() {
    let safety = page("tests/SAFETY.md");
    let text = page("tests/proofs.txt");
    let blocks = text.split("\n\n").map(|block| {
        let lines = block.lines().filter(|line| !line.starts_with('#'));
        lines.collect::<Vec<_>>()
    });
    let blocks: Vec<Vec<&str>> = blocks.filter(|block| !block.is_empty()).collect();
    assert!(blocks.len() > 30, "{blocks:?}");
    for block in blocks {
        let (name, file) = (block[0], block[1]);
        let lines = block[2..].iter().filter_map(|line| line.strip_prefix('-'));
        let before = lines.collect::<Vec<_>>().join("\n") + "\n";
        assert!(
            page(file).contains(&before),
            "{name}: {file} has no {before}"
        );
        let (module, short) = name.rsplit_once("::").unwrap();
        if module == "refusals" {
            // Each refusal is a promise.
            assert!(has_row(short.trim_start_matches("r#")), "{name}");
            continue;
        }
        let file = format!("tests/guest/{}.rs", module.replace("::", "/"));
        assert!(page(&file).contains(&format!("fn {short}(")), "{name}");
        let is_named = safety.contains(&format!("::{short}`"));
        assert!(is_named, "{name}: no promise has this test");
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
    // `json` is the whole text of the members that are judged.
    members
        .retain(|name| *name != "json" && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
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
    for list in ["core", "kernels", "versioned"] {
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
