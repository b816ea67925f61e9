//! Nodes with an unusual lvm.conf.

use std::fs;
use std::path::Path;

use crate::prelude::*;
use crate::refusals::agreed::agreed;

/// An lvm.conf in the place of the host's own, until it is dropped.
pub struct LvmConf;

impl LvmConf {
    const HERE: &str = "/etc/lvm/lvm.conf";

    pub fn new(text: &str) -> Self {
        let file = "/run/other-lvm.conf";
        fs::write(file, text).unwrap();
        run("mount", &["--bind", file, Self::HERE]);
        Self
    }
}

impl Drop for LvmConf {
    fn drop(&mut self) {
        run("umount", &[Self::HERE]);
    }
}

#[test]
fn a_report_as_people_like_it_does_not_hide_the_record() {
    let node = Node::with_config(Mode::MountOnly, "[volume_group.taste]\ncreate = true\n");
    let group = Group::new("taste");
    let volume = Volume::new(&group, "data");
    {
        let _conf = LvmConf::new(
            "report {\n list_item_separator = \";\"\n binary_values_as_numeric = 1\n \
             compact_output = 1\n compact_output_cols = \"lv_tags\"\n prefixes = 1\n quoted = 0\n time_format = \"%Y\"\n}\n",
        );
        // A volume without tags.
        let blank = group.linear("blank", "32m");
        node.visit(&blank);
        node.visit(&volume);
        run("wipefs", &["-qa", &volume.device()]);
        node.refuses_mount(&volume, &["should hold ext4", "according to its tag"]);
    }
    assert!(group.tags("data").contains("flexvolume.fs=ext4:"));
}

/// In LVM's test mode, its commands report success and change nothing.
#[test]
fn lvms_test_mode_leaves_no_filesystem_without_its_record() {
    let node = Node::with_config(Mode::MountOnly, "[volume_group.tried]\ncreate = true\n");
    let group = Group::new("tried");
    let volume = Volume::new(&group, "data");
    let blank = group.linear("blank", "32m");
    {
        let _conf = LvmConf::new("global {\n test = 1\n}\n");
        for volume in [&blank, &volume] {
            node.visit(volume);
        }
    }
    for lv in ["blank", "data"] {
        assert!(group.tags(lv).contains("flexvolume.fs=ext4:"), "{lv}");
    }
}

#[test]
fn lvms_output_is_understood_wherever_lvm_conf_sends_it() {
    let lines = "[volume_group.said]\ncreate = true\n[volume_group.silent]\n[volume_group.nosuch]\n\
         [volume_group.limited]\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, lines);
    let group = Group::new("said");
    let strangers = Group::new("silent");
    let no_volume = "there is no logical volume silent/data";
    let no_group = "this node has no volume group nosuch";
    let limited = Group::new("limited");
    limited.linear("only", "16m");
    run("vgchange", &["-qq", "--logicalvolume", "1", "limited"]);
    // lvcreate itself refuses this.
    let more = Volume::new(&limited, "more").with("size", "16m");
    let absent = [
        (Volume::new(&strangers, "data"), no_volume),
        (Volume::of("nosuch", "data"), no_group),
        (more, "Maximum number of logical volumes"),
    ];
    for (format, log) in [("basic", 0), ("basic", 1), ("json", 0), ("json", 1)] {
        let _conf = LvmConf::new(&format!(
            "report {{\n output_format = \"{format}\"\n}}\nlog {{\n report_command_log = {log}\n \
             prefix = \"lvm: \"\n command_names = {}\n verbose = 1\n}}\n",
            // With `command_names`, the command's name would stand before every line of a log, too.
            1 - log
        ));
        for (volume, words) in &absent {
            let reply = node.refuses_mount(volume, &[words]);
            assert!(!reply.message.contains('{'), "{format} {log}: {reply:?}");
        }
        let volume = Volume::new(&group, &format!("{format}{log}")).with("size", "16m");
        node.visit(&volume);
    }
}

#[test]
fn volume_list_that_prevents_activation_is_named() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "listed");
    group.lv("lvchange", &["-an"], "data");
    {
        let _conf = LvmConf::new("activation {\n volume_list = [\"others\"]\n}\n");
        let words = ["listed/data", "`lvmconfig activation/volume_list`"];
        node.refuses_mount(&volume, &words);
    }
    node.up("pod", &volume);
}

/// Without `volume_list`, LVM activates only what has a tag of this host, if the host has any.
#[test]
fn a_host_with_tags_activates_the_volume_once_lvm_conf_has_what_the_message_says() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "hosttags");
    group.lv("lvchange", &["-an"], "data");
    // The host's own volumes stay active after the next boot.
    let tagged = Group::new("tagged");
    let tag = format!("@{}", sh("uname -n").trim());
    tagged.linear("own", "4m");
    tagged.lv("lvchange", &["--addtag", &tag], "own");
    tagged.lv("lvchange", &["-an"], "own");
    let tags = "tags {\n hosttags = 1\n}\n";
    let list = {
        let _conf = LvmConf::new(tags);
        assert!(!sh("lvm tags").is_empty());
        let refused = node.refuses_mount(&volume, &["hosttags/data", "`lvm tags`"]);
        let (_, list) = refused.message.split_once("set `").unwrap();
        list.split('`').next().unwrap().to_owned()
    };
    let _conf = LvmConf::new(&format!("{tags}activation {{\n {list}\n}}\n"));
    node.visit(&volume);
    tagged.lv("lvchange", &["-ay"], "own");
    assert!(Path::new("/dev/tagged/own").exists());
}

#[test]
fn exported_group_is_named() {
    let (node, group, volume) = Node::with_data(Mode::MountOnly, "exported");
    node.visit(&volume);
    group.lv("lvchange", &["-an"], "data");
    run("vgexport", &["-q", "exported"]);
    agreed(&node, &volume, &group, "lvm-silent", "is exported");
    for command in ["status", "status -x", "doctor -q", "check exported"] {
        let (said, _) = node.says(&command.split(' ').collect::<Vec<_>>());
        assert!(said.contains("exported/data"), "{command}: {said}");
    }
    node.mends("groups", "exported", "vgimport exported");
    node.up("pod", &volume);
}
