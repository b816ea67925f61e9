//! Properties that hold in every order of the steps, and orders that break them.

use std::collections::BTreeSet;
use std::sync::Mutex;

use stateright::{Checker, Model, Property};

use super::call::{Actor, At, Does, End};
use super::operator::Word;
use super::world::{AWAY, Content, DATA, Inside, OTHER, State, Volume};
use super::{Action, Meeting, NODES, Order};

const NEVER_FORMATTED: &str = "what a pod ever had is never formatted";
const COMES_UP: &str = "a volume that only the driver changed comes up by repeated calls";
const GOES_ON: &str = "some call can go on, or all were answered";
const ANSWERED: &str = "a repeated call brings it up, or is refused for a reason that has a name";
const ONE_NODE: &str = "a volume is mounted on one node at a time";
const NO_WORD_LEFT: &str = "no permission to format stands when a volume gets mounted";

/// A property that does not hold, and a way to where it does not.
type Found = (&'static str, Vec<Action>);

fn always(name: &'static str, condition: fn(&Meeting, &State) -> bool) -> Property<Meeting> {
    Property::always(name, condition)
}

fn properties(by_driver_alone: bool) -> Vec<Property<Meeting>> {
    let mut all = vec![
        always(NEVER_FORMATTED, |_, state| state.wrong.is_none()),
        always(GOES_ON, goes_on),
        always(ONE_NODE, |_, state| {
            let is_on = |volume: &Volume| NODES.iter().all(|node| volume.is_mounted_on(*node));
            !state.volumes.iter().any(is_on)
        }),
        always(NO_WORD_LEFT, |_, state| {
            let has = |volume: &Volume| volume.record().permission.is_some();
            let is_mounted = |volume: &Volume| !volume.mounts.is_empty();
            !state
                .volumes
                .iter()
                .any(|volume| is_mounted(volume) && has(volume))
        }),
    ];
    all.push(if by_driver_alone {
        always(COMES_UP, comes_up)
    } else {
        always(ANSWERED, |meeting, state| {
            let is_answer = |end| matches!(end, Some(End::Success | End::Refused(_)));
            !Meeting::is_quiet(state) || is_answer(repeated(meeting, state, 0))
        })
    });
    all
}

fn goes_on(meeting: &Meeting, state: &State) -> bool {
    let mut actions = Vec::new();
    meeting.actions(state, &mut actions);
    let is_kill = |action: &Action| matches!(action, Action::Kill(_) | Action::KillDriver(_));
    state.actors.iter().all(|actor| actor.at == At::Done)
        || actions
            .into_iter()
            .filter(|action| !is_kill(action))
            .any(|action| meeting.next_state(state, action).is_some())
}

/// How a call for another pod ends, if nobody else does anything. None: it does not.
fn repeated(meeting: &Meeting, state: &State, node: usize) -> Option<End> {
    let (_, did) = meeting.alone(state, Actor::new(node, &[Does::Mount(3)]))?;
    did.ended.into_iter().next()
}

fn comes_up(meeting: &Meeting, state: &State) -> bool {
    if !Meeting::is_quiet(state) {
        return true;
    }
    let ends = NODES.map(|node| repeated(meeting, state, node));
    let is_elsewhere = |end: &Option<End>| *end == Some(End::Refused("held-elsewhere"));
    let is_up = |end: &Option<End>| *end == Some(End::Success);
    // Where nodes share no group, there is only the first.
    is_up(&ends[0]) || (state.shared && is_elsewhere(&ends[0]) && is_up(&ends[1]))
}

pub fn world(volume: Option<Volume>, actors: Vec<Actor>, kills: u8) -> State {
    State {
        shared: false,
        encrypted: false,
        volumes: volume.into_iter().collect(),
        leftover: Content::Zero,
        made: 1,
        actors,
        orphans: Vec::new(),
        kills,
        wrong: None,
    }
}

fn blank() -> Volume {
    Volume::new(DATA, Content::Zero, true)
}

const OLD: Content = Content::Ext4 {
    uuid: 0,
    used: true,
};

/// Holds what a pod has left, with its record.
fn used() -> Volume {
    Volume::new(DATA, OLD, true).with_tag("flexvolume.fs=ext4:u0")
}

/// The same of an encrypted volume.
fn sealed() -> Volume {
    let inside = Inside::Ext4 {
        uuid: 0,
        used: true,
    };
    let volume = Volume::new(DATA, Content::Luks(8, inside), true);
    let volume = volume.with_tag("flexvolume.fs=ext4:u0");
    volume.with_tag("flexvolume.luks=l8")
}

/// A pod's life, on this node.
fn pod(node: usize, dir: u8) -> Actor {
    Actor::new(node, &[Does::Mount(dir), Does::Unmount(dir)])
}

pub fn meeting(begin: State, order: Order) -> Meeting {
    let people = |actor: &Actor| actor.does.dir().is_none();
    let by_driver_alone = !begin.actors.iter().any(people);
    Meeting {
        begin,
        order,
        properties: properties(by_driver_alone),
        taken: Mutex::default(),
    }
}

/// The properties that do not hold, each with a way to where it does not; and the steps that were taken.
fn check(name: &str, begin: &State, order: Order) -> (Vec<Found>, BTreeSet<&'static str>) {
    let checker = meeting(begin.clone(), order).checker();
    let checker = checker.threads(2).spawn_bfs().join();
    println!("{name}, {order:?}: {} states", checker.unique_state_count());
    let found = checker.discoveries().into_iter();
    let found = found.map(|(name, path)| (name, path.into_actions()));
    let taken = checker.model().taken.lock().unwrap().clone();
    (found.collect(), taken)
}

fn keeps_all(name: &str, begin: &State) -> BTreeSet<&'static str> {
    let (found, taken) = check(name, begin, Order::Driver);
    assert_eq!(found, [], "{name}");
    taken
}

