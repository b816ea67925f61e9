//! Gathers the facts for a volume's objects: its verdict, its filesystem, its pods.

use std::time::Duration;

use anyhow::{Result, bail};

use super::args::Objects;
use super::volume::{ClaimName, Exported, User, nearest_name, object_name};
use super::yaml::comment;
use crate::commands::log::{self, Call, Found};
use crate::commands::survey::{Choice, Inventory, Outcome, Request, Verdict, tried, uid_of};
use crate::kubelet;
use driver::config::{Config, Loaded};
use driver::host::{Host, own_name};
use driver::lvm::Volume;
use driver::mount::KubeletPath;
use driver::names::{FsType, LvId, Shown};
use driver::options::MountOptions;
use driver::volume::{Decision, Reason};

/// How long to wait for a call that works on a volume.
const PATIENCE: Duration = Duration::from_secs(10);
/// A longer value is cut in the log.
const LONGEST_LOGGED: usize = 255;

pub struct Exporter<'a> {
    pub inventory: Inventory<'a>,
    pub args: &'a Objects,
    /// This driver's name, as kubelet knows it.
    pub driver: String,
    pub node: String,
    mounts: Vec<Call>,
    /// A sentence on what the log does not say.
    gap: String,
}

/// Why a volume is not exported.
pub enum NotExported {
    Refused(String),
    /// It is the host's own, and nobody named it.
    Hosts(String),
}

impl NotExported {
    /// Why, with the volume, by which most messages begin.
    pub fn of(&self, id: &LvId) -> String {
        let (Self::Refused(message) | Self::Hosts(message)) = self;
        if message.starts_with(&id.to_string()) {
            return message.clone();
        }
        format!("{id}: {message}")
    }

