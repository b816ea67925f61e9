//! The one place where `doctor` asks the host. The answers are plain data, and no check asks for more.

mod crypto;
mod disk_kind;
mod lvm;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

pub use self::crypto::Crypto;
pub use self::lvm::{Hidden, LONGEST, Lvm, UsedDisk, VolumeFacts};
use super::host::all_tools;
use crate::commands::survey::{Pods, try_mkfs, uid_of};
use crate::commands::time::before;
use crate::files;
use crate::kubelet::{self, Kubelet};
use driver::config::{Config, Loaded, LogTarget};
use driver::host::holders::{self, Process};
use driver::host::trust::require_roots;
use driver::host::{Command, Host, selinux};
use driver::lvm::Udev;
use driver::mount::{KubeletPath, Row, Table, is_kubelets, mounted_at};
use driver::names::{Bytes, FsType};
use driver::volume::lock::LOCK_DIR;

pub struct Facts {
    pub config: Config,
    pub config_problem: Option<String>,
    pub has_config_file: bool,
    /// The output of `dmsetup version`.
    pub device_mapper: Result<String, String>,
    pub udev: Udev,
    /// `None`: SELinux denies nothing.
    pub selinux: Option<Selinux>,
    /// Now, in seconds since the epoch.
    pub now: u64,
    /// The processes that hold a lock of LVM. A command that asks a question holds it until it is answered.
    pub lvm_lockers: Vec<Process>,
    /// Why the driver cannot lock a volume.
    pub lock_problem: Option<String>,
    pub host_name: String,
    /// Where a kubelet finds this executable. None: it was started from elsewhere.
    pub plugin_dir: Option<PathBuf>,
    /// Who else than root can write there.
    pub plugin_dir_problem: Option<String>,
    pub kubelets: Vec<Kubelet>,
    /// Whether the log's socket, or the directory of its file, is there.
    pub has_log: bool,
    pub tools: Vec<Tool>,
    /// `None`: neither config nor a record wants encrypted volumes.
    pub crypto: Option<Crypto>,
    /// Why no tool is run from one of `tool_dirs`, a line each.
    pub tool_dir_problems: Vec<String>,
    pub lvm: Result<Lvm, String>,
    /// Complaints of mkfs about its options in the config.
    pub mkfs_problems: Vec<(FsType, String)>,
    /// The mounts from device-mapper in kubelet's directories.
    pub mounts: Vec<Mounted>,
    /// Directories for a volume of this driver that nothing is mounted on.
    pub unmounted: Vec<Unmounted>,
}

pub struct Selinux {
    pub domain: String,
    pub exe: PathBuf,
    pub label: String,
    /// Whether the policy has another label for the executable.
    pub is_mislabelled: bool,
}

pub struct Tool {
    pub name: &'static str,
    pub is_there: bool,
    /// Why it would not run, though it is there.
    pub problem: Option<String>,
}

pub struct Mounted {
    pub at: PathBuf,
    pub source: PathBuf,
    pub source_is_gone: bool,
    /// Of the directory that the mount point is in.
    pub age: Option<Duration>,
    /// UID of its pod, if that has no logs here, and others have.
    pub ended_pod: Option<String>,
    /// Whether it is mounted for the whole node, and for no pod.
    pub is_nodes_alone: bool,
}

pub struct Unmounted {
    pub at: PathBuf,
    /// Of the directory that it is in.
    pub age: Option<Duration>,
    pub has_files: bool,
}

impl Facts {
    /// Fails if the kernel's table of mounts cannot be read.
    pub fn ask(host: &Host, loaded: &Loaded) -> Result<Self> {
        let (kernel, config) = (host.kernel, loaded.or_default());
        let version = Command::dmsetup_version();
        let version = host.run(&version);
        let lock_problem = lock_problem(host);
        let own_dir = own_dir();
        let plugin_dir = own_dir.as_deref().and_then(Path::parent);
        let plugin = own_dir.as_deref().and_then(Path::file_name);
        let tools = all_tools().map(|name| {
            let is_there = host.tools.has(name);
            let problem = host.tools.lacks(name).filter(|_| is_there);
            Tool {
                name,
                is_there,
                problem,
            }
        });
        let tool_dirs = config.tool_dirs.iter().filter(|dir| kernel.is_dir(dir));
        // Before LVM is asked, which waits for them as long as a limit allows.
        let lockers = holders::of_lvm_lock(kernel, None);
        let asked = Instant::now();
        let lvm = Lvm::ask(host, loaded, lock_problem.is_none());
        let waited = lvm
            .as_ref()
            .map_or(asked.elapsed(), |lvm| lvm.answered_after);
        let lockers = lockers.into_iter().map(|one| Process {
            age: one.age.saturating_add(waited),
            ..one
        });
        let problem_of_mkfs = |fs: FsType| {
            // Large enough for any filesystem; the file is sparse.
            let made = try_mkfs(host, config, fs, None, Bytes::new(400 << 20));
            Some((fs, format!("{:#}", made.err()?)))
        };
        let mkfs = config.filesystems.iter();
        let mkfs = mkfs
            .filter(|(_, options)| lock_problem.is_none() && !options.mkfs_options.is_empty())
            .filter(|(fs, _)| host.tools.has(&format!("mkfs.{fs}")));
        let table = Table::read(kernel)?;
        let pods = Pods::read(kernel);
        let rows = table.rows().iter().filter(|row| {
            row.source.starts_with("/dev/mapper")
                && is_kubelets(kernel, &table, row, &config.kubelet_dirs)
        });
        Ok(Self {
            config: config.clone(),
            config_problem: loaded.problem.clone(),
            has_config_file: files::identity(Path::new(&config.file)).is_some(),
            device_mapper: version
                .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
                .map_err(|error| error.to_string()),
            udev: Udev::ask(kernel),
            selinux: selinux(host),
            now: before(Duration::ZERO),
            lvm_lockers: lockers.collect(),
            host_name: kernel.host_name(),
            plugin_dir: plugin_dir.map(Path::to_owned),
            plugin_dir_problem: plugin_dir.and_then(|dir| require_roots(kernel, dir).err()),
            kubelets: kubelet::running(host.kernel),
            has_log: has_log(host, &config.log),
            tools: tools.collect(),
            crypto: Crypto::ask(host, config, lvm.as_ref().ok()),
            tool_dir_problems: tool_dirs
                .filter_map(|dir| require_roots(kernel, dir).err())
                .collect(),
            lvm: lvm.map_err(|error| format!("{error:#}")),
            mkfs_problems: mkfs.filter_map(|(fs, _)| problem_of_mkfs(*fs)).collect(),
            mounts: rows.map(|row| mounted(host, &table, &pods, row)).collect(),
            unmounted: unmounted(host, config, plugin, &table),
            lock_problem,
        })
    }

