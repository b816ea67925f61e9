//! Finds the processes that hold a lock, a mount or a device, for messages.

use std::cell::OnceCell;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc::{O_ACCMODE, O_PATH, O_RDONLY};

use super::paths::{DeviceNumber, device_open_as, proc_file};
use crate::host::Kernel;
use crate::names::{Foreign, Shown, VgName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub command: Foreign,
    /// How the process holds the lock or the mount, for example as an open file or as its working directory.
    pub what: Foreign,
    pub age: Duration,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}, {})", self.command, self.pid, self.what)
    }
}

/// A list of processes for a message. The list names the first five, and says how many more there are.
pub fn name_them(processes: &[impl fmt::Display]) -> String {
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

/// The processes that hold the lock on `file`, without those that wait for it.
pub fn of_file(kernel: &Kernel, file: &Path) -> Vec<Process> {
    of_lock(kernel, |target| {
        (target == file).then(|| "holds the lock".shown())
    })
}

/// The processes that hold a lock of LVM for which a command on the volume group `vg` waits. Without `vg`: the
/// processes that hold any lock of LVM.
pub fn of_lvm_lock(kernel: &Kernel, vg: Option<&VgName>) -> Vec<Process> {
    // The lock's file is V_<group>, or P_global for all groups. Source: lvm2 lib/locking/file_locking.c.
    let dir = Path::new("/run/lock/lvm");
    of_lock(kernel, |target| {
        let counts = match vg {
            Some(vg) => target == dir.join(format!("V_{vg}")) || target == dir.join("P_global"),
            None => target.starts_with(dir),
        };
        counts.then(|| format!("holds {}", target.shown()).shown())
    })
}

fn of_lock(kernel: &Kernel, what: impl Fn(&Path) -> Option<Foreign>) -> Vec<Process> {
    let search = Search::new(kernel);
    search.find(|pid| {
        search
            .open_files(pid)
            .find_map(|(number, target)| what(&target).filter(|_| is_locked(kernel, pid, &number)))
    })
}

/// Whether an open file of a process has a lock. True also if another process took the lock through the same open file.
/// Source: proc(5), `/proc/pid/fdinfo`, since Linux 4.1.
fn is_locked(kernel: &Kernel, pid: u32, descriptor: &str) -> bool {
    let info = kernel.read_of(pid, &format!("fdinfo/{descriptor}"));
    info.lines().any(|line| line.starts_with("lock:"))
}

/// Whether this process has started the other.
pub fn is_own_child(kernel: &Kernel, pid: u32) -> bool {
    parent_of(kernel, pid) == Some(std::process::id())
}

/// The process that has started this one, or that has taken it over.
pub fn parent_of(kernel: &Kernel, pid: u32) -> Option<u32> {
    in_stat(kernel, pid, 4)?.parse().ok()
}

/// A field of `/proc/pid/stat` behind the name, counted from 1 as in proc(5). The name is the second field: it is in
/// parentheses, and may contain spaces and parentheses.
fn in_stat(kernel: &Kernel, pid: u32, field: usize) -> Option<String> {
    let stat = kernel.read_of(pid, "stat");
    let (_, behind) = stat.rsplit_once(") ")?;
    let found = behind.split(' ').nth(field.checked_sub(3)?);
    found.map(str::to_owned)
}

/// Whether a process of this name runs.
pub fn runs(kernel: &Kernel, name: &str) -> bool {
    let search = Search::new(kernel);
    let mut all = search.processes();
    all.any(|pid| name_of(kernel, pid) == name)
}

/// The tool with which LVM checks the metadata of a pool or a cache, such as `thin_check`, if one runs in this group of
/// processes.
pub fn check_in(kernel: &Kernel, group: u32) -> Option<Process> {
    let group = group.to_string();
    let checks = Search::new(kernel).find(|pid| {
        let is_in_group = in_stat(kernel, pid, 5)? == group;
        let is_it = is_in_group && name_of(kernel, pid).ends_with("_check");
        is_it.then(|| "started by LVM".shown())
    });
    checks.into_iter().next()
}

/// The processes that keep a mount busy. `mount_points`: all paths of the mount.
pub fn of_mount(kernel: &Kernel, mount_points: &[PathBuf]) -> Vec<Process> {
    let search = Search::new(kernel);
    search.find(|pid| {
        let links = [
            ("cwd", "working directory"),
            ("root", "root directory"),
            ("exe", "executable"),
        ]
        .into_iter()
        .filter_map(|(name, what)| Some((what, kernel.link(&proc_file(pid, name)).ok()?)));
        let files = search
            .open_files(pid)
            .map(|(_, target)| ("open file", target));
        links
            .chain(files)
            .find(|(_, target)| mount_points.iter().any(|path| target.starts_with(path)))
            .map(|(what, target)| format!("{what} {}", target.shown()).shown())
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    pub pid: u32,
    pub command: Foreign,
    pub writes: bool,
}

impl fmt::Display for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.writes { "to write" } else { "to read" };
        write!(f, "{} (pid {}, {how})", self.command, self.pid)
    }
}

/// Where a search looks for nodes of block devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// Below a directory `dev`, in memory. Takes little time.
    InDev,
    /// At any path, also where somebody has made a node of their own.
    Anywhere,
}

