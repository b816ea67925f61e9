//! Gathers the [`Facts`] about a volume, and changes nothing on it. The look of a call, of `adopt` and of
//! `allow-format` takes locks in /run, and may have LVM renew its cache of devices (`pvscan --cache`).

mod again;
mod content;
mod disks;
mod elsewhere;
mod ground;
mod known;
mod leases;
mod lvm;
mod openers;
mod openings;
mod under_lock;
mod uses;

pub use self::lvm::larger_device;
pub use known::{Known, Tables};
pub use under_lock::{look_of_call, look_of_person};

use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Error, Result, bail};

use super::job::Job;
use super::subject::Subject;
use crate::failed_step::in_words;
use crate::lvm::Volume;
use crate::names::{LvId, ObjectName};
use crate::volume::decide::{Content, Decision, Facts, Level, Wish, decide, same_name_advice};
use crate::volume::device::Device;
use crate::volume::kernel_tables::volume_of;

/// LVM keeps a volume suspended for less than this time.
const MOMENT: Duration = Duration::from_millis(300);

/// Who asks for a look, and the facts that are known before it.
#[derive(Clone, Copy)]
pub enum Asker<'a> {
    /// A call of kubelet that brings the volume up or grows it.
    Call {
        job: &'a Job<'a>,
        /// LVM's row from just before this call activated the volume.
        before_activation: Option<&'a Volume>,
    },
    /// A step of a call. Its look is about the volume alone, and does not see what is mounted at the call's directory.
    Step,
    /// A person's command. Its look claims no device, and does not wait for short-lived openers.
    Person {
        /// The lists of the command, made before this look.
        known: Option<Known<'a>>,
    },
}

impl<'a> Asker<'a> {
    fn job(&self) -> Option<&'a Job<'a>> {
        match self {
            Self::Call { job, .. } => Some(job),
            Self::Step | Self::Person { .. } => None,
        }
    }

    fn known(&self) -> Option<Known<'a>> {
        match self {
            Self::Person { known } => *known,
            Self::Call { .. } | Self::Step => None,
        }
    }

    fn is_person(&self) -> bool {
        matches!(self, Self::Person { .. })
    }
}

pub struct Look<'a> {
    subject: Subject<'a>,
    asker: Asker<'a>,
    began: Instant,
    /// When this look last asked who has the device open.
    asked_for_openers: Cell<Instant>,
    pub facts: Facts,
    /// The open device. For a call, it is opened exclusively: nobody else can claim the device until it is closed.
    claim: Option<Arc<File>>,
    /// See [`Look::note_writes`].
    written: Option<u64>,
}

impl<'a> Look<'a> {
    /// Begins a look by finding the device, which exists if the volume is active.
    pub fn begin(subject: Subject<'a>, asker: Asker<'a>) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut facts = Facts::of(subject.id, now.as_secs());
        let known_device = asker
            .known()
            .and_then(|known| known.devices.get(subject.id));
        let device = match known_device {
            Some(device) => Ok(Some(device.clone())),
            None => Device::find(subject.host.kernel, subject.id),
        };
        let is_its = device.and_then(|device| {
            facts.device = device;
            match (asker.job(), &facts.device) {
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
            asked_for_openers: began.into(),
            facts,
            claim: None,
            written: None,
        }
    }

    /// Looks level by level, until [`decide`] needs no more facts.
    pub fn settle(&mut self, wish: &Wish) -> Result<Decision> {
        self.settle_up_to(Level::Room, wish)
    }

    /// Like [`Self::settle`], but ends with [`Decision::Look`] if the decision needs a deeper level than `most`, or a
    /// lock.
    pub fn settle_up_to(&mut self, most: Level, wish: &Wish) -> Result<Decision> {
        loop {
            match decide(&self.facts, wish) {
                Decision::Look(level) if level <= most => match level {
                    Level::Uses => self.facts.uses = self.uses()?,
                    Level::Lvm => self.see_lvm(wish),
                    // The caller takes the group's lock, and looks at everything again.
                    Level::Creation => return Ok(Decision::Look(level)),
                    Level::LeaseState => self.facts.locks = Some(self.locks()),
                    Level::Openers => self.facts.openers = Some(self.openers(0)?),
                    Level::Ground => {
                        self.see_failure();
                        self.facts.ground = Some(self.ground(wish)?);
                    }
                    Level::Content => {
                        self.facts.content =
                            Some(self.content().unwrap_or_else(|error| unread(&error)));
                        self.see_astray();
                        self.see_stand_in();
                    }
                    Level::Decrypted => match self.content_inside() {
                        Ok(inside) => {
                            self.facts.decrypted = Some(inside);
                            self.see_astray();
                        }
                        Err(error) => self.facts.content = Some(unread(&error)),
                    },
                    Level::Room => self.look_for_room(wish),
                },
                decision => return Ok(decision),
            }
        }
    }

    /// Gives up the claim, so that a tool can have it: mkfs, e2fsck, mount(8) and cryptsetup open the device
    /// exclusively.
    pub fn release_claim(&mut self) {
        self.claim = None;
    }
}

fn unread(error: &Error) -> Content {
    Content::Failed(in_words(error))
}

/// Fails if kubelet passes another device than this one, as kubelet does if two volumes share a name.
fn require_same(job: &Job, device: &Device) -> Result<()> {
    let host = job.subject.host;
    let Some(word) = job.handed else {
        return Ok(());
    };
    let number = host.kernel.device_number(Path::new(word))?;
    let is_same = match number {
        Some(number) => number == device.number,
        None => LvId::from_device(word).as_ref() == Some(&device.id),
    };
    if is_same {
        return Ok(());
    }
    let found = number.and_then(|number| volume_of(host.kernel, number));
    let other = match found.map(|found| found.id).or(LvId::from_device(word)) {
        Some(id) => format!("{word} ({id})"),
        None => word.to_owned(),
    };
    bail!(
        "kubelet hands on the device {other}, but the options name {}. If the volume of the pod was edited, or another \
         pod of this volume name has just gone, delete the pod and wait until the volume is detached \
         (`status.volumesAttached` of the node). {}",
        device.id,
        same_name_advice(job.options.volume_name.as_ref().map(ObjectName::as_str))
    )
}
