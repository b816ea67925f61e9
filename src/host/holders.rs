//! Who stands in the way: the processes behind a held lock or a busy mount, for messages.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::host::Kernel;
use crate::names::VgName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub command: String,
    /// What it holds: "open file /…", "working directory /…".
    pub what: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}, {})", self.command, self.pid, self.what)
    }
}

/// A list of processes for a message, cut after the fifth.
pub fn name_them(processes: &[Process]) -> String {
    const MOST: usize = 5;
    let mut names: Vec<String> = processes
        .iter()
        .take(MOST)
        .map(ToString::to_string)
        .collect();
    if processes.len() > MOST {
        names.push(format!("{} more", processes.len().saturating_sub(MOST)));
    }
    names.join(", ")
}

/// The processes that hold the lock on `file`, and not those that wait for it.
pub fn of_file(kernel: &Kernel, file: &Path) -> Vec<Process> {
    search(kernel, |pid_dir| {
        open_files(kernel, pid_dir)
            .into_iter()
            .find(|open| open.target == file && open.is_locked(kernel))
            .map(|_| "holds the lock".to_owned())
    })
}

/// The processes that hold a lock of LVM which a command on this volume group waits for; without
/// one, on any.
pub fn of_lvm_lock(kernel: &Kernel, vg: Option<&VgName>) -> Vec<Process> {
    // Source: lvm2 lib/locking/file_locking.c: V_<group>, and P_global for all.
    let dir = Path::new("/run/lock/lvm");
    let counts = |target: &Path| match vg {
        Some(vg) => target == dir.join(format!("V_{vg}")) || target == dir.join("P_global"),
        None => target.starts_with(dir),
    };
    search(kernel, |pid_dir| {
        open_files(kernel, pid_dir)
            .into_iter()
            .find(|open| counts(&open.target) && open.is_locked(kernel))
            .map(|open| format!("holds {}", open.target.display()))
    })
}

/// The processes that keep the mount with this id, at this path, busy.
///
/// A file on it is known by the mount's id, which no other mount of the same filesystem shares;
/// working directories and executables only by their path.
pub fn of_mount(kernel: &Kernel, mount_id: u64, mount_point: &Path) -> Vec<Process> {
    search(kernel, |pid_dir| {
        let path_link = |name: &str, words: &str| {
            let target = kernel.link(&pid_dir.join(name)).ok()?;
            target
                .starts_with(mount_point)
                .then(|| format!("{words} {}", target.display()))
        };
        path_link("cwd", "working directory")
            .or_else(|| path_link("root", "root directory"))
            .or_else(|| path_link("exe", "executable"))
            .or_else(|| {
                open_files(kernel, pid_dir)
                    .into_iter()
                    .find(|open| open.mount_id(kernel) == Some(mount_id))
                    .map(|open| format!("open file {}", open.target.display()))
            })
            .or_else(|| mapped_file(kernel, pid_dir, mount_point))
    })
}

/// What the kernel itself keeps open below this path: loop devices and swap files.
pub fn kernels_own(kernel: &Kernel, mount_point: &Path) -> Vec<String> {
    let block = Path::new("/sys/block");
    let names = kernel.list(block).unwrap_or_default();
    let loops = names.iter().filter_map(|name| {
        let file = kernel.read(&block.join(name).join("loop/backing_file"));
        let file = file.ok()?.trim_end().to_owned();
        let is_here = Path::new(&file).starts_with(mount_point);
        is_here
            .then(|| format!("the loop device /dev/{name} (file {file}; `losetup -d /dev/{name}`)"))
    });
    // Columns: Filename Type Size Used Priority; see proc(5).
    let swaps = kernel.read(Path::new("/proc/swaps")).unwrap_or_default();
    let files = swaps
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let swaps = files
        .filter(|file| Path::new(file).starts_with(mount_point))
        .map(|file| format!("the swap file {file} (`swapoff {file}`)"));
    loops.chain(swaps).collect()
}

struct OpenFile {
    target: PathBuf,
    info: PathBuf,
}

impl OpenFile {
    fn mount_id(&self, kernel: &Kernel) -> Option<u64> {
        let info = kernel.read(&self.info).ok()?;
        let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
        id.trim().parse().ok()
    }

    /// Whether the file is locked through this descriptor, whichever process locked it. Source:
    /// proc(5), `/proc/pid/fdinfo`, since Linux 4.1.
    fn is_locked(&self, kernel: &Kernel) -> bool {
        let info = kernel.read(&self.info).unwrap_or_default();
        info.lines().any(|line| line.starts_with("lock:"))
    }
}

fn open_files(kernel: &Kernel, pid_dir: &Path) -> Vec<OpenFile> {
    let dir = pid_dir.join("fd");
    let names = kernel.list(&dir).unwrap_or_default();
    names
        .iter()
        .filter_map(|name| {
            Some(OpenFile {
                target: kernel.link(&dir.join(name)).ok()?,
                info: pid_dir.join("fdinfo").join(name),
            })
        })
        .collect()
}

fn mapped_file(kernel: &Kernel, pid_dir: &Path, mount_point: &Path) -> Option<String> {
    let maps = kernel.read(&pid_dir.join("maps")).ok()?;
    // Columns: address perms offset dev inode pathname; see proc(5).
    maps.lines()
        .filter_map(|line| line.find('/').and_then(|at| line.get(at..)))
        .find(|path| Path::new(path).starts_with(mount_point))
        .map(|path| format!("mapped file {path}"))
}

fn search(kernel: &Kernel, held_by: impl Fn(&Path) -> Option<String>) -> Vec<Process> {
    let own = std::process::id();
    let pids = kernel.list(Path::new("/proc")).unwrap_or_default();
    pids.iter()
        .filter_map(|name| name.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let pid_dir = PathBuf::from(format!("/proc/{pid}"));
            let what = held_by(&pid_dir)?;
            let command = kernel.read(&pid_dir.join("comm")).unwrap_or_default();
            Some(Process {
                pid,
                command: command.trim_end().to_owned(),
                what,
            })
        })
        .collect()
}
