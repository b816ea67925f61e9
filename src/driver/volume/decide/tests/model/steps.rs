//! Writes the list of the steps. `tests/guest/calls/steps.rs` compares the driver with it in a guest.

use std::slice;

use super::Order;
use super::call::{Actor, Does};
use super::properties::{meeting, world};
use super::world::{Content, DATA, State, Volume};
use crate::volume::decide::tests::sample::NOW;

const LIST: &str = include_str!("steps.txt");

/// A case's name, the change of the volume before it, and the call.
type Scene = (&'static str, fn(&mut State), Does);

/// One life of an encrypted volume.
const ENCRYPTED: [Scene; 4] = [
    (
        "mount of a blank volume that is to be encrypted",
        |_| (),
        Does::Mount(0),
    ),
    (
        "mount of an encrypted volume for another pod",
        |_| (),
        Does::Mount(1),
    ),
    (
        "the last unmount of an encrypted volume",
        |state| state.volumes[0].mounts.retain(|at| *at == (0, 1)),
        Does::Unmount(1),
    ),
    ("mount of an encrypted volume", |_| (), Does::Mount(0)),
];

/// One life of a volume.
const LIFE: [Scene; 12] = [
    ("mount of a blank volume", |_| (), Does::Mount(0)),
    ("mount for another pod", |_| (), Does::Mount(1)),
    ("unmount", |_| (), Does::Unmount(0)),
    ("the last unmount", |_| (), Does::Unmount(1)),
    (
        "mount of a volume with a filesystem",
        |_| (),
        Does::Mount(0),
    ),
    ("adopt of another filesystem", another, Does::Adopt),
    ("mount of what was adopted", |_| (), Does::Mount(0)),
    ("allow-format of what was wiped", wiped, Does::AllowFormat),
    ("mount of what may be formatted", |_| (), Does::Mount(0)),
    ("allow-format of raw data", raw, Does::AllowFormat),
    ("mount where mkfs was cut short", cut_short, Does::Mount(0)),
    (
        "mount of a volume that is to be made",
        removed,
        Does::Mount(0),
    ),
];

fn unmounted(state: &mut State) -> &mut Volume {
    let volume = state.volumes.last_mut().unwrap();
    volume.mounts.clear();
    volume
}

fn another(state: &mut State) {
    let (uuid, used) = (9, true);
    unmounted(state).content = Content::Ext4 { uuid, used };
}

fn wiped(state: &mut State) {
    unmounted(state).content = Content::Zero;
}

fn raw(state: &mut State) {
    let volume = unmounted(state);
    volume.content = Content::Raw;
    volume.tags.clear();
}

fn cut_short(state: &mut State) {
    let volume = unmounted(state);
    volume.content = Content::Zero;
    volume.tags = ["flexvolume.making=ext4".to_owned()].into();
}

fn removed(state: &mut State) {
    unmounted(state).name = None;
}

#[test]
fn the_steps_run_what_is_listed() {
    let blank = Volume::new(DATA, Content::Zero, true);
    let meeting = meeting(world(Some(blank), Vec::new(), 0), Order::Driver);
    let mut list = String::new();
    for (encrypted, life) in [(false, &LIFE[..]), (true, &ENCRYPTED)] {
        let mut state = State {
            encrypted,
            ..meeting.begin.clone()
        };
        for (title, before, does) in life {
            before(&mut state);
            let actor = Actor::new(0, slice::from_ref(does));
            let (after, did) = meeting.alone(&state, actor).unwrap();
            state = after;
            let lines = did.ran.iter().map(|line| format!("  {line}\n"));
            list.push_str(title);
            list.push('\n');
            list.extend(lines);
            list.push('\n');
        }
    }
    // Which UUID it is, and when a word was given, is chance in a guest.
    for n in 1..=9 {
        list = list.replace(&format!("u{n}"), "UUID");
        list = list.replace(&format!(":l{n}"), ":LUKS");
        list = list.replace(&format!("=l{n}"), "=LUKS");
    }
    list = list.replace(&NOW.to_string(), "TIME");
    if std::env::var_os("FLEXVOLUME_LVM_WRITE").is_some() {
        std::fs::write("volume/decide/tests/model/steps.txt", &list).unwrap();
        return;
    }
    assert_eq!(
        list, LIST,
        "`FLEXVOLUME_LVM_WRITE=1 cargo test --lib model::steps` corrects steps.txt"
    );
}