/// Each block device that another process has open, once for each descriptor. Some are missing if the time of the
/// [`Search`] is over first. Looks only at nodes on filesystems that always answer.
pub fn of_devices(kernel: &Kernel, nodes: Nodes) -> Vec<(DeviceNumber, Opener)> {
    let search = Search::new(kernel);
    let mut found = Vec::new();
    for pid in search.processes() {
        let mounts = OnceCell::new();
        let answers = |mount: u64| {
            let table = mounts.get_or_init(|| kernel.read_of(pid, "mountinfo"));
            always_answers(table, mount, nodes)
        };
        let files = search.open_files(pid);
        for (descriptor, _) in files.filter(|(_, target)| may_be_disk(target, nodes)) {
            let info = kernel.read_of(pid, &format!("fdinfo/{descriptor}"));
            let octal = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = octal.and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok());
            let file = proc_file(pid, &format!("fd/{descriptor}"));
            // With O_PATH, only a path was opened, not the device.
            if let Some(flags) = flags.filter(|flags| flags & O_PATH == 0)
                && let Some(number) = device_open_as(&file, answers)
            {
                let opener = Opener {
                    pid,
                    command: command(kernel, pid),
                    writes: flags & O_ACCMODE != O_RDONLY,
                };
                found.push((number, opener));
            }
        }
    }
    found
}

/// Whether an open file's path may be a disk's node. A socket or a pipe has no path. Below a directory `dev`, nodes
/// like /dev/null are left out, which many processes have open.
fn may_be_disk(path: &Path, nodes: Nodes) -> bool {
    const OTHERS: [&str; 6] = ["null", "zero", "urandom", "pts", "shm", "tty"];
    if nodes == Nodes::Anywhere {
        return path.is_absolute();
    }
    let mut parts = path.components().map(Component::as_os_str);
    parts.any(|part| part == "dev")
        && !parts
            .next()
            .is_some_and(|node| OTHERS.iter().any(|one| node == *one))
}

/// Whether the mount with this id, in this table of mounts, is a filesystem that answers questions about an open node
/// at once: a filesystem in memory, or one on local disks, which keeps the open node in memory. A network server or a
/// FUSE server may never answer.
fn always_answers(mountinfo: &str, id: u64, nodes: Nodes) -> bool {
    const IN_MEMORY: [&str; 2] = ["devtmpfs", "tmpfs"];
    const LOCAL: [&str; 6] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "overlay"];

    let id = id.to_string();
    let row = mountinfo
        .lines()
        .find(|row| row.split(' ').next() == Some(&id));
    let kind = row.and_then(|row| row.split_once(" - ")?.1.split(' ').next());
    let is_any = |known: &[&str]| kind.is_some_and(|kind| known.contains(&kind));
    is_any(&IN_MEMORY) || (nodes == Nodes::Anywhere && is_any(&LOCAL))
}

/// The identity of a process's mount namespace, which no other namespace has.
pub fn mount_namespace(kernel: &Kernel, process: impl fmt::Display) -> Option<PathBuf> {
    kernel.link(&proc_file(process, "ns/mnt")).ok()
}

pub fn command(kernel: &Kernel, pid: u32) -> Foreign {
    kernel.read_of(pid, "comm").shown()
}