fn breaks(begin: &State, order: Order, property: &str) {
    keeps_all("as it is", begin);
    let (found, _) = check("broken", begin, order);
    assert!(found.iter().any(|(name, _)| *name == property), "{found:?}");
}

fn operators() -> Vec<(&'static str, Vec<Does>)> {
    let lvm = |words: &[Word]| {
        words
            .iter()
            .map(|word| Does::Lvm(*word))
            .collect::<Vec<_>>()
    };
    let and = |words: &[Word], does: Does| [lvm(words), vec![does]].concat();
    let swap = [Word::Rename(DATA, AWAY), Word::Rename(OTHER, DATA)];
    vec![
        ("adopt", vec![Does::Adopt]),
        ("allow-format", vec![Does::AllowFormat]),
        (
            "lvremove, lvcreate",
            lvm(&[Word::Remove, Word::Create(Content::Zero)]),
        ),
        (
            "lvremove, lvcreate where data lies",
            lvm(&[Word::Remove, Word::Create(OLD)]),
        ),
        ("lvrename twice", lvm(&swap)),
        ("lvrename twice, adopt", and(&swap, Does::Adopt)),
        ("merge", lvm(&[Word::Merge])),
        ("vgcfgrestore", lvm(&[Word::Restore])),
        (
            "merge, allow-format",
            and(&[Word::Merge], Does::AllowFormat),
        ),
        ("merge, adopt", and(&[Word::Merge], Does::Adopt)),
    ]
}

