//! Finds what a person names on the command line: volumes, groups, pods, devices, and paths on them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::inventory::Inventory;
use super::pods::uid_of;
use crate::commands::log;
use driver::host::own_name;
use driver::lvm::Volume;
use driver::mount::{KubeletPath, Row};
use driver::names::{LvId, folded, nearest};
use driver::volume::{Device, Reason, volume_of};

const NO_POD: &str = "no pod of this name has a volume mounted here, or a call in the log";

/// The volumes and groups that a person named.
#[derive(Default)]
pub struct Choice {
    /// The volumes, each once. LVM may not know all of them.
    pub ids: BTreeSet<LvId>,
    /// The volumes that the person named, without those that are chosen because their group was named.
    pub named: BTreeSet<LvId>,
    /// The groups to show.
    pub groups: BTreeSet<String>,
    /// Whether nothing was named, so that everything is chosen.
    pub is_all: bool,
    /// A line for each word that could have named something else, too: which of the two was chosen.
    pub notes: String,
}

impl Choice {
    /// The chosen volume, if only one is chosen, and no group.
    pub fn one(&self) -> Option<&LvId> {
        let is_one = self.groups.is_empty() && self.ids.len() == 1;
        self.ids.first().filter(|_| is_one)
    }
}

impl Inventory<'_> {
    /// Finds the volumes and groups that the words name. Without words, chooses everything. Also returns a line for
    /// each word that names nothing. Fails if no word names anything.
    pub fn choose(&self, words: &[String]) -> Result<(Choice, String)> {
        let (mut choice, mut unknown) = (Choice::default(), String::new());
        if words.is_empty() {
            choice.ids = self.volumes.iter().map(|v| v.id.clone()).collect();
            choice.groups = self.groups.iter().map(|g| g.name.clone()).collect();
            choice.is_all = true;
            return Ok((choice, unknown));
        }
        for word in words {
            if let Err(error) = self.add(&mut choice, word) {
                let _ = writeln!(unknown, "{}", folded(&format!("{error:#}")));
            }
        }
        if choice.ids.is_empty() && choice.groups.is_empty() {
            bail!("{}", unknown.trim_end());
        }
        Ok((choice, unknown))
    }

    fn add(&self, choice: &mut Choice, word: &str) -> Result<()> {
        if self.has_group(word) || self.why_silent(word).is_some() {
            choice.groups.insert(word.to_owned());
            let ids = self.volumes.iter().map(|volume| &volume.id);
            let its = ids.filter(|id| id.vg().as_str() == word);
            choice.ids.extend(its.cloned());
            return Ok(());
        }
        let found = if word.starts_with('/') || word.starts_with('.') {
            vec![self.of_path(word)?]
        } else {
            self.called(word, &mut choice.notes)?
        };
        choice.ids.extend(found.iter().cloned());
        choice.named.extend(found);
        Ok(())
    }

    /// The volume that has the path `word`: as its device, or as a file on its filesystem.
    fn of_path(&self, word: &str) -> Result<LvId> {
        let kernel = self.host.kernel;
        let path = std::path::absolute(word).unwrap_or_else(|_| PathBuf::from(word));
        let own = kernel
            .device_number(&path)
            .with_context(|| format!("looking at {word}"))?;
        if own.is_none()
            && let Some(id) = LvId::from_device(word)
        {
            return Ok(id);
        }
        let number = if let Some(own) = own {
            own
        } else {
            let mount = kernel
                .mount_id(&path)
                .with_context(|| format!("looking at {word}"))?;
            let row = self.tables.mounts.by_id(mount);
            row.with_context(|| format!("{word} is on no mount of this host"))?
                .block_device()
        };
        match volume_of(kernel, number) {
            Some(device) => Ok(device.id),
            None => bail!("{word} is device {number}, which is not a logical volume"),
        }
    }

    /// The volumes with a name: VG/LV, a pod's name, kubelet's name of a volume, or LV alone. If the word names a
    /// volume of LVM and a pod, the volume is chosen. If it has a `/`, `notes` says which of the two was chosen.
    fn called(&self, word: &str, notes: &mut String) -> Result<Vec<LvId>> {
        let ids = self.volumes.iter().map(|volume| &volume.id);
        let listed: BTreeSet<LvId> = ids.filter(|id| has_name(id, word)).cloned().collect();
        let (vg, lv) = word.split_once('/').unzip();
        if !listed.is_empty() && vg.is_none() {
            return Ok(listed.into_iter().collect());
        }
        let of_pod = self.of_pod(word);
        if !listed.is_empty() {
            if !of_pod.is_subset(&listed) {
                let names: Vec<String> = of_pod.iter().map(LvId::to_string).collect();
                let note = format!(
                    "{word} was taken for the volume; the pod of this name has {}",
                    names.join(", ")
                );
                let _ = writeln!(notes, "{}", folded(&note));
            }
            return Ok(listed.into_iter().collect());
        }
        let group = vg.filter(|vg| self.has_group(vg));
        if !of_pod.is_empty() {
            if let (Some(vg), Some(lv)) = (group, lv) {
                let note = "was taken for the pod; the volume group";
                let note = format!("{word} {note} {vg} has no volume {lv}");
                let _ = writeln!(notes, "{}", folded(&note));
            }
            return Ok(of_pod.into_iter().collect());
        }
        if vg.is_none() {
            bail!("{}", self.not_here(word));
        }
        // A mount may create a volume of this name.
        let id = LvId::parse(word).context("reading the volume's name")?;
        if group.is_none() {
            let _ = writeln!(notes, "{id} was taken for a volume: {NO_POD}");
        }
        Ok(vec![id])
    }

    /// What to say of a word that names nothing on this node.
    fn not_here(&self, word: &str) -> String {
        let mut names: Vec<&str> = self.groups.iter().map(|group| &*group.name).collect();
        names.extend(self.volumes.iter().map(|volume| volume.id.lv().as_str()));
        let hint = match nearest(word, &names) {
            Some(name) => format!(" (did you mean {name}?)"),
            None => String::new(),
        };
        format!(
            "{word:?} is not on this node: neither a volume group, nor a volume, nor a pod with a mounted volume or a \
             call in the log{hint}; see `vgs`, `lvs`, `{} status`",
            own_name()
        )
    }

    /// The volumes of a pod, or those with this name of kubelet's: they are mounted under the name, or recorded with
    /// it, or calls have named them. A pod whose mount is refused has only such calls.
    fn of_pod(&self, word: &str) -> BTreeSet<LvId> {
        let rows = self.tables.mounts.rows().iter();
        let its = rows.filter(|row| self.is_called(row, word));
        let kernel = self.host.kernel;
        let devices = its.filter_map(|row| volume_of(kernel, row.block_device()));
        let mut found: BTreeSet<LvId> = devices.map(|device| device.id).collect();
        let noted = |v: &&Volume| v.record.names.iter().any(|name| name == word);
        found.extend(self.volumes.iter().filter(noted).map(|v| v.id.clone()));
        let pod = self.pods.name(word).to_string();
        // The command `log` reports a log that cannot be read.
        let called = log::of_calls(self.host, self.config, &pod).unwrap_or_default();
        found.extend(called.iter().filter_map(|id| LvId::parse(id).ok()));
        found
    }

    /// Whether a mount belongs to the pod `word`, or has `word` as kubelet's name of the volume.
    fn is_called(&self, row: &Row, word: &str) -> bool {
        let at = &row.mount_point;
        if uid_of(at).is_some_and(|uid| self.pods.is_called(uid, word)) {
            return true;
        }
        let is_named = at.file_name().is_some_and(|name| *name == *word);
        is_named && !matches!(KubeletPath::of(at), KubeletPath::Other)
    }

    /// Why LVM does not list a chosen volume, a line for each. Fails with these lines if it lists none, and no group
    /// was chosen.
    pub fn unlisted(&self, choice: &Choice) -> Result<String> {
        let unlisted = choice.ids.iter().filter(|id| self.volume(id).is_none());
        let lines: Vec<String> = unlisted.map(|id| folded(&self.why_unlisted(id))).collect();
        if !lines.is_empty() && choice.groups.is_empty() && lines.len() == choice.ids.len() {
            bail!("{}", lines.join("\n"));
        }
        Ok(lines.into_iter().map(|line| line + "\n").collect())
    }

    fn why_unlisted(&self, id: &LvId) -> String {
        let vg = id.vg().as_str();
        if let Some(why) = self.why_silent(vg) {
            return why.clone();
        }
        if matches!(Device::find(self.host.kernel, id), Ok(Some(_))) {
            return Reason::Unknown.message(id);
        }
        if self.has_group(vg) {
            return Reason::NoVolume(None).message(id);
        }
        let names: Vec<&str> = self.groups.iter().map(|group| &*group.name).collect();
        let others = match names.as_slice() {
            [] => " and no other one".to_owned(),
            names => format!(", but these: {}", names.join(", ")),
        };
        format!(
            "this node has no volume group {vg}{others}; see `vgs`, `pvs`. If {id} is a pod: {NO_POD}"
        )
    }
}

/// Whether a word is the name of this volume: VG/LV, or LV alone.
fn has_name(id: &LvId, word: &str) -> bool {
    id.to_string() == word || id.lv().as_str() == word
}