    pub fn counts(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

impl<'a> Exporter<'a> {
    pub fn begin(host: &'a Host<'a>, loaded: &'a Loaded, args: &'a Objects) -> Result<Self> {
        let inventory = Inventory::take(host, loaded)?;
        let (mounts, gap) = match log::mounts(host, inventory.config) {
            Ok(Found { calls, reach }) if reach.is_empty() => (calls, String::new()),
            Ok(Found { calls, reach }) => (calls, format!(" The log was read{reach}.")),
            Err(why) => (
                Vec::new(),
                format!(
                    " Without a log it knows neither pods that have ended nor their `mountoptions`: {why:#}"
                ),
            ),
        };
        Ok(Self {
            driver: own_driver().unwrap_or_else(|| "kubernetes.io/lvm".to_owned()),
            node: match &args.node {
                Some(name) => name.clone(),
                None => node_name(host, inventory.config)?,
            },
            mounts,
            gap,
            inventory,
            args,
        })
    }

    /// The heading of the output.
    pub fn title(&self) -> String {
        let text = format!(
            "Volumes of node {}, for `kubectl apply --server-side -f`. The node does not know the names of \
             claims: see that they are those that the pods use.{}",
            self.node, self.gap
        );
        comment(&text)
    }

    /// `is_named`: a person named this very volume.
    pub fn export(&self, id: &LvId, is_named: bool) -> Result<Exported, NotExported> {
        let refused = |why: String| Err(NotExported::Refused(why));
        let Some(volume) = self.inventory.volume(id) else {
            let choice = Choice {
                ids: [id.clone()].into(),
                ..Choice::default()
            };
            let missing = self.inventory.require(&choice).err();
            return refused(missing.map_or_else(String::new, |error| format!("{error:#}")));
        };
        let (verdict, decided) = self.verdict(volume);
        let decision = match decided.as_ref().unwrap_or(&verdict.outcome) {
            Outcome::Decided(decision) => Some(decision),
            _ => None,
        };
        let Some((fs, is_seen)) = filesystem(&verdict, decision, volume) else {
            let why = verdict.message().unwrap_or_else(|| {
                format!("it is not active, and no record says what is on it; run `lvchange -ay {id}` first")
            });
            return if verdict.is_hosts && !is_named {
                Err(NotExported::Hosts(why))
            } else {
                refused(why)
            };
        };
        let (users, statics) = self.users(volume);
        if let Some(pod) = statics {
            return refused(format!(
                "pod {pod}, which has it, is a static one, and these have no claims: it stays in the pod's manifest"
            ));
        }
        let claim = match &self.args.claim {
            Some(claim) => claim.clone(),
            None => match claim_for(id, &users) {
                Some(claim) => claim,
                None => {
                    return refused("no claim can have its name; name one with --claim".to_owned());
                }
            },
        };
        let node = volume.lock.is_none().then(|| self.node.clone());
        let Some(object) = object_for(id, node.as_deref()) else {
            return refused("its PersistentVolume would have too long a name".to_owned());
        };
        let (mount_options, cut) = self.mount_options(id);
        let mut notes = Vec::new();
        notes.extend(verdict.message());
        notes.extend(
            verdict
                .main_step()
                .map(|step| format!("Its next mount: {step}.")),
        );
        notes.extend(cut);
        Ok(Exported {
            id: id.clone(),
            size: volume.size,
            fs,
            is_seen,
            is_thin: volume.pool.is_some(),
            is_encrypted: volume.record.luks_uuid().is_some()
                || matches!(
                    decision,
                    Some(Decision::MakeInside { .. } | Decision::Encrypt { .. })
                ),
            node,
            object,
            claim,
            class: self.args.class.clone().unwrap_or_default(),
            mount_options,
            users,
            notes,
        })
    }

    /// The verdict on the next mount; on the next read-only mount, if pods only read the volume.
    fn verdict(&self, volume: &Volume) -> (Verdict, Option<Outcome>) {
        let id = &volume.id;
        let request = Request {
            patience: PATIENCE,
            ..self.inventory.request(volume)
        };
        match self.inventory.see(id, request, Duration::MAX) {
            Ok(seen) => {
                let other = tried(self.inventory.host, self.inventory.config, &seen);
                let mut verdict = Verdict::of(&seen.facts, seen.decision);
                let decided = other.map(|other| std::mem::replace(&mut verdict.outcome, other));
                (verdict, decided)
            }
            Err(error) => (Verdict::of_error(id, &error), None),
        }
    }

    /// The pods that have the volume, or the one that had it last; and one of them that is static.
    fn users(&self, volume: &Volume) -> (Vec<User>, Option<String>) {
        let inventory = &self.inventory;
        let device = inventory.device(volume);
        let rows = device
            .map(|device| inventory.mounts(device))
            .unwrap_or_default();
        let mut users = Vec::new();
        for row in rows {
            let at = &row.mount_point;
            let (KubeletPath::Pod { .. }, Some(uid)) = (KubeletPath::of(at), uid_of(at)) else {
                continue;
            };
            let pod = inventory.pods.name(uid).to_string();
            if is_static(uid) {
                return (Vec::new(), Some(pod));
            }
            let name = at.file_name().unwrap_or_default().shown();
            users.push(User {
                pod,
                name: name.to_string(),
                read_only: row.is_mount_read_only(),
            });
        }
        if users.is_empty() {
            let last = self.last_mount(&volume.id);
            let last = last.and_then(|call| Some((call, call.pod.clone()?, call.name.clone()?)));
            users.extend(last.map(|(call, pod, name)| User {
                pod,
                name,
                read_only: options_of(call).is_some_and(|options| options.is_read_only()),
            }));
        }
        (users, None)
    }

    fn last_mount(&self, id: &LvId) -> Option<&Call> {
        let id = id.to_string();
        let mut calls = self.mounts.iter().rev();
        calls.find(|call| call.volume.as_ref() == Some(&id) && call.pod.is_some())
    }

    /// The option `mountoptions` that a pod gave last, without `ro`, which a claim's pod says itself; and a
    /// note if they are not all known.
    fn mount_options(&self, id: &LvId) -> (Option<String>, Option<String>) {
        let Some(call) = self.last_mount(id) else {
            return (None, None);
        };
        if call.mountoptions.is_some() && options_of(call).is_none() {
            let cut = "Its pod gave more `mountoptions` than the log keeps: add them.".to_owned();
            return (None, Some(cut));
        }
        (
            options_of(call).and_then(MountOptions::without_read_only),
            None,
        )
    }
}

/// The filesystem that the next mount would mount, and whether it was seen whole: else the next mount would
/// make or repair it, or only the record of a volume that is not active says it.
fn filesystem(
    verdict: &Verdict,
    decision: Option<&Decision>,
    volume: &Volume,
) -> Option<(FsType, bool)> {
    if !matches!(verdict.outcome, Outcome::Decided(_) | Outcome::Repair(_)) {
        return None;
    }
    let is_whole = matches!(verdict.outcome, Outcome::Decided(_));
    let known = |name: &str| FsType::parse(name).ok();
    match decision? {
        Decision::Bind(row) => Some((known(&row.fs_type)?, is_whole)),
        Decision::Mount(mount) => Some((mount.filesystem.fs, is_whole)),
        Decision::Make { permit, .. }
        | Decision::MakeInside { permit }
        | Decision::Encrypt { permit, .. } => Some((permit.fs(), false)),
        // Another node that shares its group has it: its objects are the same there. Without its passphrase nobody
        // sees what is inside.
        Decision::Activate
        | Decision::Open { .. }
        | Decision::Resume
        | Decision::Refuse(Reason::HeldElsewhere(_)) => {
            Some((known(&volume.record.made.as_ref()?.fs)?, false))
        }
        _ => None,
    }
}

fn options_of(call: &Call) -> Option<MountOptions> {
    let text = call.mountoptions.as_ref()?;
    let is_whole = text.len() < LONGEST_LOGGED;
    is_whole.then(|| MountOptions::of_pod(text).ok()).flatten()
}

/// kubelet gives a static pod a hash for a UID (pkg/kubelet/config/common.go, `applyDefaults`); the API server
/// one with hyphens.
fn is_static(uid: &str) -> bool {
    uid.len() == 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn claim_for(id: &LvId, users: &[User]) -> Option<ClaimName> {
    let namespace = users.iter().find_map(|user| user.pod.split_once('/'));
    let namespace = namespace.and_then(|(namespace, _)| object_name(namespace).ok());
    Some(ClaimName {
        namespace: namespace.unwrap_or_else(|| "default".to_owned()),
        name: nearest_name(id.lv().as_str())?,
    })
}

/// The name of its `PersistentVolume`, of which the cluster has one for all nodes.
pub fn object_for(id: &LvId, node: Option<&str>) -> Option<String> {
    let names = [Some(id.vg().as_str()), Some(id.lv().as_str()), node];
    let names: Option<Vec<String>> = names.into_iter().flatten().map(nearest_name).collect();
    object_name(&names?.join(".")).ok()
}

/// kubelet has the driver `<vendor>/<driver>` in `<vendor>~<driver>/<driver>`.
fn own_driver() -> Option<String> {
    let own = own_name();
    let dir = std::path::Path::new(&own).parent()?.file_name()?.to_str()?;
    let (vendor, driver) = dir.split_once('~')?;
    Some(format!("{vendor}/{driver}"))
}

/// kubelet takes the host's name in small letters.
fn node_name(host: &Host, config: &Config) -> Result<String> {
    let told = || {
        let kubelets = kubelet::running(host);
        kubelets
            .iter()
            .find_map(|one| one.node_name().map(str::to_owned))
    };
    let name = config.node_name.clone().or_else(told);
    let name = name.unwrap_or_else(|| host.kernel.host_name().to_ascii_lowercase());
    match object_name(&name) {
        Ok(name) => Ok(name),
        Err(error) => bail!("the name of this node: {error:#}; give it with --node"),
    }
}