    pub fn has_tool(&self, name: &str) -> bool {
        self.tools
            .iter()
            .any(|one| one.name == name && one.is_there)
    }
}

/// The driver's own directory, if a kubelet looks for this executable there.
fn own_dir() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let dir = exe.parent()?;
    let is_drivers = dir.file_name()?.to_str()?.contains('~');
    is_drivers.then(|| dir.to_owned())
}

fn selinux(host: &Host) -> Option<Selinux> {
    let exe = std::env::current_exe().ok()?;
    let text = |label: Vec<u8>| String::from_utf8_lossy(&label).replace('\0', "");
    let wanted = || host.run(&Command::restorecon_says(&exe));
    selinux::is_enforcing().then(|| Selinux {
        domain: host
            .kernel
            .read_of(std::process::id(), "attr/current")
            .replace('\0', ""),
        label: text(selinux::label(&exe).unwrap_or_default()),
        is_mislabelled: wanted().is_ok_and(|said| !said.stdout.is_empty()),
        exe: exe.clone(),
    })
}

fn lock_problem(host: &Host) -> Option<String> {
    let dir = Path::new(LOCK_DIR);
    match host.kernel.try_lock(&dir.join("doctor.lock")) {
        Ok(_) => require_roots(host.kernel, dir).err(),
        Err(e) => Some(format!("no lock file can be made in {LOCK_DIR}: {e}")),
    }
}

fn has_log(host: &Host, log: &LogTarget) -> bool {
    const SOCKETS: [&str; 2] = ["/run/systemd/journal/socket", "/dev/log"];
    match log {
        LogTarget::None => true,
        LogTarget::Syslog => SOCKETS.iter().any(|at| host.kernel.exists(Path::new(at))),
        LogTarget::File(file) => host.kernel.is_dir(file.parent().unwrap_or(file)),
    }
}

fn mounted(host: &Host, table: &Table, pods: &Pods, row: &Row) -> Mounted {
    let (at, source) = (row.mount_point.clone(), row.source.clone());
    let is_a_pods =
        |other: &Row| other.device == row.device && uid_of(&other.mount_point).is_some();
    Mounted {
        source_is_gone: !matches!(host.kernel.device_number(&source), Ok(Some(_))),
        age: age(host, &at),
        ended_pod: uid_of(&at).filter(|uid| pods.ended(uid)).map(str::to_owned),
        is_nodes_alone: KubeletPath::of(&at) == KubeletPath::Global
            && !table.rows().iter().any(is_a_pods),
        at,
        source,
    }
}

fn unmounted(
    host: &Host,
    config: &Config,
    plugin: Option<&OsStr>,
    table: &Table,
) -> Vec<Unmounted> {
    let known: BTreeSet<&Path> = table.rows().iter().map(|row| &*row.mount_point).collect();
    let plugin = plugin.unwrap_or("kubernetes.io~lvm".as_ref());
    let list = |dir: &Path| {
        let names = host.kernel.list(dir).unwrap_or_default();
        names
            .into_iter()
            .map(|name| dir.join(name))
            .collect::<Vec<_>>()
    };
    let pods = config.kubelet_dirs.iter();
    let pods = pods.flat_map(|dir| list(&dir.join("pods")));
    let volumes = pods.flat_map(|pod| list(&pod.join("volumes").join(plugin)));
    volumes
        .filter(|at| !known.contains(&**at) && matches!(mounted_at(host.kernel, at), Ok(None)))
        .map(|at| Unmounted {
            age: age(host, &at),
            has_files: !list(&at).is_empty(),
            at,
        })
        .collect()
}

/// A directory that is mounted on hides its own age, so the age of the one above it counts.
fn age(host: &Host, path: &Path) -> Option<Duration> {
    host.kernel.age(path.parent().unwrap_or(path))
}
