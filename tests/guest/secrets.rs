//! A secret among the options, on the way through a whole life on real LVM.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::prelude::*;

const CANARY: &str = "Y2FuYXJ5LWluLWEtY29hbC1taW5l";

fn with_secret(volume: Volume) -> Volume {
    volume.with("kubernetes.io/secret/password", CANARY)
}

/// What syslogd would have got since the last time.
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
    // Each tool writes down how it was called and all that it was given, and does its work.
    let script = "{ printf '%s ' \"$0\" \"$@\"; env; } >> /run/recorded; exec $REAL \"$@\"";
    let names = "lvs lvchange lvcreate lvextend blkid mount e2fsck mkfs.ext4 resize2fs";
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
        // What fails after all checks, in a tool.
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
    fs::remove_file("/dev/log").unwrap();
}
