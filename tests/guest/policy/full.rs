//! Volume groups and thin pools that are full.

use crate::prelude::*;

fn pool(group: &Group, data: &str, metadata: &str) {
    let make = "lvcreate -qq -y --type thin-pool -Z n -n pool --poolmetadatasize";
    sh(&format!("{make} {metadata} -L {data} {}", group.name));
}

#[test]
fn a_full_group_is_named_and_nothing_is_changed() {
    let group = Group::of_size("packed", 128 * MIB);
    for mode in BOTH_MODES {
        let node = Node::new(mode);
        let volume = group.linear(mode.lv(), "32m");
        write_synced(&node.up("pod", &volume).join("page"), "kept");
        let words = [mode.lv(), "400 MiB", "packed has", "vgextend packed"];
        node.grow("pod", &volume, 400 * MIB).is_failure(&words);
        assert_eq!(group.size(mode.lv()), 32 * MIB);
        assert_eq!(read(&node.pod_dir("pod", &volume).join("page")), "kept");
        node.all_down(&["pod"], &volume);
    }
}

#[test]
fn a_thin_pool_that_is_nearly_full_gets_no_more_writers() {
    const NEARLY: &str = "thin_pool_limit = 12";
    let mut node = Node::with_config(Mode::MountOnly, NEARLY);
    let group = Group::new("nearly");
    // Metadata so large that little of it is in use.
    pool(&group, "100m", "16m");
    let [used, blank] = ["used", "blank"].map(|lv| group.thin(lv, "64m"));
    node.write("pod", &used, &"x".repeat(20 << 20));

    let data = "the data of the thin pool nearly/pool";
    let words = [data, "the limit is 12)", "lvextend"];
    node.refuses_mount(&blank, &words);
    node.refuses_mount(&used, &words);
    // Reading does no harm.
    let reader = used.clone().read_only();
    let page = read(&node.up("reader", &reader).join("page"));
    assert_eq!(page.len(), 20 << 20);
    node.down("reader", &reader);

    // A volume that was mounted before stays mounted, but does not grow.
    node.configure(Mode::MountOnly, "thin_pool_limit = 90");
    let dir = node.up("pod", &used);
    node.configure(Mode::MountOnly, NEARLY);
    let grow = ["expandfs", &used.json(), "", text(&dir), "80000000", "0"];
    node.refuses(&grow, &words);
    node.down("pod", &used);

    let refused = node.refuses_mount(&used, &words);
    for _ in 0..10 {
        sh(refused.command("lvextend --size ").unwrap());
    }
    node.up("pod", &used);
    node.up("pod", &blank);
}

#[test]
fn a_full_thin_pool_into_which_all_its_volumes_fit_keeps_no_pod_away() {
    let policy = "[volume_group.fitting]\ncreate = true\nthin_pool = 'pool'";
    let node = Node::with_config(Mode::MountOnly, &format!("thin_pool_limit = 50\n{policy}"));
    let group = Group::new("fitting");
    pool(&group, "100m", "16m");
    let volume = group.thin("data", "96m");
    let dir = node.up("pod", &volume);
    write_synced(&dir.join("page"), &"x".repeat(70 << 20));
    node.down("pod", &volume);
    node.visit(&volume);
    node.prints(&["check", "fitting/data"], "mount", 0);
    node.prints(&["doctor", "-q"], "", 0);

    // A larger volume, another volume or a snapshot could need more than the pool has, so the driver refuses them.
    let words = ["the data of the thin pool fitting/pool", "could need more"];
    let dir = node.up("pod", &volume);
    let grow = ["expandfs", &volume.json(), "", text(&dir), "110000000", "0"];
    node.refuses(&grow, &words);
    node.down("pod", &volume);
    let other = Volume::new(&group, "other").with("size", "16m");
    node.mount("pod", &other).is_failure(&words);
    assert!(!group.has("other"));
    sh("lvcreate -qq -y -s -n earlier fitting/data");
    node.refuses_mount(&volume, &words);
    node.prints(&["check", "fitting/data"], "pool-full", 1);
    node.prints(&["doctor", "-q"], "lvextend", 1);
    group.lv("lvremove", &[], "earlier");
    node.visit(&volume);
    node.prints(&["doctor", "-q"], "", 0);
}

#[test]
fn a_thin_pool_that_has_run_out_is_not_written_to() {
    // The kernel counts a tenth of the metadata as used from the beginning, up to 16 MiB.
    let mut node = Node::with_config(Mode::MountOnly, "thin_pool_limit = 10");
    let group = Group::new("ranout");
    pool(&group, "16m", "4m");
    group.lv("lvchange", &["--errorwhenfull", "y"], "pool");
    let [filler, data] = ["filler", "data"].map(|lv| group.thin(lv, "64m"));
    let refused = node.refuses_mount(&data, &["the metadata of the thin pool ranout/pool"]);
    for _ in 0..3 {
        sh(refused.command("lvextend --poolmetadatasize ").unwrap());
    }
    node.visit(&data);
    node.configure(Mode::MountOnly, "thin_pool_limit = 100");
    // The pool is smaller than that.
    let fill = "dd if=/dev/urandom bs=1M count=32 oflag=direct status=none";
    bash(&format!("! {fill} of={}", filler.device()));
    node.refuses_mount(&data, &["the thin pool ranout/pool"]);
}

#[test]
fn a_thin_pool_with_damaged_metadata_is_repaired_by_what_the_message_says() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("damaged-pool");
    pool(&group, "100m", "4m");
    let volume = group.thin("data", "64m");
    node.write("pod", &volume, "kept");
    // One block of the metadata is lost, of those without which `lvconvert --repair` still finds all data. The tools
    // read devices.
    let [bad, new] = ["bad", "new"].map(|lv| group.linear(lv, "4m").device());
    bash(&format!(
        "vg=damaged-pool meta=/dev/mapper/damaged--pool-pool_tmeta whole=/run/damaged-pool
        lvchange -an -S pool_lv=pool $vg; lvchange -an $vg/pool; lvchange -ay -y $vg/pool_tmeta
        read -r _ _ _ disk at <<< $(dmsetup table $meta)
        dd if=$meta of=$whole status=none; wanted=$(thin_dump $meta | grep -c mapping); lvchange -an -y $vg/pool_tmeta
        for ((n = 1; n < 64; n++)); do
            dd if=$whole of={bad} conv=fsync status=none
            dd if=/dev/zero of={bad} bs=4096 seek=$n count=1 conv=fsync status=none
            ! thin_check -q {bad} && thin_repair -i {bad} -o {new} && [ $(thin_dump {new} | grep -c mapping) = $wanted ] &&
                break
        done > /dev/null 2> /dev/null
        [ $n -lt 64 ]; dd if={bad} of=/dev/block/$disk bs=512 seek=$at conv=fsync status=none"
    ));
    let words = ["repair of the thin pool damaged-pool/pool"];
    let refused = node.refuses_mount(&volume, &words);
    agreeing(refused.command("lvchange -an").unwrap());
    node.finds(&volume, "kept");
}
