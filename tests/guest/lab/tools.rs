//! Scripts that the driver finds before the real tools. They count, delay and break what the driver runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::prelude::*;

/// A process that holds this lock, until the process is dropped.
pub fn holds(lock: &str) -> Process {
    let line = format!("exec 9>> {lock}; flock 9; exec sleep 600");
    let holder = Process::new(&line, Path::new("/"));
    eventually("its lock", || {
        assert_cmd::Command::new("flock")
            .args(["-n", lock, "true"])
            .output()
            .is_ok_and(|output| !output.status.success())
    });
    holder
}

/// A process that has this device open. `how`: `<` for reading, `<>` for reading and writing, `>>` for writing. The
/// process makes no exclusive claim, as QEMU and the servers of network block devices make none.
pub fn opener(device: &str, how: &str) -> Process {
    let line = format!("exec 9{how}{device} && exec sleep 1000");
    let process = Process::new(&line, Path::new("/"));
    eventually("a process with the device", || {
        fs::read_to_string(process.proc("comm")).is_ok_and(|name| name == "sleep\n")
    });
    process
}

/// Shell, for a mount namespace of its own: a journald with nothing but its own sockets and files.
pub const JOURNALD: &str = r"set -e
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
mkdir -p /run/systemd/journal /run/systemd/journald.conf.d /run/log
mount -t tmpfs tmpfs /run/log
printf '[Journal]\nRateLimitIntervalSec=0\nRuntimeMaxUse=100M\n' > /run/systemd/journald.conf.d/tests.conf
/lib/systemd/systemd-journald & journald=$!
trap 'kill $journald' EXIT
until [ -S /run/systemd/journal/socket ]; do sleep 0.1; done
";

/// A directory of tools that the driver finds before the host's own.
pub struct Tools {
    dir: PathBuf,
}

impl Tools {
    pub fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let dir = PathBuf::from(format!(
            "/run/tools{}",
            MADE.fetch_add(1, Ordering::Relaxed)
        ));
        let _ = fs::remove_dir_all(&dir); // of a run before this one
        fs::create_dir_all(&dir).unwrap();
        Self { dir }
    }

    /// Puts a shell script before a tool. In it, `$REAL` is the tool itself and `$HERE` the
    /// directory.
    pub fn put(self, tool: &str, body: &str) -> Self {
        let file = self.dir.join(tool);
        let here = self.dir.display();
        let real = ["/usr/sbin", "/usr/bin"]
            .map(|dir| Path::new(dir).join(tool))
            .into_iter()
            .find(|file| file.exists())
            .unwrap_or_else(|| panic!("no {tool} on this host"));
        let script = format!("#!/bin/sh\nHERE={here} REAL={}\n{body}\n", real.display());
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Counts every run of a tool, and lets it go on.
    pub fn counting(self, tool: &str) -> Self {
        self.put(
            tool,
            &format!("echo \"$*\" >> $HERE/{tool}.runs\nexec $REAL \"$@\""),
        )
    }

    /// Counts every run of a tool, and holds each until [`Tools::let_go`].
    pub fn held(self, tool: &str) -> Self {
        let body = format!(
            "echo $$ >> $HERE/{tool}.runs\nwhile [ ! -e $HERE/go ]; do sleep 0.1; done\n\
             exec $REAL \"$@\""
        );
        self.put(tool, &body)
    }

    pub fn let_go(&self) {
        fs::write(self.dir.join("go"), "").unwrap();
    }

    /// A file that the scripts find as `$HERE/name`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The files that each run of a tool left: its arguments or its process.
    pub fn runs(&self, tool: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join(format!("{tool}.runs")));
        text.unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Waits for the first run of a tool, and returns its process.
    pub fn wait_for(&self, tool: &str) -> String {
        eventually(&format!("a run of {tool}"), || !self.runs(tool).is_empty());
        self.runs(tool)[0].clone()
    }

    /// A node whose driver finds these tools first.
    pub fn node(self) -> (Self, Node) {
        let node = Node::with_config(Mode::MountOnly, &self.config());
        (self, node)
    }

    /// The line of the config that makes the driver look for tools in this directory first.
    pub fn config(&self) -> String {
        format!(
            "tool_dirs = [\"{}\", \"/usr/sbin\", \"/usr/bin\"]\n",
            self.dir.display()
        )
    }
}

/// The processes whose name contains `part`.
pub fn processes_named(part: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name.contains(part))
        })
        .collect()
}
