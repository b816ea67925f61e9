//! A process with very many open files delays no call, and hides no other process.

use std::fs;
use std::path::Path;

use crate::prelude::*;

/// How many files the process of a pod has open, and the tests' bound for links that a call reads.
const MANY: usize = 20_000;

/// A process in another mount namespace that has [`MANY`] files open.
fn crowd() -> Process {
    let line = format!(
        "exec unshare --mount bash -c 'ulimit -n {}; for ((n = 10; n < {}; n++)); do eval \"exec $n</dev/null\"; \
         done; exec sleep 1000'",
        MANY + 100,
        MANY + 10
    );
    let crowd = Process::new(&line, Path::new("/"));
    let sleeps = || read(&crowd.proc("comm")) == "sleep\n";
    eventually("many open files", sleeps);
    crowd
}

/// Somebody who has the device open to read, and is found after a [`crowd`] that is there already.
fn reader(volume: &Volume, before: &str) -> Process {
    let line = format!(
        "exec {before} sh -c 'exec sleep 1000 9< {}'",
        volume.device()
    );
    let reader = Process::new(&line, Path::new("/"));
    eventually("a reader", || read(&reader.proc("comm")) == "sleep\n");
    reader
}

/// Runs `mount` for a pod under strace, which injects `inject` at each link that is read. Returns the reply, and how
/// many links were read.
fn mount_with(node: &Node, volume: &Volume, inject: &str) -> (Reply, usize) {
    let dir = precreated(node.pod_dir("pod", volume));
    let json = volume.json_for("pod");
    let (exe, log) = (node.exe(), Path::new("/run/links"));
    let args = ["mount", text(&dir), &json];
    let which = "readlink,readlinkat";
    let mut strace = assert_cmd::Command::new("strace");
    strace.args(["-qq", "-e", &format!("trace={which}"), "-o", text(log)]);
    if !inject.is_empty() {
        strace.args(["-e", &format!("inject={which}:{inject}")]);
    }
    let output = strace.arg(exe).args(args).output().unwrap();
    let links = fs::read_to_string(log).unwrap();
    let links = links.lines().filter(|line| line.contains("readlink"));
    (Reply::of(args, &output), links.count())
}

#[test]
fn a_pod_with_very_many_open_files_holds_up_no_mount() {
    let (node, _group, volume) = Node::with_data(Mode::MountOnly, "sought");
    let crowd = crowd();
    // The volume has a filesystem, so the driver asks the kernel who else has it open.
    let (reply, links) = mount_with(&node, &volume, "");
    assert_eq!(reply.status, "Success", "{reply:?}");
    assert!(links < 100, "{links} links");
    node.down("pod", &volume);
    // Each link takes as long as on a host with a hundred times as many.
    let slow = "delay_enter=1000";

    let reader_here = reader(&volume, "");
    let (reply, links) = mount_with(&node, &volume, slow);
    assert_eq!(reply.status, "Success", "{reply:?}");
    assert!(links < MANY, "{links} links");
    node.down("pod", &volume);
    drop(reader_here);

    let reader_elsewhere = reader(&volume, "unshare --mount");
    let (reply, links) = mount_with(&node, &volume, slow);
    reply.is_failure(&["sought/data is open (`dmsetup info "]);
    assert!(links < MANY, "{links} links");
    let (reply, links) = mount_with(&node, &volume, "signal=SIGTERM:when=150");
    reply.is_failure(&["told to stop while it looked who has sought/data open"]);
    assert!(links < 200, "{links} links");
    drop(crowd);
    let (reply, _) = mount_with(&node, &volume, "");
    assert_eq!(reply.status, "Success", "{reply:?}");
    node.down("pod", &volume);
    drop(reader_elsewhere);
}