/// All that meets: two calls, on one node or two, with kills; and an operator.
fn meetings() -> Vec<(String, State)> {
    let idle = Volume::new(DATA, Content::Zero, false);
    let mut all = Vec::new();
    for (name, volume) in [
        ("blank", Some(blank())),
        ("not active", Some(idle.clone())),
        ("used", Some(used())),
        ("to be made", None),
    ] {
        let begin = world(volume, vec![pod(0, 0), pod(0, 1)], 2);
        all.push((format!("{name}, two calls, two kills"), begin));
    }
    for (name, volume) in [("blank", Some(idle)), ("to be made", None)] {
        let mut begin = world(volume, vec![pod(0, 0), pod(1, 1)], 2);
        begin.shared = true;
        all.push((format!("{name}, two nodes, two kills"), begin));
    }
    for (name, volume) in [("to be encrypted", blank()), ("encrypted", sealed())] {
        let mut begin = world(Some(volume), vec![pod(0, 0), pod(0, 1)], 2);
        begin.encrypted = true;
        all.push((format!("{name}, two calls, two kills"), begin));
    }
    let with_snapshot = |mut volume: Volume, content| {
        volume.snapshot = Some(content);
        volume
    };
    let raw = Volume::new(DATA, Content::Raw, true);
    for (who, does) in operators() {
        for (what, volume) in [
            ("blank", with_snapshot(blank(), OLD)),
            ("used", with_snapshot(used(), Content::Zero)),
            ("raw", with_snapshot(raw.clone(), OLD)),
            ("to be encrypted", with_snapshot(blank(), OLD)),
            ("encrypted", with_snapshot(sealed(), Content::Zero)),
        ] {
            let mut add = |calls: &str, mut actors: Vec<Actor>, kills| {
                actors.push(Actor::new(0, &does));
                let mut begin = world(Some(volume.clone()), actors, kills);
                begin.encrypted = what.contains("encrypted");
                let (uuid, used) = (9, true);
                let other = Volume::new(OTHER, Content::Ext4 { uuid, used }, true);
                begin.volumes.push(other.with_tag("flexvolume.fs=ext4:u9"));
                all.push((format!("{what}, {who}, {calls}"), begin));
            };
            add("a call and a kill", vec![pod(0, 0)], 1);
            // With more words there are too many orders.
            if does.len() < 3 && !what.contains("encrypted") {
                let second = Actor::new(0, &[Does::Mount(1)]);
                add("two calls", vec![pod(0, 0), second], 0);
            }
        }
    }
    all
}

#[test]
fn every_order_of_the_steps_keeps_every_promise_and_takes_every_step() {
    let meetings = meetings();
    let taken = meetings
        .iter()
        .flat_map(|(name, begin)| keeps_all(name, begin));
    let taken: BTreeSet<&str> = taken.collect();
    let all = <At as strum::VariantNames>::VARIANTS.iter().copied();
    let missed: Vec<_> = all.filter(|step| !taken.contains(step)).collect();
    assert!(missed.is_empty(), "never taken: {missed:?}");
}

#[test]
fn without_a_tag_before_mkfs_a_killed_mkfs_leaves_a_stuck_volume() {
    let begin = world(Some(blank()), vec![pod(0, 0)], 1);
    breaks(&begin, Order::RecordAfterMkfs, COMES_UP);
}

#[test]
fn without_a_tag_before_luksformat_a_killed_one_leaves_a_stuck_volume() {
    let mut begin = world(Some(blank()), vec![pod(0, 0)], 1);
    begin.encrypted = true;
    breaks(&begin, Order::RecordAfterMkfs, COMES_UP);
}

#[test]
fn without_the_lock_from_look_to_mkfs_a_volume_gets_stuck() {
    let begin = world(Some(blank()), vec![pod(0, 0), pod(0, 1)], 1);
    breaks(&begin, Order::LockGivenUp, COMES_UP);
}

#[test]
fn without_a_look_after_the_wait_what_a_pod_had_is_formatted() {
    let begin = world(Some(blank()), vec![pod(0, 0), pod(0, 1)], 0);
    breaks(&begin, Order::NoLookAfterWait, NEVER_FORMATTED);
}

#[test]
fn a_permission_taken_off_after_the_mount_outlives_a_kill() {
    let given = "flexvolume.mayformat=data-0:1700000000";
    let begin = world(Some(used().with_tag(given)), vec![pod(0, 0)], 1);
    breaks(&begin, Order::RecordAfterMount, NO_WORD_LEFT);
}

#[test]
fn the_lock_of_a_group_that_is_kept_locks_two_calls_up() {
    let begin = world(None, vec![pod(0, 0), pod(0, 1)], 0);
    breaks(&begin, Order::GroupKept, GOES_ON);
}

#[test]
fn without_the_lock_of_its_group_a_killed_calls_lvcreate_wipes_what_was_made() {
    let begin = world(None, vec![pod(0, 0)], 1);
    breaks(&begin, Order::GroupNotAwaited, NEVER_FORMATTED);
}

#[test]
fn where_lvm_takes_no_locks_two_nodes_mount_one_volume() {
    let volume = Volume::new(DATA, Content::Zero, false);
    let mut begin = world(Some(volume), vec![pod(0, 0), pod(1, 1)], 0);
    begin.shared = true;
    breaks(&begin, Order::NoLeases, ONE_NODE);
}
