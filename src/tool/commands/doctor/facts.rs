//! The one place where `doctor` asks the host. The answers are plain data, and no check asks for more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::host::all_tools;
use crate::commands::survey::{GroupHealth, Health, Inventory, Request, Seen};
use crate::files;
use crate::kubelet::{self, Kubelet};
use driver::config::{Config, Loaded};
use driver::host::holders::{self, Process};
use driver::host::trust::require_roots;
use driver::host::{Command, Host, selinux};
use driver::lvm::{self, Disk, KeptAway, Udev, Volume};
use driver::names::{LvId, VgName};
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
    pub missing_tools: BTreeSet<&'static str>,
    /// Why tools that are there are not run.
    pub distrusted_tools: Vec<String>,
    pub lvm: Result<Lvm, String>,
}

pub struct Selinux {
    pub domain: String,
    pub exe: PathBuf,
    pub label: String,
    /// Whether the policy has another label for the executable.
    pub is_mislabelled: bool,
}

pub struct Lvm {
    /// Sorted by name.
    pub volumes: Vec<Health>,
    pub groups: Vec<GroupHealth>,
    /// How long LVM's first answer took: it waits for whatever holds its lock.
    pub answered_after: Duration,
    pub kept_away: Vec<KeptAway>,
    /// The disks that LVM cannot use as they are.
    pub disks: Vec<Disk>,
    /// Volumes of pods that LVM does not know any more.
    pub lost: BTreeSet<LvId>,
}

impl Facts {
    pub fn ask(host: &Host, loaded: &Loaded) -> Self {
        let (kernel, config) = (host.kernel, &loaded.config);
        let version = Command::dmsetup_version();
        let version = host.run(&version);
        let lock_problem = lock_problem(host);
        let own_dir = own_dir();
        let plugin_dir = own_dir.as_deref().and_then(Path::parent);
        let (there, missing): (Vec<_>, _) = all_tools().partition(|tool| host.tools.has(tool));
        let distrusted = there
            .into_iter()
            .filter_map(|tool| host.tools.lacks(tool))
            .map(|error| error.to_string());
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
        Self {
            config: config.clone(),
            config_problem: loaded.problem.clone(),
            has_config_file: files::identity(Path::new(&config.file)).is_some(),
            device_mapper: version
                .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
                .map_err(|error| error.to_string()),
            udev: Udev::ask(kernel),
            selinux: selinux(host),
            lvm_lockers: lockers.collect(),
            host_name: kernel.host_name(),
            plugin_dir: plugin_dir.map(Path::to_owned),
            plugin_dir_problem: plugin_dir.and_then(|dir| require_roots(dir).err()),
            kubelets: kubelet::running(host.kernel),
            distrusted_tools: distrusted.collect(),
            missing_tools: BTreeSet::from_iter(missing),
            lvm: lvm.map_err(|error| format!("{error:#}")),
            lock_problem,
        }
    }

    pub fn has_tool(&self, name: &str) -> bool {
        !self.missing_tools.contains(name)
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
        Ok(_) => require_roots(dir).err(),
        Err(e) => Some(format!("no lock file can be made in {LOCK_DIR}: {e}")),
    }
}

/// For how long volumes are read that are the driver's.
pub const LONGEST: Duration = Duration::from_secs(10);
/// The same of all others at least, which are read after these: of them only what is broken is told.
const SHORTEST: Duration = Duration::from_secs(1);

impl Lvm {
    /// Fails if LVM does not answer. `can_lock`: without that no volume can be looked at as a mount does.
    fn ask(host: &Host, loaded: &Loaded, can_lock: bool) -> Result<Self> {
        let inventory = Inventory::take(host, loaded)?;
        let is_mountable = can_lock && loaded.problem.is_none();
        let look = |volume: &Volume| {
            if !is_mountable {
                return Health::of(&inventory, volume, Seen::default());
            }
            let others = inventory.patience(SHORTEST);
            let longest = if inventory.is_ours(volume) {
                LONGEST
            } else {
                others
            };
            let request = Request {
                longest: Some(longest),
                ..inventory.request(volume)
            };
            inventory.health(volume, request).0
        };
        let all = inventory.volumes.iter();
        let (its, others): (Vec<_>, Vec<_>) = all.partition(|volume| inventory.is_ours(volume));
        let mut volumes: Vec<Health> = its.into_iter().chain(others).map(look).collect();
        volumes.sort_by(|one, other| one.volume.id.cmp(&other.volume.id));
        let (kept_away, disks) = (inventory.kept_away(), lvm::disks(host)?);
        // No pod can name another one.
        let named = inventory.groups.iter();
        let named = named.filter(|group| VgName::parse(&group.name).is_ok());
        let groups = named.map(|group| {
            let its = disks.iter().filter(|disk| disk.vg == group.name);
            GroupHealth {
                disks: its.cloned().collect(),
                ..GroupHealth::of(&inventory, group, &kept_away)
            }
        });
        Ok(Self {
            volumes,
            answered_after: inventory.asked,
            lost: inventory.lost(),
            groups: groups.collect(),
            kept_away,
            disks,
        })
    }

    pub fn has_group(&self, vg: &str) -> bool {
        self.groups.iter().any(|one| one.group.name == vg)
    }
}
