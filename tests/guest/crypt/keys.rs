//! The passphrases of an encrypted volume and the backup of its header, by hand.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

/// A file with another passphrase.
fn file(name: &str, passphrase: &str) -> String {
    let file = format!("/run/{name}");
    fs::write(&file, passphrase).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// Whether cryptsetup itself opens the volume with this file.
fn opens(volume: &Volume, file: &str) -> bool {
    let args = [
        "open",
        "--test-passphrase",
        "--key-file",
        file,
        &volume.device(),
    ];
    let output = assert_cmd::Command::new("cryptsetup").args(args).output();
    output.unwrap().status.success()
}

/// The header as it is, but for the time.
fn header(volume: &Volume) -> String {
    run("cryptsetup", &["luksDump", &volume.device()])
}

fn slots(node: &Node, volume: &str) -> Vec<u64> {
    let (said, code) = node.says(&["key", "list", volume, "--json"]);
    assert_eq!(code, 0, "{said}");
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    let keys = report["keys"].as_array().unwrap().iter();
    keys.map(|key| key["slot"].as_u64().unwrap()).collect()
}

/// cryptsetup would open a volume by such a token whatever passphrase it is given.
#[test]
fn a_token_of_the_header_is_no_passphrase() {
    let (node, group) = (with_key(Mode::MountOnly, "token"), Group::new("token"));
    let volume = group.linear("data", "48m").encrypted();
    node.write("pod", &volume, "kept");
    let foreign = file("token.foreign", "nobody's");
    run("keyctl", &["add", "user", "token-key", PASSPHRASE, "@u"]);
    let add = [
        "token",
        "add",
        "--key-description",
        "token-key",
        &volume.device(),
    ];
    run("cryptsetup", &add);
    assert!(opens(&volume, &foreign));
    // "nobody's".
    let other = with_secret(&volume, "bm9ib2R5J3M=");
    node.refuses_mount(
        &other,
        &["the passphrase of the volume's Secret does not open"],
    );
    let key = |word, option| node.says(&["key", word, "token/data", option, &foreign]);
    assert!(key("add", "--new-key-file").0.contains("has 2 keys now"));
    assert!(key("remove", "--old-key-file").0.contains("has 1 key now"));
    let (said, code) = key("remove", "--old-key-file");
    assert!(code == 1 && said.contains("has one key alone"), "{said}");
    assert_eq!(read(&node.up("pod", &volume).join("page")), "kept");
    node.down("pod", &volume);
}

#[test]
fn a_passphrase_is_rotated_while_a_pod_runs_and_the_last_one_stays() {
    let (node, group) = (with_key(Mode::MountOnly, "rotates"), Group::new("rotates"));
    let volume = group.linear("data", "48m").encrypted();
    let name = "rotates/data";
    let dir = node.up("pod", &volume);
    write_synced(&dir.join("page"), "kept");
    let old = "/run/rotates.key";
    let new = file("rotates.new", "another passphrase\n");
    let foreign = file("rotates.foreign", "nobody's");
    assert_eq!(slots(&node, name), [0]);
    node.prints(&["key", "list", name], "argon2id", 0);

    // One key: it stays, whatever is asked.
    let before = header(&volume);
    for goes in [old, new.as_str(), &foreign] {
        let remove = ["key", "remove", name, "--old-key-file", goes];
        node.prints(&remove, "has one key alone", 1);
    }
    // A passphrase that does not open it adds none.
    let add = ["key", "add", name, "--new-key-file", &new];
    let with = |key: &'static str| [&add[..], &["--key-file", key]].concat();
    node.prints(
        &with("/run/rotates.foreign"),
        "does not open rotates/data, so none was added",
        1,
    );
    assert_eq!(header(&volume), before);

    // The node's key_file opens it, and the pod runs on.
    node.prints(&add, "has 2 keys now", 0);
    assert!(opens(&volume, old) && opens(&volume, &new));
    let before = header(&volume);
    node.prints(&add, "has this passphrase already", 0);
    // What stays must open it, and be another one than what goes.
    let remove = |stays: &'static str, goes: &'static str| {
        [
            "key",
            "remove",
            name,
            "--key-file",
            stays,
            "--old-key-file",
            goes,
        ]
    };
    let wrong = [
        (
            remove("/run/rotates.key", "/run/rotates.key"),
            "two that differ",
        ),
        (
            remove("/run/rotates.foreign", "/run/rotates.key"),
            "is to stay does not open",
        ),
        (
            remove("/run/rotates.key", "/run/rotates.foreign"),
            "no key of rotates/data",
        ),
    ];
    for (args, words) in wrong {
        node.prints(&args, words, 1);
    }
    assert_eq!(header(&volume), before);
    node.prints(
        &remove("/run/rotates.new", "/run/rotates.key"),
        "has 1 key now",
        0,
    );
    assert!(!opens(&volume, old) && opens(&volume, &new));
    assert_eq!(slots(&node, name), [1]);
    assert_eq!(read(&dir.join("page")), "kept");
    node.down("pod", &volume);
    assert!(!is_open(&volume));

    // The old one opens it no more; the file with the new one does.
    node.refuses_mount(&volume, &["/run/rotates.key does not open rotates/data"]);
    fs::copy(&new, old).unwrap();
    assert_eq!(read(&node.up("again", &volume).join("page")), "kept");
    node.down("again", &volume);
}

#[test]
fn no_key_goes_where_the_slot_that_stays_is_broken() {
    let (node, group) = (
        with_key(Mode::MountOnly, "broken-slot"),
        Group::new("broken-slot"),
    );
    let volume = group.linear("data", "48m").encrypted();
    node.write("pod", &volume, "kept");
    let new = file("broken-slot.new", "new");
    let name = "broken-slot/data";
    node.prints(
        &["key", "add", name, "--new-key-file", &new],
        "has 2 keys now",
        0,
    );
    // A removal that was killed leaves the slot in the list, and nothing in it.
    let of_slot = "cryptsetup luksDump /dev/mapper/broken--slot-data | sed -n '/^  1: luks2/,/Area length/p' |
        sed -n 's/.*Area offset://p;s/.*Area length://p' | tr -d -c '0-9\\n'";
    let place = shell(of_slot);
    let mut place = place.split_whitespace();
    let (from, length) = (place.next().unwrap(), place.next().unwrap());
    shell(&format!(
        "dd if=/dev/zero of=/dev/mapper/broken--slot-data oflag=seek_bytes iflag=count_bytes seek={from} \
         count={length} conv=notrunc,fsync bs=4096 status=none"
    ));
    assert_eq!(slots(&node, name), [0, 1]);
    let remove = ["key", "remove", name, "--key-file", &new, "--old-key-file"];
    let remove = [&remove[..], &["/run/broken-slot.key"]].concat();
    node.prints(&remove, "is to stay does not open broken-slot/data", 1);
    node.write("pod", &volume, "kept");
}

/// Runs a command with these bytes on standard input.
fn fed(node: &Node, args: &[&str], input: &str) -> (String, i32) {
    let mut command = Command::new(node.exe());
    command.args(args).stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (said, output.status.code().unwrap())
}

#[test]
fn a_passphrase_is_asked_for_and_not_shown() {
    let (node, group) = (
        with_key(Mode::MountOnly, "asked-for"),
        Group::new("asked-for"),
    );
    let volume = group.linear("data", "48m").encrypted();
    node.write("pod", &volume, "kept");
    let name = "asked-for/data";
    // All bytes of standard input count.
    let piped = ["key", "add", name, "--new-key-file", "-"];
    let (said, code) = fed(&node, &piped, "of a pipe\n");
    assert!(said.contains("has 2 keys now") && code == 0, "{said}");
    assert!(opens(&volume, &file("asked-for.1", "of a pipe\n")));
    let (said, code) = fed(&node, &["key", "add", name, "--key-file", "-"], "x");
    assert!(
        said.contains("can give only one of the two") && code == 1,
        "{said}"
    );
    let (said, code) = fed(&node, &piped, "");
    assert!(said.contains("it is empty") && code == 1, "{said}");

    // On a terminal, twice.
    let screen = "/run/asked-for.screen";
    let asked = |answers: [&str; 2]| {
        let _ = fs::remove_file(screen);
        let line = format!(
            "{} key add {name}; echo code $?; stty -a",
            node.exe().display()
        );
        let mut script = Command::new("script");
        let script = script.args(["-qfc", &line, screen]).stdin(Stdio::piped());
        let mut script = script.stdout(Stdio::null()).spawn().unwrap();
        let mut input = script.stdin.take().unwrap();
        let on_screen = || fs::read_to_string(screen).unwrap_or_default();
        for (question, answer) in ["New passphrase: ", "once more: "].into_iter().zip(answers) {
            eventually(question, || on_screen().ends_with(question));
            input.write_all(answer.as_bytes()).unwrap();
        }
        script.wait().unwrap();
        on_screen()
    };
    let said = asked(["typed\n", "mistyped\n"]);
    assert!(
        said.contains("not the same") && said.contains("code 1"),
        "{said}"
    );
    let said = asked(["typed\n", "typed\n"]);
    assert!(
        said.contains("has 3 keys now") && said.contains("code 0"),
        "{said}"
    );
    assert!(!said.contains("typed"), "{said}");
    // The terminal shows again what is typed.
    assert!(said.contains(" echo "), "{said}");
    assert!(opens(&volume, &file("asked-for.2", "typed")));
}

#[test]
fn a_header_is_backed_up_for_root_alone_and_comes_back_from_there() {
    let (node, group) = (
        with_key(Mode::MountOnly, "backed-up"),
        Group::new("backed-up"),
    );
    let volume = group.linear("data", "48m").encrypted();
    node.write("pod", &volume, "kept");
    let name = "backed-up/data";
    let dir = precreated(PathBuf::from("/run/backed-up.d"));
    let to = |file: &str| dir.join(file).to_str().unwrap().to_owned();
    let (good, taken, link) = (to("good"), to("taken"), to("link"));
    fs::write(&taken, "of somebody").unwrap();
    std::os::unix::fs::symlink(to("nowhere"), &link).unwrap();
    for file in [&taken, &link] {
        node.prints(&["header-backup", name, file], "nothing is overwritten", 1);
    }
    assert_eq!(read(Path::new(&taken)), "of somebody");
    node.prints(&["header-backup", name, &good], "luksHeaderRestore", 0);
    let mode = fs::metadata(&good).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    node.prints(&["header-backup", name, &good], "nothing is overwritten", 1);
    let all = || {
        let all = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut all = all
            .map(|name| name.into_string().unwrap())
            .collect::<Vec<_>>();
        all.sort();
        all
    };
    assert_eq!(all(), ["good", "link", "taken"]);

    // Without its header nothing is left to back up, and the backup brings all of it back.
    let zero = format!(
        "dd if=/dev/zero of={} bs=1M count=16 conv=fsync status=none",
        volume.device()
    );
    shell(&zero);
    for args in [
        &["header-backup", name, &to("late")][..],
        &["key", "list", name],
    ] {
        node.prints(args, "cryptsetup luksHeaderRestore", 1);
    }
    node.refuses_mount(&volume, &["cryptsetup luksHeaderRestore"]);
    assert_eq!(all(), ["good", "link", "taken"]);
    run(
        "cryptsetup",
        &[
            "luksHeaderRestore",
            "-q",
            "--header-backup-file",
            &good,
            &volume.device(),
        ],
    );
    assert_eq!(read(&node.up("pod", &volume).join("page")), "kept");
    node.down("pod", &volume);

    // The header of another volume is nobody's to change.
    shell(&format!(
        "cryptsetup luksFormat -q --pbkdf-memory 32 --pbkdf-force-iterations 4 --key-file /run/backed-up.key {}",
        volume.device()
    ));
    for args in [
        &["header-backup", name, &to("late")][..],
        &["key", "add", name],
    ] {
        node.prints(args, "should have the LUKS2 header", 1);
    }
    // Neither is a plain volume's.
    group.linear("plain", "32m");
    node.prints(&["key", "list", "backed-up/plain"], "is not encrypted", 1);
}
