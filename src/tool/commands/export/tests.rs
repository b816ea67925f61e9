//! The printed text, word for word: `FLEXVOLUME_LVM_WRITE=1 cargo test --lib export` writes `golden/`.

use std::path::Path;

use clap::ValueEnum;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::args::Objects;
use super::csi::{self, Csi};
use super::volume::{ClaimName, User};
use super::*;
use crate::hostile::{has_lines, hostile};
use driver::host::own_name;
use driver::names::{Bytes, FsType};

pub fn sample() -> Exported {
    Exported {
        id: LvId::parse("vg0/web-data").unwrap(),
        size: Bytes::new(2 << 30),
        fs: FsType::Ext4,
        is_seen: true,
        is_thin: false,
        is_encrypted: false,
        node: Some("n1".to_owned()),
        object: "vg0.web-data.n1".to_owned(),
        claim: ClaimName::parse("shop/web").unwrap(),
        class: "lvm".to_owned(),
        mount_options: Some("noatime,discard".to_owned()),
        users: vec![User {
            pod: "shop/web-0".to_owned(),
            name: "data".to_owned(),
            read_only: false,
        }],
        notes: vec!["Its next mount: mount ext4 1-2.".to_owned()],
    }
}

fn flex(volume: &Exported) -> String {
    const DRIVER: &str = "kubernetes.io/lvm";
    flex::notes(volume, DRIVER) + &flex::objects(volume, DRIVER)
}

/// The objects, as a reader of YAML has them.
fn objects(text: &str) -> Vec<Value> {
    let all = serde_yaml_ng::Deserializer::from_str(text).map(Value::deserialize);
    let all: Vec<Value> = all.map(Result::unwrap).collect();
    all.into_iter().filter(|object| !object.is_null()).collect()
}

fn is_golden(name: &str, text: &str) {
    let text = text.replace(&own_name(), "flexvolume-lvm");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tool/commands/export/golden");
    let file = dir.join(name);
    if std::env::var_os("FLEXVOLUME_LVM_WRITE").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text, golden,
        "FLEXVOLUME_LVM_WRITE=1 corrects golden/{name}"
    );
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest.unwrap() <= 140, "{name}: {longest:?}");
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    let kinds = objects
        .iter()
        .map(|object| object["kind"].as_str().unwrap());
    kinds.collect()
}

#[test]
fn a_volume_of_this_driver_is_a_persistent_volume_and_its_claim() {
    let text = flex(&sample());
    is_golden("flex.yaml", &text);
    let objects = objects(&text);
    assert_eq!(
        kinds(&objects),
        ["PersistentVolume", "PersistentVolumeClaim"]
    );
    let source = &objects[0]["spec"]["flexVolume"];
    let options = r#"{"mountoptions":"noatime,discard","volumeID":"web-data","volumegroup":"vg0"}"#;
    assert_eq!(source["options"].to_string(), options);
    // kubelet mounts no FlexVolume that has them.
    assert!(objects[0]["spec"].get("mountOptions").is_none());
    // Nodes that share a group all have the volume.
    let shared = Exported {
        node: None,
        ..sample()
    };
    assert!(!flex(&shared).contains("nodeAffinity"));
}

#[test]
fn an_encrypted_volume_stays_one_and_is_for_no_csi_driver() {
    let encrypted = Exported {
        is_encrypted: true,
        ..sample()
    };
    let text = flex(&encrypted);
    let options = &objects(&text)[0]["spec"]["flexVolume"]["options"];
    assert_eq!(options["encryption"], "luks2");
    assert!(text.contains("secretRef"), "{text}");
    for to in [Csi::Topolvm, Csi::LvmLocalpv, Csi::DriverLvm] {
        assert!(to.refusal(&sample()).is_none());
        assert!(to.refusal(&encrypted).unwrap().contains("is encrypted"));
    }
}

#[test]
fn each_csi_driver_gets_its_objects_and_the_steps() {
    for (to, others) in [
        (Csi::Topolvm, &["LogicalVolume"][..]),
        (Csi::LvmLocalpv, &["LVMVolume"]),
        (Csi::DriverLvm, &[]),
    ] {
        let name = to.to_possible_value().unwrap().get_name().to_owned();
        let text = to.text(&sample(), Some("ssd"));
        is_golden(&format!("{name}.yaml"), &text);
        let objects = objects(&text);
        let want = [others, &["PersistentVolume", "PersistentVolumeClaim"]].concat();
        assert_eq!(kinds(&objects), want);
        let [.., volume, claim] = &objects[..] else {
            panic!("{text}")
        };
        assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");
        assert_eq!(volume["metadata"]["name"], claim["spec"]["volumeName"]);
        assert_eq!(
            volume["spec"]["mountOptions"].to_string(),
            r#"["noatime","discard"]"#
        );
    }
}

