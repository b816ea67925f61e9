//! The steps of a handover, in order: what to run, and what it must show before the next one.

use super::csi::{Csi, OPENEBS, UID};
use super::volume::{ClaimName, Exported};
use super::yaml::PART;
use driver::host::own_name;

/// From this driver to a CSI driver.
pub fn out(to: Csi, volume: &Exported) -> String {
    let Exported { id, fs, object, .. } = volume;
    let ClaimName { namespace, name } = &volume.claim;
    let (driver, own, size) = (to.shown(), own_name(), volume.quantity());
    let node = volume.node.as_deref().unwrap_or_default();
    let (runs, apply, last_look) = (runs(to, volume), apply(to, volume), last_look(to, volume));
    let undo = undo(to, volume);
    let uid = if to == Csi::Topolvm { ", uid" } else { "" };
    format!(
        r#"Hands {id} ({fs}, {size}) of node {node} to {driver}, for the claim {namespace}/{name}.
Do the steps in order, each when the one before it shows what is said. To resume, set f (this file){uid}
and old to what they were, and begin at the first step that does not show what is said of it.

 1. The claim's PersistentVolume, which must name volumegroup {vg} and volumeID {lv}:
      f=handover.yaml
      old=$(kubectl get pvc {name} -n {namespace} -o jsonpath='{{.spec.volumeName}}'); echo "$old"
      kubectl get pv "$old" -o jsonpath='{{.spec.flexVolume.options}}'
    Write down $old, and mode and owner of the mount point in a pod (stat -c '%a %u:%g' DIR).
    If pods name the volume inline, there is no claim yet: `{own} export {id}` first.
 2. Nothing goes with the claim: RECLAIM POLICY is Retain.
      kubectl patch pv "$old" -p '{{"spec":{{"persistentVolumeReclaimPolicy":"Retain"}}}}'
      kubectl get pv "$old"
 3. The CSI driver runs on the node: {csi} is among these.
      kubectl get csinode {node} -o jsonpath='{{.spec.drivers[*].name}}'
{runs} 4. Its objects: STATUS is Available, CLAIM is {namespace}/{name}.
{apply}      kubectl get pv {object}
 5. No pod has the claim: set the replicas of what makes the pods to 0; "Used By" is <none>.
      kubectl describe pvc {name} -n {namespace} | grep 'Used By'
 6. On {node}: nothing has the volume any more, and it is active. The exit code is 0.
      {own} check --idle {id}
{last_look} 7. The old claim goes: STATUS of $old is Released.
      kubectl delete pvc {name} -n {namespace}
      kubectl get pv "$old"
 8. The new claim is Bound to {object}:
      kubectl apply --server-side -f "$f" -l {PART}=claim
      kubectl wait --for=jsonpath='{{.status.phase}}'=Bound pvc/{name} -n {namespace} --timeout=60s
 9. The replicas come back, and find their files.
10. Much later, when you will not go back; with Retain this is the object alone:
      kubectl delete pv "$old"

{undo}"#,
        vg = id.vg(),
        lv = id.lv(),
        csi = to.driver(),
    )
}

/// The settings of the CSI driver that must fit.
fn runs(to: Csi, volume: &Exported) -> String {
    let vg = volume.id.vg();
    match to {
        Csi::Topolvm => {
            let kind = if volume.is_thin {
                "type: thin and the volume's pool"
            } else {
                "no type: thin"
            };
            format!(
                "    lvmd.yaml there has the device class of the LogicalVolume below, or a default one, with\n    \
                 volume-group: {vg}, and {kind}.\n"
            )
        }
        Csi::LvmLocalpv => format!(
            "    Its namespace is {OPENEBS}; if not, change that below and in the steps. No other volume is called\n    \
             {} there: `kubectl get lvmvolume -A` shows none, or the one below.\n",
            volume.id.lv()
        ),
        Csi::DriverLvm => format!(
            "    It runs with --vgname={vg} and an empty --devices: a group that it does not find it makes anew of\n    \
             what --devices matches.\n"
        ),
    }
}

fn apply(to: Csi, volume: &Exported) -> String {
    let object = &volume.object;
    let objects = format!("      kubectl apply --server-side -f \"$f\" -l {PART}=object\n");
    let volume = format!("      kubectl apply --server-side -f \"$f\" -l {PART}=volume\n");
    match to {
        Csi::Topolvm => format!(
            "{objects}      uid=$(kubectl get logicalvolume {object} -o jsonpath='{{.metadata.uid}}'); echo \"$uid\"
      sed \"s/{UID}/$uid/\" \"$f\" | kubectl apply --server-side -l {PART}=volume -f -\n"
        ),
        Csi::LvmLocalpv => objects + &volume,
        Csi::DriverLvm => volume,
    }
}

/// The last step on the node, while nothing has the volume.
fn last_look(to: Csi, volume: &Exported) -> String {
    let Exported { id, object, fs, .. } = volume;
    match to {
        Csi::Topolvm => format!(
            "    Then it gets the name by which TopoLVM grows and removes it, with the $uid of step 4:
      {own} rename {id} \"$uid\"
      kubectl patch logicalvolume {object} --subresource=status --type merge \\
        -p '{{\"status\":{{\"volumeID\":\"'\"$uid\"'\",\"currentSize\":\"{bytes}\"}}}}'
      kubectl annotate logicalvolume {object} topolvm.io/pendingdeletion-
    The LogicalVolume's status.volumeID is $uid, and `lvs {vg}` has no volume more than before.\n",
            own = own_name(),
            bytes = volume.size.get(),
            vg = id.vg(),
        ),
        Csi::LvmLocalpv => String::new(),
        Csi::DriverLvm => format!(
            "    In the driver's container on {}, \"fstype\" is \"{fs}\"; if it is not, stop, for the driver would
    format the volume:
      lsblk -J -f /dev/{id}\n",
            volume.node.as_deref().unwrap_or_default()
        ),
    }
}

