//! Finds everyone who has the device of a volume open. The driver's claim does not keep out a process that opens the
//! device without a claim, such as a virtual machine, a storage target or a loop device.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Asker, Look};
use crate::config::Config;
use crate::host::holders::{self, Nodes, Opener, Search, command, mount_namespace};
use crate::host::{Command, DeviceNumber, Host, Kernel};
use crate::mount::{Row, Table, is_kubelets, is_runtimes};
use crate::volume::decide::{Elsewhere, LoopDevice, Openers, users};
use crate::volume::device::Device;
use crate::volume::subject::Subject;

/// How long a call waits for short-lived openers, such as udev, which opens a device after each change.
const PATIENCE: Duration = Duration::from_secs(3);

/// The device-mapper devices and who has them open, read once for one volume or for many.
pub struct Openings {
    /// How often each device is open. Source: dmsetup(8), `-o open`.
    counts: Vec<(DeviceNumber, usize)>,
    /// The processes that have devices open by a node in /dev. Read only when a device is open more often than its
    /// mounts and loop devices explain.
    in_dev: OnceLock<Vec<(DeviceNumber, Opener)>>,
    /// The processes that have devices open by any node. Read only when [`Self::in_dev`] does not explain all.
    anywhere: OnceLock<Vec<(DeviceNumber, Opener)>>,
    loops: Vec<(LoopDevice, DeviceNumber)>,
}

impl<'a> Look<'a> {
    /// A look at a volume that is to be closed or deactivated. `None`: somebody uses the volume.
    pub fn idle(subject: Subject<'a>) -> Result<Option<Self>> {
        let mut seen = Self::begin(subject, Asker::Step);
        if let Some(why) = seen.facts.not_its_device {
            bail!("{why}");
        }
        seen.facts.uses = seen.uses()?;
        let is_used = seen.facts.is_mounted_here() || !users(&seen.facts).is_empty();
        Ok((!is_used).then_some(seen))
    }

    /// Everyone who has the device open except this process, which has it open `own` times. A call waits up to
    /// 3 s for short-lived openers.
    pub(super) fn openers(&self, own: usize) -> Result<Openers> {
        if let Some(known) = self.asker.known() {
            return self.openers_of(known.tables.openings(self.subject.host)?, own);
        }
        let volume = self.facts.volume();
        let is_recorded = volume.is_some_and(|volume| volume.record.made.is_some());
        let is_person = self.asker.is_person();
        self.wait_until(own, |openers| is_person || !openers.may_end(is_recorded))
    }

    /// Everyone who has the device open, even read-only, though nothing has it mounted here any more. Waits up to 3 s,
    /// since udev opens devices briefly.
    pub fn remaining_openers(&self) -> Result<Openers> {
        let is_mounted = self.facts.is_mounted_here();
        self.wait_until(0, |openers| is_mounted || !openers.may_end(false))
    }

    fn wait_until(&self, own: usize, is_it: impl Fn(&Openers) -> bool) -> Result<Openers> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(50);
        loop {
            // The last look starts after PATIENCE has passed, even if the first look took longer than PATIENCE.
            let is_last = started.elapsed() >= PATIENCE;
            let openers = self.see_openers(own)?;
            if is_last || is_it(&openers) || self.subject.host.kernel.pause(pause) {
                return Ok(openers);
            }
            pause = pause.saturating_mul(2);
        }
    }

    fn see_openers(&self, own: usize) -> Result<Openers> {
        self.asked_for_openers.set(Instant::now());
        let Some(device) = &self.facts.device else {
            return Ok(Openers::default());
        };
        // An encrypted volume that is open has two devices.
        let is_one = self.facts.top() == Some(device);
        let openings = Openings::read(self.subject.host, is_one.then_some(device.number))?;
        self.openers_of(&openings, own)
    }

    fn openers_of(&self, openings: &Openings, own: usize) -> Result<Openers> {
        let (Some(device), Some(top)) = (&self.facts.device, self.facts.top()) else {
            return Ok(Openers::default());
        };
        let Subject { host, config, .. } = self.subject;
        let mounted = self.facts.is_mounted_here();
        let mut openers = openings.of(host.kernel, config, top, mounted, own)?;
        if top != device {
            // The device inside has the volume's own device open once.
            let beside = openings.of(host.kernel, config, device, false, 1)?;
            openers.processes.extend(beside.processes);
            openers.loops.extend(beside.loops);
            openers.unseen = openers.unseen.saturating_add(beside.unseen);
        }
        Ok(openers)
    }
}

