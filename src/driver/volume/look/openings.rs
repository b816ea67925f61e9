//! The device-mapper devices and who has them open, read once for one volume or for many.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use super::elsewhere::elsewhere;
use crate::config::Config;
use crate::host::holders::{self, Nodes, Opener};
use crate::host::{Command, DeviceNumber, Host, Kernel};
use crate::lvm::Mapped;
use crate::volume::decide::{LoopDevice, Openers};
use crate::volume::device::Device;

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
        let count = self.count_of(device)?;
        // The count includes every user, also a mount. If only this process has the device open, no search is needed.
        if count <= own {
            return Ok(Openers::default());
        }
        let loops = self.loops_over(device);
        let elsewhere = elsewhere(kernel, config, device, mounted);
        let has_filesystem = device.has_filesystem(kernel);
        // However often a device is mounted, the kernel has it open once.
        let is_mounted = mounted || has_filesystem || !elsewhere.is_empty();
        let seen = [loops.len(), usize::from(is_mounted), own];
        let others = count.saturating_sub(seen.iter().sum());
        let processes = self.processes(kernel, device, others);
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

    fn count_of(&self, device: &Device) -> Result<usize> {
        let mut counts = self.counts.iter();
        let found = counts.find(|(number, _)| *number == device.number);
        found
            .map(|(_, count)| *count)
            .with_context(|| format!("dmsetup does not list {}", device.id))
    }

    fn loops_over(&self, device: &Device) -> Vec<LoopDevice> {
        let loops = self.loops.iter();
        loops
            .filter(|(_, below)| *below == device.number)
            .map(|(one, _)| one.clone())
            .collect()
    }

    /// The processes that have a device open, once for each descriptor. `most`: how often processes have it open.
    fn processes(&self, kernel: &Kernel, device: &Device, most: usize) -> Vec<Opener> {
        if most == 0 {
            return Vec::new();
        }
        let all = (self.in_dev).get_or_init(|| holders::of_devices(kernel, Nodes::InDev));
        let in_dev = of_device(all, device);
        if in_dev.len() >= most {
            return in_dev;
        }
        let all = (self.anywhere).get_or_init(|| holders::of_devices(kernel, Nodes::Anywhere));
        let anywhere = of_device(all, device);
        // The search of more files may have had no time for all of them.
        if anywhere.len() > in_dev.len() {
            anywhere
        } else {
            in_dev
        }
    }
}

fn of_device(openers: &[(DeviceNumber, Opener)], device: &Device) -> Vec<Opener> {
    let its = openers
        .iter()
        .filter(|(number, _)| *number == device.number);
    its.map(|(_, opener)| opener.clone()).collect()
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
    let output = host
        .run(&command)
        .context("asking device-mapper who has the device open")?;
    Ok(output.text().lines().filter_map(count_in).collect())
}

fn count_in(line: &str) -> Option<(DeviceNumber, usize)> {
    let (number, count) = line.trim().rsplit_once(':')?;
    Some((number.parse().ok()?, count.parse().ok()?))
}

/// Loop devices over block devices, each with its backing device. The kernel gives only the path that was used at
/// setup. In this mount namespace, the path may name another device.
fn loops_over_devices(kernel: &Kernel) -> Vec<(LoopDevice, DeviceNumber)> {
    let all = Mapped::of_every_kind(kernel);
    let loops = all.filter(|one| one.in_dev().starts_with("loop"));
    let found = loops.filter_map(|one| {
        // A loop device without a backing file has no such file.
        let file = one.read(kernel, "loop/backing_file").ok()?;
        let number = kernel.device_number(Path::new(&file)).ok()??;
        let (name, writes) = (one.in_dev(), !one.is_read_only(kernel));
        Some((LoopDevice { name, writes }, number))
    });
    found.collect()
}
