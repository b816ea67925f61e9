//! The table of all keys in docs/options.md is made from the example: a key, its default, and the first sentence of its
//! comment.

use std::fs;
use std::path::Path;

use super::EXAMPLE;

const PAGE: &str = "../../docs/options.md";
const HEAD: &str = "| key | default | what it is |\n|---|---|---|\n";

/// A row for each key that has a comment. The keys of a group's filesystems are those of all filesystems, and have
/// none.
fn rows() -> String {
    let (mut table, mut default, mut prose) = (String::new(), true, String::new());
    let mut rows = Vec::new();
    for line in EXAMPLE.lines() {
        let setting = line.strip_prefix('#').unwrap_or(line);
        if let Some(text) = line.strip_prefix("# ") {
            prose += text;
            prose.push(' ');
        } else if let Some(name) = setting.strip_prefix('[') {
            // A table that is a comment is an example of a group.
            default = setting == line;
            table = name.replace(']', ".").replace(".data.", ".NAME.");
            table = table.replace(".ext4.", ".TYPE.").replace(".xfs.", ".TYPE.");
            prose.clear();
        } else if let Some((key, value)) = setting.split_once(" = ") {
            let (what, _) = prose.split_once(". ").unwrap_or((&prose, ""));
            let value = if default {
                format!("`{value}`")
            } else {
                "none".to_owned()
            };
            if !what.is_empty() {
                let what = what.replace('|', "\\|");
                rows.push(format!("| `{table}{key}` | {value} | {what} |\n"));
            }
            prose.clear();
        } else {
            prose.clear();
        }
    }
    rows.concat()
}

#[test]
fn the_page_has_each_key_of_the_example() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(HEAD).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let page_now = format!("{before}{HEAD}{}\n{after}", rows());
    if std::env::var_os("FLEXVOLUME_LVM_WRITE").is_some() {
        fs::write(path, page_now).unwrap();
    } else {
        let advice = "FLEXVOLUME_LVM_WRITE=1 cargo test --lib config::tests::page";
        assert!(
            page == page_now,
            "{PAGE} is older than examples/config.toml: {advice}"
        );
    }
}