impl Openings {
    /// Reads the openings of one device, or of all.
    pub fn read(host: &Host, of: Option<DeviceNumber>) -> Result<Self> {
        Ok(Self {
            counts: counts(host, of)?,
            in_dev: OnceLock::new(),
            anywhere: OnceLock::new(),
            loops: loops_over_devices(host.kernel),
        })
    }

    /// Everyone who has this device open except this process, which has it open `own` times. `mounted`: this
    /// mount namespace has it mounted.
    pub fn of(
        &self,
        kernel: &Kernel,
        config: &Config,
        device: &Device,
        mounted: bool,
        own: usize,
    ) -> Result<Openers> {
        let count = self
            .counts
            .iter()
            .find(|(number, _)| *number == device.number);
        let (_, count) = count.with_context(|| format!("dmsetup does not list {}", device.id))?;
        // The count includes every user, also a mount. If only this process has the device open, no search is needed.
        if *count <= own {
            return Ok(Openers::default());
        }
        let loops = self
            .loops
            .iter()
            .filter(|(_, below)| *below == device.number);
        let loops: Vec<LoopDevice> = loops.map(|(one, _)| one.clone()).collect();
        let elsewhere = elsewhere(kernel, config, device, mounted);
        let has_filesystem = device.has_filesystem(kernel);
        // However often a device is mounted, the kernel has it open once.
        let is_mounted = mounted || has_filesystem || !elsewhere.is_empty();
        let seen = [loops.len(), usize::from(is_mounted), own];
        let others = count.saturating_sub(seen.iter().sum());
        let processes = if others > 0 {
            self.processes(kernel, device, others)
        } else {
            Vec::new()
        };
        if kernel.stopping() {
            bail!(
                "the driver was told to stop while it looked who has {} open",
                device.id
            );
        }
        let unseen = others.saturating_sub(processes.len());
        Ok(Openers {
            processes: writers_first(processes),
            loops,
            elsewhere,
            has_filesystem,
            has_errors: has_filesystem && device.has_ext_errors(kernel) == Some(true),
            unseen,
        })
    }

    /// The processes that have a device open, once for each descriptor. `most`: how often the device is open.
    fn processes(&self, kernel: &Kernel, device: &Device, most: usize) -> Vec<Opener> {
        let of_device = |files: &[(DeviceNumber, Opener)]| -> Vec<Opener> {
            let files = files.iter().filter(|(number, _)| *number == device.number);
            files.map(|(_, opener)| opener.clone()).collect()
        };
        let find = |nodes| holders::of_devices(kernel, nodes);
        let in_dev = of_device(self.in_dev.get_or_init(|| find(Nodes::InDev)));
        if in_dev.len() >= most {
            return in_dev;
        }
        let anywhere = of_device(self.anywhere.get_or_init(|| find(Nodes::Anywhere)));
        // The search of more files may have had no time for all of them.
        if anywhere.len() > in_dev.len() {
            anywhere
        } else {
            in_dev
        }
    }
}

/// Each process once. Writers come first, since a message names only the first ones.
fn writers_first(mut openings: Vec<Opener>) -> Vec<Opener> {
    openings.sort_by_key(|opener| (!opener.writes, opener.pid));
    openings.dedup_by_key(|opener| opener.pid);
    openings
}