/// The name that the kernel keeps of a process: the first 15 bytes.
pub fn name_of(kernel: &Kernel, pid: u32) -> String {
    kernel.read_of(pid, "comm").trim_end().to_owned()
}

/// How long ago the process started. Source: proc(5): the 22nd field of `/proc/pid/stat` is in clock ticks since the
/// boot. In user space, a second has 100 ticks on every architecture.
fn age(kernel: &Kernel, pid: u32) -> Option<Duration> {
    let ticks: u64 = in_stat(kernel, pid, 22)?.parse().ok()?;
    let uptime = kernel.read(Path::new("/proc/uptime")).ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let uptime = Duration::try_from_secs_f64(uptime).ok()?;
    uptime.checked_sub(Duration::from_millis(ticks.saturating_mul(10)))
}

/// A search among the other processes. It ends when its time is over, or when the driver is told to stop. A host may
/// have any number of processes and open files, and no call must wait for all of them.
pub struct Search<'a> {
    kernel: &'a Kernel,
    began: Instant,
}

impl<'a> Search<'a> {
    /// The longest time of a search: enough for thousands of processes with a hundred files each.
    const MOST: Duration = Duration::from_secs(2);

    pub fn new(kernel: &'a Kernel) -> Self {
        let began = Instant::now();
        Self { kernel, began }
    }

    fn goes_on(&self) -> bool {
        self.began.elapsed() < Self::MOST && !self.kernel.stopping()
    }

    /// All processes but this one, with the processes of this mount namespace first. The processes of pods are in other
    /// namespaces, and a pod could make them slow to read.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        let own = std::process::id();
        let ours = mount_namespace(self.kernel, "self");
        let all = self.kernel.entries(Path::new("/proc"));
        let others = all
            .filter_map(|name| name.parse().ok())
            .filter(|pid| *pid != own)
            .take_while(|_| self.goes_on());
        let mut sorted: Vec<(bool, u32)> = others
            .map(|pid| (mount_namespace(self.kernel, pid) != ours, pid))
            .collect();
        sorted.sort_unstable();
        let pids = sorted.into_iter().map(|(_, pid)| pid);
        pids.take_while(|_| self.goes_on())
    }

    fn open_files(&self, pid: u32) -> impl Iterator<Item = (String, PathBuf)> {
        let dir = proc_file(pid, "fd");
        let all = self.kernel.entries(&dir);
        let numbers = all.take_while(|_| self.goes_on());
        numbers.filter_map(move |number| {
            let target = self.kernel.link(&dir.join(&number)).ok()?;
            Some((number, target))
        })
    }

    fn find(&self, held_by: impl Fn(u32) -> Option<Foreign>) -> Vec<Process> {
        let kernel = self.kernel;
        let found = self.processes().filter_map(|pid| {
            let what = held_by(pid)?;
            Some(Process {
                pid,
                command: command(kernel, pid),
                what,
                age: age(kernel, pid).unwrap_or_default(),
            })
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nodes_that_can_be_a_disk_and_always_answer_are_looked_at() {
        let cases = [
            ("/dev/dm-3", [true, true]),
            ("/host/dev/mapper/vg-lv", [true, true]),
            ("/dev/null", [false, true]),
            ("/dev/pts/0", [false, true]),
            ("/data/device", [false, true]),
            ("socket:[1]", [false, false]),
        ];
        let both = [Nodes::InDev, Nodes::Anywhere];
        for (path, want) in cases {
            let is = both.map(|nodes| may_be_disk(Path::new(path), nodes));
            assert_eq!(is, want, "{path}");
        }
        let mounts = "36 35 0:5 / /dev rw - devtmpfs dev rw\n37 36 0:6 / /dev/x rw shared:1 - fuse.x x rw\n\
                      38 35 8:1 / /srv rw - xfs /dev/sda1 rw\n39 35 0:9 / /n rw - nfs4 server:/ rw\n";
        let no = [false, false];
        for (id, want) in [
            (36, [true, true]),
            (37, no),
            (3, no),
            (38, [false, true]),
            (39, no),
        ] {
            let is = both.map(|nodes| always_answers(mounts, id, nodes));
            assert_eq!(is, want, "{id}");
        }
    }
}
