//! What holds whatever the order of the steps, and orders in which it does not.

use stateright::{Checker, Model, Property};

use super::call::{Actor, At, Does, End};
use super::operator::Word;
use super::world::{AWAY, Content, DATA, OTHER, State, Volume};
use super::{Action, Meeting, NODES, Order};

const NEVER_FORMATTED: &str = "what a pod ever had is never formatted";
const COMES_UP: &str = "a volume that only the driver changed comes up by repeated calls";
const GOES_ON: &str = "some call can go on, or all were answered";
const ANSWERED: &str = "a call that is repeated is answered";
const ONE_NODE: &str = "a volume is mounted on one node at a time";
const NO_WORD_LEFT: &str = "no permission to format stands when a volume gets mounted";

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
            let mut nodes = NODES.iter();
            !Meeting::is_quiet(state) || nodes.all(|node| repeated(meeting, state, *node).is_some())
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

/// A pod's life, on this node.
fn pod(node: usize, dir: u8) -> Actor {
    Actor::new(node, &[Does::Mount(dir), Does::Unmount(dir)])
}

fn check(name: &str, begin: State, order: Order) -> Vec<(&'static str, Vec<Action>)> {
    let people = |actor: &Actor| actor.does.dir().is_none();
    let by_driver_alone = !begin.actors.iter().any(people);
    let meeting = Meeting {
        begin,
        order,
        properties: properties(by_driver_alone),
    };
    let checker = meeting.checker().threads(2).spawn_bfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    let found = checker.discoveries().into_iter();
    let mut found: Vec<_> = found
        .map(|(name, path)| (name, path.into_actions()))
        .collect();
    found.sort_by_key(|(name, _)| *name);
    found
}

fn keeps_all(name: &str, begin: &State) {
    assert_eq!(check(name, begin.clone(), Order::Driver), [], "{name}");
}

fn breaks(begin: &State, order: Order, property: &str) {
    assert_eq!(check("as it is", begin.clone(), Order::Driver), []);
    let found = check("broken", begin.clone(), order);
    assert!(found.iter().any(|(name, _)| *name == property), "{found:?}");
}

#[test]
fn two_calls_and_kills() {
    for (name, volume) in [
        ("blank", Some(blank())),
        ("not active", Some(Volume::new(DATA, Content::Zero, false))),
        ("used", Some(used())),
        ("to be created", None),
    ] {
        keeps_all(name, &world(volume, vec![pod(0, 0), pod(0, 1)], 2));
    }
}

#[test]
fn two_nodes_and_kills() {
    for (name, volume) in [
        ("blank", Some(Volume::new(DATA, Content::Zero, false))),
        ("to be created", None),
    ] {
        let begin = world(volume, vec![pod(0, 0), pod(1, 1)], 2);
        keeps_all(
            name,
            &State {
                shared: true,
                ..begin
            },
        );
    }
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
        (
            "merge, allow-format",
            and(&[Word::Merge], Does::AllowFormat),
        ),
        ("merge, adopt", and(&[Word::Merge], Does::Adopt)),
    ]
}

#[test]
fn two_calls_a_kill_and_an_operator() {
    let snapshot = |mut volume: Volume, content| {
        volume.snapshot = Some(content);
        volume
    };
    for (who, does) in operators() {
        for (what, volume) in [
            ("blank", snapshot(blank(), OLD)),
            ("used", snapshot(used(), Content::Zero)),
            ("raw", snapshot(Volume::new(DATA, Content::Raw, true), OLD)),
        ] {
            let operator = || Actor::new(0, &does);
            for (actors, kills) in [
                (
                    vec![pod(0, 0), Actor::new(0, &[Does::Mount(1)]), operator()],
                    0,
                ),
                (vec![pod(0, 0), operator()], 1),
            ] {
                let mut begin = world(Some(volume.clone()), actors, kills);
                let (uuid, used) = (9, true);
                let other = Volume::new(OTHER, Content::Ext4 { uuid, used }, true);
                begin.volumes.push(other.with_tag("flexvolume.fs=ext4:u9"));
                keeps_all(&format!("{what}, {who}, {kills} kills"), &begin);
            }
        }
    }
}

#[test]
fn a_mkfs_that_is_recorded_only_afterwards_is_a_volume_that_no_call_brings_up() {
    let begin = world(Some(blank()), vec![pod(0, 0)], 1);
    breaks(&begin, Order::RecordAfterMkfs, COMES_UP);
}

#[test]
fn a_lock_given_up_between_the_look_and_mkfs_leaves_a_volume_that_no_call_brings_up() {
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
fn the_lock_of_a_name_that_is_kept_locks_two_calls_up() {
    let begin = world(None, vec![pod(0, 0), pod(0, 1)], 0);
    breaks(&begin, Order::NameKept, GOES_ON);
}

#[test]
fn without_the_lock_of_its_name_a_killed_calls_lvcreate_wipes_what_was_made() {
    let begin = world(None, vec![pod(0, 0)], 1);
    breaks(&begin, Order::NameNotAwaited, NEVER_FORMATTED);
}

#[test]
fn where_lvm_takes_no_locks_two_nodes_mount_one_volume() {
    let volume = Volume::new(DATA, Content::Zero, false);
    let mut begin = world(Some(volume), vec![pod(0, 0), pod(1, 1)], 0);
    begin.shared = true;
    breaks(&begin, Order::NoLeases, ONE_NODE);
}