fn counts(host: &Host, of: Option<DeviceNumber>) -> Result<Vec<(DeviceNumber, usize)>> {
    let mut command = Command::reads("dmsetup", host.limits.query)
        .args(["info", "--columns", "--noheadings", "--separator", ":"])
        .args(["-o", "major,minor,open"]);
    command = match of {
        Some(DeviceNumber { major, minor }) => command.args([
            "--major".to_owned(),
            major.to_string(),
            "--minor".to_owned(),
            minor.to_string(),
        ]),
        // Exit code 1 is accepted: a device may vanish while dmsetup asks for all of them.
        None => command.accept(&[0, 1]),
    };
    let output = host.run(&command);
    let output = output.context("asking device-mapper who has the device open")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let row = |line: &str| {
        let (number, count) = line.trim().rsplit_once(':')?;
        Some((number.parse().ok()?, count.parse().ok()?))
    };
    Ok(text.lines().filter_map(row).collect())
}

/// Loop devices over block devices, each with its backing device. The kernel gives only the path that was used at
/// setup. In this mount namespace, the path may name another device.
fn loops_over_devices(kernel: &Kernel) -> Vec<(LoopDevice, DeviceNumber)> {
    let block = Path::new("/sys/block");
    let mut names = kernel.list(block).unwrap_or_default();
    names.retain(|name| name.starts_with("loop"));
    let over = |name: String| {
        // A loop device without a backing file has no such file.
        let file = kernel.read(&block.join(&name).join("loop/backing_file"));
        let file = file.ok()?;
        let number = kernel.device_number(Path::new(file.trim_end_matches('\n')));
        let ro = kernel.read(&block.join(&name).join("ro"));
        let writes = ro.map_or(true, |ro| ro.trim_end() == "0");
        Some((LoopDevice { name, writes }, number.ok()??))
    };
    names.into_iter().filter_map(over).collect()
}

/// The mounts of a device in other mount namespaces, one for each namespace. [`Search`] may stop early. A mount that it
/// did not reach still counts as an unseen opener. Leaves out the copies that end with a mount of this namespace.
/// `mounted`: this namespace has mounts of the device.
fn elsewhere(kernel: &Kernel, config: &Config, device: &Device, mounted: bool) -> Vec<Elsewhere> {
    let read = OnceCell::new();
    let own = || read.get_or_init(|| Table::read(kernel).unwrap_or_default());
    let mut seen: BTreeSet<PathBuf> = mount_namespace(kernel, "self").into_iter().collect();
    let of_host = mount_namespace(kernel, 1);
    let mut found = Vec::new();
    for pid in Search::new(kernel).processes() {
        // A process that has just ended has no mount namespace.
        let Some(its) = mount_namespace(kernel, pid).filter(|its| !seen.contains(its)) else {
            continue;
        };
        let is_hosts = of_host.as_ref() == Some(&its);
        seen.insert(its);
        let table = Table::of(kernel, &kernel.read_of(pid, "mountinfo"));
        let mut mounts = table.of_device(device.number);
        if mounted && !mounts.is_empty() {
            let here = own().of_device(device.number);
            mounts.retain(|row| !here.iter().any(|one| own().takes_along(one, (&table, row))));
        }
        let is_kubelets = |row: &Row| is_kubelets(kernel, &table, row, &config.kubelet_dirs);
        let mut kubelets = mounts.clone();
        kubelets.retain(|row| is_kubelets(row));
        let is_runtimes = |row: &Row| is_runtimes(kernel, row, &kubelets, &config.runtime_dirs);
        let hosts = |row: &Row| is_hosts && !is_kubelets(row) && !is_runtimes(row);
        let Some(first) = mounts.iter().max_by_key(|row| hosts(row)) else {
            continue;
        };
        found.push(Elsewhere {
            pid,
            command: command(kernel, pid),
            at: first.mount_point.clone(),
            hosts: hosts(first),
        });
    }
    found
}
