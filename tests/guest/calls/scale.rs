//! The same calls on a small node and on a large one. Their system calls and the bytes that they read are counted, and
//! must not grow.

use std::fmt::Write as _;
use std::fs;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::prelude::*;

/// How much more a call may cost on the larger node, in percent.
const MOST_GROWTH: u64 = 20;

fn count(node: &Node, args: &[&str]) -> Trace {
    let found = trace(&node.exe(), args);
    let is_success = found.stdout.contains("\"Success\"");
    assert!(is_success, "{args:?}: {}", found.stdout);
    // An unmount is done by the driver in a process of its own.
    let own = found.programs.iter().all(|program| program == "exe");
    assert!(own, "{args:?}: {:?}", found.programs);
    found
}

/// The name of a call, and its system calls and bytes read.
type Cost = (String, [u64; 2]);

/// The cost of each call on a volume that is up.
fn costs(node: &Node, volume: &Volume) -> Vec<Cost> {
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

/// Which filesystem is mounted, and whether this was its last mount, is written only in the table of
/// all mounts.
const READ_THE_TABLE: [&str; 4] = ["mount", "mountdevice", "unmount", "unmountdevice"];

/// The kernel gives at most a page of the table at once, of whole lines. Half a page is a bound for each read.
const LEAST_READ: u64 = 2 * KIB;

#[test]
fn no_call_on_a_volume_that_is_up_costs_more_beside_many_others() {
    let node = Node::new(Mode::Attach);
    let group = Group::of_size("large", 8 << 30);
    let volume = group.linear("data", "32m");
    let small = costs(&node, &volume);

    fill(&group, 999);
    for pod in 0..200 {
        precreated(node.pod_dir(&format!("neighbour{pod}"), &volume));
    }
    let before = table_size();
    let mounts = Mounts::make(5000);
    let table = table_size() - before;
    println!("beside 1000 volumes, 200 other pods and 5000 mounts, whose table has {table} bytes");
    let large = costs(&node, &volume);
    drop(mounts);
    for ((name, small), (_, large)) in small.iter().zip(&large) {
        println!("{name}: [system calls, bytes read] {small:?}, then {large:?}");
        let call = name.split(' ').next().unwrap();
        let reads_it = READ_THE_TABLE.contains(&call) && !name.contains("/gone/");
        // Who reads the table reads it once.
        let table = if reads_it { table } else { 0 };
        let least = [small[0] + table / LEAST_READ, small[1] + table];
        let is_flat = |n: usize| large[n] <= least[n] + least[n] * MOST_GROWTH / 100;
        assert!(
            is_flat(0) && is_flat(1),
            "{name}: {small:?} became {large:?}"
        );
    }
}

/// In bytes.
fn table_size() -> u64 {
    let table = fs::read("/proc/self/mountinfo").unwrap();
    u64::try_from(table.len()).unwrap()
}

/// Mounts that are none of the driver's.
struct Mounts;

impl Mounts {
    const TOP: &str = "/run/mounts";

    fn make(number: usize) -> Self {
        let nothing = None::<&str>;
        fs::create_dir(Self::TOP).unwrap();
        mount(nothing, Self::TOP, Some("tmpfs"), MsFlags::empty(), nothing).unwrap();
        for n in 0..number {
            let dir = format!("{}/{n}", Self::TOP);
            fs::create_dir(&dir).unwrap();
            mount(Some(&*dir), &*dir, nothing, MsFlags::MS_BIND, nothing).unwrap();
        }
        Self
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        // All that is below goes with it.
        let _ = umount2(Self::TOP, MntFlags::MNT_DETACH);
        let _ = fs::remove_dir(Self::TOP);
    }
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

/// How many volumes more.
const MORE: usize = 24;

#[test]
fn a_command_for_people_asks_once_for_all_volumes() {
    /// Its own system calls for each volume more: 108 to 128 were seen, since what a process that reads devices answers
    /// comes in as many pieces as there is time for. A mounted ext has a kernel thread, whose name `metrics` reads when
    /// it looks for kubelets.
    const EACH: usize = 170;
    // And the programs that it starts, in any order. Only pvs tells of copies of disks.
    let commands: [(&[&str], &[&str]); 3] = [
        (&["status"], &["exe", "lvs", "pvs", "vgs", "vgs"]),
        (&["status", "-x"], &["exe", "lvs", "pvs", "vgs", "vgs"]),
        (
            &["metrics"],
            &["exe", "journalctl", "lvs", "pvs", "vgs", "vgs"],
        ),
    ];
    let node = Node::new(Mode::MountOnly);
    let group = Group::of_size("many", 2 << 30);
    let asked = |args| trace(&node.exe(), args);
    // Half of them are not mounted, and are read.
    let add = |n: usize| {
        let (lv, pod) = (format!("lv{n}"), format!("pod{n}"));
        let volume = group.linear(&lv, "16m");
        node.up(&pod, &volume);
        if n % 2 == 1 {
            node.down(&pod, &volume);
        }
    };
    (0..2).for_each(add);
    let small = commands.map(|(args, ..)| asked(args).calls);
    (2..2 + MORE).for_each(add);
    for ((args, programs), small) in commands.into_iter().zip(small) {
        let mut large = asked(args);
        large.programs.sort();
        let calls = large.calls;
        println!(
            "{args:?}: {small} system calls, then {calls}; {:?}",
            large.programs
        );
        assert_eq!(large.programs, programs, "{args:?}");
        assert!(calls <= small + MORE * EACH, "{args:?}: {small}, {calls}");
    }
    let read = group.linear("read", "16m");
    node.write("writer", &read, "kept");
    node.up("reader", &read.read_only());
    // A volume that pods only read is well.
    node.is_well("next-mount");
    let (metrics, _) = node.says(&["metrics"]);
    let is_refused =
        |line: &str| line.contains("_mount_refused{vg=\"many\"") && line.ends_with(" 1");
    assert!(!metrics.lines().any(is_refused), "{metrics}");
    let (all, _) = node.says(&["status", "--json"]);
    assert_eq!(all.matches("\"next_mount\"").count(), 2 + MORE + 1, "{all}");
}
