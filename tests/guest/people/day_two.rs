//! The commands of docs/day-two.md, as they are printed there.

use crate::page::{blocks, named, section};
use crate::prelude::*;

const PAGE: &str = include_str!("../../../docs/day-two.md");
const LOG: &str = "/run/log-of-day-two";

/// A node whose disks have these paths, and not those of the page. Only `/run` can be written.
struct Reader {
    disks: [String; 2],
    path: String,
}

impl Reader {
    /// Runs the commands below this heading, each of which must succeed, and returns what they printed.
    fn does(&self, heading: &str) -> String {
        let lines = blocks(section(PAGE, heading), "sh").concat();
        assert!(!lines.is_empty(), "{heading}");
        let [old, new] = &self.disks;
        let lines = lines.replace("/dev/sdb", old).replace("/dev/sdc", new);
        let lines = lines
            .replace("1G", "32M")
            .replace("/mnt/", "/run/")
            .replace("/var/lib/prometheus/node-exporter", "/run")
            .replace("/var/log/flexvolume-lvm.log", LOG)
            .replace("/var/tmp/", "/run/");
        run("sh", &["-c", &format!("set -e; {}{lines}", self.path)])
    }
}

#[test]
fn each_command_of_the_second_day_works_as_it_is_printed() {
    let node = Node::with_config(Mode::MountOnly, &format!("log = '{LOG}'"));
    let disks = ["old", "new"].map(|disk| Disk::new(&format!("day-two-{disk}"), 256 * MIB));
    let reader = Reader {
        disks: [disks[0].path(), disks[1].path()],
        path: named(&node, "/run/day-two"),
    };
    let group = Group::on("vg0", &[&disks[0].path()]);
    let volume = group.linear("web-data", "64m");
    let dir = node.up("pod", &volume);
    let page = dir.join("page");
    write_synced(&page, "kept");

    let before = filesystem_size(&dir);
    reader.does("Grow a volume");
    assert_eq!(group.size("web-data"), 96 * MIB);
    assert!(filesystem_size(&dir) > before, "{before}");

    reader.does("Back a volume up");
    assert!(!group.has("web-data-now"));
    write_synced(&page, "lost");
    node.down("pod", &volume);
    let said = reader.does("Restore a volume");
    assert!(said.contains("vg0/web-data is ready"), "{said}");
    node.up("pod", &volume);
    assert_eq!(read(&page), "kept");

    reader.does("Replace a disk");
    let disks = sh("pvs --noheadings -o pv_name -S vg_name=vg0");
    assert_eq!(disks.trim(), reader.disks[1]);
    assert_eq!(read(&page), "kept");
    node.down("pod", &volume);
    // As after a reboot, when no group of this node's is active.
    sh("vgchange -qq -an vg0");
    node.up("pod", &volume);
    assert_eq!(reader.does("Reboot a node").trim(), "all is well");
    reader.does("Rotate the log");
    node.down("pod", &volume);
    let log = read(LOG.as_ref());
    assert_eq!(log.lines().count(), 1, "each call opens it anew: {log}");
    reader.does("See in time that something fills up");
    let metrics = read("/run/flexvolume-lvm.prom".as_ref());
    let healthy = r#"volume_healthy{vg="vg0",lv="web-data"} 1"#;
    assert!(metrics.contains(healthy), "{metrics}");

    reader.does("Move a disk to another node");
    node.up("pod", &volume);
    assert_eq!(read(&page), "kept");
    node.down("pod", &volume);
    reader.does("Start over with an empty volume");
    let dir = node.up("pod", &volume);
    assert!(!dir.join("page").exists());
    node.down("pod", &volume);
    reader.does("Retire a volume");
    assert!(!group.has("web-data"));
}
