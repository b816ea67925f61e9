//! Compares each [`Reason`] with the files that have its word or its message: messages.txt and
//! docs/schemas/reason.json.
//!
//! `FLEXVOLUME_LVM_WRITE=1 cargo test --lib messages` writes these files instead.

mod samples;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use strum::IntoEnumIterator;

use crate::host::own_name;
use crate::names::LvId;
use crate::names::hostile::{has_lines, hostile};
use crate::volume::decide::reason::Word;
use samples::samples;

/// Each reason's word, with its messages.
fn messages() -> Vec<(&'static str, Vec<String>)> {
    let id = LvId::parse("vg7/web7").unwrap();
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for reason in samples(&str::to_owned) {
        let message = reason.message(&id).replace(&own_name(), "lvm");
        let word = (&reason).into();
        match all.last_mut() {
            Some((last, messages)) if *last == word => messages.push(message),
            _ => all.push((word, vec![message])),
        }
    }
    all
}

/// Compares the text with a file, or writes it into the file.
fn same_or_written(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("FLEXVOLUME_LVM_WRITE").is_some() {
        return fs::write(path, text).unwrap();
    }
    let is = fs::read_to_string(path).unwrap();
    let other = is.lines().zip(text.lines()).find(|(is, want)| is != want);
    assert!(
        is == text,
        "FLEXVOLUME_LVM_WRITE=1 corrects {file}: {other:#?}"
    );
}

fn all_words() -> Vec<&'static str> {
    Word::iter().map(Into::into).collect()
}

#[test]
fn each_reason_has_a_sample() {
    let words: Vec<&str> = messages().into_iter().map(|(word, _)| word).collect();
    assert_eq!(words, all_words());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_message_is_a_line_whatever_others_wrote_in_it(hostile in hostile()) {
        let id = LvId::parse("vg7/web7").unwrap();
        for reason in samples(&|_| hostile.clone()) {
            let message = reason.message(&id);
            prop_assert!(has_lines(&message, 1), "{message:?}");
            prop_assert!(message.len() <= 2048, "{message:?}");
        }
    }
}

#[test]
fn each_message_fits_an_event_with_the_longest_names() {
    let (vg, lv) = ("v".repeat(62), "w".repeat(62));
    let id = LvId::parse(&format!("{vg}/{lv}")).unwrap();
    let exe = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/kubernetes.io~lvm/lvm";
    for reason in samples(&str::to_owned) {
        let message = reason.message(&id).replace(&own_name(), exe);
        let message = message.replace("vg7", &vg).replace("pool7", &lv);
        assert!(message.len() < 1024, "{}: {message}", message.len());
    }
}

/// kubelet would take a percent sign for a format, so the reply has another character there.
#[test]
fn no_command_of_a_message_has_a_percent_sign() {
    for message in messages().into_iter().flat_map(|(_, messages)| messages) {
        let mut commands = message.split('`').skip(1).step_by(2);
        assert!(!commands.any(|command| command.contains('%')), "{message}");
    }
}

#[test]
fn each_message_is_the_one_in_the_file() {
    let text = messages().into_iter().map(|(word, messages)| {
        let lines = messages.iter().map(|message| format!("  {message}\n"));
        format!("{word}\n{}", lines.collect::<String>())
    });
    same_or_written(
        "volume/decide/tests/messages.txt",
        &text.collect::<String>(),
    );
}

#[test]
fn a_schema_has_the_word_of_each_reason() {
    const SCHEMA: &str = "../../docs/schemas/reason.json";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(SCHEMA)).unwrap();
    let mut schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut words = all_words();
    words.sort_unstable();
    schema["enum"] = words.into();
    same_or_written(SCHEMA, &format!("{schema:#}\n"));
}
