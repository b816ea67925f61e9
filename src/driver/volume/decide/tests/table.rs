//! Every rule of [`decide`], one in each row.

use nix::mount::MsFlags;

use super::sample::*;
use crate::lvm::{LeaseState, ReadOnlyBy};
use crate::names::{Bytes, FsType, LvId, LvName, LvUuid, Shown};
use crate::volume::decide::decision::{Decision, Level, When};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{Content, Lvm, Pool, Room};
use crate::volume::decide::reason::{Flaw, Needed, Reason};
use crate::volume::decide::rules::decide;
use crate::volume::decide::states::{Help, May};
use crate::volume::decide::uses::{Place, There};
use crate::volume::decide::wish::Purpose;
use crate::volume::mounted_filesystem::Failure;

use Decision::{Activate, Bind, Extend, Look, Ready, Refuse, Restrict, Resume};
use FsType::{Btrfs, Ext2, Ext3, Ext4, Xfs};

pub fn check(table: &[(&str, Change, Decision)]) {
    for (name, change, want) in table {
        let (mut facts, mut wish) = (blank(), wish());
        change(&mut facts, &mut wish);
        assert_eq!(decide(&facts, &wish), *want, "{name}");
    }
}

#[test]
#[rustfmt::skip]
fn each_level_is_looked_at_only_when_it_is_needed() {
    check(&[
        ("the config allows the group to nobody", |_, w| w.not_allowed = Some("no".into()), Refuse(Reason::NotAllowed("no".into()))),
        ("another device has its name", |f, _| f.not_its_device = Some("pool".into()), Refuse(Reason::NotItsDevice("pool".into()))),
        ("an active volume, only to be active, asks nobody", |f, w| { w.purpose = Purpose::Device; f.uses = None; f.lvm = None; }, Ready),
        ("first who uses it", |f, _| { f.uses = None; f.lvm = None; f.content = None; }, Look(Level::Uses)),
        ("then LVM", |f, _| { f.lvm = None; f.content = None; }, Look(Level::Lvm)),
        ("then the device", |f, _| f.content = None, Look(Level::Content)),
        ("an inactive volume asks LVM at once", |f, _| { f.device = None; f.uses = None; f.lvm = None; f.content = None; }, Look(Level::Lvm)),
        ("what stands asks neither LVM nor the device", |f, _| { there(f, "ext4", "rw", "rw"); f.lvm = None; f.content = None; }, Ready),
    ]);
}

#[test]
#[rustfmt::skip] // a row is a line
fn who_uses_it() {
    let pod = || row(POD, "ext4", "rw", "rw");
    let failed = |failure| Refuse(Reason::FilesystemFailed(Place::Here(POD.into()), failure));
    check(&[
        ("another volume is there", |f, _| uses(f).there = Some(There::Another(db())), Refuse(Reason::AnotherIsThere(db()))),
        ("there, of the wrong type", |f, _| there(f, "xfs", "rw", "rw"), wrong("xfs", Ext4)),
        ("there, of any type", |f, w| { w.fs = None; there(f, "xfs", "rw", "rw"); }, Ready),
        ("there and writable, wanted read-only", |f, w| { w.read_only = true; there(f, "ext4", "rw", "rw"); }, Restrict { row: row(POD, "ext4", "rw", "rw"), flags: MsFlags::MS_RDONLY }),
        ("there and read-only, wanted writable", |f, _| there(f, "ext4", "ro", "rw"), Restrict { row: row(POD, "ext4", "ro", "rw"), flags: MsFlags::empty() }),
        ("there, without what the node asks of its type", |f, w| { w.flags = [(Ext4, MsFlags::MS_NOSUID)].into(); there(f, "ext4", "rw,nodev,noatime", "rw"); }, Restrict { row: row(POD, "ext4", "rw,nodev,noatime", "rw"), flags: MsFlags::MS_NOSUID | MsFlags::MS_NODEV }),
        ("there, with what the node asks of its type", |f, w| { w.flags = [(Ext4, MsFlags::MS_NOSUID)].into(); there(f, "ext4", "rw,nosuid", "rw"); }, Ready),
        ("there, and the node asks it of another type", |f, w| { w.flags = [(Xfs, MsFlags::MS_NOSUID)].into(); there(f, "ext4", "rw", "rw"); }, Ready),
        ("there, its filesystem read-only", |f, _| there(f, "ext4", "ro", "ro"), Refuse(Reason::MountedReadOnly(POD.into()))),
        ("there, and the kernel made it read-only", |f, _| there(f, "ext4", "rw", "ro"), Ready),
        ("swap", |f, _| uses(f).swap = true, Refuse(Reason::Swap)),
        ("below another device, whatever is on it", |f, _| uses(f).holders = vec!["dm-1".into()], Refuse(below("dm-1"))),
        ("open as LUKS1", |f, _| { uses(f).holders = vec!["old".into()]; uses(f).unlocked = Some(unlocked()); }, Refuse(Reason::PartOfDevice { holders: vec!["old".into()], unlocked: Some(unlocked()) })),
        ("mounted by the host", |f, _| mounted(f, "/srv", "rw", "rw"), Refuse(host_mount(false))),
        ("mounted by the host beside a pod, LVM knows", |f, _| { f.lvm = None; mounted(f, POD, "rw", "rw"); mounted(f, "/srv", "rw", "rw"); }, Look(Level::Lvm)),
        ("mounted by the host beside a pod", |f, _| { mounted(f, POD, "rw", "rw"); mounted(f, "/srv", "rw", "rw"); }, Refuse(host_mount(true))),
        ("for a machine, LVM knows whether it is ours", |f, _| { f.lvm = None; mounted(f, MACHINE, "rw", "rw"); }, Look(Level::Lvm)),
        ("for a machine beside a pod, with our record", |f, _| { tags(f, "flexvolume.fs=ext4:u"); mounted(f, MACHINE, "rw", "rw"); mounted(f, POD, "rw", "rw"); }, Bind(pod())),
        ("for a machine alone, with our record", |f, _| { tags(f, "flexvolume.fs=ext4:u"); mounted(f, MACHINE, "rw", "rw"); }, Bind(row(MACHINE, "ext4", "rw", "rw"))),
        ("for a machine, without our record", |f, _| mounted(f, MACHINE, "rw", "rw"), Refuse(Reason::HostMount { at: MACHINE.into(), pods: true })),
        ("by the host, for a machine and a pod, with our record", |f, _| { tags(f, "flexvolume.fs=ext4:u"); mounted(f, POD, "rw", "rw"); mounted(f, MACHINE, "rw", "rw"); mounted(f, "/srv", "rw", "rw"); }, Refuse(host_mount(true))),
        ("by hand, LVM knows whether it is ours", |f, w| { w.by_hand = true; f.lvm = None; mounted(f, "/srv", "rw", "rw"); }, Look(Level::Lvm)),
        ("by hand, without our record", |f, w| { w.by_hand = true; mounted(f, "/srv", "rw", "rw"); }, Refuse(host_mount(false))),
        ("by hand, with our record", |f, w| { w.by_hand = true; tags(f, "flexvolume.fs=ext4:u"); mounted(f, "/srv", "rw", "rw"); }, Bind(row("/srv", "ext4", "rw", "rw"))),
        ("a pod has it", |f, _| mounted(f, POD, "rw", "rw"), Bind(pod())),
        ("a pod has it, and something hides the global mount", |f, _| { mounted(f, POD, "rw", "rw"); mounted(f, GLOBAL, "rw", "rw"); hidden(f); }, Bind(pod())),
        ("something hides each mount", |f, _| { claimed(f, false); openers(f).elsewhere.clear(); mounted(f, POD, "rw", "rw"); hidden(f); tags(f, "flexvolume.fs=ext4:u"); }, mount(Ext4, |m| { m.check = false; m.record = When::Not; m.alive = Some(vec![]); })),
        ("a pod has it, of the wrong type", |f, w| { w.fs = Some(Xfs); mounted(f, POD, "rw", "rw"); }, wrong("ext4", Xfs)),
        ("a pod reads it", |f, _| mounted(f, POD, "ro", "ro"), Refuse(Reason::MountedReadOnly(POD.into()))),
        ("a pod has it, and somebody has made it read-only", |f, _| { mounted(f, POD, "rw", "rw"); uses(f).mounted_read_only_device = true; volume(f).writable = Some(false); }, Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Metadata))),
        ("the same, and LVM was not asked", |f, _| { mounted(f, POD, "rw", "rw"); uses(f).mounted_read_only_device = true; f.lvm = None; }, Look(Level::Lvm)),
        ("the same, and LVM does not answer", |f, _| { mounted(f, POD, "rw", "rw"); uses(f).mounted_read_only_device = true; f.lvm = Some(Lvm::Silent("x".into())); }, Refuse(Reason::LvmSilent("x".into()))),
        ("the same, and another will read it", |f, w| { w.read_only = true; mounted(f, POD, "rw", "rw"); uses(f).mounted_read_only_device = true; }, Bind(pod())),
        ("the same, and suspended by a killed lvchange that makes it writable", |f, _| { mounted(f, POD, "rw", "rw"); uses(f).mounted_read_only_device = true; uses(f).suspended = Some("vg-lv".into()); if let Some(Lvm::Volume { unused_table, .. }) = &mut f.lvm { *unused_table = true; } }, Resume),
        ("a pod reads it, and another will", |f, w| { w.read_only = true; mounted(f, POD, "ro", "ro"); }, Bind(row(POD, "ext4", "ro", "ro"))),
        ("a pod has it, and the kernel met errors", |f, _| { mounted(f, POD, "rw", "rw"); uses(f).failure = Some(Failure::Errors); }, failed(Failure::Errors)),
        ("the kernel made it read-only", |f, _| { mounted(f, POD, "rw", "ro"); uses(f).failure = Some(Failure::Errors); }, failed(Failure::Errors)),
        ("the kernel met errors, and another will read it", |f, w| { w.read_only = true; mounted(f, POD, "rw", "rw"); uses(f).failure = Some(Failure::Errors); }, Bind(pod())),
        ("the kernel shut it down", |f, w| { w.read_only = true; mounted(f, POD, "rw", "rw"); uses(f).failure = Some(Failure::ShutDown); }, failed(Failure::ShutDown)),
        ("suspended under a pod, LVM tells why", |f, _| { mounted(f, POD, "rw", "rw"); uses(f).suspended = Some("vg-lv".into()); f.lvm = None; }, Look(Level::Lvm)),
        ("suspended under a pod", |f, _| { mounted(f, POD, "rw", "rw"); uses(f).suspended = Some("vg-lv".into()); }, Refuse(Reason::Suspended("vg-lv".into()))),
        ("suspended under a pod by a killed lvextend", |f, _| { mounted(f, POD, "rw", "rw"); uses(f).suspended = Some("vg-lv".into()); if let Some(Lvm::Volume { unused_table, .. }) = &mut f.lvm { *unused_table = true; } }, Resume),
        ("suspended, and there", |f, _| { there(f, "ext4", "rw", "rw"); uses(f).suspended = Some("vg-lv".into()); f.lvm = None; }, Ready),
        ("the global mount comes first", |f, _| { mounted(f, POD, "rw", "rw"); mounted(f, "/var/lib/kubelet/mounts/a", "rw", "rw"); }, Bind(row("/var/lib/kubelet/mounts/a", "ext4", "rw", "rw"))),
        ("a writable one comes first", |f, _| { mounted(f, "/var/lib/kubelet/b", "ro", "rw"); mounted(f, POD, "rw", "rw"); }, Bind(pod())),
        ("by hand, kubelet's comes before the host's", |f, w| { w.by_hand = true; tags(f, "flexvolume.fs=ext4:u"); mounted(f, "/srv", "rw", "rw"); mounted(f, POD, "rw", "rw"); }, Bind(pod())),
        ("there, plain, and wanted encrypted", |f, w| { w.encrypted = Some(true); there(f, "ext4", "rw", "rw"); }, Refuse(Reason::NotEncrypted)),
        ("there, encrypted, and wanted plain", |f, w| { w.encrypted = Some(false); opened(f, LUKS); there(f, "ext4", "rw", "rw"); }, Refuse(Reason::Encrypted)),
        ("the global mount of another name", |f, w| { w.global = true; mounted(f, GLOBAL, "rw", "rw"); }, Ready),
        ("the global mount of another name, for a pod", |f, _| mounted(f, GLOBAL, "rw", "rw"), Bind(row(GLOBAL, "ext4", "rw", "rw"))),
        ("the global mount of another name, of the wrong type", |f, w| { w.global = true; w.fs = Some(Xfs); mounted(f, GLOBAL, "rw", "rw"); }, wrong("ext4", Xfs)),
        ("a global mount beside a pod's", |f, w| { w.global = true; mounted(f, POD, "rw", "rw"); }, Bind(pod())),
        ("a subvolume of what has none", |f, w| { w.subvolume = true; mounted(f, POD, "rw", "rw"); }, Bind(pod())),
    ]);
}

