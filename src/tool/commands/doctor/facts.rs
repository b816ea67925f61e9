//! All questions of `doctor` to the host. The answers are plain data, and the checks ask nothing themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::tools::TOOLS;
use crate::commands::survey::{GroupHealth, Health, Inventory, NodeHealth, Request};
use crate::files;
use crate::kubelet::{self, Kubelet};
use driver::config::{Config, Loaded};
use driver::host::Host;
use driver::host::trust::require_roots;
use driver::lvm::{Udev, Volume};
use driver::names::VgName;
use driver::volume::lock::LOCK_DIR;

pub struct NodeFacts {
    pub config: Config,
    pub config_problem: Option<String>,
    pub has_config_file: bool,
    pub udev: Udev,
    /// Why the driver cannot lock a volume.
    pub lock_problem: Option<String>,
    pub host_name: String,
    /// The plugin directory of this executable. `None`: the executable is in no plugin directory.
    pub plugin_dir: Option<PathBuf>,
    /// Who other than root can write to the plugin directory.
    pub plugin_dir_problem: Option<String>,
    pub kubelets: Vec<Kubelet>,
    pub missing_tools: BTreeSet<&'static str>,
    /// Existing tools that are not run, each with the reason.
    pub distrusted_tools: Vec<(&'static str, String)>,
    pub lvm: Result<LvmFacts, String>,
}

pub struct LvmFacts {
    /// Sorted by name.
    pub volumes: Vec<Health>,
    pub groups: Vec<GroupHealth>,
    pub node: NodeHealth,
}

impl NodeFacts {
    /// Asks the host. `lvm` asks LVM; its argument says whether the next mounts can be judged.
    pub fn ask(host: &Host, loaded: &Loaded, lvm: impl FnOnce(bool) -> Result<LvmFacts>) -> Self {
        let (kernel, config) = (host.kernel, &loaded.config);
        let lock_problem = lock_problem(host);
        let own_dir = own_dir();
        let plugin_dir = own_dir.as_deref().and_then(Path::parent);
        let names = TOOLS.iter().map(|tool| tool.name);
        let (there, missing): (Vec<_>, _) = names.partition(|tool| host.tools.has(tool));
        let distrusted = there
            .into_iter()
            .filter_map(|tool| Some((tool, host.tools.lacks(tool)?.to_string())))
            .collect();
        let lvm = lvm(lock_problem.is_none() && loaded.problem.is_none());
        Self {
            config: config.clone(),
            config_problem: loaded.problem.clone(),
            has_config_file: files::identity(Path::new(&config.file)).is_some(),
            udev: Udev::ask(kernel),
            host_name: kernel.host_name(),
            plugin_dir: plugin_dir.map(Path::to_owned),
            plugin_dir_problem: plugin_dir.and_then(|dir| require_roots(dir).err()),
            kubelets: kubelet::running(host.kernel),
            distrusted_tools: distrusted,
            missing_tools: BTreeSet::from_iter(missing),
            lvm: lvm.map_err(|error| format!("{error:#}")),
            lock_problem,
        }
    }

    pub fn has_tool(&self, name: &str) -> bool {
        !self.missing_tools.contains(name)
    }

    /// Whether a volume here is encrypted, or the config demands that of a group's volumes.
    pub fn has_encryption(&self) -> bool {
        let mut tables = self.config.volume_groups.values();
        let is_encrypted = |one: &Health| one.volume.record.luks.is_some();
        tables.any(|table| table.encryption.is_some())
            || self
                .lvm
                .iter()
                .any(|lvm| lvm.volumes.iter().any(is_encrypted))
    }

    pub fn has_shared_group(&self) -> bool {
        let mut groups = self.lvm.iter().flat_map(|lvm| &lvm.groups);
        groups.any(|one| one.group.shared)
    }
}

/// The directory of this executable, if the directory's name contains `~`. In kubelet's plugin directory, the name of
/// each driver's directory does.
fn own_dir() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let dir = exe.parent()?;
    let is_drivers = dir.file_name()?.to_str()?.contains('~');
    is_drivers.then(|| dir.to_owned())
}

fn lock_problem(host: &Host) -> Option<String> {
    let dir = Path::new(LOCK_DIR);
    match host.kernel.try_lock(&dir.join("doctor.lock")) {
        Ok(_) => require_roots(dir).err(),
        Err(e) => Some(format!("no lock file can be made in {LOCK_DIR}: {e}")),
    }
}

/// How long volumes are read, at most.
pub const LONGEST: Duration = Duration::from_secs(10);

impl LvmFacts {
    /// Looks at all volumes. `request`: how to look at a volume for the verdict on its next mount. `None`: there is no
    /// verdict.
    pub fn of<'a>(inventory: &Inventory, request: impl Fn(&Volume) -> Option<Request<'a>>) -> Self {
        let look = |volume| Health::of(inventory, volume, request(volume)).0;
        let volumes = inventory.volumes.iter().map(look).collect();
        let node = NodeHealth::of(inventory);
        // Groups with other names are left out, since no pod can name them.
        let groups = inventory
            .groups
            .iter()
            .filter(|group| VgName::parse(&group.name).is_ok())
            .map(|group| node.group(inventory, group))
            .collect();
        Self {
            volumes,
            groups,
            node,
        }
    }

    /// Asks LVM, and looks at all volumes, for `doctor`. Fails if LVM does not answer.
    pub fn ask(host: &Host, loaded: &Loaded, is_mountable: bool) -> Result<Self> {
        let inventory = Inventory::take(host, loaded)?;
        Ok(Self::of(&inventory, |volume| {
            is_mountable.then(|| Request {
                longest: Some(LONGEST),
                // A volume that is not the driver's is not read: only what is broken is reported.
                unread: !inventory.is_ours(volume),
                ..inventory.request(volume)
            })
        }))
    }

    /// Whether a group is on this node's disks, even if LVM gave no answer about it.
    pub fn has_group(&self, vg: &VgName) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|one| one.group.name == vg.as_str()) || self.node.silent.contains_key(vg)
    }
}
