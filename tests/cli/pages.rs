//! A shell's completions and the man pages of the commands.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Machine;
use crate::people::{says, text};

/// Has an interactive shell complete lines in which TAB is pressed, and returns the words that come of each.
fn completed(machine: &Machine, shell: &str, lines: &[&str]) -> String {
    let (script, _) = says(machine, &["completions", shell]);
    fs::write(machine.path("completions"), script).unwrap();
    let (program, function, then) = match shell {
        "bash" => (
            "bash --norc --noprofile -i",
            "flexvolume-lvm() { printf '<%s>' \"$@\"; }",
            // Its line editor writes to standard error.
            "eval \"asked() $(declare -f _clap_complete_flexvolume_lvm | tail -n +2)\"; \
             _clap_complete_flexvolume_lvm() { asked \"$@\" 2>>said; }; set -u",
        ),
        "zsh" => (
            "zsh -f -i 2>said",
            "autoload -U compinit && compinit -D; flexvolume-lvm() { printf '<%s>' \"$@\"; }",
            ":",
        ),
        _ => (
            "fish --no-config -i 2>said",
            "function flexvolume-lvm; printf '<%s>' $argv; end",
            "true",
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
        .write_stdin(format!(
            "{function}; source ./completions; {then}\n{typed}exit\n"
        ))
        .output()
        .unwrap();
    // What a script says there stands in the prompt.
    let errors = fs::read_to_string(machine.path("said"));
    assert_eq!(errors.unwrap(), "", "{shell}");
    let said = text(&output.stdout);
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

/// Writes the man pages of the commands and of the config, and returns their paths.
fn man_pages(machine: &Machine) -> Vec<PathBuf> {
    let dir = machine.path("man");
    fs::create_dir(&dir).unwrap();
    let (said, code) = says(machine, &["man", dir.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    said.lines().map(PathBuf::from).collect()
}

/// What a tool says of a page, on both outputs.
fn of_page(page: &Path, command: &[&str], variables: &[(&str, &str)]) -> String {
    let mut tool = assert_cmd::Command::new(command[0]);
    let output = tool.args(&command[1..]).arg(page).envs(variables.to_vec());
    let output = output.output().unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn each_command_has_a_man_page_with_its_exit_codes_and_examples() {
    let machine = Machine::new();
    let pages = man_pages(&machine);
    let names: Vec<&str> = pages
        .iter()
        .map(|page| page.file_name().unwrap().to_str().unwrap())
        .collect();
    let (help, _) = says(&machine, &["--help"]);
    let (_, commands) = help.split_once("Commands for people:\n").unwrap();
    let commands = commands
        .lines()
        .map_while(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = commands
        .filter(|name| !["help", ""].contains(name))
        .collect();
    assert!(commands.len() > 12, "{help}");
    for command in commands {
        assert!(
            names.contains(&&*format!("flexvolume-lvm-{command}.8")),
            "{command}: {names:?}"
        );
    }
    for page in &pages {
        let source = fs::read_to_string(page).unwrap();
        let is_command = page.ends_with("man8") || source.starts_with(".TH FLEXVOLUME\\-LVM\\-");
        for title in ["EXIT STATUS", "EXAMPLES"] {
            let has_it = source.contains(&format!(".SH \"{title}\"\n"));
            assert!(has_it || !is_command, "{title}: {source}");
        }
        let (_, see) = source.split_once(".SH \"SEE ALSO\"\n").unwrap();
        for other in see
            .replace(['\\', ',', ')'], "")
            .replace("fR(", ".")
            .lines()
        {
            assert!(
                names.contains(&other.trim_start_matches("fB")),
                "{other}: {names:?}"
            );
        }
    }
    let status = fs::read_to_string(&pages[2]).unwrap();
    assert!(
        status.contains("[\\fB\\-\\-sort\\fR\\ \\fICOLUMN\\fR]\n"),
        "{status}"
    );
}

#[test]
fn man_and_mandoc_have_nothing_to_say_of_the_pages() {
    let machine = Machine::new();
    let groff = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"];
    for page in man_pages(&machine) {
        let said = of_page(&page, &["mandoc", "-T", "lint"], &[]);
        assert_eq!(said, "", "{}", page.display());
        for language in ["C", "C.UTF-8"] {
            let output = assert_cmd::Command::new("man")
                .args(&groff[1..])
                .arg(&page)
                .env("LC_ALL", language)
                .output();
            assert_eq!(text(&output.unwrap().stderr), "", "{}", page.display());
            let shown = of_page(
                &page,
                &["man", "-l"],
                &[
                    ("LC_ALL", language),
                    ("MANWIDTH", "80"),
                    ("MANPAGER", "cat"),
                ],
            );
            let widest = shown
                .lines()
                .max_by_key(|line| line.chars().count())
                .unwrap();
            assert!(
                widest.chars().count() <= 80 && shown.contains("SEE ALSO"),
                "{widest}: {shown}"
            );
        }
    }
}

/// Each key and table of the config that `install` writes.
#[test]
fn the_page_of_the_config_has_all_its_keys() {
    let machine = Machine::new();
    let pages = man_pages(&machine);
    assert!(pages[0].ends_with("man5/flexvolume-lvm.toml.5"));
    let page = fs::read_to_string(&pages[0])
        .unwrap()
        .replace("\\(dq", "\"")
        .replace('\\', "");
    let config =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/config.toml")).unwrap();
    let mut keys = 0;
    for line in config.lines().filter(|line| !line.starts_with("# ")) {
        let key = line.trim_start_matches('#');
        keys += usize::from(key.contains(" = "));
        assert!(page.contains(key), "{key}: {page}");
    }
    assert!(keys > 25, "{keys}");
}
