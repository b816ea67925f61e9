//! A secret among the options, on the way through a whole life on real LVM.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

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

#[test]
fn a_secret_is_in_no_core_file() {
    let (dir, running) = (Path::new("/run/hanging"), Path::new("/run/hanging/pid"));
    // A tool's PATH is the configured directories.
    let hang = "echo $$ > $0.new; /bin/mv $0.new /run/hanging/pid; exec /bin/sleep 1000";
    stand_in(dir, "lvs", hang);
    fs::write("/proc/sys/kernel/core_pattern", "/run/hanging/core").unwrap();
    let node = Node::with_config(Mode::MountOnly, "tool_dirs = [\"/run/hanging\"]");
    let volume = Volume::of("nosuchgroup", "data");
    // Without a secret there is a core file, or this would prove nothing.
    for (volume, want) in [(volume.clone(), true), (with_secret(volume), false)] {
        let mut driver = Command::new("sh")
            .args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"])
            .arg(node.exe())
            .args(["attach", &volume.json()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !running.exists() {
            assert_eq!(
                driver.try_wait().unwrap(),
                None,
                "the driver ended before its tool ran"
            );
            std::thread::yield_now();
        }
        let tool: i32 = read(running).trim().parse().unwrap();
        kill(
            Pid::from_raw(i32::try_from(driver.id()).unwrap()),
            Signal::SIGQUIT,
        )
        .unwrap();
        let status = driver.wait().unwrap();
        killpg(Pid::from_raw(tool), Signal::SIGKILL).unwrap();
        assert_eq!(status.signal(), Some(Signal::SIGQUIT as i32));
        assert_eq!(status.core_dumped(), want, "{}", volume.json());
        let cores = fs::read_dir(dir).unwrap().filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with("core")
        });
        assert_eq!(cores.count(), usize::from(want));
        for left in ["core", "pid"] {
            let _ = fs::remove_file(dir.join(left));
        }
    }
}