#[test]
#[rustfmt::skip] // a row is a line
#[allow(clippy::large_stack_arrays)]
fn what_lvm_says() {
    check(&[
        ("LVM does not answer", |f, _| f.lvm = Some(Lvm::Silent("lock".into())), Refuse(Reason::LvmSilent("lock".into()))),
        ("no such group", |f, _| { f.device = None; f.lvm = Some(Lvm::NoGroup); }, Refuse(Reason::NoGroup)),
        ("no such volume", |f, _| { none(f); }, Refuse(Reason::NoVolume(None))),
        ("LVM hides it", |f, _| f.lvm = Some(Lvm::Hidden), Refuse(Reason::Hidden)),
        ("active, and LVM does not know it", |f, _| f.lvm = Some(Lvm::NoVolume), Refuse(Reason::Unknown)),
        ("made on demand", |f, w| { none(f); f.room = Some(free(9)); w.group.create = true; w.size = Some(Bytes::new(9)); w.group.max_size = Some(Bytes::new(9)); }, Decision::Create(Bytes::new(9))),
        ("too large to be made", |f, w| { none(f); f.room = Some(free(9)); w.group.create = true; w.size = Some(Bytes::new(9)); w.group.max_size = Some(Bytes::new(8)); }, Refuse(Reason::TooLarge { size: Bytes::new(9), largest: Bytes::new(8) })),
        ("made without room", |f, w| { none(f); f.room = Some(free(8)); w.group.create = true; w.size = Some(Bytes::new(9)); }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(9), more: Bytes::new(9), free: Bytes::new(8), has: Bytes::new(0), sector: None, short: None }))),
        ("made without room beside a disk that is too small", |f, w| { none(f); f.room = Some(free_beside_short(8)); w.group.create = true; w.size = Some(Bytes::new(9)); }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(9), more: Bytes::new(9), free: Bytes::new(8), has: Bytes::new(0), sector: None, short: Some(short_disk(8)) }))),
        ("made out of the reserve", |f, w| { none(f); f.room = Some(free(9)); w.group.create = true; w.size = Some(Bytes::new(1)); w.group.reserve = Bytes::new(9); }, Refuse(Reason::Reserve { more: Bytes::new(1), free: Bytes::new(9), reserve: Bytes::new(9) })),
        ("made beside the reserve", |f, w| { none(f); f.room = Some(free(9)); w.group.create = true; w.size = Some(Bytes::new(1)); w.group.reserve = Bytes::new(8); }, Decision::Create(Bytes::new(1))),
        ("no size to make it with", |f, w| { none(f); w.group.create = true; }, Refuse(Reason::NoSize)),
        ("made before it was seen of what", |f, w| absent(f, w), Look(Level::Room)),
        ("made with two copies, and there is room for one", |f, w| { absent(f, w); w.group.lvcreate_options = raid1_options(); f.room = Some(extents(3)); }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(EXTENT), more: Bytes::new(4 * EXTENT), free: Bytes::new(3 * EXTENT), has: Bytes::new(0), sector: None, short: None }))),
        ("made with two copies, out of the reserve", |f, w| { absent(f, w); w.group.lvcreate_options = raid1_options(); f.room = Some(extents(4)); w.group.reserve = Bytes::new(1); }, Refuse(Reason::Reserve { more: Bytes::new(4 * EXTENT), free: Bytes::new(4 * EXTENT), reserve: Bytes::new(1) })),
        ("made with two copies, beside the reserve", |f, w| { absent(f, w); w.group.lvcreate_options = raid1_options(); f.room = Some(extents(5)); w.group.reserve = Bytes::new(EXTENT); }, Decision::Create(Bytes::new(EXTENT))),
        ("made in whole extents, out of the reserve", |f, w| { absent(f, w); f.room = Some(extents(2)); w.group.reserve = Bytes::new(EXTENT + 1); }, Refuse(Reason::Reserve { more: Bytes::new(EXTENT), free: Bytes::new(2 * EXTENT), reserve: Bytes::new(EXTENT + 1) })),
        ("made in whole extents, too large", |f, w| { absent(f, w); f.room = Some(extents(9)); w.group.max_size = Some(Bytes::new(EXTENT - 1)); }, Refuse(Reason::TooLarge { size: Bytes::new(EXTENT), largest: Bytes::new(EXTENT - 1) })),
        ("made in a pool, too large in whole extents", |f, w| { absent(f, w); pool(f, 1.0, 1.0, ""); w.group.max_size = Some(Bytes::new(EXTENT - 1)); }, Refuse(Reason::TooLarge { size: Bytes::new(EXTENT), largest: Bytes::new(EXTENT - 1) })),
        ("made where LVM has no room for two changes of its metadata", |f, w| { absent(f, w); f.room = Some(extents(9)); metadata(f, 4095); }, full_metadata(4095)),
        ("made where LVM has room for two", |f, w| { absent(f, w); f.room = Some(extents(9)); metadata(f, 4096); }, Decision::Create(Bytes::new(EXTENT))),
        ("formatted where LVM has no room for the record", |f, _| metadata(f, 2047), full_metadata(2047)),
        ("formatted where LVM has just the room", |f, _| metadata(f, 2048), make(Ext4)),
        ("made in a full pool", |f, w| { absent(f, w); pool(f, 95.5, 1.0, ""); }, full("data", 95.5)),
        ("made in a pool that is not there", |f, w| { absent(f, w); f.room = Some(Room::Pool(Pool::Unseen(vg_pool()))); }, Refuse(Reason::NoPool(vg_pool()))),
        ("not made to be read", |f, w| { none(f); w.read_only = true; w.group.create = true; w.size = Some(Bytes::new(9)); }, Refuse(Reason::CreateReadOnly)),
        ("made in a volume that is no pool", |f, w| { absent(f, w); pool(f, 1.0, 1.0, ""); if let Some(Room::Pool(Pool::Seen(seen))) = &mut f.room { seen.layout = "linear".into(); } }, Refuse(Reason::NoPool(vg_pool()))),
        ("made in a cache pool", |f, w| { absent(f, w); pool(f, 1.0, 1.0, ""); if let Some(Room::Pool(Pool::Seen(seen))) = &mut f.room { seen.layout = "cache,pool".into(); } }, Refuse(Reason::NoPool(vg_pool()))),
        ("to be made in another pool than the node's", |f, w| { absent(f, w); w.group.thin_pool = lv("pool"); w.asked_pool = lv("other"); }, Refuse(Reason::AnotherPool { pool: lv("pool").unwrap(), asked: lv("other").unwrap() })),
        ("to be made in the node's pool, by name", |f, w| { absent(f, w); pool(f, 1.0, 1.0, ""); w.group.thin_pool = lv("pool"); w.asked_pool = lv("pool"); }, Decision::Create(Bytes::new(EXTENT))),
        ("to be made in the node's pool", |f, w| { absent(f, w); pool(f, 1.0, 1.0, ""); w.group.thin_pool = lv("pool"); }, Decision::Create(Bytes::new(EXTENT))),
        ("to be made in a pool where the node names none", |f, w| { absent(f, w); pool(f, 1.0, 1.0, ""); w.asked_pool = lv("other"); }, Decision::Create(Bytes::new(EXTENT))),
        ("in another pool than the node's, and there", |_, w| { w.group.thin_pool = lv("pool"); w.asked_pool = lv("other"); }, make(Ext4)),
        ("not active", |f, _| f.device = None, Activate),
        ("not active, only to be active", |f, w| { f.device = None; w.purpose = Purpose::Device; }, Activate),
        ("a pool", |f, _| volume(f).layout = "thin,pool".into(), Refuse(Reason::Pool)),
        ("LVM's row has a letter or a health that is in no table: data::states has each that is", |f, _| letter(volume(f), 9, 'Z'), unwell(May::Nothing, "lv_attr 9 Z", Help::Look)),
        ("the same, to be read", |f, w| { w.read_only = true; volume(f).health = "tired".into(); }, unwell(May::Nothing, "tired", Help::Look)),
        ("the same, not active", |f, _| { inactive(f); volume(f).health = "tired".into(); }, unwell(May::Nothing, "tired", Help::Look)),
        ("a kind that is in no table, not active", |f, _| { inactive(f); letter(volume(f), 1, 'Z'); }, unwell(May::Nothing, "lv_attr 1 Z", Help::Look)),
        ("LVM cannot tell how it is, as after a killed lvextend", |f, _| { holds(f, Ext4, |_| ()); letter(volume(f), 5, 'X'); letter(volume(f), 9, 'X'); }, mount(Ext4, |m| m.record = When::Not)),
        ("blank, and LVM cannot tell how it is", |f, _| letter(volume(f), 9, 'X'), Refuse(Reason::Degraded(Flaw::Unwell(said("vg/data", May::Write, "unknown", Help::Refresh))))),
        ("a disk is missing", |f, _| volume(f).health = "partial".into(), Refuse(Reason::Partial)),
        ("a disk is missing, not active", |f, _| { inactive(f); volume(f).health = "partial".into(); }, Refuse(Reason::Partial)),
        ("a disk is missing, to be read", |f, w| { w.read_only = true; volume(f).health = "partial".into(); }, Refuse(Reason::Partial)),
        ("a disk is missing, and the RAID may have all", |f, _| { holds(f, Ext4, |_| ()); tags(f, "flexvolume.fs=ext4:u"); volume(f).layout = "raid,raid1".into(); volume(f).health = "partial".into(); letter(volume(f), 9, 'p'); }, mount(Ext4, |m| m.record = When::Not)),
        ("a disk is missing, and the mirror may have all", |f, _| { holds(f, Ext4, |_| ()); volume(f).layout = "mirror".into(); volume(f).health = "partial".into(); }, mount(Ext4, |m| m.record = When::Not)),
        ("two disks are missing of a raid5, or the group lacks another", |f, _| { volume(f).layout = "raid,raid5,raid5_ls".into(); volume(f).health = "partial".into(); volume(f).group.missing = 2; }, Refuse(Reason::Partial)),
        ("two disks are missing of a raid10, and half of its data may be gone", |f, _| { holds(f, Ext4, |_| ()); volume(f).layout = "raid,raid10,raid10_near".into(); volume(f).health = "partial".into(); volume(f).group.missing = 2; }, Refuse(Reason::Partial)),
        ("two disks are missing of a raid6", |f, _| { holds(f, Ext4, |_| ()); volume(f).layout = "raid,raid6,raid6_zr".into(); volume(f).health = "partial".into(); volume(f).group.missing = 2; }, mount(Ext4, |m| m.record = When::Not)),
        ("a snapshot that has run full", |f, _| letter(volume(f), 5, 'I'), Refuse(Reason::SnapshotFull)),
        ("a snapshot that has run full, to be read", |f, w| { w.read_only = true; letter(volume(f), 5, 'S'); }, Refuse(Reason::SnapshotFull)),
        ("a snapshot waits to be merged into it", |f, _| merging(f, "unknown"), Refuse(Reason::MergeWaits)),
        ("a snapshot waits to be merged into it, and LVM does that when it activates it", |f, _| { inactive(f); merging(f, "unknown"); }, Activate),
        ("a snapshot waits to be merged into it, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |_| ()); merging(f, "unknown"); }, mount(Ext4, |m| (m.check, m.record) = (false, When::Not))),
        ("a snapshot waits to be merged into it, to be extended", |f, w| { larger(f, w); merging(f, "unknown"); }, Refuse(Reason::MergeWaits)),
        ("a snapshot is being merged into it", |f, _| merging(f, ""), make(Ext4)),
        ("a snapshot could not be merged into it", |f, _| { merging(f, "merge failed"); letter(volume(f), 5, 'm'); }, unwell(May::Read, "merge failed", Help::Again)),
        ("its cache has failed", |f, _| volume(f).health = "failed".into(), unwell(May::Nothing, "failed", Help::Again)),
        ("its cache keeps no metadata, to be extended", |f, w| { larger(f, w); volume(f).sized(Bytes::new(64 << 20)); volume(f).health = "metadata_read_only".into(); }, unwell(May::Read, "metadata_read_only", Help::Again)),
        ("its writecache has failed", |f, _| { letter(volume(f), 9, 'E'); volume(f).health = "error".into(); }, unwell(May::Read, "error", Help::Again)),
        ("its writecache has failed, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |_| ()); volume(f).health = "error".into(); }, mount(Ext4, |m| (m.check, m.record) = (false, When::Not))),
        ("its cache is not active yet", |f, _| { inactive(f); letter(volume(f), 5, 'c'); letter(volume(f), 9, 'F'); }, Activate),
        ("a RAID with a fault that it makes up for", |f, _| { holds(f, Ext4, |_| ()); volume(f).health = "refresh needed".into(); }, mount(Ext4, |m| m.record = When::Not)),
        ("blank, on such a RAID", |f, _| { letter(volume(f), 9, 'r'); volume(f).health = "repair needed".into(); }, Refuse(Reason::Degraded(Flaw::Unwell(said("vg/data", May::Write, "repair needed", Help::Repair))))),
        ("blank, in a pool that lacks a disk", |f, _| pool(f, 1.0, 1.0, "partial"), pool_unwell("partial", Help::Disk)),
        ("a device stands in for a disk that was away", |f, _| { holds(f, Ext4, |_| ()); f.stand_in = Some("vg-lv-missing_0_0".into()); }, Refuse(partly_active())),
        ("the same, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |_| ()); f.stand_in = Some("vg-lv-missing_0_0".into()); }, Refuse(partly_active())),
        ("the same, of a RAID", |f, _| { holds(f, Ext4, |_| ()); f.stand_in = Some("vg-lv-missing_0_0".into()); volume(f).layout = "raid,raid1".into(); }, mount(Ext4, |_| ())),
        ("the same, of a blank RAID", |f, _| { f.stand_in = Some("vg-lv-missing_0_0".into()); volume(f).layout = "raid,raid1".into(); }, Refuse(partly_active())),
        ("its pool has failed, to be read", |f, w| { w.read_only = true; volume(f).pool = lv("pool"); letter(volume(f), 9, 'F'); }, pool_unwell("failed", Help::AgainPool)),
        ("the device is another volume's", |f, _| volume(f).uuid = LvUuid::of("c-d"), Refuse(Reason::AnotherDevice)),
        ("suspended by hand", |f, _| uses(f).suspended = Some("vg-lv".into()), Refuse(Reason::Suspended("vg-lv".into()))),
        ("suspended by a killed lvextend", |f, _| { uses(f).suspended = Some("vg-lv".into()); if let Some(Lvm::Volume { unused_table, .. }) = &mut f.lvm { *unused_table = true; } }, Resume),
        ("a part of it is on a disk that LVM has not any more", |f, _| { holds(f, Ext4, |_| ()); f.astray = ["sdz".to_owned()].into(); }, Refuse(Reason::OldDisk { disk: "sdz".into(), pool: None, inside: None })),
        ("a raid10, and two of its disks are such disks", |f, _| { holds(f, Ext4, |_| ()); volume(f).layout = "raid,raid10".into(); f.astray = ["sdy".to_owned(), "sdz".to_owned()].into(); }, Refuse(Reason::OldDisk { disk: "sdz".into(), pool: None, inside: None })),
        ("a raid10, and one of its disks is such a disk", |f, _| { holds(f, Ext4, |_| ()); volume(f).layout = "raid,raid10".into(); f.astray = ["sdz".to_owned()].into(); }, mount(Ext4, |_| ())),
        ("blank, and a part of it is on such a disk", |f, _| f.astray = ["sdz".to_owned()].into(), Refuse(Reason::OldDisk { disk: "sdz".into(), pool: None, inside: None })),
        ("its pool is full", |f, _| pool(f, 95.0, 1.0, ""), full("data", 95.0)),
        ("its pool is full, and all volumes of the pool fit into it", |f, _| promising(f, 64), make(Ext4)),
        ("its pool is full, and a snapshot more does not fit", |f, _| promising(f, 65), full("data", 100.0)),
        ("its pool is full, and the growth does not fit", |f, w| { promising(f, 64); let has = volume(f).takes().get(); w.purpose = Purpose::Size(Bytes::new(has + 1)); }, full("data", 100.0)),
        ("its pool is full, and the growth fits", |f, w| { promising(f, 60); volume(f).pool = lv("pool"); let has = volume(f).takes().get(); w.purpose = Purpose::Size(Bytes::new(has + 1)); }, Extend(Bytes::new((64 << 20) + EXTENT))),
        ("made in a full pool, and it fits", |f, w| { absent(f, w); promising(f, 60); }, Decision::Create(Bytes::new(EXTENT))),
        ("made in a full pool, and it does not fit", |f, w| { absent(f, w); promising(f, 61); }, full("data", 100.0)),
        ("its pool's metadata is full", |f, _| pool(f, 1.0, 99.5, ""), full("metadata", 99.5)),
        ("its pool is broken", |f, _| pool(f, 1.0, 1.0, "failed"), pool_unwell("failed", Help::AgainPool)),
        ("its pool ran out of room", |f, _| pool(f, 1.0, 1.0, "out_of_data"), Refuse(Reason::Unwell(said("vg/pool", May::Read, "out_of_data", Help::Room)))),
        ("its pool has room", |f, _| pool(f, 94.9, 94.9, ""), make(Ext4)),
        ("its pool is not to be seen", |f, _| if let Some(Lvm::Volume { pool, .. }) = &mut f.lvm { *pool = Some(Pool::Unseen(LvId::parse("vg/pool").unwrap())); }, Refuse(Reason::NoPool(vg_pool()))),
    ]);
}

