//! The objects that `export` prints are those of the volumes that are there, and printing changes nothing.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::prelude::*;
use crate::signatures::put;

/// A node with a log, which the cluster calls n1.
fn node(log: &str) -> Node {
    let lines = format!("node_name = 'n1'\nlog = '/run/{log}.log'");
    Node::with_config(Mode::MountOnly, &lines)
}

/// The output of `export` with these words, its exit code, and its objects; nothing is changed.
fn export(node: &Node, words: &[&str]) -> (String, Vec<Value>, i32) {
    let before = Snapshot::take(node.kubelet_dir());
    let active = || sh("lvs --noheadings -o vg_name,lv_name,lv_active");
    let was_active = active();
    let is_back = words == ["/run/moves.yaml"];
    let command = if is_back { "import" } else { "export" };
    let args = [&[command], words].concat();
    let output = assert_cmd::Command::new(node.exe()).args(args).output();
    let output = output.unwrap();
    assert_eq!(Snapshot::take(node.kubelet_dir()), before, "{words:?}");
    assert_eq!(active(), was_active, "{words:?}");
    let [yaml, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let objects = serde_yaml_ng::Deserializer::from_str(&yaml).map(Value::deserialize);
    let objects = objects.map(Result::unwrap).filter(Value::is_object);
    (
        yaml.clone() + &said,
        objects.collect(),
        output.status.code().unwrap(),
    )
}

/// Each `PersistentVolume` in brief.
fn volumes(objects: &[Value]) -> Vec<Value> {
    let volumes = objects
        .iter()
        .filter(|object| object["kind"] == "PersistentVolume");
    let brief = |object: &Value| {
        let spec = &object["spec"];
        let flex = &spec["flexVolume"];
        json!([
            object["metadata"]["name"],
            spec["capacity"]["storage"],
            flex["fsType"],
            flex["options"]
        ])
    };
    volumes.map(brief).collect()
}

#[test]
fn each_volume_that_would_mount_is_exported_as_it_is_there() {
    let node = node("exports");
    let group = Group::new("exports");
    for lv in ["blank", "mine", "off", "raw"] {
        group.linear(lv, "32m");
    }
    let [mine, off] = ["mine", "off"].map(|lv| Volume::new(&group, lv));
    run("mkfs.xfs", &["-q", &group.linear("Xfs_1", "300m").device()]);
    node.up("pod", &mine.clone().with("mountoptions", "noatime,discard"));
    node.write("pod", &off, "kept");
    group.lv("lvchange", &["-an"], "off");
    put(&device("exports", "raw"), 0, b"raw");
    group.pool();

    let (said, objects, code) = export(&node, &["exports"]);
    let options = |lv: &str| json!({"volumegroup": "exports", "volumeID": lv});
    let mut with_mount_options = options("mine");
    with_mount_options["mountoptions"] = "noatime,discard".into();
    let want = [
        json!(["exports.xfs-1.n1", "300Mi", "xfs", options("Xfs_1")]),
        json!(["exports.blank.n1", "32Mi", "ext4", options("blank")]),
        json!(["exports.mine.n1", "32Mi", "ext4", with_mount_options]),
        // Its record says what is on it.
        json!(["exports.off.n1", "32Mi", "ext4", options("off")]),
    ];
    assert_eq!(volumes(&objects), want, "{said}");
    assert_eq!(code, 1);
    let (message, _) = node.says(&["check", "exports/raw", "--json"]);
    let message: Value = serde_json::from_str(&message).unwrap();
    let message = message["volumes"][0]["message"].as_str().unwrap();
    let words = |text: &str| text.replace("# ", "").replace('\n', " ");
    assert!(words(&said).contains(&words(message)), "{message}: {said}");
    // The pod is there: what changes in it is said.
    let lines = "# -     flexVolume: {driver: \"kubernetes.io/lvm\", …}\n\
                 # +     persistentVolumeClaim: {claimName: \"mine\"}\n";
    assert!(
        said.contains("Pod pod has it as \"mine-of-pod\"") && said.contains(lines),
        "{said}"
    );
    let claim = objects
        .iter()
        .find(|object| object["metadata"]["name"] == "mine")
        .unwrap();
    assert_eq!(claim["spec"]["volumeName"], "exports.mine.n1");

    // The driver would mount the volume that the objects name.
    let named = [
        "exports/mine",
        "--claim",
        "shop/web",
        "--class",
        "lvm",
        "--node",
        "n2",
    ];
    let (said, objects, code) = export(&node, &named);
    assert_eq!((code, objects.len()), (0, 2), "{said}");
    let spec = &objects[0]["spec"];
    assert_eq!(spec["claimRef"]["namespace"], "shop");
    let terms = &spec["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(
        *terms,
        json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]})
    );
    std::fs::write("/run/exports.yaml", said).unwrap();
    node.prints(&["check", "-f", "/run/exports.yaml"], "bind from", 0);
    node.down("pod", &mine);
}

