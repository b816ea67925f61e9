//! The passphrase of an encrypted volume can be seen nowhere, neither as text nor in base64 as kubelet has it.

use super::*;

/// The passphrase. Only this case uses these words, so no other case leaves them in a file of /run.
const CANARY: &str = "canary-that-nobody-sees";
const BASE64: &str = "Y2FuYXJ5LXRoYXQtbm9ib2R5LXNlZXM=";
const TRACE: &str = "/run/unseen.trace";

fn shows(text: &str) -> bool {
    [CANARY, BASE64].iter().any(|canary| text.contains(canary))
}

/// Runs the driver, and records every program and every write of the driver and its children. Returns the driver's
/// output.
fn followed(node: &Node, args: &[&str]) -> String {
    let out = "/run/unseen.out";
    let line = "exec strace -f -qq -y -v -s 65536 -o \"$0\" \
        -e trace=execve,write,writev,pwrite64,sendto,sendmsg,add_key,keyctl \"$@\" > /run/unseen.out 2>&1";
    let exe = node.exe();
    let words = [&["-c", line, TRACE, text(&exe)], args].concat();
    let output = assert_cmd::Command::new("bash").args(&words).output();
    output.unwrap();
    let said = read(Path::new(out));
    let trace = fs::read(TRACE).unwrap();
    let trace = String::from_utf8_lossy(&trace);
    // The first line is how kubelet calls it, if the passphrase is in a Secret.
    let mut lines = trace.lines().skip(1).filter(|line| shows(line));
    // A pipe, and not one that somebody reads as an answer.
    let is_piped = |line: &str| {
        let call = line.split_once("write(").map(|(_, call)| call);
        call.is_some_and(|call| {
            let fd = call.split('<').next().unwrap();
            fd.parse::<u32>().is_ok_and(|fd| fd > 2) && call.starts_with(&format!("{fd}<pipe:["))
        })
    };
    let seen = lines.find(|line| !is_piped(line));
    assert_eq!(seen, None, "{args:?}");
    assert!(trace.contains("cryptsetup"), "{args:?}: {said}");
    assert!(!shows(&said), "{args:?}: {said}");
    said
}

#[test]
fn a_passphrase_is_in_no_argument_environment_file_log_or_answer() {
    let script =
        "{ printf '%s ' \"$0\" \"$@\"; env; tr '\\0' ' ' < /proc/$PPID/cmdline; grep 'core file' /proc/$PPID/limits
           tr '\\0' ' ' < /proc/$PPID/environ; } >> /run/unseen.tools
        exec $REAL \"$@\"";
    let tools = Tools::new().put("cryptsetup", script);
    let [key, wrong] = ["/run/unseen.key", "/run/unseen.wrong"];
    written(Path::new(key), CANARY, 0o600);
    written(Path::new(wrong), "nobody's", 0o600);
    let group = Group::new("unseen");
    let log = "log = '/run/unseen.log'\n";
    let with = |key: &str| {
        format!(
            "{}{log}[encryption]\nkey_file = '{key}'\n{QUICK}",
            tools.config()
        )
    };
    let mut node = Node::with_config(Mode::MountOnly, &with(key));
    let of_key = group.linear("of-key", "48m").encrypted();
    let of_secret = with_secret(&group.linear("of-secret", "48m").encrypted(), BASE64);
    let mut said = String::new();
    for volume in [&of_key, &of_secret] {
        let dir = precreated(node.pod_dir("pod", volume));
        let json = volume.json_for("pod");
        let unmount = ["unmount", text(&dir)];
        let mount = ["mount", text(&dir), &json];
        // Made, and opened again; each step told.
        let verbose = [&mount[..], &["--verbose"]].concat();
        for args in [&mount[..], &unmount, &verbose] {
            said += &followed(&node, args);
        }
        let grown = (64 << 20).to_string();
        let grow = ["expandfs", &volume.json(), "", text(&dir), &grown, "0"];
        said += &followed(&node, &grow);
        assert!(is_open(volume));
        said += &followed(&node, &unmount);
    }
    // A passphrase that does not open the volume, and a file that cannot be read.
    node.configure(Mode::MountOnly, &with(wrong));
    let dir = precreated(node.pod_dir("pod", &of_key));
    let refused = followed(&node, &["mount", text(&dir), &of_key.json_for("pod")]);
    assert!(refused.contains("unseen.wrong does not open"), "{refused}");
    let other = with_secret(&of_key, "bm90IHRoZSBvbmUgdGhhdCBvcGVucyBpdA==");
    let refused = followed(&node, &["mount", text(&dir), &other.json_for("pod")]);
    let words = "of the volume's Secret does not open";
    assert!(refused.contains(words), "{refused}");
    assert_eq!(said.matches("\"status\":\"Failure\"").count(), 0, "{said}");

    let tools = read(Path::new("/run/unseen.tools"));
    assert!(tools.contains("luksFormat"), "{tools}");
    assert!(!shows(&tools), "{tools}");
    // No core of a process that has the passphrase, whatever happens to it. A limit of 1 is none for a program, too,
    // that the kernel would pipe the core to: core(5), "Piping core dumps to a program".
    let limits = tools.lines().filter_map(|line| {
        let (command, limit) = line.split_once("Max core file size")?;
        let has_passphrase = command.contains(" mount ");
        has_passphrase.then(|| limit.split_whitespace().next())
    });
    let limits: Vec<Option<&str>> = limits.collect();
    let is_none = limits.iter().all(|limit| *limit == Some("1"));
    assert!(limits.len() > 5 && is_none, "{limits:?}");
    let log = read(Path::new("/run/unseen.log"));
    assert!(log.contains(r#""call":"mount""#) && !shows(&log), "{log}");
    // Not in /run either, where the volume's disk is, too.
    let places = bash(
        "grep -rlazF -D skip -e canary-that-nobody-sees -e Y2FuYXJ5LXRoYXQtbm9ib2R5 /run || true",
    );
    let known = [key, TRACE];
    let mut places = places.lines().filter(|place| !known.contains(place));
    assert_eq!(places.next(), None);
}

/// cryptsetup would open a volume by such a token whatever passphrase it is given.
#[test]
fn a_token_of_the_header_is_no_passphrase() {
    let (node, group) = (with_key(Mode::MountOnly, "token"), Group::new("token"));
    let volume = group.linear("data", "48m").encrypted();
    node.write("pod", &volume, "kept");
    let (foreign, device) = ("/run/token.foreign", volume.device());
    written(Path::new(foreign), "nobody's", 0o600);
    run("keyctl", &["add", "user", "token-key", PASSPHRASE, "@u"]);
    sh(&format!(
        "cryptsetup token add --key-description token-key {device}"
    ));
    sh(&format!(
        "cryptsetup open --test-passphrase --key-file {foreign} {device}"
    ));
    // "nobody's".
    let other = with_secret(&volume, "bm9ib2R5J3M=");
    node.refuses_mount(
        &other,
        &["the passphrase of the volume's Secret does not open"],
    );
    node.finds(&volume, "kept");
}
