//! The driver's surroundings: tools that others can change, and the environment in which the driver was started.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use crate::support::machine::{Machine, NO_VOLUME};
use crate::support::{needs_root, put};

const JSON: &str = r#"{"volumegroup":"vg","volumeID":"data"}"#;
const CALL: [&str; 3] = ["waitforattach", "", JSON];
const NOBODY: u32 = 65534;

/// Lets somebody else than root change a tool.
type Loosen = fn(&Machine);

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn group(path: &Path) {
    chown(path, Some(0), Some(50)).unwrap();
    mode(path, 0o2775);
}

/// A tool of each of two directories; the first one is somebody else's to change.
fn machine() -> Machine {
    let machine = Machine::new();
    fs::create_dir(machine.path("second")).unwrap();
    both(&machine);
    machine.tool("lvs", &format!("echo first >> $TOP/ran\n{NO_VOLUME}"));
    let ran = machine.path("ran");
    let second = format!("#!/bin/sh\necho second >> {}\n{NO_VOLUME}\n", ran.display());
    put(&machine.path("second/lvs"), second);
    machine
}

fn both(machine: &Machine) {
    let [first, second] = ["tools", "second"].map(|name| machine.path(name));
    let text = format!(
        "log = 'none'\ntool_dirs = ['{}', '{}']\n",
        first.display(),
        second.display()
    );
    fs::write(machine.path("config.toml"), text).unwrap();
}

#[test]
fn no_tool_that_others_can_change_is_run() {
    needs_root!();
    #[rustfmt::skip] // a row is a line
    let loose: [(&str, Loosen, &str); 7] = [
        ("a directory for all", |m| mode(&m.path("tools"), 0o777), "tools can be written by others"),
        ("a directory of a group", |m| group(&m.path("tools")), "tools can be written by others"),
        ("a directory of a user", |m| chown(m.path("tools"), Some(NOBODY), None).unwrap(), "tools belongs to user 65534"),
        ("a tool for all", |m| mode(&m.path("tools/lvs"), 0o757), "lvs can be written by others"),
        ("a tool of a user", |m| chown(m.path("tools/lvs"), Some(NOBODY), None).unwrap(), "lvs belongs to user 65534"),
        ("a link to a directory of a user", |m| linked(m, NOBODY), "real belongs to user 65534"),
        ("a link of a user, in a directory like /tmp", |m| {
            linked(m, 0);
            mode(&m.path("tools"), 0o1777);
            lchown(m.path("tools/lvs"), Some(NOBODY), None).unwrap();
        }, "a symbolic link that root did not make"),
    ];
    for (name, loosen, words) in loose {
        let machine = machine();
        loosen(&machine);
        // The next one is run.
        machine.refuses(&CALL, &["there is no logical volume vg/data"]);
        let ran = fs::read_to_string(machine.path("ran")).unwrap();
        assert!(
            ran.starts_with("second\n") && !ran.contains("first"),
            "{name}: {ran}"
        );
        // There is none.
        fs::remove_file(machine.path("second/lvs")).unwrap();
        fs::remove_file(machine.path("ran")).unwrap();
        machine.refuses(&CALL, &["lvs is not run: ", words]);
        assert!(!machine.path("ran").exists(), "{name}");
        let doctor = machine.command(&["doctor"]).output().unwrap();
        let doctor = String::from_utf8(doctor.stdout).unwrap();
        let folded = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            folded.contains("lvs is not run: ") && folded.contains(words),
            "{name}: {doctor}"
        );
    }
}

fn linked(machine: &Machine, owner: u32) {
    let real = machine.path("real");
    fs::create_dir(&real).unwrap();
    fs::rename(machine.path("tools/lvs"), real.join("lvs")).unwrap();
    symlink("../real/lvs", machine.path("tools/lvs")).unwrap();
    chown(real, Some(owner), None).unwrap();
}

#[test]
fn a_tool_that_only_root_can_change_is_run_through_any_link() {
    needs_root!();
    let machine = machine();
    linked(&machine, 0);
    symlink("tools", machine.path("sbin")).unwrap();
    let config = machine.path("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(config, text.replace("/tools'", "/sbin'")).unwrap();
    // As /nix/store: others may add something there, and change nothing of root's.
    chown(machine.path("tools"), Some(0), Some(50)).unwrap();
    mode(&machine.path("tools"), 0o1775);
    machine.refuses(&CALL, &["there is no logical volume vg/data"]);
    let ran = fs::read_to_string(machine.path("ran")).unwrap();
    assert!(ran.starts_with("first\n"), "{ran}");
}

/// As on hosts that were upgraded from an old Debian: /usr/local/sbin is root:staff, mode 2775.
#[test]
fn an_empty_directory_that_others_can_change_is_in_nobodys_way() {
    needs_root!();
    let machine = machine();
    fs::remove_file(machine.path("tools/lvs")).unwrap();
    group(&machine.path("tools"));
    let (ran, second) = (machine.path("ran"), machine.path("second"));
    // A tool that runs another one does not look there either.
    let lvs = format!(
        "#!/bin/sh\necho \"$PATH\" > {}\n{NO_VOLUME}\n",
        ran.display()
    );
    put(&second.join("lvs"), lvs);
    machine.refuses(&CALL, &["there is no logical volume vg/data"]);
    let path = fs::read_to_string(ran).unwrap();
    assert_eq!(path.trim_end(), second.to_str().unwrap());
}

#[test]
fn a_tool_gets_an_environment_of_the_drivers_own() {
    let machine = Machine::new();
    machine.tool(
        "lvs",
        &format!("tr '\\0' '\\n' < /proc/$$/environ > $TOP/seen\n{NO_VOLUME}"),
    );
    let mut call = machine.under(&[], &CALL);
    let hostile = "POSIXLY_CORRECT LVM_REPORT_FD MKE2FS_CONFIG LIBBLKID_DEBUG TMPDIR BASH_ENV IFS";
    call.envs(hostile.split(' ').map(|name| (name, "7")));
    call.envs([
        ("LVM_SYSTEM_DIR", "/run/lvm-of-this-node"),
        ("DM_DISABLE_UDEV", "1"),
        ("LC_ALL", "de_DE"),
        ("PATH", "/run/evil:/usr/bin"),
    ]);
    let output = call.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let seen = fs::read_to_string(machine.path("seen")).unwrap();
    let mut seen: Vec<&str> = seen.lines().collect();
    seen.sort_unstable();
    let path = format!("PATH={}", machine.path("tools").display());
    let want = [
        "DM_DISABLE_UDEV=1",
        "LC_ALL=C",
        "LVM_SUPPRESS_FD_WARNINGS=1",
        "LVM_SYSTEM_DIR=/run/lvm-of-this-node",
        &path,
    ];
    assert_eq!(seen, want);
}
