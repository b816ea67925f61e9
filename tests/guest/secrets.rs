//! A secret among the options, on the way through a whole life on real LVM.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::prelude::*;

const CANARY: &str = "Y2FuYXJ5LWluLWEtY29hbC1taW5l";

fn with_secret(volume: Volume) -> Volume {
    volume.with("kubernetes.io/secret/password", CANARY)
}

/// A directory with a stand-in for a tool.
fn stand_in(dir: &Path, tool: &str, script: &str) {
    fs::create_dir_all(dir).unwrap();
    let file = dir.join(tool);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
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
    let dir = Path::new("/run/recording");
    // Each tool writes down how it was called and all that it was given, and does its work.
    let real = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let script = format!(
        "{real}; {{ printf '%s ' \"$0\" \"$@\"; env; }} >> /run/recorded; exec ${{0##*/}} \"$@\""
    );
    let tools = "lvs vgs lvchange lvcreate lvextend blkid mount e2fsck mkfs.ext4 resize2fs";
    for tool in tools.split(' ') {
        stand_in(dir, tool, &script);
    }
    let _ = fs::remove_file("/dev/log");
    let syslog = UnixDatagram::bind("/dev/log").unwrap();
    syslog.set_nonblocking(true).unwrap();
    let group = Group::new("secret");
    let mut lines = Vec::new();
    for mode in BOTH_MODES {
        let config = "tool_dirs = [\"/run/recording\"]\n[volume_group.secret]\ncreate = true";
        let node = Node::with_config(mode, config);
        let volume = with_secret(Volume::new(&group, mode.lv()).with("size", "32m"));
        node.up("pod", &volume);
        node.grow("pod", &volume, 48 << 20).is_success();
        // What fails after all checks, in a tool.
        let wrong = volume.clone().with("mountoptions", "nosuchoption");
        node.down("pod", &volume);
        node.down_globally(&volume);
        let pod = precreated(node.pod_dir("pod", &volume));
        let reply = node.call(&["mount", text(&pod), &wrong.json_for("pod")]);
        assert_eq!(reply.status, "Failure", "{reply:?}");
        assert!(!format!("{reply:?}").contains(CANARY), "{reply:?}");
        // Its queue is short, and a call does not wait for room in it.
        lines.extend(received(&syslog));
    }
    assert!(lines.len() > 10, "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("call=mount") && line.contains("outcome=ok"))
    );
    assert!(lines.iter().any(|line| line.contains("outcome=failed")));
    assert!(!lines.iter().any(|line| line.contains(CANARY)), "{lines:?}");
    // Neither brings any options.
    let unmounts = lines.iter().filter(|line| line.contains("call=unmount"));
    assert!(
        unmounts.clone().count() >= 3 && unmounts.clone().all(|l| l.contains(" volume=secret/")),
        "{lines:?}"
    );
    let recorded = read(Path::new("/run/recorded"));
    for tool in tools.split(' ').filter(|tool| *tool != "vgs") {
        assert!(
            recorded.contains(&format!("/run/recording/{tool} ")),
            "no {tool}: {recorded}"
        );
    }
    assert!(!recorded.contains(CANARY), "{recorded}");
    fs::remove_file("/dev/log").unwrap();
}
