//! The node keeps its reserve free in a group, even if calls take space at the same time, in whole
//! extents or in copies.

use std::thread::scope;

use crate::prelude::*;

fn keeping(group: &Group, reserve: u64, more: &str) -> String {
    let name = &group.name;
    format!("[volume_group.{name}]\ncreate = true\nreserve = '{reserve}b'\n{more}\n")
}

/// Six volumes of a group, v0 to v5.
fn six(group: &Group) -> Vec<Volume> {
    let volume = |n| Volume::new(group, &format!("v{n}")).with("size", "400m");
    (0..6).map(volume).collect()
}

/// How many of these calls, made at once, succeed. The others name the reserve.
fn together(volumes: &[Volume], call: impl Fn(&Volume) -> Reply + Sync) -> usize {
    let call = &call;
    let replies: Vec<Reply> = scope(|scope| {
        let begun = volumes
            .iter()
            .map(|volume| scope.spawn(move || call(volume)));
        let begun: Vec<_> = begun.collect();
        begun.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let (done, refused): (Vec<_>, Vec<_>) = replies
        .into_iter()
        .partition(|reply| reply.status == "Success");
    for reply in refused {
        reply.is_failure(&["the node's config keeps 1 GiB"]);
    }
    done.len()
}

#[test]
fn volumes_that_are_made_at_once_leave_the_reserve() {
    let group = Group::new("crowded");
    let node = Node::with_config(Mode::Attach, &keeping(&group, 1 << 30, ""));
    let host = host_name();
    let made = together(&six(&group), |volume| {
        node.call(&["attach", &volume.json(), &host])
    });
    assert_eq!(made, 2, "{} MiB are free", group.free() / MIB);
    assert_eq!(group.free(), 2044 * MIB - 2 * 400 * MIB);
}

#[test]
fn volumes_that_grow_at_once_leave_the_reserve() {
    let group = Group::new("growing");
    let volumes = six(&group);
    for n in 0..6 {
        group.linear(&format!("v{n}"), "4m");
    }
    let node = Node::with_config(Mode::MountOnly, &keeping(&group, 1 << 30, ""));
    let grown = together(&volumes, |volume| node.grow("pod", volume, 400 * MIB));
    assert_eq!(grown, 2, "{} MiB are free", group.free() / MIB);
    assert_eq!(group.free(), (2044 - 2 * 400 - 4 * 4) * MIB);
}

#[test]
fn space_that_a_killed_call_began_to_take_counts() {
    let host = host_name();
    for tool in ["lvcreate", "lvextend"] {
        let group = Group::new(&format!("begun-{tool}"));
        let volumes = six(&group);
        if tool == "lvextend" {
            group.linear("v0", "4m");
            group.linear("v1", "4m");
        }
        let tools = Tools::new().held(tool);
        let limit = "[limits]\nlock = 2\n";
        let lines = tools.config() + limit + &keeping(&group, 1 << 30, "");
        let node = Node::with_config(Mode::Attach, &lines);
        let size = (800 * MIB).to_string();
        let words = [0, 1].map(|n: usize| {
            let one = volumes[n].clone().with("size", "800m");
            (one.json(), precreated(node.pod_dir("pod", &one)))
        });
        let [first, second] = words.each_ref().map(|(json, dir)| match tool {
            "lvcreate" => vec!["attach", json, &host],
            _ => vec!["expandvolume", json, text(dir), &size, "0"],
        });

        let running = node.start(&first);
        let pid = tools.wait_for(tool);
        running.kill();
        let lock = format!("group-{}.lock is held by", group.name);
        node.refuses(&second, &[&lock, &pid]);
        tools.let_go();
        // An lvextend that nobody listens to may end before it has done anything.
        eventually("its end", || !runs(&pid));
        let _ = node.call(&second);
        let free = group.free() / MIB;
        assert!((1024..2048).contains(&free), "{free} MiB are free");
    }
}

#[test]
fn copies_parity_and_stripes_count_towards_the_reserve() {
    let host = host_name();
    for (kind, options) in [
        ("linear", ""),
        ("striped", "'--stripes', '3'"),
        ("raid1", "'--type', 'raid1', '--mirrors', '1'"),
        ("three", "'-m2'"),
        ("raid5", "'--type=raid5', '--stripes', '3'"),
        ("raid10", "'--type', 'raid10'"),
    ] {
        let name = format!("spread-{kind}");
        let (_disks, group) = Disk::several(&name, 4, 512 * MIB);
        let lines = |reserve| keeping(&group, reserve, &format!("lvcreate_options = [{options}]"));
        let mut node = Node::with_config(Mode::Attach, &lines(0));
        let volume = Volume::new(&group, "data").with("size", "97m");
        let attach = ["attach", &volume.json(), &host];
        let all = group.free();
        node.does(&attach);
        let taken = all - group.free();
        group.lv("lvremove", &[], "data");
        // As LVM counts, to the byte.
        node.configure(Mode::Attach, &lines(all - taken + 1));
        node.refuses(&attach, &["the node's config keeps"]);
        node.configure(Mode::Attach, &lines(all - taken));
        node.does(&attach);
        assert_eq!(group.free(), all - taken, "{kind}");

        let (json, larger) = (volume.json(), (199 * MIB).to_string());
        let dir = precreated(node.global_dir(&volume));
        let grow = ["expandvolume", &json, text(&dir), &larger, "0"];
        let before = group.size("data");
        node.configure(Mode::Attach, &lines(0));
        let free = group.free();
        node.does(&grow);
        let more = free - group.free();
        assert!(group.size("data") >= 199 * MIB);
        node.configure(Mode::Attach, &lines(0));
        group.lv("lvreduce", &["-L", &format!("{before}b")], "data");
        assert_eq!(group.free(), free);
        node.configure(Mode::Attach, &lines(free - more + 1));
        node.refuses(&grow, &["the node's config keeps"]);
        node.configure(Mode::Attach, &lines(free - more));
        node.does(&grow);
        assert_eq!(group.free(), free - more, "{kind}");
    }
}

#[test]
fn whole_extents_count_towards_the_largest_size_and_the_reserve() {
    let group = Group::new("rounded");
    let host = host_name();
    let all = group.free();
    let mut node = Node::with_config(Mode::Attach, &keeping(&group, 0, "max_size = '30m'"));
    let volume = Volume::new(&group, "data").with("size", "30m");
    let attach = ["attach", &volume.json(), &host];
    let words = ["needs 32 MiB in whole extents", "at most 30 MiB"];
    node.refuses(&attach, &words);
    node.configure(Mode::Attach, &keeping(&group, all - 32 * MIB + 1, ""));
    node.refuses(&attach, &["the node's config keeps"]);
    node.configure(Mode::Attach, &keeping(&group, all - 32 * MIB, ""));
    node.does(&attach);
    assert_eq!(group.size("data"), 32 * MIB);
    node.configure(Mode::Attach, &keeping(&group, 0, "max_size = '34m'"));
    node.grow("pod", &volume, 33 * MIB)
        .is_failure(&["needs 36 MiB in whole extents"]);
    assert_eq!(group.size("data"), 32 * MIB);
}
