//! docs/reference.md: its tables are made from the schemas in docs/schemas, to which other tests hold what the commands
//! print. `FLEXVOLUME_LVM_WRITE=1 cargo test --test reference` writes them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods
)]

#[path = "support/mod.rs"]
mod support;

use std::fmt::Write;

use serde_json::Value;
use support::schema::{ALL, read, resolved};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference.md");
/// More words than these are on a page of their own.
const MOST_WORDS: usize = 12;

/// A row for each field, and for those of objects in it.
fn rows(whole: &Value, schema: &Value, above: &str, told: &[String], text: &mut String) {
    let schema = resolved(whole, schema);
    if let Some(items) = schema.get("items") {
        return rows(whole, items, &format!("{above}[]"), told, text);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{above}.{name}");
        if told.contains(&at.replace("[]", "")) {
            continue;
        }
        let (shown, what) = (at.trim_start_matches('.'), &field["description"]);
        let what = what
            .as_str()
            .unwrap_or_else(|| panic!("{at}: no description"));
        writeln!(text, "| `{shown}` | {} | {what} |", kind(field)).unwrap();
        rows(whole, field, &at, told, text);
    }
}

fn kind(field: &Value) -> String {
    let null = Value::from("null");
    if let Some(words) = field["enum"]
        .as_array()
        .filter(|words| words.len() <= MOST_WORDS)
    {
        let words = words.iter().filter(|word| **word != null);
        return words
            .map(|word| format!("`{}`", word.as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match &field["type"] {
        Value::Array(types) => {
            let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
            types.join(" or ")
        }
        Value::String(one) => one.clone(),
        _ => "object or null".to_owned(),
    }
}

/// The names of all fields.
fn names(whole: &Value, schema: &Value) -> Vec<String> {
    let mut text = String::new();
    rows(whole, schema, "", &[], &mut text);
    let named = text.lines().map(|row| row.split('`').nth(1).unwrap());
    named.map(|name| format!(".{name}")).collect()
}

#[test]
fn the_page_has_the_fields_of_each_schema() {
    let mut page = std::fs::read_to_string(PAGE).unwrap();
    for (name, _) in ALL {
        let whole = read(name);
        // The fields of a volume in the list are said once.
        let told: Vec<String> = if name == "status-volume" {
            let list = read("status");
            let of_volume = &list["properties"]["volumes"]["items"];
            names(&list, of_volume)
        } else {
            Vec::new()
        };
        let mut table = "| field | type | what |\n|---|---|---|\n".to_owned();
        rows(&whole, &whole, "", &told, &mut table);
        let mark = format!("[`{name}.json`](schemas/{name}.json)");
        let (before, rest) = page
            .split_once(&mark)
            .unwrap_or_else(|| panic!("no {mark}"));
        let (line, rest) = rest.split_once("\n\n").unwrap();
        let (_, after) = rest.split_once("\n\n").unwrap();
        page = format!("{before}{mark}{line}\n\n{table}\n{after}");
    }
    if std::env::var_os("FLEXVOLUME_LVM_WRITE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    assert_eq!(
        page,
        std::fs::read_to_string(PAGE).unwrap(),
        "FLEXVOLUME_LVM_WRITE=1 corrects {PAGE}"
    );
}