#[test]
#[rustfmt::skip] // a row is a line
fn who_has_it_in_a_shared_group() {
    let no_locks = |locks: LeaseState| Refuse(Reason::NoLocks(locks.obstacle(vg_pool().vg()).unwrap()));
    check(&[
        ("first lvmlockd is asked", |f, _| { shared(f, LeaseState::Held); f.locks = None; }, Look(Level::LeaseState)),
        ("this node alone", |f, _| shared(f, LeaseState::Held), make(Ext4)),
        ("this node and others", |f, _| shared(f, LeaseState::Shared), Refuse(Reason::ActiveShared)),
        ("this node and others, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |_| ()); shared(f, LeaseState::Shared); }, Refuse(Reason::ActiveShared)),
        ("nobody knows, and it is active", |f, _| shared(f, LeaseState::NotHeld), Refuse(Reason::ActiveWithoutLock)),
        ("another node may, and it is not active", |f, _| { f.device = None; shared(f, LeaseState::NotHeld); }, Activate),
        ("another node", |f, _| { f.device = None; shared(f, LeaseState::Elsewhere(None)); }, Refuse(Reason::HeldElsewhere(None))),
        ("lvmlockd does not run", |f, _| { f.device = None; shared(f, LeaseState::Silent("x".into())); }, no_locks(LeaseState::Silent("x".into()))),
        ("absent: lvmlockd is asked before it is made", |f, w| { absent(f, w); shared_room(f, None); }, Look(Level::LeaseState)),
        ("absent, and lvmlockd does not run", |f, w| { absent(f, w); shared_room(f, Some(LeaseState::Silent("x".into()))); }, no_locks(LeaseState::Silent("x".into()))),
        ("absent, and the node has the group's locks", |f, w| { absent(f, w); shared_room(f, Some(LeaseState::NotHeld)); }, Decision::Create(Bytes::new(9))),
        ("locks that are not started", |f, _| { f.device = None; shared(f, LeaseState::NotStarted); }, no_locks(LeaseState::NotStarted)),
        ("locks that are being started", |f, _| { f.device = None; shared(f, LeaseState::Starting); }, no_locks(LeaseState::Starting)),
        ("a lease that was lost, of a blank volume", |f, _| shared(f, LeaseState::Lost), no_locks(LeaseState::Lost)),
        ("a lease that was lost, of a filesystem", |f, _| { holds(f, Ext4, |_| ()); shared(f, LeaseState::Lost); }, no_locks(LeaseState::Lost)),
        ("what stands stays, whatever the locks are", |f, _| { there(f, "ext4", "rw", "rw"); shared(f, LeaseState::Lost); }, Ready),
    ]);
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_part_of_the_filesystem_is_on_another_device() {
    check(&[
        ("btrfs", |f, w| { w.fs = None; holds(f, Btrfs, |s| s.is_part = true); }, Refuse(Reason::SeveralDevices(Btrfs))),
        ("ext", |f, _| holds(f, Ext4, |s| s.is_part = true), Refuse(Reason::SeveralDevices(Ext4))),
        ("ext, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |s| s.is_part = true); }, Refuse(Reason::SeveralDevices(Ext4))),
        ("ext, all of it on a snapshot", |f, _| { volume(f).role = SNAPSHOT.into(); holds(f, Ext4, |_| ()); }, mount(Ext4, |_| ())),
    ]);
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_filesystem_is_there() {
    check(&[
        ("without a record", |f, _| holds(f, Ext4, |_| ()), mount(Ext4, |_| ())),
        ("of any type", |f, w| { w.fs = None; holds(f, Xfs, |_| ()); }, mount(Xfs, |_| ())),
        ("with its record", |f, _| { holds(f, Ext4, |_| ()); tags(f, "flexvolume.fs=ext4:u"); }, mount(Ext4, |m| m.record = When::Not)),
        ("to be read", |f, w| { w.read_only = true; holds(f, Ext4, |_| ()); }, mount(Ext4, |m| m.check = false)),
        ("of the wrong type", |f, _| holds(f, Xfs, |_| ()), wrong("xfs", Ext4)),
        ("ext3 is not ext4", |f, _| holds(f, Ext3, |_| ()), wrong("ext3", Ext4)),
        ("of another UUID than its record", |f, _| { holds(f, Ext4, |_| ()); tags(f, "flexvolume.fs=ext4:v"); }, Refuse(Reason::Swapped { recorded: filesystem("ext4".into(), "v"), found: filesystem(Ext4, "u") })),
        ("of another type and UUID than its record", |f, w| { w.fs = Some(Xfs); holds(f, Ext4, |_| ()); tags(f, "flexvolume.fs=xfs:v"); }, Refuse(Reason::Swapped { recorded: filesystem("xfs".into(), "v"), found: filesystem(Ext4, "u") })),
        ("with a permission to format, which is over", |f, _| { holds(f, Ext4, |_| ()); tags(f, "flexvolume.fs=ext4:u,flexvolume.mayformat=data-0:1"); }, mount(Ext4, |m| m.record = When::Before)),
        ("made by a killed call, and LVM has no room for the record", |f, w| { w.fs = None; holds(f, Xfs, |_| ()); tags(f, "flexvolume.making=xfs:u"); metadata(f, 0); }, full_metadata(0)),
        ("without a record, and its group lacks a disk", |f, _| { holds(f, Ext4, |_| ()); volume(f).group.missing = 1; }, mount(Ext4, |m| m.record = When::Not)),
        ("with a permission of yesterday, and its group lacks a disk", |f, _| { holds(f, Ext4, |_| ()); tags(f, "flexvolume.fs=ext4:u,flexvolume.mayformat=x:1"); volume(f).group.missing = 1; metadata(f, 0); }, mount(Ext4, |m| m.record = When::Not)),
        ("with a permission, and its group lacks a disk", |f, _| { holds(f, Ext4, |_| ()); tags(f, &format!("flexvolume.mayformat=x:{}", f.now)); volume(f).group.missing = 1; }, lacks_a_disk()),
        ("made by a killed call, and its group lacks a disk", |f, w| { w.fs = None; holds(f, Xfs, |_| ()); tags(f, "flexvolume.making=xfs:u"); volume(f).group.missing = 1; }, lacks_a_disk()),
        ("blank, and its group lacks a disk", |f, _| volume(f).group.missing = 1, lacks_a_disk()),
        ("recorded, and LVM has no room", |f, w| { w.fs = None; holds(f, Xfs, |_| ()); tags(f, "flexvolume.fs=xfs:u"); metadata(f, 0); }, mount(Xfs, |m| m.record = When::Not)),
        ("of larger blocks than the kernel mounts", |f, w| { w.fs = None; holds(f, Xfs, |s| s.block = Bytes::new(65_536)); }, Refuse(Reason::LargeBlocks { fs: Xfs, block: Bytes::new(65_536), largest: Bytes::new(4096), encrypted: false })),
        ("larger than its volume", |f, _| holds(f, Ext4, |s| s.covers = Bytes::new(2 * GIB)), Refuse(Reason::Reduced { what: "ext4", has: Bytes::new(GIB), covers: Bytes::new(2 * GIB) })),
        ("btrfs looks at its disks itself", |f, w| { w.fs = None; holds(f, Btrfs, |s| s.covers = Bytes::new(2 * GIB)); }, mount(Btrfs, |_| ())),
        ("smaller than its volume", |f, _| holds(f, Ext4, |s| s.device = Bytes::new(2 * GIB)), mount(Ext4, |m| m.grow = When::After)),
        ("smaller, ext2", |f, w| { w.fs = None; holds(f, Ext2, |s| s.device = Bytes::new(2 * GIB)); }, mount(Ext2, |m| m.grow = When::Before)),
        ("smaller, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |s| s.device = Bytes::new(2 * GIB)); }, mount(Ext4, |m| m.check = false)),
        ("smaller by less than a group of blocks", |f, _| holds(f, Ext4, |s| s.device = Bytes::new(GIB + 4096)), mount(Ext4, |_| ())),
        ("smaller by as much as is worth growing", |f, _| holds(f, Ext4, |s| s.device = Bytes::new(GIB + (1 << 20))), mount(Ext4, |m| m.grow = When::After)),
        ("on a device that is larger than LVM says", |f, _| { holds(f, Ext4, |_| ()); f.larger_device = Some(Bytes::new(2 * GIB)); }, Refuse(Reason::LargerDevice { device: Bytes::new(2 * GIB), volume: Bytes::new(GIB / 16) })),
        ("on a device that is larger than LVM says, and only to be read", |f, w| { holds(f, Ext4, |_| ()); f.larger_device = Some(Bytes::new(2 * GIB)); w.read_only = true; }, mount(Ext4, |m| m.check = false)),
        ("on a read-only volume", |f, _| { holds(f, Ext4, |_| ()); volume(f).writable = Some(false); }, Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Metadata))),
        ("on the external origin of a thin volume", |f, _| { holds(f, Ext4, |_| ()); volume(f).writable = Some(false); volume(f).role = "public,origin,extthinorigin".into(); }, Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Origin))),
        ("on a volume that lvm.conf lists", |f, _| { holds(f, Ext4, |_| ()); volume(f).writable = Some(false); volume(f).overridden = true; }, Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Kernel))),
        ("on a read-only device", |f, _| { holds(f, Ext4, |_| ()); f.read_only = true; }, Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Metadata))),
        ("on a read-only disk", |f, _| { holds(f, Ext4, |_| ()); f.read_only_disk = Some("sda".into()); }, Refuse(Reason::ReadOnlyDisk("sda".into()))),
        ("on a read-only disk, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |_| ()); f.read_only_disk = Some("sda".into()); }, mount(Ext4, |m| m.check = false)),
        ("on a read-only volume, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |_| ()); volume(f).writable = Some(false); }, mount(Ext4, |m| m.check = false)),
        ("where lvcreate was stopped", |f, _| { holds(f, Ext4, |_| ()); tags(f, "flexvolume.new"); }, Refuse(Reason::NewNotBlank("ext4 u".into()))),
        ("a half of ours", |f, _| { holds(f, Ext4, |s| s.half = true); tags(f, "flexvolume.making=ext4:u"); }, make_again(Ext4)),
        ("a half of ours, to be read", |f, w| { w.read_only = true; holds(f, Ext4, |s| s.half = true); tags(f, "flexvolume.making=ext4:u"); }, Refuse(Reason::BlankReadOnly)),
        ("a half of ours, wanted as another type", |f, w| { w.fs = Some(Xfs); holds(f, Ext4, |s| s.half = true); tags(f, "flexvolume.making=ext4:u"); }, wrong("ext4", Xfs)),
        ("a half that nobody recorded", |f, _| holds(f, Ext4, |s| s.half = true), mount(Ext4, |_| ())),
        ("a half of somebody's", |f, w| { w.fs = None; holds(f, Xfs, |s| s.half = true); tags(f, "flexvolume.making=xfs:another"); }, mount(Xfs, |m| m.record = When::Before)),
        ("a half, and mkfs was begun inside LUKS2", |f, w| { w.fs = None; holds(f, Xfs, |s| s.half = true); tags(f, &ENCRYPTING.replace("ext4", "xfs")); }, mount(Xfs, |m| m.record = When::Before)),
        ("a half, and mkfs of an unknown type was begun", |f, w| { w.fs = None; holds(f, Xfs, |s| s.half = true); tags(f, "flexvolume.making=zfs:u"); }, mount(Xfs, |m| m.record = When::Before)),
        ("a half of an older driver", |f, w| { w.fs = None; holds(f, Xfs, |s| s.half = true); tags(f, "flexvolume.making=xfs"); }, mount(Xfs, |m| m.record = When::Before)),
        ("a half, but it held one before", |f, _| { holds(f, Ext4, |s| s.half = true); tags(f, "flexvolume.making=ext4:u,flexvolume.fs=ext4:u"); }, mount(Ext4, |m| m.record = When::Before)),
    ]);
}