#[test]
fn a_volume_of_a_static_pod_or_of_the_host_stays() {
    let node = node("stays");
    let group = Group::new("stays");
    let volume = group.linear("data", "32m");
    let uid = "0123456789abcdef0123456789abcdef";
    node.up(uid, &volume);
    let (said, objects, code) = export(&node, &["stays/data"]);
    assert!(
        said.contains("is a static one") && objects.is_empty() && code == 1,
        "{said}"
    );
    node.down(uid, &volume);
    // As the log has it, so does a pod that read only; its claim does not take that from others.
    node.up("reads", &volume.clone().read_only());
    let (said, objects, code) = export(&node, &["stays"]);
    assert_eq!((code, objects.len()), (0, 2), "{said}");
    assert!(
        said.contains("{claimName: \"data\", readOnly: true}"),
        "{said}"
    );
    assert!(!said.contains("mountoptions"), "{said}");
    node.down("reads", &volume);
    let swap = group.linear("swap", "32m");
    run("mkswap", &[&swap.device()]);
    run("swapon", &[&swap.device()]);
    let (said, _, code) = export(&node, &["stays"]);
    run("swapoff", &[&swap.device()]);
    // Nobody asked for it by name.
    assert!(
        said.contains("# Left out: stays/swap is swap space") && code == 0,
        "{said}"
    );
}

#[test]
fn a_csi_driver_gets_what_it_can_mount_and_gives_it_back() {
    let node = node("moves");
    let group = Group::new("moves");
    let volume = group.linear("web", "32m");
    group.linear("blank", "32m");
    run("mkfs.ext2", &["-q", &group.linear("old", "32m").device()]);
    run("mkfs.ext4", &["-q", &group.linear("csi-1", "32m").device()]);
    node.write("pod", &volume, "kept");
    for (to, lv, words) in [
        ("topolvm", "blank", "no whole filesystem was seen on it"),
        ("topolvm", "old", "fails to mount ext2"),
        ("csi-driver-lvm", "csi-1", "rename moves/csi-1 NAME"),
        ("lvm-localpv", "none", "no logical volume moves/none"),
    ] {
        let (said, objects, code) = export(&node, &["--to", to, &group.path(lv)]);
        assert!(
            said.contains(words) && objects.is_empty() && code == 1,
            "{to} {lv}: {said}"
        );
    }
    let claimed = ["--claim", "shop/web", "moves/web"];
    for (to, handle) in [
        ("lvm-localpv", "web"),
        ("csi-driver-lvm", "web"),
        ("topolvm", "6f864e03-aaa8-4fc6-9d7f-38c9caf78788"),
    ] {
        let (said, objects, code) = export(&node, &[&["--to", to], &claimed[..]].concat());
        assert_eq!(code, 0, "{said}");
        let [.., csi, _] = &objects[..] else {
            panic!("{said}")
        };
        assert_eq!(csi["spec"]["csi"]["fsType"], "ext4");
        // As it is there once the steps are done.
        let mut there = said.replace("UID-OF-THE-LOGICALVOLUME", handle);
        if to == "topolvm" {
            sh(&format!("lvrename -qq moves web {handle}"));
            there = there.replace(
                "spec:\n  name",
                &format!("status: {{volumeID: {handle}}}\nspec:\n  name"),
            );
        }
        std::fs::write("/run/moves.yaml", there).unwrap();
        let (said, back, code) = export(&node, &["/run/moves.yaml"]);
        assert_eq!(code, 0, "{said}");
        let options = json!({"volumegroup": "moves", "volumeID": "web"});
        assert_eq!(
            volumes(&back),
            [json!(["moves.web.n1", "32Mi", "ext4", options])]
        );
        assert_eq!(back[0]["spec"]["claimRef"]["name"], "web");
    }
    let there = std::fs::read_to_string("/run/moves.yaml").unwrap();
    std::fs::write("/run/moves.yaml", there.replace("\"n1\"", "\"n9\"")).unwrap();
    node.prints(&["import", "/run/moves.yaml"], "is for node n9", 1);
}
