//! Volume groups and thin pools that are full.

use crate::prelude::*;

const MIB: u64 = 1 << 20;

fn pool(group: &Group, data: &str, metadata: &str) {
    let sizes = ["-L", data, "--poolmetadatasize", metadata, &group.name];
    let make = ["-qq", "-y", "--type", "thin-pool", "-Z", "n", "-n", "pool"];
    run("lvcreate", &[&make[..], &sizes].concat());
}

/// The command that a message gives is one that LVM takes as it is printed.
fn run_what_it_says(reply: &Reply, command: &str) {
    let (_, rest) = reply.message.split_once("Extend the pool (`").unwrap();
    let (line, _) = rest.split_once('`').unwrap();
    assert!(line.starts_with(command), "{line}");
    sh(line);
}

#[test]
fn a_full_volume_group_is_said_and_nothing_is_changed() {
    let group = Group::of_size("packed", 128 * MIB);
    for mode in BOTH_MODES {
        let lines = "[volume_group.packed]\ncreate = true\n";
        let node = Node::with_config(mode, lines);
        let volume = group.linear(mode.lv(), "32m");
        write_synced(&node.up("pod", &volume).join("page"), "kept");
        let words = [mode.lv(), "400 MiB", "packed has", "vgextend packed"];
        node.grow("pod", &volume, 400 * MIB).is_failure(&words);
        assert_eq!(group.size(mode.lv()), 32 * MIB);

        let another = Volume::of("packed", "another").with("size", "100m");
        let words = ["packed/another needs 100 MiB", "vgextend packed"];
        node.mount_fails(&another, &words);
        assert_eq!(read(&node.pod_dir("pod", &volume).join("page")), "kept");
        node.down("pod", &volume);
        node.down_globally(&volume);
    }
}

#[test]
fn a_thin_pool_that_is_nearly_full_gets_no_more_writers() {
    const NEARLY: &str = "thin_pool_limit = 12";
    let mut node = Node::with_config(Mode::MountOnly, NEARLY);
    let group = Group::new("nearly");
    // Metadata so large that little of it is in use.
    pool(&group, "100m", "16m");
    group.thin("used", "64m");
    group.thin("blank", "64m");
    let used = Volume::new(&group, "used");
    let blank = Volume::new(&group, "blank");
    let dir = node.up("pod", &used);
    write_synced(&dir.join("page"), &"x".repeat(20 << 20));
    node.down("pod", &used);

    let data = "the data of the thin pool nearly/pool";
    let words = [data, "the limit is 12)", "lvextend"];
    writes_nothing(&node, &blank, "mkfs", &words);
    assert_eq!(group.tags("blank"), "");
    writes_nothing(&node, &used, "mount", &words);
    // Reading does no harm.
    let reader = used.clone().read_only();
    let page = read(&node.up("reader", &reader).join("page"));
    assert_eq!(page.len(), 20 << 20);
    node.down("reader", &reader);

    // One that was mounted before goes on, but does not grow.
    node.configure(Mode::MountOnly, "thin_pool_limit = 90");
    let dir = node.up("pod", &used);
    node.configure(Mode::MountOnly, NEARLY);
    let grow = ["expandfs", &used.json(), "", text(&dir), "80000000", "0"];
    node.fails(&grow, &words);
    node.down("pod", &used);

    let refused = node.mount_fails(&used, &words);
    for _ in 0..6 {
        run_what_it_says(&refused, "lvextend --size ");
    }
    node.up("pod", &used);
    node.up("pod", &blank);
}

#[test]
fn a_thin_pool_with_nearly_full_metadata_gets_no_more_writers() {
    let node = Node::with_config(Mode::MountOnly, "thin_pool_limit = 5");
    let group = Group::new("metadata");
    // Of the least metadata that there can be, a tenth is in use from the beginning.
    pool(&group, "100m", "2m");
    group.thin("data", "64m");
    let metadata = "the metadata of the thin pool metadata/pool";
    let words = [metadata, "--poolmetadatasize"];
    let data = Volume::new(&group, "data");
    writes_nothing(&node, &data, "metadata", &words);
    let refused = node.mount_fails(&data, &words);
    run_what_it_says(&refused, "lvextend --poolmetadatasize ");
}

#[test]
fn a_thin_pool_that_has_run_out_is_not_written_to() {
    let node = Node::with_config(Mode::MountOnly, "thin_pool_limit = 100");
    let group = Group::new("ranout");
    pool(&group, "16m", "4m");
    group.lv("lvchange", &["--errorwhenfull", "y"], "pool");
    let [filler, data] = ["filler", "data"].map(|lv| group.thin(lv, "64m"));
    let to = format!("of={}", filler.device());
    let flags = ["bs=1M", "count=32", "oflag=direct", "status=none"];
    let mut dd = assert_cmd::Command::new("dd");
    dd.args(["if=/dev/urandom", &to]).args(flags);
    // The pool is smaller than that.
    dd.assert().failure();
    writes_nothing(&node, &data, "full", &["the thin pool ranout/pool"]);
}

#[test]
fn a_thin_pool_that_broke_gets_no_writers() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("sick");
    group.pool();
    let volume = group.thin("data", "64m");
    // As the kernel does it when it cannot write the pool's metadata any more.
    let table = run("dmsetup", &["table", "sick-pool-tpool"]);
    let words: Vec<_> = table.split(' ').take(7).collect();
    let table = format!("{} 2 skip_block_zeroing read_only", words.join(" "));
    run("dmsetup", &["load", "sick-pool-tpool", "--table", &table]);
    run("dmsetup", &["suspend", "--noflush", "sick-pool-tpool"]);
    run("dmsetup", &["resume", "sick-pool-tpool"]);
    let words = ["the thin pool sick/pool is not well (metadata_read_only)"];
    writes_nothing(&node, &volume, "read-only", &words);
    assert_eq!(group.tags("data"), "");
    run("lvchange", &["-qq", "--refresh", "sick/pool"]);
    node.up("pod", &volume);
}