#[test]
#[rustfmt::skip] // a row is a line
fn nothing_is_there_or_somebody_elses() {
    check(&[
        ("zero everywhere", |_, _| (), make(Ext4)),
        ("zero everywhere, of no type", |_, w| w.fs = None, make(Xfs)),
        ("perhaps still wiped by the lvcreate of a killed call", |f, _| { f.lvcreate_ended = false; tags(f, "flexvolume.new"); }, Look(Level::Creation)),
        ("made by our lvcreate", |f, _| tags(f, "flexvolume.new"), make(Ext4)),
        ("remains, made by the lvcreate of another call", |f, _| { tags(f, "flexvolume.new"); remains(f); }, Refuse(Reason::NewNotBlank("md at byte 4096".into()))),
        ("to be read", |_, w| w.read_only = true, Refuse(Reason::BlankReadOnly)),
        ("a read-only volume", |f, _| volume(f).writable = Some(false), Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Metadata))),
        ("a read-only device", |f, _| f.read_only = true, Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Metadata))),
        ("a read-only disk", |f, _| f.read_only_disk = Some("sda".into()), Refuse(Reason::ReadOnlyDisk("sda".into()))),
        ("it held one", |f, _| tags(f, "flexvolume.fs=ext4:u"), doubts([held()])),
        ("a backup", |f, _| f.content = Some(Content::Blank { zero: true, doubts: vec![backup()] }), doubts([backup()])),
        ("data", |f, _| data(f), doubts([data_at(0)])),
        ("data far from the beginning", |f, _| f.content = Some(noise([data_at(8 << 20)])), doubts([data_at(8 << 20)])),
        ("data where lvcreate was stopped, far from the beginning", |f, _| { f.content = Some(noise([data_at(4096)])); tags(f, "flexvolume.new"); }, Refuse(Reason::NewNotBlank("data at byte 4096".into()))),
        ("data behind 4 KiB where a mkfs was killed", |f, _| { f.content = Some(noise([data_at(4096)])); tags(f, "flexvolume.making=xfs:u"); }, make_again(Ext4)),
        ("the same, of an unknown type", |f, _| { f.content = Some(noise([data_at(4096)])); tags(f, "flexvolume.making=zfs:u"); }, doubts([data_at(4096)])),
        ("a thin volume", |f, _| thin(f, Some(0.0)), make(Ext4)),
        ("a thin volume that was written", |f, _| thin(f, Some(0.01)), doubts([blocks("0.01")])),
        ("a thin volume of which LVM does not tell", |f, _| thin(f, None), doubts([blocks("unknown")])),
        ("a thin volume of ours", |f, _| { thin(f, Some(0.0)); tags(f, "flexvolume.new"); }, make(Ext4)),
        ("a thin volume of ours that somebody has written to", |f, _| { thin(f, Some(12.5)); tags(f, "flexvolume.new"); }, Refuse(Reason::NewNotBlank(blocks("12.50").to_string()))),
        ("a thin volume where mkfs was killed", |f, _| { thin(f, Some(0.01)); tags(f, "flexvolume.making=ext4:u"); }, make_again(Ext4)),
        ("a thin volume that was written, permitted", |f, _| { thin(f, Some(0.01)); permit(f, &[blocks("0.01")], NOW); }, make(Ext4)),
        ("a thin volume that was written since", |f, _| { thin(f, Some(0.02)); permit(f, &[blocks("0.01")], NOW); }, doubts([blocks("0.02")])),
        ("a thin snapshot", |f, _| { thin(f, Some(0.0)); copied(f, ""); }, doubts([copy(None)])),
        ("a snapshot of a recorded volume", |f, _| { thick_snapshot(f, GIB); copied(f, "flexvolume.fs=ext4:u"); }, doubts([copy(Some(filesystem("ext4".to_owned(), "u")))])),
        ("a cached volume, whose origin is a part of it", |f, _| { volume(f).layout = "cache".into(); volume(f).data_percent = Some(7.0); volume(f).origin = lv("corig"); }, make(Ext4)),
        ("a mark that blkid does not name", |f, _| f.content = Some(Content::Blank { zero: false, doubts: vec![Doubt::Mark("md".into())] }), doubts([Doubt::Mark("md".into())])),
        ("all of that", |f, _| { data(f); tags(f, "flexvolume.fs=ext4:u"); }, doubts([held(), data_at(0)])),
        ("what a killed mkfs left", |f, _| { f.content = Some(Content::Blank { zero: false, doubts: vec![backup()] }); tags(f, "flexvolume.making=ext4:u"); }, make_again(Ext4)),
        ("what a killed mkfs left of one of somebody", |f, _| { f.content = Some(noise([other_backup()])); tags(f, "flexvolume.making=ext4:u"); }, doubts([other_backup()])),
        ("what a killed mkfs left, and what somebody did", |f, _| { f.content = Some(noise([backup(), other_backup(), data_at(4096)])); tags(f, "flexvolume.making=ext4:u"); }, doubts([other_backup()])),
        ("what a killed mkfs left, with an older type", |f, _| { f.content = Some(noise([backup()])); tags(f, "flexvolume.making=xfs:u"); }, make_again(Ext4)),
        ("a mark where a mkfs was killed", |f, _| { f.content = Some(noise([Doubt::Mark("md".into()), data_at(4096)])); tags(f, "flexvolume.making=ext4:u"); }, doubts([Doubt::Mark("md".into())])),
        ("data where a mkfs was killed, with a permission", |f, _| { data(f); tags(f, "flexvolume.making=ext4:u"); permit(f, &[data_at(0)], NOW); }, make(Ext4)),
        ("zeros where a mkfs was killed", |f, _| tags(f, "flexvolume.making=ext4:u"), make_again(Ext4)),
        ("zeros where an older driver's mkfs was killed", |f, _| tags(f, "flexvolume.making=ext4"), make(Ext4)),
        ("data behind 4 KiB where an older driver's mkfs was killed", |f, _| { f.content = Some(noise([data_at(4096)])); tags(f, "flexvolume.making=ext4"); }, doubts([data_at(4096)])),
        ("a thin volume where an older driver's mkfs was killed", |f, _| { thin(f, Some(0.01)); tags(f, "flexvolume.making=ext4"); }, doubts([blocks("0.01")])),
        ("data before what a mkfs writes", |f, _| { f.content = Some(noise([data_at(2047)])); tags(f, "flexvolume.making=ext4:u"); }, doubts([data_at(2047)])),
        ("group descriptors of a killed mkfs", |f, _| { f.content = Some(Content::Blank { zero: false, doubts: vec![data_at(2048)] }); tags(f, "flexvolume.making=ext4:u"); }, make_again(Ext4)),
        ("data where mkfs was killed", |f, _| { data(f); tags(f, "flexvolume.making=ext4:u"); }, doubts([data_at(0)])),
        ("what a killed mkfs left, but it held one", |f, _| tags(f, "flexvolume.making=ext4:u,flexvolume.fs=ext4:u"), doubts([held()])),
        ("permitted", |f, _| { tags(f, "flexvolume.fs=ext4:u"); permit(f, &[held()], NOW - 60); }, make(Ext4)),
        ("permitted the day before yesterday", |f, _| { tags(f, "flexvolume.fs=ext4:u"); permit(f, &[held()], NOW - 2 * 86_400); }, doubts([held()])),
        ("permitted by a clock that was ahead", |f, _| { tags(f, "flexvolume.fs=ext4:u"); permit(f, &[held()], NOW + 7200); }, doubts([held()])),
        ("permitted for something else", |f, _| { data(f); permit(f, &[held()], NOW); }, doubts([data_at(0)])),
        ("permitted for less", |f, _| { data(f); tags(f, "flexvolume.fs=ext4:u"); permit(f, &[held()], NOW); }, doubts([held(), data_at(0)])),
        ("permitted by an older driver", |f, _| tags(f, "flexvolume.fs=ext4:u,flexvolume.mayformat"), doubts([held()])),
        ("data where lvcreate was stopped", |f, _| { data(f); tags(f, "flexvolume.new"); }, Refuse(Reason::NewNotBlank("data at byte 0".into()))),
        ("LUKS", |f, _| f.content = Some(Content::Other("crypto_LUKS".shown())), Refuse(Reason::Other { what: "crypto_LUKS".shown(), wanted: Some(Ext4), recorded: None })),
        ("swap over a recorded filesystem", |f, _| { f.content = Some(Content::Other("swap".shown())); tags(f, "flexvolume.fs=ext4:u"); }, Refuse(Reason::Other { what: "swap".shown(), wanted: Some(Ext4), recorded: Some(filesystem("ext4".into(), "u")) })),
        ("LUKS, permitted for something else", |f, _| { f.content = Some(Content::Other("crypto_LUKS".shown())); permit(f, &[held()], NOW); }, Refuse(Reason::Other { what: "crypto_LUKS".shown(), wanted: Some(Ext4), recorded: None })),
        ("LUKS where lvcreate was stopped", |f, _| { f.content = Some(Content::Other("crypto_LUKS".shown())); tags(f, "flexvolume.new"); }, Refuse(Reason::NewNotBlank("crypto_LUKS".into()))),
        ("several at once", |f, _| f.content = Some(Content::Several), Refuse(Reason::Several)),
        ("damaged", |f, _| f.content = Some(Content::Damaged(Ext4)), Refuse(Reason::Damaged(Ext4))),
        ("it cannot be read, and LVM says why", |f, _| { f.content = Some(Content::Unreadable { at: 0, error: "EIO".into() }); letter(volume(f), 5, 'X'); }, Refuse(Reason::Unreadable { at: 0, error: "EIO".into(), says: Some(said("vg/data", May::Write, "unknown", Help::Refresh)) })),
        ("it cannot be read, whatever was permitted", |f, _| { f.content = Some(Content::Unreadable { at: 0, error: "EIO".into() }); permit(f, &[held()], NOW); }, Refuse(Reason::Unreadable { at: 0, error: "EIO".into(), says: None })),
        ("it cannot be looked at", |f, _| f.content = Some(Content::Failed("blkid".into())), Refuse(Reason::Failed("blkid".into()))),
    ]);
}

