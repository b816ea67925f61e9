//! Tests methods of the facts and decisions.

use std::path::PathBuf;

use nix::mount::MsFlags;

use super::sample::*;
use crate::fs::Mark;
use crate::names::{Bytes, FsType, LvId};
use crate::volume::decide::advice::not_active;
use crate::volume::decide::decision::{Decision, Level};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{Facts, Ground};
use crate::volume::decide::reason::Reason;
use crate::volume::decide::reason::Refusal;
use crate::volume::decide::uses::Openers;

type Change = fn(&mut Openers);

#[test]
#[rustfmt::skip] // a row is a line
fn whether_a_device_is_free_and_whether_waiting_may_help() {
    // Columns: the openers; whether nobody has the device open; whether waiting may help if a filesystem is recorded;
    // and if none is.
    let cases: [(&str, Change, [bool; 3]); 10] = [
        ("nobody", |_| (), [true, false, false]),
        ("who reads", |o| o.processes = vec![process(false)], [false, false, true]),
        ("who writes", |o| o.processes = vec![process(true)], [false, false, false]),
        ("who is not seen", |o| o.unseen = 1, [false, true, true]),
        ("who writes, and who is not seen", |o| { o.processes = vec![process(true)]; o.unseen = 1; }, [false, false, false]),
        ("a loop device", |o| o.loops = loops(true), [false, false, false]),
        ("a loop device that only reads", |o| o.loops = loops(false), [false, false, false]),
        ("a loop device that only reads, and who is not seen", |o| { o.loops = loops(false); o.unseen = 1; }, [false, true, true]),
        ("a loop device, and who is not seen", |o| { o.loops = loops(true); o.unseen = 1; }, [false, false, false]),
        ("a mount", |o| o.has_filesystem = true, [false, false, false]),
    ];
    for (name, change, want) in cases {
        let mut openers = Openers::default();
        change(&mut openers);
        let is = [openers.is_nobody(), openers.may_end(true), openers.may_end(false)];
        assert_eq!(is, want, "{name}");
    }
}

#[test]
fn the_nodes_pool_comes_before_the_one_that_is_asked_for() {
    let mut wish = wish();
    assert_eq!(wish.thin_pool(), None);
    wish.asked_pool = lv("other");
    assert_eq!(wish.thin_pool(), lv("other").as_ref());
    wish.group.thin_pool = lv("pool");
    assert_eq!(wish.thin_pool(), lv("pool").as_ref());
}

#[test]
fn doubts_have_a_name_that_fits_into_a_tag() {
    let doubts = [held(), Doubt::Mark("md 0.90, at byte 4096".into())];
    let name = "mark-md-0.90--at-byte-4096-4096+record-ext4-u";
    assert_eq!(Doubt::names(&doubts), name);
    let long = Doubt::Mark(Mark::from(&*"x".repeat(2000)));
    assert_eq!(Doubt::names(&[long]).len(), 900);
}

#[test]
fn a_refusal_ends_with_the_word_of_its_reason() {
    let id = LvId::parse("vg/lv").unwrap();
    let message = Refusal::of(&id, Reason::Swap).to_string();
    assert_eq!(message, format!("{} [swap]", Reason::Swap.message(&id)));
}

#[test]
fn each_decision_says_what_the_call_needs_for_it() {
    let restrict = || Decision::Restrict {
        row: row(POD, "ext4", "rw", "rw"),
        flags: MsFlags::MS_NOSUID,
    };
    let (holders, unlocked) = (vec!["dm-9".to_owned()], None);
    let part_of_device = Reason::PartOfDevice { holders, unlocked };
    // Columns: whether the call ends with it, without a lock; whether the volume stays mounted where it is.
    let cases = [
        (Decision::Ready, true, true),
        (Decision::Refuse(Reason::Swap), true, false),
        // Perhaps cryptsetup's own device, which is gone under the lock.
        (Decision::Refuse(part_of_device), false, false),
        (restrict(), false, true),
        (Decision::Look(Level::Content), false, false),
        (Decision::Extend(Bytes::new(9)), false, false),
        (Decision::Activate, false, false),
        (make(FsType::Ext4), false, false),
    ];
    for (decision, needs_no_lock, keeps_mount) in cases {
        let is = (decision.needs_no_lock(), decision.keeps_mount());
        assert_eq!(is, (needs_no_lock, keeps_mount), "{decision:?}");
    }
    let (extend, refuse) = (
        Decision::Extend(Bytes::new(9)),
        Decision::Refuse(Reason::Swap),
    );
    assert_eq!(extend.extends_to(), Some(Bytes::new(9)));
    assert_eq!((extend.refusal(), refuse.extends_to()), (None, None));
    assert_eq!(refuse.refusal(), Some(&Reason::Swap));
}

#[test]
fn a_volume_that_is_not_active_is_named_with_what_activates_it() {
    let id = LvId::parse("vg/lv").unwrap();
    let words = "vg/lv is not active: run `lvchange -ay vg/lv`";
    assert_eq!(not_active(&id), words);
}

#[test]
fn of_an_open_volume_the_device_inside_is_on_top() {
    let mut facts = blank();
    assert_eq!(facts.top(), facts.device.as_ref());
    assert_eq!(facts.top_content(), facts.content.as_ref());
    encrypted_and_open(&mut facts);
    let minor = facts.top().map(|device| device.number.minor);
    assert_eq!(minor, Some(2));
    let inside = facts.decrypted.as_ref().map(|inside| &inside.content);
    assert_eq!(facts.top_content(), inside);
}

#[test]
fn a_volume_is_created_on_no_disk_that_is_too_small() {
    let mut facts = blank();
    assert_eq!(facts.disks_to_create_on(), Vec::<PathBuf>::new());
    facts.room = Some(free(9));
    assert_eq!(facts.disks_to_create_on(), Vec::<PathBuf>::new());
    facts.room = Some(free_beside_short(9));
    assert_eq!(facts.disks_to_create_on(), [PathBuf::from("/dev/sda")]);
}

#[test]
fn a_volume_grows_onto_no_disk_that_is_too_small_or_has_larger_sectors() {
    let mut facts = blank();
    facts.ground = Some(Ground::default());
    let disks = |facts: &Facts| {
        let fitting = facts.ground.as_ref().unwrap().fitting();
        fitting.map(|fitting| (fitting.disks, fitting.free, fitting.of_group))
    };
    let only_a = |free, of_group| Some((vec!["/dev/sda".into()], free, of_group));
    assert_eq!(disks(&facts), None);
    fitting(&mut facts, GIB);
    assert_eq!(disks(&facts), only_a(Bytes::new(GIB), ROOM));
    facts.ground.as_mut().unwrap().sector = Bytes::new(4096);
    assert_eq!(disks(&facts), None);
    beside_short(&mut facts, GIB);
    assert_eq!(disks(&facts), only_a(Bytes::new(GIB), Bytes::new(GIB)));
}
