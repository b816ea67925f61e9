//! A machine whose tools are stand-ins that write down how they were called. The driver runs under strace, which shows
//! what it starts and changes, whatever it reports.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::support::driver::driver;
use crate::support::machine::{Machine, NO_VOLUME, lvs_row};
use crate::support::reply::Reply;

/// Every tool that the driver may start beside lvs.
const TOOLS: &str = "vgs lvchange lvcreate lvextend lvremove debugfs blkid dmsetup wipefs mount e2fsck \
    resize2fs xfs_growfs btrfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs sh";

/// Writes its name and arguments down, ends of words as NUL.
const RECORD: &str = r#"{ printf '%s\0' "${0##*/}" "$@"; printf '\n\0'; } >> $TOP/record"#;

/// System calls that change what is on a disk or mounted; open only counts if it may write.
const CHANGES: &str = "execve,execveat,open,openat,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,\
    rename,renameat,renameat2,link,linkat,symlink,symlinkat,truncate,ftruncate,chmod,fchmod,\
    fchmodat,chown,fchown,lchown,fchownat,mknod,mknodat,mount,umount2,move_mount,fsopen,open_tree,\
    pivot_root,setxattr,fallocate,connect";

/// Everything in the machine's directory after a call.
const TRACES: [&str; 3] = ["record", "log", "trace"];

pub struct TracedMachine {
    machine: Machine,
}

/// The effects of one call.
#[derive(Debug)]
pub struct Done {
    pub reply: Reply,
    /// The tools that were started: name and arguments.
    pub tools: Vec<Vec<String>>,
    /// The changing system calls, those of the tools too.
    pub changes: Vec<String>,
    /// The content of the log file.
    pub log: String,
}

impl Done {
    pub fn did_nothing(&self) -> bool {
        self.tools.is_empty() && self.changes.is_empty()
    }
}

impl TracedMachine {
    /// A node that creates missing volumes in the group `vg`: those whose name has "new" in it.
    pub fn new() -> Self {
        let machine = Machine::new();
        let lvs = format!(
            "{RECORD}\nfor id; do :; done\ncase $id in *new* | vg) {NO_VOLUME} ;; esac\n\
             {} \"${{id%%/*}}\" \"${{id##*/}}\"",
            lvs_row()
        );
        machine.tool("lvs", &lvs);
        for tool in TOOLS.split_whitespace() {
            machine.tool(tool, RECORD);
        }
        machine.configure("[volume_group.vg]\ncreate = true\nmax_size = '10t'");
        Self { machine }
    }

    pub fn configure(&self, lines: &str) {
        self.machine.configure(lines);
    }

    /// Calls the driver, which must answer with one document and nothing else.
    pub fn call(&self, args: &[OsString]) -> Done {
        let [record, log, trace] = TRACES.map(|name| self.machine.path(name));
        for file in [&record, &log, &trace] {
            let _ = fs::remove_file(file);
        }
        let which = format!("trace={CHANGES}");
        let strace = ["strace", "-f", "-qq", "-s", "4096", "-e", &which, "-o"];
        let mut strace = strace.map(OsStr::new).to_vec();
        strace.push(trace.as_os_str());
        let output = self.machine.under(&strace, args).output().unwrap();
        Done {
            reply: Reply::of(args, &output),
            tools: recorded(&record),
            changes: self.changes(&trace),
            log: fs::read_to_string(log).unwrap_or_default(),
        }
    }

    /// The traced calls that change something, other than this test's own way of looking.
    fn changes(&self, trace: &Path) -> Vec<String> {
        let trace = fs::read(trace).unwrap_or_default();
        let trace = String::from_utf8_lossy(&trace);
        assert!(trace.contains("execve("), "strace saw: {trace}");
        let top = self.machine.path("");
        let top = top.display();
        let exe = driver().display();
        let own = [
            &*format!("\"{top}record\", O_WRONLY|O_CREAT|O_APPEND"),
            &format!("\"{top}log\", O_WRONLY|O_CREAT|O_APPEND"),
            &format!("execve(\"{exe}\""),
            "execve(\"/proc/self/exe\"",
            "/dev/null",
            "/dev/tty",
            // Loading a shell, which stands in for a tool.
            "+++ exited",
            "--- SIG",
        ];
        let is_open = |line: &str| line.contains(" open(") || line.contains(" openat(");
        let flags = ["O_WRONLY", "O_RDWR", "O_CREAT"];
        let writes = |line: &str| flags.iter().any(|flag| line.contains(flag));
        trace
            .lines()
            .filter(|line| !is_open(line) || writes(line))
            .filter(|line| !line.contains("resumed>") && !own.iter().any(|own| line.contains(own)))
            .map(str::to_owned)
            .collect()
    }

    /// Everything below the node's directory with its content, for a comparison.
    pub fn files(&self) -> Vec<u8> {
        let mut tar = assert_cmd::Command::new("tar");
        tar.args(TRACES.map(|name| format!("--exclude=./{name}")));
        // The directory's own time is that of the traces.
        tar.args(["--sort=name", "--mtime=@0", "-cC"]);
        let output = tar.arg(self.machine.path("")).arg(".").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }
}

fn recorded(record: &Path) -> Vec<Vec<String>> {
    let bytes = fs::read(record).unwrap_or_default();
    let mut tools = vec![Vec::new()];
    for word in bytes.split(|byte| *byte == 0) {
        if word == b"\n" {
            tools.push(Vec::new());
        } else if let Some(last) = tools.last_mut() {
            last.push(String::from_utf8_lossy(word).into_owned());
        }
    }
    // After the last end of a word there is nothing.
    tools.pop();
    tools
}

/// Text as an argument.
pub fn words(args: &[&str]) -> Vec<OsString> {
    args.iter().map(OsString::from).collect()
}

/// Bytes as an argument.
pub fn bytes(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}
