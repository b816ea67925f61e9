//! The same calls on a small node and on a large one: what they do is counted, and must not grow.

use std::fmt::Write as _;
use std::fs;

use crate::group::Group;
use crate::node::{Mode, Node, host_name, precreated, text};
use crate::run;
use crate::trace::{Trace, trace};
use crate::volume::Volume;

/// What a call may cost more on the larger node, in percent.
const MOST_GROWTH: u64 = 20;

fn count(node: &Node, args: &[&str]) -> Trace {
    let found = trace(&node.exe(), args);
    assert!(
        found.stdout.contains("\"Success\""),
        "{args:?}: {}",
        found.stdout
    );
    // The last unmount is done by the driver in a process of its own.
    let own = found.programs.iter().all(|program| program == "exe");
    assert!(own, "{args:?}: {:?}", found.programs);
    found
}

/// System calls and bytes read of each call on a volume that is up, by name.
fn costs(node: &Node, volume: &Volume) -> Vec<(String, [u64; 2])> {
    let pod = node.up("pod", volume);
    let global = node.global_dir(volume);
    let (json, device, host) = (volume.json(), volume.device(), host_name());
    let (pod, global) = (text(&pod), text(&global));
    let gone = node.pod_dir("gone", volume);
    let calls: &[&[&str]] = &[
        &["init"],
        &["isattached", &json, &host],
        &["attach", &json, &host],
        &["waitforattach", &device, &json],
        &["mountdevice", global, &device, &json],
        &["mount", pod, &json],
        &["unmount", text(&gone)],
        &["unmount", pod],
        &["unmountdevice", global],
        &["detach", &volume.name, &host],
    ];
    let costs = calls.iter().map(|args| {
        let found = count(node, args);
        let calls = u64::try_from(found.calls).unwrap();
        let name = format!("{} {}", args[0], args.get(1).unwrap_or(&""));
        (name, [calls, found.read])
    });
    costs.collect()
}

fn assert_flat(small: &[(String, [u64; 2])], large: &[(String, [u64; 2])]) {
    for ((name, small), (_, large)) in small.iter().zip(large) {
        println!("{name}: [system calls, bytes read] {small:?}, then {large:?}");
        for (small, large) in small.iter().zip(large) {
            let most = small + small * MOST_GROWTH / 100;
            assert!(*large <= most, "{name}: {small} became {large}");
        }
    }
}

#[test]
fn no_call_on_a_volume_that_is_up_costs_more_beside_many_others() {
    let node = Node::new(Mode::Attach);
    let group = Group::of_size("large", 8 << 30);
    group.linear("data", "32m");
    let volume = Volume::new(&group, "data");
    let small = costs(&node, &volume);

    println!("a group of 1000 volumes, and directories of 200 other pods");
    fill(&group, 999);
    for pod in 0..200 {
        precreated(node.pod_dir(&format!("neighbour{pod}"), &volume));
    }
    assert_flat(&small, &costs(&node, &volume));
}

/// Adds inactive volumes of one extent each: not one by one, but as a backup of LVM's metadata
/// that names them.
fn fill(group: &Group, volumes: usize) {
    // Behind the volume that is there, which has 8 extents.
    const FIRST: usize = 16;
    let file = format!("/run/{}.metadata", group.name);
    run("vgcfgbackup", &["-qq", "-f", &file, &group.name]);
    let text = fs::read_to_string(&file).unwrap();
    let mut more = String::from("logical_volumes {\n");
    for n in 0..volumes {
        let extent = FIRST + n;
        write!(
            more,
            "more{n} {{ id = \"aaaaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aa{n:04}\"\n\
             status = [\"READ\", \"WRITE\", \"VISIBLE\"]\nsegment_count = 1\n\
             segment1 {{ start_extent = 0\nextent_count = 1\ntype = \"striped\"\n\
             stripe_count = 1\nstripes = [ \"pv0\", {extent} ] }} }}\n"
        )
        .unwrap();
    }
    let text = text.replacen("logical_volumes {", &more, 1);
    fs::write(&file, text).unwrap();
    run("vgcfgrestore", &["-qq", "-y", "-f", &file, &group.name]);
}
