//! The messages in the pages are the driver's own messages, and have rows and tests.

use super::*;

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
    let mut messages = messages("docs/on-call.md", "## 4. What else a call may say");
    assert!(messages.len() > 10, "{messages:?}");
    messages.retain(|message| !is_given(&code, message));
    assert_eq!(messages, Vec::<String>::new());
}

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
    // Those of groups that nodes share are in tests/shared; the others in crypt/lost.rs, calls/failed_growth.rs,
    // refusals/agreed.rs, people/status.rs and tests/cli.
    let others = "no-locks held-elsewhere active-shared active-without-lock suspended-inside filesystem-limit \
                  not-looked-at";
    let page = page("docs/on-call.md");
    let (_, section) = page.split_once("\n## 3.").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let words = section.lines().filter_map(|line| line.strip_prefix("### "));
    let words = words.filter(|word| !others.split(' ').any(|other| other == *word));
    let words: Vec<&str> = words.collect();
    assert!(words.len() > 40, "{words:?}");
    let missing: Vec<&&str> = words.iter().filter(|word| !has_row(word)).collect();
    assert!(
        missing.is_empty(),
        "tests/guest/refusals/mod.rs has no row for {missing:?}"
    );
}
