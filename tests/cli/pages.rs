//! What a shell and man(1) have of the commands.

use std::fs;

use crate::Machine;
use crate::people::{prints, says, text};

#[test]
fn completions_and_man_pages_are_made_of_the_commands() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish"] {
        prints(&machine, &["completions", shell], "allow-format", 0);
    }
    let (script, _) = says(&machine, &["completions", "bash"]);
    for (words, want) in [
        ("status --w", "--wide --watch"),
        ("allow-format --y", "--yes"),
        ("allow", "allow-format"),
    ] {
        let last = words.rsplit(' ').next().unwrap();
        let number = words.split(' ').count();
        let line = format!(
            "{script}\nCOMP_WORDS=(flexvolume-lvm {words}); COMP_CWORD={number}
            [[ $(complete -p flexvolume-lvm) =~ -F\\ ([^ ]+) ]]
            ${{BASH_REMATCH[1]}} flexvolume-lvm '{last}' ''; echo \"${{COMPREPLY[*]}}\""
        );
        let bash = assert_cmd::Command::new("bash")
            .args(["-c", &line])
            .output();
        let said = text(&bash.unwrap().stdout);
        assert_eq!(said.trim(), want, "{words}");
    }
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