#[test]
fn a_csi_driver_gets_nothing_that_it_would_format_refuse_or_remove() {
    let with = |id: &str| Exported {
        id: LvId::parse(id).unwrap(),
        ..sample()
    };
    let shared = Exported {
        node: None,
        ..sample()
    };
    let blank = Exported {
        is_seen: false,
        ..sample()
    };
    for to in [Csi::Topolvm, Csi::LvmLocalpv, Csi::DriverLvm] {
        assert_eq!(to.refusal(&sample()), None);
        assert!(
            to.refusal(&shared)
                .unwrap()
                .contains("nodes share the group vg0")
        );
        assert!(
            to.refusal(&blank)
                .unwrap()
                .contains("no whole filesystem was seen")
        );
    }
    let ext2 = Exported {
        fs: FsType::Ext2,
        ..sample()
    };
    assert!(Csi::Topolvm.refusal(&ext2).unwrap().contains("ext2"));
    assert_eq!(Csi::LvmLocalpv.refusal(&ext2), None);
    let odd = Csi::LvmLocalpv.refusal(&with("vg0/Web_1")).unwrap();
    assert!(odd.contains("rename vg0/Web_1 NAME"), "{odd}");
    assert_eq!(Csi::DriverLvm.refusal(&with("vg0/Web_1")), None);
    let removed = Csi::DriverLvm.refusal(&with("vg0/csi-1")).unwrap();
    assert!(removed.contains("removes volumes called csi-"), "{removed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_text_from_elsewhere_is_read_as_more_than_a_text(hostile in hostile()) {
        all_are_texts(&hostile);
    }
}

#[test]
fn no_text_that_means_something_in_yaml_is_read_as_more_than_a_text() {
    const HOSTILE: [&str; 5] = [
        "a\"\nkind: Secret\n---\n",
        "{x: &a *b, !!y}",
        "# no comment",
        "a\u{2028}b\u{85}c\u{7f}d\u{1f600}",
        "null",
    ];
    for text in HOSTILE {
        all_are_texts(text);
    }
}

/// Each value is this text, and all else is a comment.
fn all_are_texts(text: &str) {
    let volume = Exported {
        object: text.to_owned(),
        class: text.to_owned(),
        node: Some(text.to_owned()),
        mount_options: Some(text.to_owned()),
        notes: vec![text.to_owned()],
        users: vec![User {
            pod: text.to_owned(),
            name: text.to_owned(),
            read_only: true,
        }],
        ..sample()
    };
    let printed = flex(&volume);
    assert!(has_lines(&printed, printed.lines().count()), "{printed:?}");
    let objects = objects(&printed);
    assert_eq!(
        kinds(&objects),
        ["PersistentVolume", "PersistentVolumeClaim"],
        "{text:?}"
    );
    assert_eq!(objects[0]["metadata"]["name"], text);
    let options = &objects[0]["spec"]["flexVolume"]["options"];
    assert_eq!(options["mountoptions"], text);
    assert_eq!(objects[1]["spec"]["storageClassName"], text);
}

/// The objects of a handed-over volume, as the API server shows them.
fn held(csi: Csi, handle: &str) -> String {
    let mut text = csi.text(&sample(), None).replace(csi::UID, handle);
    if csi == Csi::Topolvm {
        let status = format!("  size: \"2147483648\"\nstatus: {{volumeID: {handle:?}}}\n");
        text = text.replace("  size: \"2147483648\"\n", &status);
    }
    text
}

#[test]
fn the_way_back_ends_where_the_way_out_began() {
    for (csi, handle) in [
        (Csi::Topolvm, "6f864e03-aaa8-4fc6-9d7f-38c9caf78788"),
        (Csi::LvmLocalpv, "web-data"),
        (Csi::DriverLvm, "web-data"),
    ] {
        let lv = LvId::parse(&format!("vg0/{handle}")).unwrap();
        let seen = Exported {
            id: lv,
            mount_options: None,
            class: String::new(),
            ..sample()
        };
        let held = back::read(&held(csi, handle)).unwrap();
        let back = |is_taken: bool| {
            held.text(
                seen.clone(),
                &Objects::default(),
                "kubernetes.io/lvm",
                |_| is_taken,
            )
        };
        let text = back(false).unwrap();
        let name = csi.to_possible_value().unwrap().get_name().to_owned();
        is_golden(&format!("from-{name}.yaml"), &text);
        assert_eq!(objects(&text), objects(&flex(&sample())), "{text}");
        // The name that it gets may be another's by now.
        assert_eq!(back(true).is_err(), csi == Csi::Topolvm);
    }
}

#[test]
fn an_object_without_a_way_back_is_refused() {
    let csi = held(Csi::DriverLvm, "web-data");
    for (text, words) in [
        (
            "kind: Pod\n".to_owned(),
            "one PersistentVolume of a CSI driver, and has 0",
        ),
        (format!("{csi}{csi}"), "has 2"),
        (
            csi.replace("lvm.csi.metal-stack.io", "ebs.csi.aws.com"),
            "ebs.csi.aws.com",
        ),
        (
            csi.replace("volumeHandle: \"web-data\"", "volumeHandle: ../x"),
            "volumeHandle",
        ),
        (csi.replace("\"noatime\"", "\"bind\""), "bind"),
    ] {
        let error = format!("{:#}", back::read(&text).unwrap_err());
        assert!(error.contains(words), "{error}");
    }
    // Without its LogicalVolume nobody knows how it was called.
    let alone = held(Csi::Topolvm, "1-2").replace("kind: LogicalVolume", "kind: Other");
    let held = back::read(&alone).unwrap();
    let error = held
        .text(sample(), &Objects::default(), "x/lvm", |_| false)
        .unwrap_err();
    assert!(
        error.to_string().contains("its LogicalVolume is missing"),
        "{error}"
    );
}
