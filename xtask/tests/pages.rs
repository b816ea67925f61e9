//! The man pages, read by man and mandoc, and the completions, typed into real shells.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../../tests/support/tools.rs"]
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

fn written() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut xtask = Command::new(assert_cmd::cargo::cargo_bin!("xtask"));
    xtask.arg(dir.path()).assert().success();
    dir
}

fn pages(dir: &Path) -> Vec<PathBuf> {
    let all = ["man/man5", "man/man8"].map(|place| fs::read_dir(dir.join(place)).unwrap());
    let all = all.into_iter().flatten();
    all.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn each_command_has_a_man_page_with_its_exit_codes_and_examples() {
    let dir = written();
    let names = tool::command();
    let names = names.get_subcommands().map(clap::Command::get_name);
    for name in names {
        let page = format!("man/man8/flexvolume-lvm-{name}.8");
        let page = fs::read_to_string(dir.path().join(&page)).unwrap();
        for title in ["EXIT STATUS", "EXAMPLES"] {
            assert!(page.contains(title), "{name}: {page}");
        }
    }
}

#[test]
fn man_and_mandoc_read_all_pages_without_a_warning() {
    if !tools::is_here("man-db", &["man", "mandb"]) || !tools::is_here("mandoc", &["mandoc"]) {
        return;
    }
    let dir = written();
    for page in pages(dir.path()) {
        let mut mandoc = Command::new("mandoc");
        mandoc.args(["-T", "lint", "-W", "error"]).arg(&page);
        mandoc.assert().success().stdout("").stderr("");
        for language in ["C", "C.UTF-8"] {
            let mut man = Command::new("man");
            man.args(["--warnings", "-l"]).arg(&page);
            man.envs([
                ("LC_ALL", language),
                ("MANWIDTH", "80"),
                ("MANPAGER", "cat"),
            ]);
            let shown = man
                .assert()
                .success()
                .stderr("")
                .get_output()
                .stdout
                .clone();
            let shown = String::from_utf8(shown).unwrap();
            let widest = shown.lines().max_by_key(|line| line.chars().count());
            assert!(widest.unwrap().chars().count() <= 80, "{widest:?}: {shown}");
        }
    }
}

/// Each key and table of the config that `install` writes.
#[test]
fn the_page_of_the_config_has_all_its_keys() {
    if !tools::is_here("man-db", &["man", "mandb"]) {
        return;
    }
    let dir = written();
    let mut man = Command::new("man");
    man.arg("-l")
        .arg(dir.path().join("man/man5/flexvolume-lvm.toml.5"));
    man.envs([
        ("LC_ALL", "C.UTF-8"),
        ("MANWIDTH", "200"),
        ("MANPAGER", "cat"),
    ]);
    let page = String::from_utf8(man.output().unwrap().stdout).unwrap();
    let config = include_str!("../../examples/config.toml");
    let keys = config.lines().filter(|line| !line.starts_with("# "));
    let keys: Vec<&str> = keys.map(|line| line.trim_start_matches('#')).collect();
    assert!(keys.len() > 25);
    for key in keys {
        assert!(page.contains(key), "{key}: {page}");
    }
}

/// Has an interactive shell complete lines in which TAB is pressed, and returns the words of each.
fn completed(shell: &str, lines: &[&str]) -> String {
    let dir = written();
    let (program, function, script) = match shell {
        "bash" => (
            "bash --norc --noprofile -i",
            "flexvolume-lvm() { printf '<%s>' \"$@\"; }",
            "flexvolume-lvm.bash",
        ),
        "zsh" => (
            "zsh -f -i",
            "autoload -U compinit && compinit -D; flexvolume-lvm() { printf '<%s>' \"$@\"; }",
            "_flexvolume-lvm",
        ),
        _ => (
            "fish --no-config -i",
            "function flexvolume-lvm; printf '<%s>' $argv; end",
            "flexvolume-lvm.fish",
        ),
    };
    let lines = lines
        .iter()
        .map(|line| format!("flexvolume-lvm {line} >>words; echo >>words\n"));
    let typed = lines.collect::<String>();
    let output = Command::new("script")
        .args(["-qec", program, "/dev/null"])
        .envs([("TERM", "xterm".as_ref()), ("HOME", dir.path().as_os_str())])
        .current_dir(dir.path())
        .write_stdin(format!(
            "{function}; source ./completions/{script}\n{typed}exit\n"
        ))
        .output()
        .unwrap();
    let words = fs::read_to_string(dir.path().join("words"));
    words.unwrap_or_else(|e| panic!("{shell}: {e}: {output:?}"))
}

#[test]
fn a_shell_completes_commands_options_and_values_and_no_call_out() {
    if !tools::is_here("zsh", &["zsh"]) || !tools::is_here("fish", &["fish"]) {
        return;
    }
    let cases = [
        ("stat\t--un\t", "<status><--unwell>"),
        ("allow\t--y\t", "<allow-format><--yes>"),
        ("install --attach fal\t", "<install><--attach><false>"),
        ("mountd\t/x", "<mountd/x>"),
    ];
    for shell in ["bash", "zsh", "fish"] {
        let done = completed(shell, &cases.map(|(line, _)| line));
        let done: Vec<&str> = done.lines().collect();
        assert_eq!(done, cases.map(|(_, want)| want), "{shell}");
    }
}
