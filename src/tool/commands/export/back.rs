//! The way back: from the objects of a CSI driver to those of this one.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::args::{Import, Objects};
use super::csi::Csi;
use super::exporter::{Exporter, object_for};
use super::flex;
use super::steps;
use super::volume::{ClaimName, Exported, object_name};
use super::yaml::{comment, comment_as_it_is};
use crate::commands::manifest::documents;
use crate::files::read_or_stdin;
use crate::output::Printed;
use driver::config::Loaded;
use driver::host::Host;
use driver::names::{LvId, LvName, Shown, VgName};
use driver::options::MountOptions;

/// A volume as its CSI driver has it.
#[derive(Debug)]
pub struct CsiVolume {
    csi: Csi,
    /// The name of its `PersistentVolume`.
    object: String,
    /// Its name in LVM.
    lv: LvName,
    vg: Option<VgName>,
    /// The object that stands for it beside the `PersistentVolume`, and the name that it gives.
    beside: Option<(String, Option<LvName>)>,
    node: Option<String>,
    claim: Option<ClaimName>,
    class: String,
    mount_options: MountOptions,
}

/// Prints the way back of the one CSI `PersistentVolume` in a file.
pub fn run(host: &Host, loaded: &Loaded, args: &Import) -> Result<Printed> {
    loaded.require()?;
    let exporter = &Exporter::begin(host, loaded, &args.objects)?;
    let file = args.file.as_path();
    let shown = file.shown();
    let bytes = read_or_stdin(exporter.inventory.host.kernel, file);
    let bytes = bytes.with_context(|| format!("reading {shown}"))?;
    let from_csi =
        read(&String::from_utf8_lossy(&bytes)).with_context(|| format!("reading {shown}"))?;
    let id = from_csi.id(exporter, args.vg.as_deref())?;
    if let (Some(node), None) = (&from_csi.node, &exporter.args.node)
        && *node != exporter.node
    {
        bail!(
            "{} is for node {node}, and this is {}: run this there, or name this node with --node {node}",
            from_csi.object,
            exporter.node
        );
    }
    let seen = match exporter.export(&id, true) {
        Ok(volume) => volume,
        Err(why) => bail!("{}", why.of(&id)),
    };
    let is_taken = |id: &LvId| exporter.inventory.volume(id).is_some();
    let text = from_csi.text(seen, exporter.args, &exporter.driver, is_taken)?;
    Ok(Printed::text(text))
}

impl CsiVolume {
    /// The volume, of which TopoLVM and csi-driver-lvm do not say the group.
    fn id(&self, exporter: &Exporter, vg: Option<&str>) -> Result<LvId> {
        if let Some(vg) = &self.vg {
            return LvId::new(vg.clone(), self.lv.clone());
        }
        let is_asked = |id: &LvId| vg.is_none_or(|vg| vg == id.vg().as_str());
        let ids = exporter.inventory.volumes.iter().map(|volume| &volume.id);
        let found: Vec<&LvId> = ids
            .filter(|id| *id.lv() == self.lv && is_asked(id))
            .collect();
        match found[..] {
            [id] => Ok(id.clone()),
            [] => bail!(
                "no group here has a volume {}; run this on the node that has it",
                self.lv
            ),
            _ => bail!(
                "several groups have a volume {}; name the driver's group too, as VG",
                self.lv
            ),
        }
    }

    pub fn text(
        &self,
        seen: Exported,
        args: &Objects,
        driver: &str,
        is_taken: impl Fn(&LvId) -> bool,
    ) -> Result<String> {
        let claim = args.claim.clone().or_else(|| self.claim.clone());
        let named = self.beside.as_ref().and_then(|(_, name)| name.clone());
        let lv = match (self.csi, named) {
            (Csi::Topolvm, Some(name)) if name != self.lv => name,
            (Csi::Topolvm, _) => bail!(
                "{}: its LogicalVolume is missing in the file; add what `kubectl get logicalvolume -o yaml` prints \
                 of the one whose status.volumeID is {}",
                self.object,
                self.lv
            ),
            _ => self.lv.clone(),
        };
        let id = LvId::new(seen.id.vg().clone(), lv)?;
        if id != seen.id && is_taken(&id) {
            bail!(
                "{id}, the name that {} is to get, is another volume's; rename that one first",
                seen.id
            );
        }
        let volume = Exported {
            object: object_for(&id, seen.node.as_deref()).unwrap_or(seen.object),
            claim: claim.context("the PersistentVolume has no claim; name one with --claim")?,
            class: args.class.clone().unwrap_or_else(|| self.class.clone()),
            mount_options: self.mount_options.clone().without_read_only(),
            users: Vec::new(),
            id,
            ..seen
        };
        let beside = self.beside.as_ref().map(|(object, _)| object.as_str());
        let name = format!("{}/{}", volume.id.vg(), self.lv);
        let steps = steps::back(
            self.csi,
            &volume,
            &self.object,
            &name,
            beside.unwrap_or_default(),
        );
        Ok([
            comment_as_it_is(&steps),
            comment(&volume.notes.join("\n")),
            flex::objects(&volume, driver),
        ]
        .concat())
    }
}

