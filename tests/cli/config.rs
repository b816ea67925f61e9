//! `check --config`: finds mistakes in a config. Any user may run it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::Machine;
use crate::people::{prints, says, text};

#[test]
fn a_mistake_in_a_config_is_named() {
    let machine = Machine::new();
    let file = machine.path("new.toml");
    let path = file.to_str().unwrap();
    let asked = ["check", "--config", path];
    fs::write(&file, "[limits]\nquery = 0\n").unwrap();
    let (said, code) = says(&machine, &asked);
    let want = format!("{path}, line 2: whole seconds");
    assert!(said.starts_with(&want) && code == 1, "{said}");
    fs::write(&file, "attach = false\n").unwrap();
    prints(&machine, &asked, "has no mistakes", 0);
    prints(
        &machine,
        &["check", "--config", "/nonexistent"],
        "reading /nonexistent",
        1,
    );
    let piped = machine
        .command(&["check", "--config", "-"])
        .write_stdin("a = 1")
        .output();
    assert!(text(&piped.unwrap().stdout).starts_with("-, line 1: unknown field `a`"));
}

#[test]
fn without_a_name_it_is_the_drivers_own_config_with_who_may_write_it() {
    let machine = Machine::new();
    let asked = ["check", "--config"];
    let file = machine.path("config.toml");
    prints(&machine, &asked, "config.toml has no mistakes", 0);
    machine.configure("atach = true\nlog = \"x\"");
    // The key is there already.
    prints(&machine, &asked, "line 5: duplicate key", 1);
    machine.configure("");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    prints(&machine, &asked, "can be written by others than root", 1);
    let none = machine
        .command(&asked)
        .env("FLEXVOLUME_LVM_CONFIG", "/dev/null")
        .output();
    let none = none.unwrap();
    let said = text(&none.stdout) + &text(&none.stderr);
    assert!(
        said.contains("/dev/null is not there") && none.status.success(),
        "{said}"
    );
    fs::rename(&file, machine.path("elsewhere")).unwrap();
    prints(&machine, &asked, "cannot be read: No such file", 1);
}