#[test]
#[rustfmt::skip] // a row is a line
fn something_that_cannot_be_seen_has_it() {
    check(&[
        ("a pod's container, with our record", |f, _| { claimed(f, false); tags(f, "flexvolume.fs=ext4:u"); }, mount(Ext4, |m| { m.check = false; m.record = When::Not; m.alive = Some(is_claimed()); })),
        ("without our record", |f, _| claimed(f, false), Refuse(Reason::InUse(is_claimed()))),
        ("with the record of another", |f, _| { claimed(f, false); tags(f, "flexvolume.fs=ext4:v"); }, Refuse(Reason::InUse(is_claimed()))),
        ("of the wrong type", |f, w| { w.fs = Some(Xfs); claimed(f, false); tags(f, "flexvolume.fs=ext4:u"); }, wrong("ext4", Xfs)),
        ("nobody knows who", |f, _| { claimed(f, false); openers(f).elsewhere.clear(); tags(f, "flexvolume.fs=ext4:u"); }, Refuse(Reason::InUse(Vec::new()))),
        ("a process that reads", |f, _| { claimed(f, false); openers(f).elsewhere.clear(); openers(f).processes = vec![process(false)]; tags(f, "flexvolume.fs=ext4:u"); }, Refuse(Reason::Open(vec![process(false)]))),
        ("a mount that no table shows, with our record", |f, _| { claimed(f, false); openers(f).elsewhere.clear(); openers(f).has_filesystem = true; tags(f, "flexvolume.fs=ext4:u"); }, mount(Ext4, |m| { m.check = false; m.record = When::Not; m.alive = Some(vec![]); })),
        ("a pod's container, and the kernel met errors", |f, _| { claimed(f, false); openers(f).has_errors = true; tags(f, "flexvolume.fs=ext4:u"); }, Refuse(Reason::FilesystemFailed(Place::Elsewhere(is_claimed()), Failure::Errors))),
        ("a pod's container, the kernel met errors, and another will read it", |f, w| { w.read_only = true; claimed(f, false); openers(f).has_errors = true; tags(f, "flexvolume.fs=ext4:u"); }, mount(Ext4, |m| { m.check = false; m.record = When::Not; m.alive = Some(is_claimed()); })),
        ("a mount that no table shows, and the kernel met errors", |f, _| { claimed(f, false); openers(f).elsewhere.clear(); openers(f).has_filesystem = true; openers(f).has_errors = true; tags(f, "flexvolume.fs=ext4:u"); }, Refuse(Reason::FilesystemFailed(Place::Elsewhere(vec![]), Failure::Errors))),
        ("a mount that no table shows, without our record", |f, _| { claimed(f, false); openers(f).elsewhere.clear(); openers(f).has_filesystem = true; }, Refuse(Reason::StillMounted)),
        ("a pod, of another subvolume", |f, w| { claimed(f, false); openers(f).elsewhere.clear(); f.content = Some(Content::Claimed(Some(filesystem(Btrfs, "u")))); mounted_btrfs(f, "/"); w.subvolume = true; w.fs = None; tags(f, "flexvolume.fs=btrfs:u"); }, mount(Btrfs, |m| { m.record = When::Not; m.alive = Some(vec![]); })),
        ("a pod, of one directory", |f, w| { claimed(f, false); openers(f).elsewhere.clear(); f.content = Some(Content::Claimed(Some(filesystem(Btrfs, "u")))); mounted_btrfs(f, "/a"); w.fs = None; tags(f, "flexvolume.fs=btrfs:u"); }, mount(Btrfs, |m| { m.record = When::Not; m.alive = Some(vec![]); })),
    ]);
    let (mut facts, wish) = (blank(), wish());
    claimed(&mut facts, true);
    tags(&mut facts, "flexvolume.fs=ext4:u");
    let refused = decide(&facts, &wish);
    assert!(matches!(refused, Refuse(Reason::InUse(_))), "the host has it: {refused:?}");
}

