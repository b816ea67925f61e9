//! Decisions by LVM's answer from before this call activated the volume, one in each row.

use super::sample::*;
use super::table::check;
use crate::lvm::LeaseState;
use crate::names::{Bytes, FsType, LvUuid};
use crate::volume::decide::decision::{Decision, Level, When};
use crate::volume::decide::facts::{Content, Facts};
use crate::volume::decide::uses::Openers;

use Decision::Look;
use FsType::{Ext4, Xfs};

/// The volume holds its recorded filesystem, nobody has it open, and LVM was asked before this call activated it.
fn before_activation(facts: &mut Facts) {
    holds(facts, FsType::Ext4, |_| ());
    tags(facts, "flexvolume.fs=ext4:u");
    facts.openers = Some(Openers::default());
    facts.lvm_before_activation = true;
}

#[test]
#[rustfmt::skip] // a row is a line
fn what_lvm_said_before_the_activation_is_enough_for_the_recorded_filesystem_alone() {
    let recorded = mount(Ext4, |m| m.record = When::Not);
    check(&[
        ("first who has it open", |f, _| { before_activation(f); f.openers = None; }, Look(Level::Openers)),
        ("then the device", |f, _| { before_activation(f); f.content = None; }, Look(Level::Content)),
        ("the recorded one", |f, _| before_activation(f), recorded),
        ("to be read", |f, w| { before_activation(f); w.read_only = true; }, mount(Ext4, |m| { m.record = When::Not; m.check = false; })),
        ("that is to be grown", |f, _| { before_activation(f); holds(f, Ext4, |s| s.device = Bytes::new(2 * GIB)); }, mount(Ext4, |m| { m.record = When::Not; m.grow = When::After; })),
        ("in stripes", |f, _| { before_activation(f); volume(f).layout = "striped".into(); }, mount(Ext4, |m| m.record = When::Not)),
    ]);
    check(&[
        ("blank", |f, _| { before_activation(f); f.content = blank().content; }, Look(Level::Lvm)),
        ("blank, with a permission", |f, _| { before_activation(f); f.content = blank().content; tags(f, "flexvolume.mayformat=data-0:1700000000"); }, Look(Level::Lvm)),
        ("half made", |f, _| { before_activation(f); tags(f, "flexvolume.making=xfs:u"); holds(f, Xfs, |s| s.half = true); }, Look(Level::Lvm)),
        ("another one", |f, _| { before_activation(f); tags(f, "flexvolume.fs=ext4:v"); }, Look(Level::Lvm)),
        ("of the wrong type", |f, w| { before_activation(f); w.fs = Some(Xfs); }, Look(Level::Lvm)),
        ("not recorded", |f, _| { before_activation(f); tags(f, ""); }, Look(Level::Lvm)),
        ("recorded, and a permission stands", |f, _| { before_activation(f); tags(f, "flexvolume.fs=ext4:u,flexvolume.mayformat=data-0:1"); }, Look(Level::Lvm)),
        ("encrypted", |f, _| { before_activation(f); tags(f, "flexvolume.fs=ext4:u,flexvolume.luks=l"); }, Look(Level::Lvm)),
        ("read-only in the kernel, and LVM knows why", |f, w| { before_activation(f); w.read_only = true; f.read_only = true; }, Look(Level::Lvm)),
        ("open in a process that writes", |f, _| { before_activation(f); f.openers = Some(Openers { processes: vec![process(true)], ..Openers::default() }); }, Look(Level::Lvm)),
        ("mounted elsewhere", |f, _| { before_activation(f); f.content = Some(Content::Claimed(Some(filesystem(Ext4, "u")))); }, Look(Level::Lvm)),
        ("suspended", |f, _| { before_activation(f); uses(f).suspended = Some("vg-lv".into()); }, Look(Level::Lvm)),
        ("RAID", |f, _| { before_activation(f); volume(f).layout = "raid,raid1".into(); }, Look(Level::Lvm)),
        ("a cache", |f, _| { before_activation(f); volume(f).layout = "cache".into(); }, Look(Level::Lvm)),
        ("a snapshot", |f, _| { before_activation(f); volume(f).role = SNAPSHOT.into(); }, Look(Level::Lvm)),
        ("an origin", |f, _| { before_activation(f); volume(f).role = ORIGIN.into(); }, Look(Level::Lvm)),
        ("in a pool", |f, _| { before_activation(f); volume(f).pool = lv("pool"); }, Look(Level::Lvm)),
        ("not well", |f, _| { before_activation(f); volume(f).health = "partial".into(); }, Look(Level::Lvm)),
        ("in a shared group", |f, _| { before_activation(f); shared(f, LeaseState::Held); }, Look(Level::Lvm)),
        ("the device is another volume's", |f, _| { before_activation(f); volume(f).uuid = LvUuid::of("c-d"); }, Look(Level::Lvm)),
        ("a pod has it", |f, _| { before_activation(f); mounted(f, POD, "rw", "rw"); }, Look(Level::Lvm)),
    ]);
}
