//! Tests methods of the facts and decisions.

use super::sample::*;
use crate::names::LvId;
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::reason::Reason;
use crate::volume::decide::reason::Refusal;
use crate::volume::decide::uses::Openers;

type Change = fn(&mut Openers);

#[test]
#[rustfmt::skip] // a row is a line
fn whether_a_device_is_free_and_whether_waiting_may_help() {
    // Columns: the openers; whether nobody has the device open; whether waiting may help if a filesystem is recorded;
    // and if none is.
    let cases: [(&str, Change, [bool; 3]); 8] = [
        ("nobody", |_| (), [true, false, false]),
        ("who reads", |o| o.processes = vec![process(false)], [false, false, true]),
        ("who writes", |o| o.processes = vec![process(true)], [false, false, false]),
        ("who is not seen", |o| o.unseen = 1, [false, true, true]),
        ("who writes, and who is not seen", |o| { o.processes = vec![process(true)]; o.unseen = 1; }, [false, false, false]),
        ("a loop device", |o| o.loops = vec!["loop0".into()], [false, false, false]),
        ("a loop device, and who is not seen", |o| { o.loops = vec!["loop0".into()]; o.unseen = 1; }, [false, false, false]),
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
    let name = "record-ext4-u+mark-md-0.90--at-byte-4096";
    assert_eq!(Doubt::names(&doubts), name);
    let long = Doubt::Mark("x".repeat(2000));
    assert_eq!(Doubt::names(&[long]).len(), 900);
}

#[test]
fn a_refusal_says_its_reason_and_whether_something_is_broken() {
    let id = LvId::parse("vg/lv").unwrap();
    let message = Refusal::of(&id, Reason::Swap).to_string();
    assert_eq!(message, format!("{} [swap]", Reason::Swap.message(&id)));
    assert!(Reason::Partial.is_broken() && !Reason::Swap.is_broken());
}
