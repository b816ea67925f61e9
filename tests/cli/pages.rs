//! A shell's completions and the man pages of the commands.

use std::fs;

use crate::Machine;
use crate::people::{prints, says, text};

/// Has an interactive shell complete lines in which TAB is pressed, and returns the words that come of each.
fn completed(machine: &Machine, shell: &str, lines: &[&str]) -> String {
    let (script, _) = says(machine, &["completions", shell]);
    fs::write(machine.path("completions"), script).unwrap();
    let (program, function) = match shell {
        "bash" => (
            "bash --norc --noprofile -i",
            "flexvolume-lvm() { printf '<%s>' \"$@\"; }",
        ),
        "zsh" => (
            "zsh -f -i",
            "autoload -U compinit && compinit -D; flexvolume-lvm() { printf '<%s>' \"$@\"; }",
        ),
        _ => (
            "fish --no-config -i",
            "function flexvolume-lvm; printf '<%s>' $argv; end",
        ),
    };
    let lines = lines
        .iter()
        .map(|line| format!("flexvolume-lvm {line} >>words; echo >>words\n"));
    let typed = lines.collect::<String>();
    let home = machine.path("");
    let output = assert_cmd::Command::new("script")
        .args(["-qec", program, "/dev/null"])
        .envs([("TERM", "xterm".as_ref()), ("HOME", home.as_os_str())])
        .current_dir(&home)
        .write_stdin(format!("{function}; source ./completions\n{typed}exit\n"))
        .output()
        .unwrap();
    let said = text(&output.stdout);
    // A script that fails writes into the prompt.
    assert!(
        !said.contains("subscript") && !said.contains("not found"),
        "{shell}: {said}"
    );
    let words = fs::read_to_string(machine.path("words"));
    words.unwrap_or_else(|e| panic!("{shell}: {e}: {said}"))
}

#[test]
fn a_shell_completes_commands_call_outs_options_and_values() {
    let cases = [
        ("stat\t--wi\t", "<status><--wide>"),
        ("allow\t--y\t", "<allow-format><--yes>"),
        (
            "check\t--conf\t./conf\t",
            "<check><--config><./config.toml>",
        ),
        ("check\t--id\t--na\t", "<check><--idle><--name>"),
        ("ren\t", "<rename>"),
        ("status --sort si\t", "<status><--sort><size>"),
        ("check --fs x\t", "<check><--fs><xfs>"),
        ("expo\t--to top\t", "<export><--to><topolvm>"),
        (
            "mountd\t-o volumeg\tvg0",
            "<mountdevice><-o><volumegroup=vg0>",
        ),
        ("mount -o fsType=bt\t", "<mount><-o><fsType=btrfs>"),
    ];
    for shell in ["bash", "zsh", "fish"] {
        let done = completed(&Machine::new(), shell, &cases.map(|(line, _)| line));
        let done: Vec<&str> = done.lines().collect();
        assert_eq!(done, cases.map(|(_, want)| want), "{shell}");
    }
}

#[test]
fn man_pages_are_made_of_the_commands() {
    let machine = Machine::new();
    let dir = machine.path("man");
    fs::create_dir(&dir).unwrap();
    prints(&machine, &["man", dir.to_str().unwrap()], "status.8", 0);
    let page = fs::read_to_string(dir.join("flexvolume-lvm-status.8")).unwrap();
    assert!(
        page.contains("\\-\\-watch") && page.contains(".SH SYNOPSIS"),
        "{page}"
    );
    let page = fs::read_to_string(dir.join("flexvolume-lvm.8")).unwrap();
    assert!(
        page.contains("Exit codes") && !page.contains("completions"),
        "{page}"
    );
    // Examples and files, a line each.
    let (_, below) = page.split_once(".nf\n").unwrap();
    let (below, after) = below.split_once(".fi\n").unwrap();
    assert!(
        below.contains("/var/log/pods") && after.contains("VERSION"),
        "{page}"
    );
}
