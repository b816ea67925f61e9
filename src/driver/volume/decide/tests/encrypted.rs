//! The rules about encrypted volumes, one in each row.

use super::sample::*;
use super::table::check;
use crate::crypt::HEADER_SIZE;
use crate::lvm::ReadOnlyBy;
use crate::names::{Bytes, FsType, Shown};
use crate::volume::decide::decision::{Decision, Level, Making, When};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::encrypted::require_header;
use crate::volume::decide::facts::{Content, FilesystemState};
use crate::volume::decide::reason::Reason;

use Decision::{Bind, Extend, Look, Refuse};
use FsType::{Btrfs, Ext4, Xfs};

#[test]
#[rustfmt::skip] // a row is a line
#[allow(clippy::large_stack_arrays)]
#[allow(clippy::too_many_lines)] // a table
fn what_is_or_is_to_be_encrypted() {
    let encrypt = |uuid: Option<&str>| making(Ext4, Making::InLuks { uuid: uuid.map(str::to_owned) });
    let lost = |found: &str| Refuse(Reason::Header { recorded: LUKS.into(), found: found.into() });
    let inside = |found: &str| Refuse(Reason::Inside { recorded: "ext4 u".into(), found: found.into(), ext: None });
    let mounted_inside = || mount(Ext4, |m| m.record = When::Not);
    let inside_new = |fs: &str, found: &str| Refuse(Reason::Inside { recorded: format!("a new {fs}"), found: found.into(), ext: None });
    let ext_inside = |recorded: &str, ext: Doubt| Refuse(Reason::Inside { recorded: recorded.into(), found: ext.to_string(), ext: Some(ext) });
    let other = |what: &str| Refuse(Reason::Other { what: what.shown(), wanted: Some(Ext4), recorded: None });
    let over_ext4 = |what: &str| Refuse(Reason::Other { what: what.shown(), wanted: Some(Ext4), recorded: Some(filesystem("ext4".into(), "u")) });
    check(&[
        ("blank, to be encrypted", |_, w| w.encrypted = Some(true), encrypt(None)),
        ("blank, to be encrypted, as large as the header", |f, w| { w.encrypted = Some(true); volume(f).sized(HEADER_SIZE); }, Refuse(Reason::TooSmall(HEADER_SIZE))),
        ("absent, to be encrypted, as large as the header", |f, w| { absent(f, w); w.encrypted = Some(true); w.size = Some(HEADER_SIZE); }, Refuse(Reason::TooSmall(HEADER_SIZE))),
        ("absent, to be plain, as large as a header", |f, w| { absent(f, w); w.encrypted = Some(false); w.size = Some(HEADER_SIZE); }, Look(Level::Room)),
        ("blank, to be encrypted, no key", |_, w| { w.encrypted = Some(true); w.has_key = false; }, Refuse(Reason::NoKey)),
        ("blank, to be plain, no key", |_, w| { w.encrypted = Some(false); w.has_key = false; }, make(Ext4)),
        ("signs of data, to be encrypted", |f, w| { w.encrypted = Some(true); data(f); }, doubts([data_at(0)])),
        ("being read, to be encrypted", |f, w| { w.encrypted = Some(true); openers(f).processes = vec![process(false)]; }, Refuse(Reason::BeingRead(vec![process(false)]))),
        ("a plain filesystem, to be encrypted", |f, w| { w.encrypted = Some(true); holds(f, Ext4, |_| ()); }, Refuse(Reason::NotEncrypted)),
        ("a recorded plain one, to be encrypted, is read first", |f, w| { w.encrypted = Some(true); tags(f, "flexvolume.fs=ext4:u"); f.content = None; }, Look(Level::Content)),
        ("a recorded plain one that was wiped, to be encrypted", |f, w| { w.encrypted = Some(true); tags(f, "flexvolume.fs=ext4:u"); }, doubts([held()])),
        ("a recorded plain one that somebody has encrypted", |f, w| { w.encrypted = Some(true); tags(f, "flexvolume.fs=ext4:u"); f.content = Some(whole(LUKS)); }, over_ext4(&format!("the LUKS2 header {LUKS}"))),
        ("a LUKS of somebody's, to be encrypted", |f, w| { w.encrypted = Some(true); f.content = Some(Content::Other("crypto_LUKS".shown())); }, Refuse(Reason::Other { what: "crypto_LUKS".shown(), wanted: Some(Ext4), recorded: None })),
        ("encrypted, its header is read first", |f, w| { w.encrypted = Some(true); encrypted(f); f.content = None; }, Look(Level::Content)),
        ("encrypted, to be opened", |f, w| { w.encrypted = Some(true); encrypted(f); }, OPEN),
        ("encrypted, and a person asks", |f, _| encrypted(f), OPEN),
        ("encrypted, no key", |f, w| { w.encrypted = Some(true); w.has_key = false; encrypted(f); }, Refuse(Reason::NoKey)),
        ("encrypted, wanted plain", |f, w| { w.encrypted = Some(false); encrypted(f); f.content = None; }, Refuse(Reason::Encrypted)),
        ("encrypted, to be grown", |f, w| { encrypted(f); larger(f, w); w.encrypted = Some(false); }, Extend(Bytes::new(2 * GIB))),
        ("encrypted, on a read-only volume", |f, _| { encrypted(f); volume(f).writable = Some(false); }, Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Metadata))),
        ("encrypted, on a read-only volume, wanted so", |f, w| { w.read_only = true; encrypted(f); volume(f).writable = Some(false); }, Decision::Open { read_only: true }),
        ("encrypted, on a read-only disk, wanted so", |f, w| { w.read_only = true; encrypted(f); f.read_only_disk = Some("sda".into()); }, Decision::Open { read_only: true }),
        ("encrypted, wanted read-only: its log may be played back", |f, w| { w.read_only = true; encrypted(f); }, OPEN),
        ("one copy of the header is damaged", |f, _| { encrypted(f); f.content = Some(header(LUKS, 1)); }, OPEN),
        ("its key slot is preferred to others", |f, _| { encrypted(f); f.content = Some(says(LUKS, |l| slot(l)["priority"] = 2.into())); }, OPEN),
        ("both copies are damaged", |f, _| { encrypted(f); f.content = Some(header(LUKS, 0)); }, lost("a damaged LUKS2 header")),
        ("it is being encrypted anew", |f, _| { encrypted(f); f.content = Some(says(LUKS, reencrypting)); }, Refuse(Reason::Reencryption)),
        ("it is being encrypted anew, and is open", |f, _| { encrypted_and_open(f); f.content = Some(says(LUKS, reencrypting)); }, Refuse(Reason::Reencryption)),
        ("it has no more room than its header", |f, _| { encrypted(f); volume(f).sized(HEADER_SIZE); }, Refuse(Reason::Reduced { what: "LUKS2 header", has: HEADER_SIZE, covers: Bytes::new(HEADER_SIZE.get() + 512) })),
        ("its key slots were erased", |f, _| { encrypted(f); f.content = Some(keyless(LUKS)); }, lost(&format!("a LUKS2 header {LUKS} without a key slot"))),
        ("the header of another volume", |f, _| { encrypted(f); f.content = Some(whole("another")); }, lost("the LUKS2 header another")),
        ("its header is zeroed", |f, _| { encrypted(f); f.content = blank().content; }, lost("no known signature")),
        ("its header is zeroed, with a permission to format", |f, _| { encrypted(f); f.content = blank().content; permit(f, &[held()], NOW); }, lost("no known signature")),
        ("a plain filesystem in its place", |f, _| { encrypted(f); holds(f, Ext4, |_| ()); }, lost("ext4 u")),
        ("a part of it is on a disk that LVM has not any more", |f, _| { encrypted(f); f.astray = ["sdz".to_owned()].into(); }, Refuse(Reason::OldDisk { disk: "sdz".into(), pool: None, inside: None })),
        ("it cannot be read, and is on a disk that LVM has not any more", |f, _| { encrypted(f); f.astray = ["sdz".to_owned()].into(); f.content = Some(Content::Unreadable { at: 0, error: "EIO".into() }); }, Refuse(Reason::OldDisk { disk: "sdz".into(), pool: None, inside: None })),
        ("it cannot be read", |f, _| { encrypted(f); f.content = Some(Content::Unreadable { at: 0, error: "EIO".into() }); }, Refuse(Reason::Unreadable { at: 0, error: "EIO".into(), says: None })),
        ("open, read-only and mounted, and suspended below: LVM would wait", |f, _| { encrypted_and_open(f); mounted(f, POD, "rw", "rw"); uses(f).mounted_read_only_device = true; uses(f).suspended = Some("vg-lv".into()); f.lvm = None; }, Refuse(Reason::SuspendedInside("vg-lv".into()))),
        ("open, and suspended below: LVM would wait", |f, _| { encrypted_and_open(f); uses(f).suspended = Some("vg-lv".into()); f.lvm = None; }, Refuse(Reason::SuspendedInside("vg-lv".into()))),
        ("open, what is inside is read", |f, _| { encrypted_and_open(f); f.decrypted = None; }, Look(Level::Decrypted)),
        ("open, the header is read all the same", |f, _| { encrypted_and_open(f); f.content = None; }, Look(Level::Content)),
        ("open, needs no key", |f, w| { w.encrypted = Some(true); w.has_key = false; encrypted_and_open(f); }, mounted_inside()),
        ("open, and the header was changed", |f, _| { encrypted_and_open(f); f.content = Some(whole("another")); }, lost("the LUKS2 header another")),
        ("open, and the header was wiped", |f, _| { encrypted_and_open(f); f.content = blank().content; }, lost("no known signature")),
        ("open with another header", |f, _| { encrypted_and_open(f); opened(f, "another"); }, Refuse(below("dm-2"))),
        ("open, and a device is on top", |f, _| { encrypted_and_open(f); uses(f).holders = vec!["dm-7".into()]; }, Refuse(below("dm-7"))),
        ("open to be read, wanted to be written", |f, _| { encrypted_and_open(f); uses(f).inside.as_mut().unwrap().read_only = true; }, OPEN),
        ("open to be read, wanted so, and it can be written", |f, w| { w.read_only = true; encrypted_and_open(f); uses(f).inside.as_mut().unwrap().read_only = true; }, OPEN),
        ("open to be read, wanted so, and it cannot be written", |f, w| { w.read_only = true; encrypted_and_open(f); uses(f).inside.as_mut().unwrap().read_only = true; f.read_only = true; }, mount(Ext4, |m| { m.record = When::Not; m.check = false; })),
        ("open, and the kernel's table cannot be read", |f, _| { encrypted_and_open(f); (f.decrypted, f.content) = (None, Some(Content::Failed("no dmsetup".into()))); }, Refuse(Reason::Failed("no dmsetup".into()))),
        ("open, another filesystem inside", |f, _| { encrypted_and_open(f); holds_inside(f, Content::Filesystem(FilesystemState { filesystem: filesystem(Ext4, "other"), ..found(Ext4) })); }, inside("ext4 other")),
        ("open, nothing inside", |f, _| { encrypted_and_open(f); holds_inside(f, blank().content.unwrap()); }, inside("no known signature")),
        ("open, nothing inside, with a permission to format", |f, _| { encrypted_and_open(f); holds_inside(f, blank().content.unwrap()); permit(f, &[held()], NOW); }, inside("no known signature")),
        ("open, and a part is missing", |f, _| { encrypted_and_open(f); holds_inside(f, Content::Filesystem(FilesystemState { covers: Bytes::new(2 * GIB), ..found(Ext4) })); }, Refuse(Reason::Reduced { what: "ext4", has: Bytes::new(GIB), covers: Bytes::new(2 * GIB) })),
        ("a pod has it", |f, w| { w.encrypted = Some(true); opened(f, LUKS); mounted(f, POD, "rw", "rw"); f.lvm = None; }, Bind(row(POD, "ext4", "rw", "rw"))),
        ("a pod has it, and it is wanted plain", |f, w| { w.encrypted = Some(false); opened(f, LUKS); mounted(f, POD, "rw", "rw"); f.lvm = None; }, Refuse(Reason::Encrypted)),
        ("a pod has a plain one, and it is to be plain", |f, w| { w.encrypted = Some(false); mounted(f, POD, "rw", "rw"); f.lvm = None; }, Bind(row(POD, "ext4", "rw", "rw"))),
        ("a pod has a plain one, and it is to be encrypted", |f, w| { w.encrypted = Some(true); mounted(f, POD, "rw", "rw"); f.lvm = None; }, Refuse(Reason::NotEncrypted)),
        ("cut short before the header", |f, w| { w.encrypted = Some(true); tags(f, ENCRYPTING); }, encrypt(Some(LUKS))),
        ("cut short before the key slots", |f, w| { w.encrypted = Some(true); tags(f, ENCRYPTING); f.content = Some(keyless(LUKS)); }, encrypt(Some(LUKS))),
        ("cut short before the key slots, no key", |f, w| { w.encrypted = Some(true); w.has_key = false; tags(f, ENCRYPTING); f.content = Some(keyless(LUKS)); }, Refuse(Reason::NoKey)),
        ("cut short when one copy of the header had key slots: it is opened first", |f, w| { w.encrypted = Some(true); tags(f, ENCRYPTING); f.content = Some(half_keyless(LUKS)); }, OPEN),
        ("recorded, and the older copy of its header has no key slot", |f, _| { encrypted(f); f.content = Some(half_keyless(LUKS)); }, OPEN),
        ("cut short in the header", |f, w| { w.encrypted = Some(true); tags(f, ENCRYPTING); f.content = Some(header(LUKS, 0)); }, other("a damaged LUKS2 header")),
        ("cut short after the header: it is opened first", |f, w| { w.encrypted = Some(true); tags(f, ENCRYPTING); f.content = Some(whole(LUKS)); }, OPEN),
        ("cut short after the header, no key", |f, w| { w.encrypted = Some(true); w.has_key = false; tags(f, ENCRYPTING); f.content = Some(whole(LUKS)); }, Refuse(Reason::NoKey)),
        ("cut short, another cipher", |f, w| { w.encrypted = Some(true); tags(f, ENCRYPTING); f.content = Some(says(LUKS, |l| segment(l)["encryption"] = "null".into())); }, Refuse(Reason::Cipher("segments.0.encryption \"null\"".shown()))),
        ("cut short, open, what is inside is read", |f, w| { cut_short_inside(f, w, noise([])); f.decrypted = None; }, Look(Level::Decrypted)),
        ("cut short, noise inside", |f, w| cut_short_inside(f, w, noise([data_at(0)])), making(Ext4, Making::InOpenLuks)),
        ("cut short, zeros inside", |f, w| cut_short_inside(f, w, blank().content.unwrap()), making(Ext4, Making::InOpenLuks)),
        ("cut short, zeros inside, needs no key", |f, w| { cut_short_inside(f, w, blank().content.unwrap()); w.has_key = false; }, making(Ext4, Making::InOpenLuks)),
        ("cut short, noise inside, and a person asks", |f, w| { cut_short_inside(f, w, noise([data_at(0)])); (w.fs, w.encrypted) = (None, None); }, making(Ext4, Making::InOpenLuks)),
        ("cut short, half an ext4 inside", |f, w| cut_short_inside(f, w, noise([backup(), data_at(0)])), making(Ext4, Making::InOpenLuks)),
        ("cut short, an ext4 of somebody inside", |f, w| cut_short_inside(f, w, noise([other_backup(), data_at(0)])), ext_inside("a new ext4", other_backup())),
        ("cut short, half an ext4 inside, and one of somebody", |f, w| cut_short_inside(f, w, noise([backup(), other_backup(), data_at(0)])), ext_inside("a new ext4", backup())),
        ("cut short by an older driver, half an ext4 inside", |f, w| { cut_short_inside(f, w, noise([backup()])); tags(f, OLD_ENCRYPTING); }, ext_inside("a new ext4", backup())),
        ("cut short by an older driver, noise inside", |f, w| { cut_short_inside(f, w, noise([data_at(0)])); tags(f, OLD_ENCRYPTING); }, making(Ext4, Making::InOpenLuks)),
        ("cut short, half an xfs of somebody inside", |f, w| { w.fs = None; cut_short_inside(f, w, Content::Filesystem(FilesystemState { half: true, ..found(Xfs) })); tags(f, &ENCRYPTING.replace(":u", ":another")); }, inside_new("ext4", "xfs u")),
        ("open, and the first superblock is lost", |f, _| { encrypted_and_open(f); holds_inside(f, noise([backup()])); }, ext_inside("ext4 u", backup())),
        ("open, the first superblock is lost, and an older ext left a backup, too", |f, _| { encrypted_and_open(f); holds_inside(f, noise([other_backup(), backup()])); }, ext_inside("ext4 u", backup())),
        ("open, and the first superblock has a wrong checksum", |f, _| { encrypted_and_open(f); holds_inside(f, noise([first_of_ext(), backup()])); }, ext_inside("ext4 u", first_of_ext())),
        ("cut short, half an xfs inside", |f, w| { w.fs = None; cut_short_inside(f, w, Content::Filesystem(FilesystemState { half: true, ..found(Xfs) })); tags(f, &ENCRYPTING.replace("ext4", "xfs")); }, making(Xfs, Making::InOpenLuks)),
        ("cut short, half an xfs inside, and ext4 is wanted", |f, w| { cut_short_inside(f, w, Content::Filesystem(FilesystemState { half: true, ..found(Xfs) })); tags(f, &ENCRYPTING.replace("ext4", "xfs")); }, wrong("xfs", Ext4)),
        ("cut short, a mark inside that blkid does not name", |f, w| cut_short_inside(f, w, noise([Doubt::Mark("md".into())])), inside_new("ext4", "md at byte 4096")),
        ("cut short, swap inside", |f, w| cut_short_inside(f, w, Content::Other("swap".shown())), inside_new("ext4", "swap")),
        ("cut short, LUKS2 inside", |f, w| cut_short_inside(f, w, whole("another")), inside_new("ext4", "the LUKS2 header another")),
        ("cut short, damaged inside", |f, w| cut_short_inside(f, w, Content::Damaged(Ext4)), inside_new("ext4", "ext4, damaged")),
        ("cut short, it cannot be read inside", |f, w| cut_short_inside(f, w, Content::Unreadable { at: 0, error: "EIO".into() }), Refuse(Reason::Unreadable { at: 0, error: "EIO".into(), says: None })),
        ("cut short before the record, or older metadata: a filesystem inside", |f, w| cut_short_inside(f, w, Content::Filesystem(found(Ext4))), mount(Ext4, |m| m.record = When::Before)),
        ("cut short, another filesystem inside", |f, w| { w.fs = None; cut_short_inside(f, w, Content::Filesystem(found(Btrfs))); }, mount(Btrfs, |m| m.record = When::Before)),
        ("cut short, noise inside, wanted read-only", |f, w| { w.read_only = true; cut_short_inside(f, w, noise([data_at(0)])); }, Refuse(Reason::BlankReadOnly)),
        ("cut short, noise inside, and a process has it open", |f, w| { cut_short_inside(f, w, noise([data_at(0)])); openers(f).processes = vec![process(true)]; }, Refuse(Reason::Open(vec![process(true)]))),
        ("cut short before the key slots, and it is open", |f, w| { cut_short_inside(f, w, noise([])); f.content = Some(keyless(LUKS)); }, lost(&format!("a LUKS2 header {LUKS} without a key slot"))),
        ("a header on record without what was inside", |f, w| { cut_short_inside(f, w, noise([])); tags(f, &format!("flexvolume.luks={LUKS}")); }, Refuse(Reason::Inside { recorded: "a filesystem".into(), found: "no known signature".into(), ext: None })),
        ("a header on record without what was inside, and mkfs was begun", |f, w| { cut_short_inside(f, w, noise([])); tags(f, &format!("flexvolume.luks={LUKS},{ENCRYPTING}")); }, Refuse(Reason::Inside { recorded: "a filesystem".into(), found: "no known signature".into(), ext: None })),
        ("cut short, but a filesystem was recorded", |f, _| { tags(f, &format!("flexvolume.fs=ext4:u,{ENCRYPTING}")); f.content = Some(whole(LUKS)); }, over_ext4(&format!("the LUKS2 header {LUKS}"))),
        ("cut short, and the header is another's", |f, w| { w.encrypted = Some(true); tags(f, ENCRYPTING); f.content = Some(whole("another")); }, other("the LUKS2 header another")),
        ("cut short, and wanted plain", |f, w| { w.encrypted = Some(false); tags(f, ENCRYPTING); f.content = Some(whole(LUKS)); }, Refuse(Reason::Encrypted)),
        ("cut short before the key slots, and wanted plain", |f, w| { w.encrypted = Some(false); tags(f, ENCRYPTING); f.content = Some(keyless(LUKS)); }, Refuse(Reason::Encrypted)),
        ("cut short before the header, and wanted plain", |f, w| { w.encrypted = Some(false); tags(f, ENCRYPTING); }, make_again(Ext4)),
    ]);
}

#[test]
fn only_the_recorded_header_will_do() {
    let of = |content: &Content| match content {
        Content::Luks(header) => require_header(LUKS, Some(header)),
        _ => require_header(LUKS, None),
    };
    assert_eq!(of(&whole(LUKS)), Ok(()));
    for other in [
        whole("another"),
        blank().content.unwrap_or(Content::Several),
    ] {
        assert!(
            matches!(of(&other), Err(Reason::Header { .. })),
            "{other:?}"
        );
    }
}

#[test]
fn a_device_that_is_suspended_has_a_reason_of_its_own_if_it_is_open() {
    let mut facts = blank();
    assert_eq!(uses(&mut facts).waits(), None);
    uses(&mut facts).suspended = Some("vg-lv".into());
    assert_eq!(
        uses(&mut facts).waits(),
        Some(Reason::Suspended("vg-lv".into()))
    );
    opened(&mut facts, LUKS);
    assert_eq!(
        uses(&mut facts).waits(),
        Some(Reason::SuspendedInside("vg-lv".into()))
    );
}
