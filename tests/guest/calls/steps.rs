//! The processes and locks of calls and commands, in order. The model of the steps goes by the same list
//! (`src/driver/volume/decide/tests/model/`).

use std::path::Path;

use crate::crypt::with_key;
use crate::prelude::*;
use crate::signatures::put;

const LIST: &str = include_str!("../../../src/driver/volume/decide/tests/model/steps.txt");

/// The removal of the directory that a lock is.
const UNLOCK: &str = "unlock";

/// Runs the driver, which must succeed, and lists its steps as [`LIST`] does.
fn steps(node: &Node, args: &[&str]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace");
    let output = assert_cmd::Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096"])
        .args([
            "-e",
            "trace=execve,flock,mount,move_mount,umount2,rmdir,write",
            "-o",
            text(&file),
        ])
        .arg(node.exe())
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains("Failure"), "{args:?}: {said}");
    let trace = read(&file);
    let own = trace.split(' ').next().unwrap();
    let step = |line: &str| {
        let (pid, call) = line.split_once(' ')?;
        let call = call.trim_start();
        let of_driver = |name: &str| pid == own && call.starts_with(name);
        if of_driver("write(") {
            return question(call);
        }
        if !line.ends_with(" = 0") {
            return None;
        }
        if call.starts_with("execve(") {
            return program(call);
        }
        let is_bind = of_driver("mount(") && !call.contains("MS_REMOUNT");
        let is_bind = is_bind || of_driver("move_mount(");
        let is_of_lock = call.contains("/run/flexvolume-lvm/");
        (of_driver("flock(") && is_of_lock)
            .then_some("lock")
            .or((of_driver("rmdir(") && is_of_lock).then_some(UNLOCK))
            .or(is_bind.then_some("bind"))
            .or(of_driver("umount2(").then_some("umount2"))
            .map(str::to_owned)
    };
    let mut steps = Vec::new();
    for step in trace.lines().skip(1).filter_map(step) {
        // The directory is locked once more before it is removed.
        if step == UNLOCK {
            assert_eq!(steps.pop().as_deref(), Some("lock"));
        } else {
            steps.push(step);
        }
    }
    without_more_looks(steps)
}

/// Requests to the process that reads devices.
fn question(write: &str) -> Option<String> {
    let (_, line) = write.split_once("\"/proc/")?;
    let words: Vec<&str> = line.split(['\\', ' ']).collect();
    match words[1..] {
        ["examine", _, _, extent, ..] => Some(format!("examine {extent}")),
        ["superblock", ..] => Some("superblock".to_owned()),
        ["luks", ..] => Some("luks".to_owned()),
        _ => None,
    }
}

/// A program with those of its arguments that matter to what it does to the volume. The process that reads
/// devices is told by its questions.
fn program(execve: &str) -> Option<String> {
    let (_, argv) = execve.split_once('[').unwrap();
    let (argv, _) = argv.split_once(']').unwrap();
    let argv: Vec<&str> = argv
        .split(", ")
        .map(|word| word.trim_matches('"'))
        .collect();
    let tool = Path::new(execve.split('"').nth(1).unwrap());
    let tool = tool.file_name().unwrap().to_str().unwrap();
    Some(match tool {
        "exe" if argv[1] == "read-devices" => return None,
        "exe" => argv[1].to_owned(),
        "e2fsck" | "cryptsetup" => format!("{tool} {}", argv[1]),
        "lvchange" => {
            let tags = |flag| {
                let words = argv.windows(2).filter(|words| words[0] == flag);
                let words = words.map(|words| format!(" {flag} {}", in_time(words[1])));
                let mut words: Vec<_> = words.collect();
                words.sort_unstable();
                words.concat()
            };
            [tool, &tags("--deltag"), &tags("--addtag")].concat()
        }
        _ => tool.to_owned(),
    })
}

/// A tag, with TIME for when a permission was given.
fn in_time(tag: &str) -> String {
    match tag.rsplit_once(':') {
        Some((what, _)) if what.contains("mayformat=") => format!("{what}:TIME"),
        _ => tag.to_owned(),
    }
}

/// A step that took 2 s is followed by another look, as in a guest that has much to do.
fn without_more_looks(mut steps: Vec<String>) -> Vec<String> {
    let is_look =
        |step: &String| ["lvs", "blkid", "superblock", "dmsetup", "luks"].contains(&step.as_str());
    if steps.last().is_some_and(|last| last == "mount") {
        let change = steps.iter().rev().skip(1).position(|step| !is_look(step));
        let end = steps.len() - 1;
        steps.drain(end - change.unwrap_or(0)..end);
    }
    steps
}

/// The UUID that the tag names.
fn recorded(group: &Group, tag: &str) -> Option<String> {
    let tags = group.tags("data");
    let mut tags = tags.split(',');
    tags.find_map(|one| Some(one.strip_prefix(tag)?.to_owned()))
}

