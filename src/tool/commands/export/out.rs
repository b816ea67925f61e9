//! The objects by which a CSI driver has a volume, below the steps that hand it over.

use clap::ValueEnum;

use super::csi::{Csi, OPENEBS, UID};
use super::steps;
use super::volume::Exported;
use super::yaml::{PART, claim, comment, comment_as_it_is, persistent_volume, quoted};

impl Csi {
    /// The steps and the objects. `device_class`: of TopoLVM.
    pub fn text(self, volume: &Exported, device_class: Option<&str>) -> String {
        // Both PersistentVolumes are there for a while.
        let suffix = self
            .to_possible_value()
            .map(|value| value.get_name().to_owned());
        let object = format!("{}.{}", volume.object, suffix.unwrap_or_default());
        let volume = Exported {
            object,
            ..volume.clone()
        };
        let differences = self.differences().iter().map(|line| format!("- {line}\n"));
        let differences: String = differences.collect();
        let differences = format!(
            "\nWhat differs with {}:\n{differences}- it activates no volume: LVM must do so when the node starts; no ReadWriteMany\n",
            self.shown()
        );
        [
            comment_as_it_is(&steps::out(self, &volume)),
            comment(&differences),
            self.object(&volume, device_class).unwrap_or_default(),
            self.persistent_volume(&volume),
            claim(&volume),
        ]
        .concat()
    }

    fn persistent_volume(self, volume: &Exported) -> String {
        let options = volume.mount_options.as_deref().unwrap_or_default();
        let options: Vec<String> = options
            .split(',')
            .filter(|one| !one.is_empty())
            .map(quoted)
            .collect();
        let options = if options.is_empty() {
            String::new()
        } else {
            format!("  mountOptions: [{}]\n", options.join(", "))
        };
        let handle = match self {
            Self::Topolvm => UID,
            Self::LvmLocalpv | Self::DriverLvm => volume.id.lv().as_str(),
        };
        let source = format!(
            "{options}  csi:
    driver: {}
    volumeHandle: {}
    fsType: {}
",
            self.driver(),
            quoted(handle),
            volume.fs
        );
        persistent_volume(volume, self.key(), &source)
    }

    /// The object that stands for the volume beside its `PersistentVolume`.
    fn object(self, volume: &Exported, device_class: Option<&str>) -> Option<String> {
        let (name, node) = (&volume.object, quoted(volume.node.as_deref()?));
        let (vg, lv) = (volume.id.vg().as_str(), quoted(volume.id.lv().as_str()));
        let bytes = volume.size.get();
        let class = device_class.map_or_else(String::new, |class| {
            format!("  deviceClass: {}\n", quoted(class))
        });
        match self {
            // With this annotation its agent leaves it alone, else it would make a new, empty volume.
            Self::Topolvm => Some(format!(
                "---
apiVersion: topolvm.io/v1
kind: LogicalVolume
metadata:
  name: {}
  labels: {{{PART}: object}}
  annotations: {{topolvm.io/pendingdeletion: \"true\"}}
spec:
  name: {lv}
  nodeName: {node}
{class}  size: \"{bytes}\"
",
                quoted(name)
            )),
            // Ready: its agent makes nothing.
            Self::LvmLocalpv => Some(format!(
                "---
apiVersion: local.openebs.io/v1alpha1
kind: LVMVolume
metadata:
  name: {lv}
  namespace: {OPENEBS}
  labels: {{kubernetes.io/nodename: {node}, {PART}: object}}
  finalizers: [lvm.openebs.io/finalizer]
spec:
  ownerNodeID: {node}
  volGroup: {}
  vgPattern: {}
  capacity: \"{bytes}\"
  shared: \"{}\"
  thinProvision: \"{}\"
status:
  state: Ready
",
                quoted(vg),
                quoted(&format!("^{}$", vg.replace('.', "\\.").replace('+', "\\+"))),
                yes_if(volume.users.len() > 1),
                yes_if(volume.is_thin),
            )),
            Self::DriverLvm => None,
        }
    }
}

fn yes_if(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}
