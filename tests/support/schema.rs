//! Compares what a command prints with `--json` with its schema in docs/schemas. Only the part of JSON Schema that
//! these schemas use is here.

use serde_json::Value;

/// The name of the schema for what this command line prints. `None`: it prints no JSON.
pub fn of(args: &[&str], printed: &Value) -> Option<&'static str> {
    let has = |word: &str| args.contains(&word);
    if !has("--json") {
        return None;
    }
    match args[0] {
        "check" if has("--config") => Some("check-config"),
        "check" if has("--idle") => Some("check-idle"),
        "check" => Some("check"),
        "status" if printed.get("groups").is_some() => Some("status"),
        "status" => Some("status-volume"),
        "doctor" => Some("doctor"),
        "log" => Some("log"),
        _ => None,
    }
}

/// Fails if a command printed JSON that its schema does not allow.
pub fn holds(args: &[&str], printed: &str) {
    let Ok(value) = serde_json::from_str(printed) else {
        return;
    };
    if let Some(name) = of(args, &value) {
        let mut wrong = Vec::new();
        let schema = read(name);
        compare(&schema, &schema, &value, "", &mut wrong);
        assert_eq!(wrong, Vec::<String>::new(), "{args:?}: {printed}");
    }
}

/// All schemas. They are compiled in, since the guest of another Debian does not have this repository's files.
pub const ALL: [(&str, &str); 8] = [
    ("check", include_str!("../../docs/schemas/check.json")),
    (
        "check-config",
        include_str!("../../docs/schemas/check-config.json"),
    ),
    (
        "check-idle",
        include_str!("../../docs/schemas/check-idle.json"),
    ),
    ("doctor", include_str!("../../docs/schemas/doctor.json")),
    ("log", include_str!("../../docs/schemas/log.json")),
    ("reason", include_str!("../../docs/schemas/reason.json")),
    ("status", include_str!("../../docs/schemas/status.json")),
    (
        "status-volume",
        include_str!("../../docs/schemas/status-volume.json"),
    ),
];

/// A schema, with the other one that it names among its own definitions.
pub fn read(name: &str) -> Value {
    let parsed = |name: &str| -> Value {
        let (_, text) = ALL.iter().find(|(one, _)| *one == name).unwrap();
        serde_json::from_str(text).unwrap()
    };
    let mut schema = parsed(name);
    schema["$defs"]["reason.json"] = parsed("reason");
    schema
}

/// What a `$ref` names, or the schema itself.
pub fn resolved<'a>(whole: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema.get("$ref").and_then(Value::as_str);
    name.map_or(schema, |name| {
        &whole["$defs"][name.trim_start_matches("#/$defs/")]
    })
}

fn compare(whole: &Value, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    let schema = resolved(whole, schema);
    if let Some(any) = schema.get("anyOf") {
        let fits = |one: &&Value| {
            let mut wrong = Vec::new();
            compare(whole, one, value, at, &mut wrong);
            wrong.is_empty()
        };
        if !any.as_array().unwrap().iter().any(|one| fits(&one)) {
            wrong.push(format!("{at}: {value} is none of {any}"));
        }
        return;
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    if !types.iter().any(|one| is(one.as_str().unwrap(), value)) {
        wrong.push(format!("{at}: {value} is not {types:?}"));
    }
    if let Some(words) = schema.get("enum")
        && !words.as_array().unwrap().contains(value)
    {
        wrong.push(format!("{at}: {value} is not among {words}"));
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        compare(whole, &schema["items"], item, &format!("{at}[{n}]"), wrong);
    }
    for (name, its) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, other @ Value::Object(_)) => compare(whole, other, its, &at, wrong),
            (Value::Null, _) => wrong.push(format!("{at} is in no schema")),
            (known, _) => compare(whole, known, its, &at, wrong),
        }
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
            wrong.push(format!("{at} lacks {name}"));
        }
    }
}

fn is(what: &str, value: &Value) -> bool {
    match what {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("{what}"),
    }
}