/// A case's name, the change of the volume before it, and the call.
type Scene<'a> = (&'static str, &'a dyn Fn(), &'a [&'a str]);

#[test]
fn the_driver_takes_the_steps_of_the_model() {
    let node = Node::with_config(Mode::MountOnly, "[volume_group.ordered]\ncreate = true\n");
    let group = Group::new("ordered");
    let volume = group.linear("data", "32m");
    let dirs = ["one", "two"].map(|pod| precreated(node.pod_dir(pod, &volume)));
    let [one, two] = dirs.each_ref().map(|dir| text(dir));
    let json = volume.json();
    let (mount, unmount) = (["mount", one, &json], ["unmount", one]);
    let wipe = || run("blkdiscard", &["-f", "-z", &volume.device()]);
    let idle = || ();
    let tag = |more: &[&str]| {
        let tags = group.tags("data");
        let old = tags.split(',').flat_map(|tag| ["--deltag", tag]);
        group.lv(
            "lvchange",
            &old.chain(more.iter().copied()).collect::<Vec<_>>(),
            "data",
        );
    };
    let away = || drop(node.does(&unmount));
    let life: [Scene; 12] = [
        ("mount of a blank volume", &idle, &mount),
        ("mount for another pod", &idle, &["mount", two, &json]),
        ("unmount", &idle, &unmount),
        ("the last unmount", &idle, &["unmount", two]),
        ("mount of a volume with a filesystem", &idle, &mount),
        (
            "adopt of another filesystem",
            &|| {
                away();
                run("mkfs.ext4", &["-q", "-F", &volume.device()]);
            },
            &["adopt", "ordered/data"],
        ),
        ("mount of what was adopted", &idle, &mount),
        (
            "allow-format of what was wiped",
            &|| {
                away();
                wipe();
            },
            &["allow-format", "ordered/data", "--yes"],
        ),
        ("mount of what may be formatted", &idle, &mount),
        (
            "allow-format of raw data",
            &|| {
                away();
                wipe();
                tag(&[]);
                put(&volume.device(), 0, b"raw");
            },
            &["allow-format", "ordered/data", "--yes"],
        ),
        (
            "mount where mkfs was cut short",
            &|| {
                wipe();
                tag(&["--addtag", "flexvolume.making=ext4"]);
            },
            &mount,
        ),
        (
            "mount of a volume that is to be made",
            &|| {
                away();
                // Otherwise its remains would be read instead.
                wipe();
                group.lv("lvremove", &[], "data");
            },
            &mount,
        ),
    ];
    assert_eq!(listed(&node, &group, &life), parts()[0]);
}

#[test]
fn the_driver_takes_the_steps_of_the_model_with_an_encrypted_volume() {
    let (node, group) = (
        with_key(Mode::MountOnly, "sealed"),
        Group::new("ordered-luks"),
    );
    let volume = group.linear("data", "48m").encrypted();
    let dirs = ["one", "two"].map(|pod| precreated(node.pod_dir(pod, &volume)));
    let [one, two] = dirs.each_ref().map(|dir| text(dir));
    let json = volume.json();
    let mount = ["mount", one, &json];
    let idle = || ();
    let away = || drop(node.does(&["unmount", one]));
    let life: [Scene; 4] = [
        (ENCRYPTED, &idle, &mount),
        (
            "mount of an encrypted volume for another pod",
            &idle,
            &["mount", two, &json],
        ),
        (
            "the last unmount of an encrypted volume",
            &away,
            &["unmount", two],
        ),
        ("mount of an encrypted volume", &idle, &mount),
    ];
    assert_eq!(listed(&node, &group, &life), parts()[1]);
}

/// The first of the steps of an encrypted volume.
const ENCRYPTED: &str = "mount of a blank volume that is to be encrypted";

/// The list, of a volume and of an encrypted one.
fn parts() -> [&'static str; 2] {
    let (plain, encrypted) = LIST.split_at(LIST.find(ENCRYPTED).unwrap());
    [plain, encrypted]
}

/// Takes each step, and lists what it ran.
fn listed(node: &Node, group: &Group, scenes: &[Scene]) -> String {
    let mut list = String::new();
    for (title, before, args) in scenes {
        before();
        let fs = || recorded(group, "flexvolume.fs=ext4:");
        let held = group.has("data").then(fs).flatten();
        let mut ran = [&[(*title).to_owned()], &steps(node, args)[..]]
            .concat()
            .join("\n  ");
        for uuid in held.into_iter().chain(fs()) {
            ran = ran.replace(&uuid, "UUID");
        }
        if let Some(uuid) = recorded(group, "flexvolume.luks=") {
            ran = ran.replace(&uuid, "LUKS");
        }
        list.push_str(&ran);
        list.push_str("\n\n");
    }
    list
}
