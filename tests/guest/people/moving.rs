//! The commands of docs/claims.md, docs/moving.md and docs/replace-the-script.md that need no cluster, and the objects
//! on these pages, all as they are printed there.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::page::{blocks, named};
use crate::prelude::*;

const CLAIMS: &str = include_str!("../../../docs/claims.md");
const MOVING: &str = include_str!("../../../docs/moving.md");
const SCRIPT: &str = include_str!("../../../docs/replace-the-script.md");
const BIN: &str = "/run/moving";

#[test]
fn claims_are_made_of_volumes_that_are_there_and_a_volume_gets_its_name_back() {
    let node = Node::new(Mode::MountOnly);
    let path = named(&node, BIN);
    // As a person does, in a directory of its own.
    let does = |lines: &str| run("sh", &["-c", &format!("cd {BIN}; {path}{lines}")]);
    let group = Group::new("vg0");
    let volume = group.linear("web-data", "64m");
    for lv in ["blank", "swap", "off"] {
        group.linear(lv, "32m");
    }
    run("mkfs.xfs", &["-q", &group.linear("Xfs_1", "300m").device()]);
    run("mkswap", &[&device("vg0", "swap")]);
    node.write("pod", &volume, "kept");
    node.write("pod", &Volume::new(&group, "off"), "kept");
    group.lv("lvchange", &["-an"], "off");

    let on_the_node = |page| {
        let blocks = blocks(page, "sh").into_iter();
        let kept = blocks.filter(|block| !block.contains("kubectl"));
        kept.collect::<Vec<_>>()
    };
    let [claims] = &on_the_node(CLAIMS)[..] else {
        panic!("{CLAIMS}")
    };
    let [idle, rename, back, check] = &on_the_node(MOVING)[..] else {
        panic!("{MOVING}")
    };
    // The last line says why the blank one and the swap space are not among them.
    let said = does(&format!("{claims} true"));
    assert!(said.contains("vg0/swap"), "{said}");
    let claims: Value = serde_json::from_str(&read(format!("{BIN}/claims.json").as_ref())).unwrap();
    let items = claims["items"].as_array().unwrap();
    let of_kind = |kind: &str| {
        let is_one = |item: &&Value| item["kind"] == *kind;
        items.iter().filter(is_one).cloned().collect::<Vec<_>>()
    };
    let volumes = of_kind("PersistentVolume").into_iter().map(|object| {
        let spec = &object["spec"];
        let flex = &spec["flexVolume"];
        json!([
            object["metadata"]["name"],
            spec["claimRef"]["name"],
            spec["capacity"]["storage"],
            flex["fsType"],
            flex["options"]
        ])
    });
    let row = |name: &str, claim: &str, mib: u64, fs: &str, lv: &str| {
        let options = json!({"volumegroup": "vg0", "volumeID": lv});
        json!([name, claim, (mib << 20).to_string(), fs, options])
    };
    let want = [
        row("vg0-xfs-1-node1", "xfs-1", 300, "xfs", "Xfs_1"),
        row("vg0-off-node1", "off", 32, "ext4", "off"),
        row("vg0-web-data-node1", "web-data", 64, "ext4", "web-data"),
    ];
    assert_eq!(volumes.collect::<Vec<_>>(), want);
    let claims = of_kind("PersistentVolumeClaim");
    for (object, claim) in of_kind("PersistentVolume").iter().zip(claims) {
        assert_eq!(claim["spec"]["volumeName"], object["metadata"]["name"]);
        let bound = &object["spec"]["claimRef"]["name"];
        assert_eq!(claim["metadata"]["name"], *bound);
    }

    run("udevadm", &["settle"]);
    for lines in [idle, rename, back, check] {
        does(&format!("set -e; {}", lines.replace("UID", "0f8c-uid")));
    }
    node.finds(&volume, "kept");
}

#[test]
fn the_objects_of_the_page_are_objects() {
    let kinds = blocks(MOVING, "yaml").into_iter().map(|block| {
        let object = Value::deserialize(serde_yaml_ng::Deserializer::from_str(&block)).unwrap();
        object["kind"].as_str().unwrap().to_owned()
    });
    let kinds: Vec<String> = kinds.collect();
    assert_eq!(kinds, ["LogicalVolume", "LVMVolume", "PersistentVolume"]);
}

#[test]
fn what_pods_name_is_rehearsed_before_the_script_is_replaced() {
    let node = Node::with_config(Mode::MountOnly, "[volume_group.written]\ncreate = true");
    let (group, data) = Group::with_data("written");
    run("mkfs.ext4", &["-q", &data.device()]);
    let volume = |driver: &str, lv: &str, more: Value| {
        let mut source =
            json!({"driver": driver, "options": {"volumegroup": "written", "volumeID": lv}});
        for (key, value) in more.as_object().unwrap() {
            source[key] = value.clone();
        }
        source
    };
    let ours = "kubernetes.io/lvm";
    let new = json!({"options": {"volumegroup": "written", "volumeID": "new", "size": "64m", "x": "it's 1"}});
    let pod = json!({"kind": "Pod", "spec": {"volumes": [
        {"name": "other", "emptyDir": {}},
        {"name": "nfs", "flexVolume": volume("example.com/nfs", "nfs", json!({}))},
        {"name": "data", "flexVolume": volume(ours, "data", json!({"fsType": "ext4", "readOnly": true}))},
        {"name": "new", "flexVolume": volume(ours, "new", new)},
    ]}});
    let disk = json!({"kind": "PersistentVolume", "spec": {
        "flexVolume": volume("example.com/lvm", "data", json!({"fsType": "xfs", "readOnly": true})),
    }});
    let of_nfs = json!({"kind": "PersistentVolume", "spec": {"nfs": {"server": "x"}}});
    let dir = "/run/written";
    std::fs::create_dir(dir).unwrap();
    let [list, rehearse] = &blocks(SCRIPT, "sh")[..2] else {
        panic!("{:?}", blocks(SCRIPT, "sh"))
    };
    let rehearsed = |items: &[&Value]| {
        let all = json!({"kind": "List", "items": items}).to_string();
        std::fs::write(format!("{dir}/all"), all).unwrap();
        let kubectl = format!("kubectl() {{ cat {dir}/all; }}");
        bash(&format!("cd {dir}; {kubectl}; {list}"));
        let rehearse = rehearse.lines().next().unwrap();
        let rehearse = rehearse.replace("sudo ./lvm", text(&node.exe()));
        let line = format!("cd {dir}; {rehearse}");
        let output = std::process::Command::new("bash")
            .args(["-c", &line])
            .output();
        let output = output.unwrap();
        let said = [output.stdout, output.stderr].concat();
        (String::from_utf8(said).unwrap(), output.status.success())
    };
    let (said, is_good) = rehearsed(&[&pod, &of_nfs]);
    for words in "written/data, mount ext4, written/new, create it with 64 MiB".split(", ") {
        assert!(said.contains(words) && is_good, "{words}: {said}");
    }
    assert!(!said.contains("nfs"), "{said}");
    let calls = read(format!("{dir}/volumes").as_ref());
    assert!(calls.contains("-o 'readwrite=ro'"), "{calls}");
    let (said, is_good) = rehearsed(&[&pod, &disk]);
    assert!(said.contains("holds ext4, not xfs") && !is_good, "{said}");
    assert_eq!(group.tags("data"), "");
    assert_eq!(sh("lvs --noheadings -o lv_name written"), "data");
}
