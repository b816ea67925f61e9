//! A secret among the options, on the way through a whole life on real LVM.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::prelude::*;

const PLAIN: &str = "canary-in-a-coal-mine";
/// The same in base64, as kubelet has it.
const CANARY: &str = "Y2FuYXJ5LWluLWEtY29hbC1taW5l";

fn with_secret(volume: Volume) -> Volume {
    volume.with("kubernetes.io/secret/password", CANARY)
}

/// The messages for syslogd since the last time.
fn received(socket: &UnixDatagram) -> Vec<String> {
    let mut lines = Vec::new();
    let mut packet = [0; 16384];
    loop {
        match socket.recv(&mut packet) {
            Ok(length) => lines.push(String::from_utf8(packet[..length].to_vec()).unwrap()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return lines,
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn a_secret_reaches_neither_the_log_nor_a_tool() {
    // Each tool writes down how it was called and all that it was given, and how the driver looks in `ps`
    // meanwhile, and does its work.
    let script =
        "{ printf '%s ' \"$0\" \"$@\"; env; tr '\\0' ' ' < /proc/$PPID/cmdline; } >> /run/recorded
        exec $REAL \"$@\"";
    let names = "lvs lvchange lvcreate lvextend mount e2fsck mkfs.ext4 resize2fs";
    let tools = names.split(' ');
    let tools = tools.fold(Tools::new(), |tools, tool| tools.put(tool, script));
    let _ = fs::remove_file("/dev/log");
    let syslog = UnixDatagram::bind("/dev/log").unwrap();
    syslog.set_nonblocking(true).unwrap();
    let group = Group::new("secret");
    let mut lines = Vec::new();
    for mode in BOTH_MODES {
        let config = tools.config() + "[volume_group.secret]\ncreate = true";
        let node = Node::with_config(mode, &config);
        let volume = with_secret(Volume::new(&group, mode.lv()).with("size", "32m"));
        node.up("pod", &volume);
        node.grow("pod", &volume, 48 << 20).is_success();
        // This fails after all checks, in a tool.
        let wrong = volume.clone().with("mountoptions", "largeio");
        node.down("pod", &volume);
        node.down_globally(&volume);
        let reply = node.mount("wrong", &wrong);
        reply.is_failure(&[]);
        assert!(!format!("{reply:?}").contains(CANARY), "{reply:?}");
        // Its queue is short, and a call does not wait for room in it.
        lines.extend(received(&syslog));
    }
    assert!(lines.len() > 10, "{lines:?}");
    let is_there = |words: &[&str]| {
        let has_all = |line: &String| words.iter().all(|word| line.contains(word));
        assert!(lines.iter().any(has_all), "{words:?}: {lines:?}");
    };
    is_there(&["call=mount", "outcome=ok"]);
    is_there(&["outcome=failed"]);
    assert!(!lines.iter().any(|line| line.contains(CANARY)), "{lines:?}");
    // Neither brings any options.
    let unmounts = lines.iter().filter(|line| line.contains("call=unmount"));
    let of_volume = |line: &&String| line.contains(" volume=secret/");
    let counts = (unmounts.clone().filter(of_volume).count(), unmounts.count());
    assert!(counts.0 >= 3 && counts.0 == counts.1, "{lines:?}");
    let recorded = read(Path::new("/run/recorded"));
    for tool in names.split(' ') {
        let was_run = recorded.contains(&format!("/{tool} "));
        assert!(was_run, "no {tool}: {recorded}");
    }
    assert!(!recorded.contains(CANARY), "{recorded}");
    assert!(recorded.contains("/lvm call-stdin mount "), "{recorded}");
    fs::remove_file("/dev/log").unwrap();
}

/// Prints the journal as it is after fifty calls, and the arguments and the environment of all processes
/// when these calls have logged and not ended yet: nobody reads what they say.
const FIFTY: &str = r#"cd /run
mkfifo said
exec 5<> said
head -c 65536 /dev/zero >&5
for n in {1..25}; do
    "$0" mount no-directory "$(cat options)" >&5 &
    "$0" attach "$(cat options)" another-node >&5 &
done
logged() { journalctl --quiet --output=export _UID=0 SYSLOG_IDENTIFIER=flexvolume-lvm; }
until [ "$(logged | grep -c ^MESSAGE=)" = 50 ]; do [ $SECONDS -lt 300 ]; sleep 0.1; done
journalctl --quiet --output=export
cat /proc/[0-9]*/{cmdline,environ} 2> /dev/null | tr '\0' '\n'
kill -KILL $(jobs -p)
trap - EXIT
rm said options"#;

#[test]
fn a_secret_is_in_no_field_of_the_journal_nor_in_the_arguments_of_a_process() {
    let node = Node::new(Mode::MountOnly);
    let options = format!(
        r#"{{"volumegroup":"nosuch","volumeID":"data","kubernetes.io/secret/p":"{CANARY}"}}"#
    );
    fs::write("/run/options", options).unwrap();
    let exe = node.exe();
    let script = format!("{JOURNALD}{FIFTY}");
    let said = run("unshare", &["--mount", "bash", "-c", &script, text(&exe)]);
    let count = |words: &str| said.lines().filter(|line| line.starts_with(words)).count();
    let hidden = format!("_CMDLINE={} call-stdin ", exe.display());
    assert_eq!(count(&hidden), 50, "{said}");
    assert_eq!(count("_COMM=lvm"), 50, "{said}");
    // Of the processes.
    assert_eq!(count("call-stdin"), 50, "{said}");
    for text in [CANARY, PLAIN] {
        assert!(!said.contains(text), "{said}");
    }
}
