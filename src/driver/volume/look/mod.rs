//! Gathers the [`Facts`] about a volume, and changes nothing on it. The look of a call, of `adopt` and of
//! `allow-format` takes locks in /run, and may have LVM renew its cache of devices (`pvscan --cache`).

mod age;
mod content;
mod ground;
mod lvm;
mod openers;
mod settle;
mod under_lock;
mod uses;

pub use self::lvm::outgrown;
pub use under_lock::{HeldLocks, look_under_lock};

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};

use self::openers::Openings;
use super::job::Job;
use super::subject::Subject;
use crate::host::{DeviceNumber, Host, Kernel};
use crate::lvm::{Group, Volume};
use crate::mount::Table;
use crate::names::{LvId, LvUuid, ObjectName};
use crate::volume::decide::{Facts, same_name_advice};
use crate::volume::device::Device;
use crate::volume::kernel_tables::{swaps, volume_of};

/// After this long, a call looks again for what can have changed: others may have changed something.
const LONG: Duration = Duration::from_secs(2);

/// Longer than LVM has a volume suspended.
const MOMENT: Duration = Duration::from_millis(300);

/// A volume as the lvcreate of this very call left it.
pub struct Created {
    pub lv_uuid: LvUuid,
    /// See [`Device::written`].
    pub written: u64,
}

/// For whom a volume is looked at, and what is known of it before.
#[derive(Clone, Copy, Default)]
pub struct Asker<'a> {
    /// The call of kubelet that brings the volume up.
    pub job: Option<&'a Job<'a>>,
    pub created: Option<&'a Created>,
    /// What LVM said of the volume just before this call activated it.
    pub listed: Option<&'a Volume>,
    /// A person. The look claims no device, and does not wait for those who have it open.
    pub is_person: bool,
    /// Do not read the device, though the next mount would.
    pub unread: bool,
    /// A person's lists, made before this look.
    pub known: Option<Known<'a>>,
}

/// The kernel's tables, read once for a look at many volumes.
pub struct Tables {
    pub mounts: Table,
    swaps: Vec<DeviceNumber>,
    /// Read once LVM says that some volume is open.
    openings: OnceLock<Openings>,
}

impl Tables {
    pub fn read(kernel: &Kernel) -> Result<Self> {
        Ok(Self {
            mounts: Table::read(kernel)?,
            swaps: swaps(kernel),
            openings: OnceLock::new(),
        })
    }

    fn openings(&self, host: &Host) -> Result<&Openings> {
        if let Some(openings) = self.openings.get() {
            return Ok(openings);
        }
        let read = Openings::read(host, None)?;
        Ok(self.openings.get_or_init(|| read))
    }
}

/// Lists of all volumes, groups and devices, made once for many looks.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub volumes: &'a [Volume],
    pub groups: &'a [Group],
    /// Devices of the active volumes.
    pub devices: &'a BTreeMap<LvId, Device>,
    pub tables: &'a Tables,
}

pub struct Look<'a> {
    subject: Subject<'a>,
    asker: Asker<'a>,
    began: Instant,
    /// When it was last asked who has the device open.
    asked_for_users: Cell<Instant>,
    pub facts: Facts,
    /// The open device. For a call it is claimed: nobody else can claim it while this lives.
    claim: Option<Arc<File>>,
    /// Sectors written to the device when LVM was asked: see [`Device::written`].
    written: Option<u64>,
}

impl<'a> Look<'a> {
    /// Begins a look by finding the device, which exists if the volume is active.
    pub fn at(subject: Subject<'a>, asker: Asker<'a>) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut facts = Facts::of(subject.id, now.as_secs());
        let listed = asker.known.and_then(|known| known.devices.get(subject.id));
        let device = match listed {
            Some(device) => Ok(Some(device.clone())),
            None => Device::find(subject.host.kernel, subject.id),
        };
        let is_its = device.and_then(|device| {
            facts.device = device;
            match (asker.job, &facts.device) {
                (Some(job), Some(device)) => require_same(job, device),
                _ => Ok(()),
            }
        });
        facts.not_its_device = is_its.err().map(|error| format!("{error:#}"));
        let began = Instant::now();
        Self {
            subject,
            asker,
            began,
            asked_for_users: began.into(),
            facts,
            claim: None,
            written: None,
        }
    }

    /// Lets a tool claim the device: mkfs, e2fsck, mount(8) and cryptsetup open it exclusively themselves.
    pub fn release_claim(&mut self) {
        self.claim = None;
    }

    /// Whether the look took so long that others may have changed something.
    pub fn took_long(&self) -> bool {
        self.began.elapsed() >= LONG
    }

    /// Whether the device that was found is not the volume's any more.
    fn has_lost_device(&self) -> bool {
        let device = self.facts.device.as_ref();
        device.is_some_and(|one| !one.is_still_there(self.subject.host.kernel))
    }

    /// Whether others may have opened the device since this look asked who has it open.
    fn may_have_users(&self) -> bool {
        self.asked_for_users.get().elapsed() >= LONG
    }
}

/// Fails if kubelet passes another device than this one, as it does if two volumes share a name.
fn require_same(job: &Job, device: &Device) -> Result<()> {
    let (host, word) = (job.subject.host, job.handed);
    if word.is_empty() {
        return Ok(());
    }
    let number = host.kernel.device_number(Path::new(word))?;
    let is_same = match number {
        Some(number) => number == device.number,
        None => LvId::from_device(word).as_ref() == Some(&device.id),
    };
    if is_same {
        return Ok(());
    }
    let other = number.and_then(|number| volume_of(host.kernel, number));
    let other = other.map(|other| other.id).or(LvId::from_device(word));
    let other = other.map_or_else(|| word.to_owned(), |id| format!("{word} ({id})"));
    bail!(
        "kubelet hands on the device {other}, but the options name {}. If the volume of the pod was edited, or another \
         pod of this volume name has just gone, delete the pod and wait until the volume is detached \
         (`status.volumesAttached` of the node). {}",
        device.id,
        same_name_advice(job.options.volume_name.as_ref().map(ObjectName::as_str))
    )
}
