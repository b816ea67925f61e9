//! One fault of the host, of its config or of a volume at a time, and the check of `doctor` that
//! finds it.

use crate::marks::put;
use crate::prelude::*;

fn node(lines: &str) -> Node {
    Node::with_config(Mode::MountOnly, lines)
}

#[test]
fn what_is_wrong_with_the_host_is_named() {
    for check in [
        "config",
        "device-mapper",
        "disks",
        "locks",
        "log",
        "lvm",
        "tools",
        "udev",
    ] {
        Node::new(Mode::MountOnly).is_well(check);
    }
    node("[volume_group.nosuch]").is_ill("config", "", "");
    node("log = '/nonexistent/log'").is_ill("log", "", "");
    let nothing = node("tool_dirs = ['/nonexistent']");
    nothing.is_ill("tools", "", "");
    nothing.is_ill("device-mapper", "", "modprobe dm_mod");
    for (tool, check) in [("lvs", "lvm"), ("pvs", "disks")] {
        let tools = Tools::new().put(tool, "echo broken >&2; exit 5");
        node(&tools.config()).is_ill(check, "", "");
    }
    {
        sh("mv /run/udev/control /run/udev/away");
        let _back = Finally("mv /run/udev/away /run/udev/control".to_owned());
        node("").is_ill("udev", "", "systemctl start systemd-udevd");
    }
    {
        sh("mkdir -p /run/flexvolume-lvm");
        sh("chmod 777 /run/flexvolume-lvm");
        let _back = Finally("chmod 700 /run/flexvolume-lvm".to_owned());
        node("").is_ill("locks", "", "");
    }
}

#[test]
fn who_is_not_root_is_told_so_in_one_line() {
    let exe = node("").exe();
    let nobody = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        text(&exe),
    ];
    for args in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["status"],
        &["check"],
    ] {
        let mut command = assert_cmd::Command::new("setpriv");
        let refused = command.args(nobody).args(args).assert().code(2).stdout("");
        refused.stderr("not root: LVM answers root only; use sudo\n");
    }
}

#[test]
fn what_is_wrong_with_a_volume_is_named() {
    let (group, volume) = Group::with_data("ailing");
    group.pool();
    let thin = group.thin("thin", "1g");
    let node = node("thin_pool_limit = 25");
    for check in [
        "device-node",
        "may-be-formatted",
        "mkfs-unfinished",
        "next-mount",
        "pool-full",
    ] {
        node.is_well(check);
    }
    sh(&format!("rm {}", volume.device()));
    let help = node.is_ill("device-node", "ailing/data", "vgmknodes ailing");
    // LVM 2.03.16 makes the node, and fails without a word.
    run("sh", &["-c", &format!("{help} || true")]);
    node.is_well("device-node");
    group.lv("lvchange", &["--addtag", "flexvolume.making=ext4"], "data");
    sh(&node.is_ill("mkfs-unfinished", "ailing/data", "check ailing/data"));
    group.lv("lvchange", &["--deltag", "flexvolume.making=ext4"], "data");
    put(&volume.device(), 0, b"raw");
    node.prints(&["allow-format", "--yes", "ailing/data"], "", 0);
    sh(&node.is_ill("may-be-formatted", "ailing/data", "check ailing/data"));
    group.lv("lvchange", &["--addtag", "flexvolume.fs=ext4:gone"], "data");
    node.is_ill("next-mount", "ailing/data", "");
    let fill = "dd if=/dev/urandom bs=1M count=160 oflag=direct status=none of=";
    sh(&format!("{fill}{}", thin.device()));
    let help = node.is_ill(
        "pool-full",
        "ailing/pool",
        "lvextend --size +120M ailing/pool",
    );
    let (said, _) = node.says(&["doctor"]);
    assert_eq!(said.matches("percent full").count(), 1, "{said}");
    sh(&help);
    node.is_well("pool-full");
    sh(&format!("{fill}{}", thin.device()).replace("160", "190"));
    sh("lvcreate -qq -y -n rest -l 100%FREE ailing");
    node.is_ill(
        "pool-full",
        "ailing/pool",
        "vgextend ailing DISK, then: lvextend",
    );
}

#[test]
fn a_volume_on_a_disk_that_is_gone_is_named() {
    let disks = ["gone-a", "gone-b"].map(|name| Disk::new(name, 64 << 20));
    let [kept, lost] = disks.each_ref().map(Disk::path);
    let group = Group::on("losing", &[&kept, &lost]);
    sh(&format!("lvcreate -qq -y -n data -L 16m losing {lost}"));
    let node = node("");
    node.is_well("volume-health");
    group.lv("lvchange", &["-an"], "data");
    disks[1].fail_wholly();
    node.is_ill("volume-health", "losing/data", "lvs -a -o +devices");
    disks[1].heal();
}

#[test]
fn a_group_on_a_disk_that_hosts_share_is_named() {
    let disk = Disk::new("pathed", 64 << 20);
    sh("dmsetup rename pathed --setuuid mpath-pathed");
    let node = node("");
    let _group = Group::on("pathed-vg", &[&disk.path()]);
    node.is_ill(
        "shared-disks",
        "pathed-vg",
        "vgchange --systemid ID pathed-vg",
    );
}

#[test]
fn volumes_for_which_there_is_no_time_are_named() {
    let group = Group::new("hurried");
    let tools = Tools::new().put("blkid", "sleep 11; exec $REAL \"$@\"");
    for lv in ["one", "two"] {
        node("").write("pod", &group.linear(lv, "32m"), "page");
    }
    node(&tools.config()).is_ill("volumes", "", "");
}