/// The one CSI `PersistentVolume` of the text, with what stands beside it.
pub fn read(text: &str) -> Result<CsiVolume> {
    let mut objects = Vec::new();
    for document in documents(text)? {
        match document.get("items").and_then(Value::as_array) {
            Some(items) => objects.extend(items.iter().cloned()),
            None => objects.push(document),
        }
    }
    let is_kind = |object: &&Value, kind: &str| at(object, &["kind"]) == Some(kind);
    let volumes = objects
        .iter()
        .filter(|object| is_kind(object, "PersistentVolume"));
    let volumes: Vec<&Value> = volumes
        .filter(|object| object.pointer("/spec/csi").is_some())
        .collect();
    let [volume] = volumes[..] else {
        bail!(
            "it must have one PersistentVolume of a CSI driver, and has {}",
            volumes.len()
        );
    };
    let object = at(volume, &["metadata", "name"]).context("the PersistentVolume has no name")?;
    let object = object_name(object)?;
    let driver = at(volume, &["spec", "csi", "driver"]).unwrap_or_default();
    let Some(csi) = Csi::ALL.into_iter().find(|csi| csi.driver() == driver) else {
        let known = Csi::ALL.map(Csi::driver).join(", ");
        bail!("{object} is of the driver {driver:?}; this knows the way back from {known}");
    };
    let handle = at(volume, &["spec", "csi", "volumeHandle"]).unwrap_or_default();
    let lv = LvName::parse(handle).with_context(|| format!("reading volumeHandle of {object}"))?;
    let its = |kind: &str, path: &[&str]| {
        let mut all = objects.iter().filter(|object| is_kind(object, kind));
        all.find(|object| at(object, path) == Some(handle))
    };
    let beside = match csi {
        Csi::Topolvm => its("LogicalVolume", &["status", "volumeID"]),
        Csi::LvmLocalpv => its("LVMVolume", &["metadata", "name"]),
        Csi::DriverLvm => None,
    };
    let of_attributes = ["spec", "csi", "volumeAttributes", "openebs.io/volgroup"];
    let of_volume = beside.and_then(|beside| at(beside, &["spec", "volGroup"]));
    let vg = at(volume, &of_attributes)
        .or(of_volume)
        .map(VgName::parse)
        .transpose()?;
    let claim = at(volume, &["spec", "claimRef", "namespace"])
        .zip(at(volume, &["spec", "claimRef", "name"]));
    let options = volume
        .pointer("/spec/mountOptions")
        .and_then(Value::as_array);
    let options: Vec<&str> = options
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let beside = beside.map(|beside| -> Result<_> {
        let object = object_name(at(beside, &["metadata", "name"]).unwrap_or_default())?;
        let name = at(beside, &["spec", "name"]).and_then(|name| LvName::parse(name).ok());
        Ok((object, name))
    });
    Ok(CsiVolume {
        csi,
        lv,
        vg,
        beside: beside.transpose()?,
        node: node_of(volume, csi.key()),
        claim: claim
            .map(|(namespace, name)| ClaimName::parse(&format!("{namespace}/{name}")))
            .transpose()?,
        class: at(volume, &["spec", "storageClassName"])
            .unwrap_or_default()
            .to_owned(),
        mount_options: MountOptions::of_pod(&options.join(","))
            .context("reading its mountOptions")?,
        object,
    })
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    found.as_str()
}

/// The one node of its `nodeAffinity`, by this label.
fn node_of(volume: &Value, key: &str) -> Option<String> {
    let terms = volume
        .pointer("/spec/nodeAffinity/required/nodeSelectorTerms")?
        .as_array()?;
    let terms = terms
        .iter()
        .filter_map(|term| term.get("matchExpressions")?.as_array());
    let its = terms.flatten().find(|one| at(one, &["key"]) == Some(key))?;
    Some(its.get("values")?.get(0)?.as_str()?.to_owned())
}
