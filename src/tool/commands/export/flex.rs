//! The objects of a volume that this driver serves.

use std::fmt::Write;

use super::volume::{Exported, User};
use super::yaml::{claim, comment, comment_as_it_is, persistent_volume, quoted};

/// The label of a node that has its name.
const HOST: &str = "kubernetes.io/hostname";

/// `driver`: this one's name, as kubelet knows it.
pub fn objects(volume: &Exported, driver: &str) -> String {
    format!("{}{}", volume_of(volume, driver), claim(volume))
}

fn volume_of(volume: &Exported, driver: &str) -> String {
    let id = &volume.id;
    let mut source = format!(
        "  flexVolume:
    driver: {}
    fsType: {}
    options:
      volumegroup: {}
      volumeID: {}
",
        quoted(driver),
        volume.fs,
        quoted(id.vg().as_str()),
        quoted(id.lv().as_str()),
    );
    if volume.is_encrypted {
        source.push_str("      encryption: luks2\n");
    }
    // The API server refuses no `mountOptions` here, but kubelet mounts no FlexVolume that has them.
    if let Some(options) = &volume.mount_options {
        let _ = writeln!(source, "      mountoptions: {}", quoted(options));
    }
    persistent_volume(volume, HOST, &source)
}

/// Notes on the volume, and the lines of its pods that change.
pub fn notes(volume: &Exported, driver: &str) -> String {
    let mut text = comment(&volume.notes.join("\n"));
    if volume.is_encrypted {
        text.push_str(&comment(
            "It is encrypted. If its passphrase is in a Secret, and not in the node's `key_file`, add that to the \
             PersistentVolume: `secretRef: {name: …, namespace: …}` beside `driver`.",
        ));
    }
    for user in &volume.users {
        text.push_str(&of_pod(volume, user, driver));
    }
    text
}

fn of_pod(volume: &Exported, user: &User, driver: &str) -> String {
    let (name, claim) = (quoted(&user.name), quoted(&volume.claim.name));
    let read_only = if user.read_only {
        ", readOnly: true"
    } else {
        ""
    };
    let Exported { object, .. } = volume;
    if user.name == *object {
        return comment(&format!("Pod {} has it by {object}.", user.pod));
    }
    let lines = format!(
        "    volumes:
    - name: {name}
-     flexVolume: {{driver: {}, …}}
+     persistentVolumeClaim: {{claimName: {claim}{read_only}}}",
        quoted(driver)
    );
    let said = format!(
        "Pod {} has it as {name}. If that is a PersistentVolume (`kubectl get pv`), there is a claim already: \
         name it with --claim. If the pod's manifest has it inline, these lines change there:",
        user.pod
    );
    format!("{}{}", comment(&said), comment_as_it_is(&lines))
}
