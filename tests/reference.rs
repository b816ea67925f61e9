//! docs/reference.md has a link to each schema in docs/schemas, and each field of a schema has a description there.
//! Other tests compare what the commands print with the schemas.
#![allow(clippy::restriction, clippy::disallowed_methods)]

#[path = "support/mod.rs"]
mod support;

use serde_json::Value;
use support::schema::{ALL, read, resolved};

/// The fields below `schema` that have no description.
fn unexplained(whole: &Value, schema: &Value, above: &str) -> Vec<String> {
    let schema = resolved(whole, schema);
    if let Some(items) = schema.get("items") {
        return unexplained(whole, items, &format!("{above}[]"));
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    let missing = fields.flat_map(|(name, field)| {
        let at = format!("{above}.{name}");
        let mut missing = unexplained(whole, field, &at);
        if !field["description"].is_string() {
            missing.push(at);
        }
        missing
    });
    missing.collect()
}

#[test]
fn the_page_leads_to_each_schema_which_explains_each_field() {
    let page = include_str!("../docs/reference.md");
    for (name, _) in ALL {
        let link = format!("[`{name}.json`](schemas/{name}.json)");
        assert!(page.contains(&link), "docs/reference.md: no {link}");
        let whole = read(name);
        assert_eq!(unexplained(&whole, &whole, name), Vec::<String>::new());
    }
}
