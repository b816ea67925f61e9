//! A machine whose tools are stand-ins that write down how they were called, and the driver under
//! strace: what it starts and what it changes is seen, whatever it says.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use crate::executables::put;

/// Every tool that the driver may start.
const TOOLS: [&str; 17] = [
    "lvs",
    "vgs",
    "lvchange",
    "lvcreate",
    "lvextend",
    "blkid",
    "mount",
    "e2fsck",
    "resize2fs",
    "xfs_growfs",
    "btrfs",
    "mkfs.ext2",
    "mkfs.ext3",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.btrfs",
    "sh",
];

/// Writes its name and arguments down, ends of words as NUL. lvs knows every volume but those
/// whose name has "new" in it, which LVM says it has not.
const STAND_IN: &str = r#"#!/bin/sh
{ printf '%s\0' "${0##*/}" "$@"; printf '\n\0'; } >> 'RECORD'
[ "${0##*/}" = lvs ] || exit 0
for id; do :; done
case $id in
    *new*) echo "  Failed to find logical volume \"$id\"" >&2; exit 5 ;;
esac
printf '{"report":[{"lv":[{"vg_name":"%s","lv_name":"%s","lv_uuid":"u","lv_size":"67108864",
"lv_time":"1","lv_tags":"","lv_active":"","lv_skip_activation":"","lv_permissions":"writeable","lv_health_status":"",
"lv_device_open":"","lv_layout":"linear","lv_role":"public","pool_lv":"","data_percent":"",
"metadata_percent":"","vg_extent_size":"4194304","vg_free":"0"}]}]}\n' "${id%%/*}" "${id##*/}"
"#;

/// System calls that change what is on a disk or mounted; open only counts if it may write.
const CHANGES: &str = "execve,execveat,open,openat,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,\
    rename,renameat,renameat2,link,linkat,symlink,symlinkat,truncate,ftruncate,chmod,fchmod,\
    fchmodat,chown,fchown,lchown,fchownat,mknod,mknodat,mount,umount2,move_mount,fsopen,open_tree,\
    pivot_root,setxattr,fallocate,connect";

pub struct Node {
    top: TempDir,
}

/// What one call did.
pub struct Done {
    pub document: Value,
    pub code: i32,
    /// All that was printed, as text.
    pub printed: String,
    /// The tools that were started: name and arguments.
    pub tools: Vec<Vec<String>>,
    /// The changing system calls, those of the tools too.
    pub changes: Vec<String>,
    /// What is in the log file.
    pub log: String,
}

impl Done {
    pub fn status(&self) -> &str {
        self.document["status"].as_str().unwrap_or("")
    }

    pub fn message(&self) -> &str {
        self.document["message"].as_str().unwrap_or("")
    }
}

impl Node {
    /// A node that creates missing volumes in the group `vg`, and has others.
    pub fn new() -> Self {
        let node = Self {
            top: TempDir::new().unwrap(),
        };
        let exe = node.exe();
        fs::create_dir(exe.parent().unwrap()).unwrap();
        put(
            &exe,
            fs::read(assert_cmd::cargo::cargo_bin!("lvm")).unwrap(),
        );
        fs::create_dir(node.path("tools")).unwrap();
        let record = node.path("record");
        let script = STAND_IN.replace("RECORD", record.to_str().unwrap());
        for tool in TOOLS {
            let file = node.path("tools").join(tool);
            put(&file, script.as_str());
        }
        node.configure("[volume_group.vg]\ncreate = true\nmax_size = '10t'");
        node
    }

    pub fn configure(&self, lines: &str) {
        let text = format!(
            "log = '{0}/log'\ntool_dirs = ['{0}/tools']\nkubelet_dirs = ['{0}/kubelet']\n{lines}\n",
            self.top.path().display()
        );
        fs::write(self.exe().with_file_name("config.toml"), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn exe(&self) -> PathBuf {
        self.path("kubernetes.io~lvm").join("lvm")
    }

    /// Calls the driver, which must answer with one document and nothing else.
    #[allow(clippy::disallowed_methods)] // removing the traces of the call before
    pub fn call(&self, args: &[OsString]) -> Done {
        let files = ["record", "log", "trace"].map(|name| self.path(name));
        for file in &files {
            let _ = fs::remove_file(file);
        }
        let [record, log, trace] = files;
        // The driver works for root only. In a namespace of ours, everybody can be that.
        let mut command = Command::new(if is_root() { "env" } else { "unshare" });
        if !is_root() {
            command.args(["--map-root-user", "--"]);
        }
        let output = command
            .args([
                "strace",
                "-f",
                "-qq",
                "-s",
                "4096",
                "-e",
                &format!("trace={CHANGES}"),
                "-o",
            ])
            .arg(&trace)
            .arg(self.exe())
            .args(args)
            .timeout(Duration::from_secs(60))
            .output()
            .unwrap();
        let (document, printed) = one_document(args, &output);
        Done {
            document,
            code: output.status.code().unwrap_or(-1),
            printed,
            tools: recorded(&record),
            changes: self.changes(&trace),
            log: fs::read_to_string(log).unwrap_or_default(),
        }
    }

    /// The traced calls that change something, other than this test's own way of looking.
    fn changes(&self, trace: &Path) -> Vec<String> {
        let trace = fs::read(trace).unwrap_or_default();
        let trace = String::from_utf8_lossy(&trace);
        assert!(
            trace.contains("execve("),
            "strace (apt install strace) saw: {trace}"
        );
        let top = self.top.path().display();
        let own = [
            format!("\"{top}/record\", O_WRONLY|O_CREAT|O_APPEND"),
            format!("\"{top}/log\", O_WRONLY|O_CREAT|O_APPEND"),
            format!("execve(\"{}\"", self.exe().display()),
            "execve(\"/proc/self/exe\"".to_owned(),
            "/dev/null".to_owned(),
            "/dev/tty".to_owned(),
            // Loading a shell, which stands in for a tool.
            "+++ exited".to_owned(),
            "--- SIG".to_owned(),
        ];
        let is_open = |line: &str| line.contains(" open(") || line.contains(" openat(");
        let writes = |line: &str| {
            ["O_WRONLY", "O_RDWR", "O_CREAT"]
                .iter()
                .any(|f| line.contains(f))
        };
        trace
            .lines()
            .filter(|line| !is_open(line) || writes(line))
            .filter(|line| !line.contains("resumed>") && !own.iter().any(|own| line.contains(own)))
            .map(str::to_owned)
            .collect()
    }

    /// Everything below the node's directory with its content, for a comparison.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        list(self.top.path(), &mut files);
        files.retain(|(path, _)| {
            !["record", "log", "trace"]
                .iter()
                .any(|name| *path == self.path(name))
        });
        files
    }
}

fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

fn list(dir: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    let mut entries: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files.push((path.clone(), Vec::new()));
            list(&path, files);
        } else {
            files.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
}

/// One JSON object on one line of standard output, and nothing on standard error.
fn one_document(args: &[OsString], output: &Output) -> (Value, String) {
    let shown: String = format!("{args:?}").chars().take(300).collect();
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "{shown}: {stdout}"
    );
    let line = stdout.strip_suffix('\n');
    let line = line.unwrap_or_else(|| panic!("{shown}: no newline ends {stdout:?}"));
    assert!(!line.contains(char::is_control), "{shown}: {line:?}");
    assert!(line.len() <= 4096, "{shown}: {} bytes", line.len());
    let document: Value =
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{shown}: {e}: {line:?}"));
    assert!(document.is_object(), "{shown}: {line}");
    (document, stdout)
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
    std::ffi::OsStr::from_bytes(bytes).to_owned()
}
