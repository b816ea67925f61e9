//! What CHANGELOG.md says of the newest version is about commands and options that the executable has.

use super::*;

/// The commands, and their options, of a list of spans such as `sudo ./lvm check -o size=1g` or `--link`.
fn named<'a>(text: &'a str, commands: &clap::Command) -> Vec<(String, &'a str)> {
    let mut named = Vec::new();
    for span in spans(text) {
        let mut words = span.split_whitespace().filter(|word| {
            !["sudo", "./lvm", "./lvm-0.1.0", "flexvolume-lvm"].contains(word)
                && !word.starts_with("FLEXVOLUME_LVM_CONFIG=")
        });
        let Some(command) = words.next().and_then(|word| commands.find_subcommand(word)) else {
            continue;
        };
        named.push((command.get_name().to_owned(), ""));
        let options = words.filter(|word| word.starts_with('-'));
        named.extend(options.map(|word| (command.get_name().to_owned(), word)));
    }
    named
}

fn has(commands: &clap::Command, command: &str, option: &str) -> bool {
    let command = commands.find_subcommand(command).unwrap();
    let option = option.split('=').next().unwrap();
    option.is_empty()
        || command.get_arguments().any(|argument| {
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            [long, short].iter().flatten().any(|is| is == option)
        })
}

#[test]
fn the_changes_of_a_version_are_read_in_one_go() {
    let changes = page("CHANGELOG.md");
    for version in changes.split("\n## [").skip(1) {
        let words = version.split_whitespace().count();
        assert!(
            words <= 1350,
            "CHANGELOG.md has {words} words for {version:.10}: write what users of the last release notice"
        );
    }
}

#[test]
fn the_newest_version_has_the_commands_and_options_of_its_changes() {
    let changes = page("CHANGELOG.md");
    let newest = changes.split("\n## [").nth(1).unwrap();
    let (has_now, gone) = newest.split_once("\n### Gone\n").unwrap();
    let commands = tool::command();
    let named = named(has_now, &commands);
    assert!(named.len() > 15, "{named:?}");
    let lacks = named
        .iter()
        .filter(|(command, option)| !has(&commands, command, option));
    assert_eq!(lacks.collect::<Vec<_>>(), Vec::<&(String, &str)>::new());
    // 0.1.0 had only these.
    let old = [
        "status",
        "doctor",
        "adopt",
        "allow-format",
        "install",
        "uninstall",
    ];
    for (command, option) in self::named(gone, &commands) {
        assert!(old.contains(&&*command), "0.1.0 had no {command}");
        let is_gone = option.is_empty() || !has(&commands, &command, option);
        assert!(is_gone, "{command} has {option}");
    }
}