#[test]
#[rustfmt::skip] // a row is a line
fn somebody_has_its_device_open() {
    let open = |writes| vec![process(writes)];
    check(&[
        ("first it is asked who", |f, _| volume(f).open = true, Look(Level::Openers)),
        ("nobody any more", |f, _| { openers(f); }, make(Ext4)),
        ("who can write, of a blank volume", |f, _| openers(f).processes = vec![process(true)], Refuse(Reason::Open(open(true)))),
        ("who can write, of a filesystem with our record", |f, _| { openers(f).processes = vec![process(true), process(false)]; holds(f, Ext4, |_| ()); tags(f, "flexvolume.fs=ext4:u"); }, Refuse(Reason::Open(open(true)))),
        ("who can write, and another will read", |f, w| { w.read_only = true; openers(f).processes = vec![process(true)]; holds(f, Ext4, |_| ()); }, Refuse(Reason::Open(open(true)))),
        ("who can write, and it is to be larger", |f, w| { openers(f).processes = vec![process(true)]; larger(f, w); }, Refuse(Reason::Open(open(true)))),
        ("who reads a filesystem", |f, _| { openers(f).processes = vec![process(false)]; holds(f, Ext4, |_| ()); }, mount(Ext4, |_| ())),
        ("who reads a blank volume", |f, _| openers(f).processes = vec![process(false)], Refuse(Reason::BeingRead(open(false)))),
        ("who reads a volume with data", |f, _| { openers(f).processes = vec![process(false)]; data(f); }, doubts([data_at(0)])),
        ("who reads the half of a mkfs", |f, _| { openers(f).processes = vec![process(false)]; holds(f, Ext4, |s| s.half = true); tags(f, "flexvolume.making=ext4:u"); }, Refuse(Reason::BeingRead(open(false)))),
        ("who cannot be seen", |f, _| { openers(f).unseen = 1; holds(f, Ext4, |_| ()); tags(f, "flexvolume.fs=ext4:u"); }, Refuse(Reason::OpenUnseen)),
        ("a loop device", |f, _| openers(f).loops = loops(true), Refuse(Reason::Loop(vec!["loop0".into()]))),
        ("a loop device that only reads a filesystem", |f, _| { openers(f).loops = loops(false); holds(f, Ext4, |_| ()); }, mount(Ext4, |_| ())),
        ("a loop device that only reads a blank volume", |f, _| openers(f).loops = loops(false), Refuse(Reason::Loop(vec!["loop0".into()]))),
        ("a pod, and it is bound from there", |f, _| { volume(f).open = true; mounted(f, POD, "rw", "rw"); }, Bind(row(POD, "ext4", "rw", "rw"))),
        ("a pod, and it is to be larger", |f, w| { mounted(f, POD, "rw", "rw"); larger(f, w); volume(f).open = true; }, Extend(Bytes::new(2 * GIB))),
    ]);
}

