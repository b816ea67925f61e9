//! The steps in `.github` are scripts of this repository. actionlint knows what GitHub takes, zizmor what is unsafe.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn yaml(name: &str) -> Value {
    serde_yaml_ng::from_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn names(dir: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = entries
        .map(|entry| format!("{dir}/{}", entry.file_name().display()))
        .collect();
    names.sort();
    names
}

/// Each workflow's jobs.
fn jobs() -> Vec<(String, Value)> {
    let mut jobs = Vec::new();
    for file in names(".github/workflows") {
        for (job, value) in yaml(&file)["jobs"].as_object().unwrap() {
            jobs.push((format!("{file}: {job}"), value.clone()));
        }
    }
    jobs
}

/// The first word after tests/run.sh, as its `case` at the end has them.
fn parts_of_the_tests() -> BTreeSet<String> {
    let script = text("tests/run.sh");
    let (_, cases) = script.split_once("case $what in").unwrap();
    cases
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(')'))
        .flat_map(|(words, _)| words.split(" | ").map(str::to_owned))
        .filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()))
        .collect()
}

#[test]
fn each_step_runs_one_script_that_the_tests_run_too() {
    let parts = parts_of_the_tests();
    assert!(parts.len() > 10, "{parts:?}");
    let files = names("tests").into_iter().chain(names("tests/install"));
    let files = files.filter(|name| [".sh", ".rs"].iter().any(|end| name.ends_with(end)));
    let tests: String = files.map(|name| text(&name)).collect();
    let mut steps = 0;
    for (name, job) in jobs() {
        for step in job["steps"].as_array().unwrap() {
            let Some(run) = step["run"].as_str() else {
                continue;
            };
            steps += 1;
            assert!(
                !run.contains(['\n', ';', '&', '|', '`', '<']),
                "{name}: {run}"
            );
            assert!(!run.contains("$("), "{name}: {run}");
            let words: Vec<&str> = run.split(' ').collect();
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(words[0]);
            let mode = fs::metadata(&script).map(|found| found.permissions().mode());
            assert!(mode.is_ok_and(|mode| mode & 0o111 != 0), "{name}: {run}");
            if words[0] == "tests/run.sh" {
                assert!(parts.contains(words[1]), "{name}: {run}");
            } else {
                assert!(tests.contains(words[0]), "{name}: {run}");
            }
        }
    }
    assert!(steps > 5, "{steps}");
}