fn undo(to: Csi, volume: &Exported) -> String {
    let Exported { id, object, .. } = volume;
    let ClaimName { namespace, name } = &volume.claim;
    let renamed = match to {
        Csi::Topolvm => format!("{}/$uid", id.vg()),
        Csi::LvmLocalpv | Csi::DriverLvm => id.to_string(),
    };
    let let_go = let_go(to, &renamed, id.lv().as_str(), object);
    let own = own_name();
    format!(
        r#"To undo, replicas 0 and `{own} check --idle` as in step 6. Then, from step 7 on only:
      kubectl delete pvc {name} -n {namespace}
    Always, and the replicas come back if step 7 was not done:
      kubectl delete pv {object}
{let_go}    From step 7 on only; the claim is Bound to $old, and the replicas come back:
      kubectl patch pv "$old" --type json -p '[{{"op":"remove","path":"/spec/claimRef/uid"}}]'
      sed 's/{object}/'"$old"'/' "$f" | kubectl apply --server-side -l {PART}=claim -f -
      kubectl wait --for=jsonpath='{{.status.phase}}'=Bound pvc/{name} -n {namespace} --timeout=60s"#
    )
}

/// How the CSI driver comes to forget the volume and not to remove it. `held`: its name there; `lv`: the one
/// that it gets; `object`: that of its `LogicalVolume`.
pub fn let_go(to: Csi, held: &str, lv: &str, object: &str) -> String {
    match to {
        Csi::Topolvm => format!(
            "    The rename comes first, if it has that name: TopoLVM removes the volume called like the object's UID.
      {own} rename {held} {lv}
      kubectl delete logicalvolume {object}\n",
            own = own_name()
        ),
        Csi::LvmLocalpv => format!(
            "    The finalizers go first: with them the deletion removes the volume.
      kubectl patch lvmvolume {object} -n {OPENEBS} --type merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'
      kubectl delete lvmvolume {object} -n {OPENEBS}\n",
            object = held.split('/').next_back().unwrap_or(lv)
        ),
        Csi::DriverLvm => String::new(),
    }
}

/// From a CSI driver to this one. `object`: the driver's `PersistentVolume`; `held`: the volume's name there;
/// `beside`: the name of its `LogicalVolume` or `LVMVolume`.
pub fn back(from: Csi, volume: &Exported, object: &str, held: &str, beside: &str) -> String {
    let Exported {
        id,
        fs,
        object: new,
        ..
    } = volume;
    let ClaimName { namespace, name } = &volume.claim;
    let (driver, own, size) = (from.shown(), own_name(), volume.quantity());
    let node = volume.node.as_deref().unwrap_or_default();
    let lets_go = match let_go(from, held, id.lv().as_str(), beside) {
        nothing if nothing.is_empty() => {
            "    Nothing: it keeps no object of the volume.\n".to_owned()
        }
        commands => commands,
    };
    let lazy = match from {
        Csi::DriverLvm => {
            "    csi-driver-lvm unmounts lazily, which hides who still has it: `check --idle` looks at the device.\n"
        }
        Csi::Topolvm | Csi::LvmLocalpv => "",
    };
    format!(
        r#"Takes {held} ({fs}, {size}) of node {node} back from {driver}, for the claim {namespace}/{name}.
Do the steps in order, each when the one before it shows what is said. f: this file.
Snapshots of the volume (VolumeSnapshot, LVMSnapshot) go before.

 1. Nothing is deleted with the claim: RECLAIM POLICY is Retain, and no finalizer external-provisioner… is left.
      f=back.yaml
      kubectl patch pv {object} -p '{{"spec":{{"persistentVolumeReclaimPolicy":"Retain"}}}}'
      kubectl get pv {object} -o jsonpath='{{.spec.persistentVolumeReclaimPolicy}} {{.metadata.finalizers}}'
 2. The PersistentVolume below: STATUS is Available, CLAIM is {namespace}/{name}.
      kubectl apply --server-side -f "$f" -l {PART}=volume
      kubectl get pv {new}
    If it is Released, from before the handover:
      kubectl patch pv {new} --type json -p '[{{"op":"remove","path":"/spec/claimRef/uid"}}]'
 3. No pod has the claim: set the replicas of what makes the pods to 0; "Used By" is <none>.
      kubectl describe pvc {name} -n {namespace} | grep 'Used By'
 4. On {node}: nothing has the volume any more, and it is active. The exit code is 0.
      {own} check --idle {held}
{lazy} 5. {driver} lets go:
{lets_go}    On {node}, `lvs {id}` shows the volume.
 6. The old claim goes: STATUS of {object} is Released.
      kubectl delete pvc {name} -n {namespace}
      kubectl get pv {object}
 7. The new claim is Bound to {new}:
      kubectl apply --server-side -f "$f" -l {PART}=claim
      kubectl wait --for=jsonpath='{{.status.phase}}'=Bound pvc/{name} -n {namespace} --timeout=60s
 8. On {node}, the exit code is 0; then the replicas come back, and find their files. Restore mode and owner of
    the mount point if the CSI driver made it 2777.
      {own} check {id}
 9. With Retain this is the object alone:
      kubectl delete pv {object}"#
    )
}