#[test]
#[rustfmt::skip] // a row is a line
fn it_is_to_be_larger() {
    check(&[
        ("mounted where the call says", |f, w| { there(f, "ext4", "rw", "rw"); larger(f, w); }, Extend(Bytes::new(2 * GIB))),
        ("mounted elsewhere", |f, w| { mounted(f, POD, "rw", "rw"); larger(f, w); }, Extend(Bytes::new(2 * GIB))),
        ("mounted read-only", |f, w| { there(f, "ext4", "ro", "ro"); larger(f, w); }, Extend(Bytes::new(2 * GIB))),
        ("mounted, and read-only since", |f, w| { mounted(f, POD, "rw", "rw"); larger(f, w); volume(f).writable = Some(false); }, Refuse(Reason::ReadOnlyVolume(ReadOnlyBy::Metadata))),
        ("mounted read-only, on a read-only volume", |f, w| { mounted(f, POD, "ro", "ro"); larger(f, w); volume(f).writable = Some(false); }, Extend(Bytes::new(2 * GIB))),
        ("not mounted", |f, w| larger(f, w), Extend(Bytes::new(2 * GIB))),
        ("as large as it is", |f, w| { larger(f, w); w.purpose = Purpose::Size(volume(f).takes()); }, Ready),
        ("smaller than it is", |f, w| { larger(f, w); w.purpose = Purpose::Size(Bytes::new(1)); w.group.max_size = Some(Bytes::new(1)); }, Ready),
        ("before LVM was asked", |f, w| { there(f, "ext4", "rw", "rw"); larger(f, w); f.lvm = None; }, Look(Level::Lvm)),
        ("another is mounted there", |f, w| { uses(f).there = Some(There::Another(db())); larger(f, w); }, Refuse(Reason::AnotherIsThere(db()))),
        ("the host swaps on it", |f, w| { uses(f).swap = true; larger(f, w); }, Refuse(Reason::Swap)),
        ("of the wrong type", |f, w| { there(f, "xfs", "rw", "rw"); larger(f, w); }, wrong("xfs", Ext4)),
        ("larger than is allowed", |f, w| { larger(f, w); w.group.max_size = Some(Bytes::new(GIB)); }, Refuse(Reason::TooLarge { size: Bytes::new(2 * GIB), largest: Bytes::new(GIB) })),
        ("without room in the group", |f, w| { larger(f, w); volume(f).group.free = Bytes::new(1); }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(2 * GIB), more: Bytes::new(GIB), free: Bytes::new(1), has: Bytes::new(GIB), sector: None, short: None }))),
        ("without room on the disks with sectors as small as its own", |f, w| { larger(f, w); fitting(f, GIB - 1); }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(2 * GIB), more: Bytes::new(GIB), free: Bytes::new(GIB - 1), has: Bytes::new(GIB), sector: Some(Bytes::new(512)), short: None }))),
        ("without room on disks whose sectors are known", |f, w| { larger(f, w); fitting(f, GIB); f.ground.as_mut().unwrap().disks[0].sector = None; }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(2 * GIB), more: Bytes::new(GIB), free: Bytes::default(), has: Bytes::new(GIB), sector: Some(Bytes::new(512)), short: None }))),
        ("on disks with smaller sectors than its own", |f, w| { larger(f, w); fitting(f, 0); f.ground.as_mut().unwrap().sector = Bytes::new(4096); }, Extend(Bytes::new(2 * GIB))),
        ("on a disk that is too small", |f, w| { larger(f, w); f.ground.as_mut().unwrap().short = Some(short_disk(0)); }, Refuse(Reason::ShortDisk(short_disk(0)))),
        ("as large as its device, which is larger than LVM says", |f, w| { larger(f, w); f.larger_device = Some(Bytes::new(2 * GIB)); w.purpose = Purpose::Size(Bytes::new(2 * GIB)); }, Refuse(Reason::LargerDevice { device: Bytes::new(2 * GIB), volume: Bytes::new(GIB) })),
        ("large enough, on such a disk", |f, w| { larger(f, w); w.purpose = Purpose::Size(volume(f).takes()); f.ground.as_mut().unwrap().short = Some(short_disk(0)); }, Ready),
        ("beside a disk that is too small, without room", |f, w| { larger(f, w); beside_short(f, GIB - 1); }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(2 * GIB), more: Bytes::new(GIB), free: Bytes::new(GIB - 1), has: Bytes::new(GIB), sector: None, short: Some(short_disk(GIB - 1)) }))),
        ("beside a disk that is too small, with room", |f, w| { larger(f, w); beside_short(f, GIB); }, Extend(Bytes::new(2 * GIB))),
        ("beside a disk that is too small, into the reserve", |f, w| { larger(f, w); beside_short(f, GIB); w.group.reserve = Bytes::new(1); }, Refuse(Reason::Reserve { more: Bytes::new(GIB), free: Bytes::new(GIB), reserve: Bytes::new(1) })),
        ("as large as is asked, by LVM's metadata alone", |f, w| { larger(f, w); w.purpose = Purpose::Size(volume(f).takes()); f.ground.as_mut().unwrap().device = Some(Bytes::new(GIB - 1)); }, Extend(Bytes::new(GIB))),
        ("larger than is asked by LVM's metadata, and as large as its device", |f, w| { larger(f, w); w.purpose = Purpose::Size(Bytes::new(5)); f.ground.as_mut().unwrap().device = Some(Bytes::new(5)); }, Ready),
        ("as large as is asked, by LVM's metadata alone, on a disk that is too small", |f, w| { larger(f, w); w.purpose = Purpose::Size(volume(f).takes()); f.ground.as_mut().unwrap().device = Some(Bytes::new(GIB - 1)); f.ground.as_mut().unwrap().short = Some(short_disk(0)); }, Refuse(Reason::ShortDisk(short_disk(0)))),
        ("larger than its filesystem can be", |f, w| { larger(f, w); f.ground.as_mut().unwrap().largest = Some(Bytes::new(2 * GIB - 1)); }, Refuse(Reason::FilesystemLimit(Bytes::new(2 * GIB - 1)))),
        ("as large as its filesystem can be", |f, w| { larger(f, w); f.ground.as_mut().unwrap().largest = Some(Bytes::new(2 * GIB)); }, Extend(Bytes::new(2 * GIB))),
        ("larger than the volume whose snapshot it is", |f, w| { larger(f, w); thick_snapshot(f, 2 * GIB - 1); }, Refuse(Reason::SnapshotSize { origin: "origin".into(), size: Bytes::new(2 * GIB - 1) })),
        ("as large as the volume whose snapshot it is", |f, w| { larger(f, w); thick_snapshot(f, 2 * GIB); }, Ready),
        ("with room on such disks", |f, w| { larger(f, w); fitting(f, GIB); }, Extend(Bytes::new(2 * GIB))),
        ("without room on such disks, thin", |f, w| { larger(f, w); fitting(f, 0); volume(f).pool = LvName::parse("pool").ok(); }, Extend(Bytes::new(2 * GIB))),
        ("without room in LVM's metadata", |f, w| { larger(f, w); metadata(f, 2047); }, full_metadata(2047)),
        ("and is gone", |f, w| { absent(f, w); w.size = Some(Bytes::new(7)); w.purpose = Purpose::Size(Bytes::new(9)); }, Refuse(Reason::NoVolume(Some(Bytes::new(7))))),
        ("by its disks", |f, w| { larger(f, w); f.ground = None; }, Look(Level::Ground)),
        ("the kernel met errors in what is mounted", |f, w| { mounted(f, POD, "rw", "rw"); there(f, "ext4", "rw", "rw"); larger(f, w); uses(f).failure = Some(Failure::Errors); }, Refuse(Reason::FilesystemFailed(Place::Here(POD.into()), Failure::Errors))),
        ("the kernel shut down what is mounted", |f, w| { mounted(f, POD, "rw", "rw"); larger(f, w); uses(f).failure = Some(Failure::ShutDown); }, Refuse(Reason::FilesystemFailed(Place::Here(POD.into()), Failure::ShutDown))),
        ("without room, thin", |f, w| { larger(f, w); volume(f).group.free = Bytes::new(1); volume(f).pool = LvName::parse("pool").ok(); }, Extend(Bytes::new(2 * GIB))),
        ("with just as much room", |f, w| { larger(f, w); volume(f).group.free = Bytes::new(GIB); }, Extend(Bytes::new(2 * GIB))),
        ("into the reserve", |f, w| { larger(f, w); w.group.reserve = ROOM; }, Refuse(Reason::Reserve { more: Bytes::new(GIB), free: ROOM, reserve: ROOM })),
        ("of two copies, with room for one", |f, w| { larger(f, w); volume(f).spread = raid1(); volume(f).group.free = Bytes::new(2 * GIB - 1); }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(2 * GIB), more: Bytes::new(2 * GIB), free: Bytes::new(2 * GIB - 1), has: Bytes::new(GIB), sector: None, short: None }))),
        ("of two copies, with just as much room", |f, w| { larger(f, w); volume(f).spread = raid1(); volume(f).group.free = Bytes::new(2 * GIB); }, Extend(Bytes::new(2 * GIB))),
        ("of two copies, into the reserve", |f, w| { larger(f, w); volume(f).spread = raid1(); volume(f).group.free = Bytes::new(3 * GIB); w.group.reserve = Bytes::new(GIB + 1); }, Refuse(Reason::Reserve { more: Bytes::new(2 * GIB), free: Bytes::new(3 * GIB), reserve: Bytes::new(GIB + 1) })),
        ("in whole extents", |f, w| { larger(f, w); w.purpose = Purpose::Size(Bytes::new(2 * GIB - 1)); }, Extend(Bytes::new(2 * GIB))),
        ("larger than is allowed in whole extents", |f, w| { larger(f, w); w.purpose = Purpose::Size(Bytes::new(2 * GIB - 1)); w.group.max_size = Some(Bytes::new(2 * GIB - 1)); }, Refuse(Reason::TooLarge { size: Bytes::new(2 * GIB), largest: Bytes::new(2 * GIB - 1) })),
        ("larger than LVM counts", |f, w| { larger(f, w); w.purpose = Purpose::Size(Bytes::new(u64::MAX)); }, Refuse(Reason::NoRoom(Needed { size: Bytes::new(u64::MAX), more: Bytes::new(u64::MAX - GIB), free: ROOM, has: Bytes::new(GIB), sector: None, short: None }))),
        ("of a full pool", |f, w| { larger(f, w); pool(f, 95.0, 1.0, ""); }, full("data", 95.0)),
        ("suspended by hand", |f, w| { larger(f, w); uses(f).suspended = Some("vg-lv".into()); }, Refuse(Reason::Suspended("vg-lv".into()))),
    ]);
}
