//! Values for the rows of the table of `decide`.

mod content;
mod decisions;
mod encrypted;

pub use content::*;
pub use decisions::*;
pub use encrypted::*;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::config::VolumeGroup;
use crate::crypt::{Luks, Unlocked};
use crate::fs::Condition;
use crate::host::DeviceNumber;
use crate::lvm::{self, Group, GroupDisk, Lease, LeaseState, Promised, Record, Spread, Volume};
use crate::mount::{Row, Table};
use crate::names::{Bytes, Filesystem, FsType, LvId, LvName, LvUuid, Shown};
use crate::volume::decide::decision::Decision;
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{
    Content, DiskToGrowOn, Facts, FilesystemState, Ground, Lvm, Pool, Room,
};
use crate::volume::decide::reason::Reason;
use crate::volume::decide::uses::{Mounted, Occupied, There, Uses};
use crate::volume::decide::wish::{Purpose, Wish};
use crate::volume::device::Device;

pub const GIB: u64 = 1 << 30;
pub const EXTENT: u64 = 4 << 20;
pub const NOW: u64 = 1_700_000_000;

/// A row's change of facts and wish. They begin as an active and blank volume that nobody uses, and the wish to write
/// to an ext4.
pub type Change = fn(&mut Facts, &mut Wish);

pub fn blank() -> Facts {
    let id = LvId::parse("vg/lv").unwrap();
    let mut facts = Facts::of(&id, NOW);
    facts.device = Some(Device {
        path: id.device(),
        id,
        number: DeviceNumber {
            major: 254,
            minor: 1,
        },
        lv_uuid: LvUuid::of("a-b"),
        luks: None,
    });
    facts.lvcreate_ended = true;
    facts.uses = Some(Uses::default());
    facts.ground = Some(Ground::default());
    facts.lvm = Some(Lvm::Volume {
        volume: Box::new(lvm::sample()),
        pool: None,
        unused_table: false,
    });
    facts.content = Some(Content::Blank {
        zero: true,
        doubts: Vec::new(),
    });
    facts
}

pub fn wish() -> Wish {
    Wish {
        purpose: Purpose::Filesystem,
        fs: Some(FsType::Ext4),
        default_fs: FsType::Xfs,
        read_only: false,
        subvolume: false,
        flags: BTreeMap::new(),
        global: false,
        by_hand: false,
        encrypted: None,
        has_key: true,
        allow_discards: false,
        not_allowed: None,
        pool_limit: 95,
        group: VolumeGroup::default(),
        size: None,
        asked_pool: None,
    }
}

pub fn uses(facts: &mut Facts) -> &mut Uses {
    facts.uses.as_mut().unwrap()
}

pub fn volume(facts: &mut Facts) -> &mut Volume {
    match facts.lvm.as_mut().unwrap() {
        Lvm::Volume { volume, .. } => volume,
        other => panic!("{other:?}"),
    }
}

pub fn tags(facts: &mut Facts, tags: &str) {
    volume(facts).record = Record::parse(tags.split(','));
}

/// Writes this letter of `lv_attr`, counted from 1.
pub fn letter(volume: &mut Volume, place: usize, letter: char) {
    let letters = volume.attr.chars().zip(1..);
    let letters = letters.map(|(old, at)| if at == place { letter } else { old });
    volume.attr = letters.collect();
}

/// A snapshot is to be merged into the volume. `failed`: what LVM says of that.
pub fn merging(facts: &mut Facts, failed: &str) {
    letter(volume(facts), 1, 'O');
    failed.clone_into(&mut volume(facts).merge_failed);
}

/// The volume is not active.
pub fn inactive(facts: &mut Facts) {
    facts.device = None;
    volume(facts).number = None;
}

pub fn pool(facts: &mut Facts, data: f64, metadata: f64, health: &str) {
    let mut row = lvm::sample();
    row.id = LvId::parse("vg/pool").unwrap();
    row.data_percent = Some(data);
    row.metadata_percent = Some(metadata);
    (row.attr, row.layout) = ("twi-aot---".to_owned(), "thin,pool".to_owned());
    health.clone_into(&mut row.health);
    let seen = Pool::Seen(Box::new(row));
    match &mut facts.lvm {
        Some(Lvm::Volume { pool, .. }) => *pool = Some(seen),
        _ => facts.room = Some(Room::Pool(seen)),
    }
}

/// Like [`pool`], but all its space for data is used. The pool has 64 MiB, and has promised `mib` MiB to its volumes.
pub fn promising(facts: &mut Facts, mib: u64) {
    pool(facts, 100.0, 1.0, "");
    let pool = match (&mut facts.lvm, &mut facts.room) {
        (Some(Lvm::Volume { pool, .. }), _) => pool.as_mut(),
        (_, Some(Room::Pool(pool))) => Some(pool),
        other => panic!("{other:?}"),
    };
    let Some(Pool::Seen(pool)) = pool else {
        unreachable!()
    };
    pool.promised = Some(Promised {
        all: Bytes::new(mib << 20),
        block: NonZeroU64::new(64 << 10).unwrap(),
    });
}

pub fn full(what: &'static str, percent: f64) -> Decision {
    Decision::Refuse(Reason::PoolFull {
        pool: vg_pool(),
        size: lvm::sample().takes(),
        what,
        percent,
        limit: 95,
    })
}

/// A mount of the volume, from a line of mountinfo.
pub fn row(at: &str, fs: &str, options: &str, super_options: &str) -> Row {
    let line = format!("36 1 254:1 / {at} {options} - {fs} /dev/mapper/vg-lv {super_options}");
    Table::parse(&line).rows()[0].clone()
}

/// Nodes share the volume's group, and its lock has this state.
pub fn shared(facts: &mut Facts, locks: LeaseState) {
    volume(facts).lock = Some(Lease {
        of: Some("a-b".into()),
        args: "1.0.0:70254592".into(),
    });
    facts.locks = Some(locks);
}

pub const ROOM: Bytes = Bytes::new(10 * GIB);

/// The volume has 1 GiB and is to have 2 GiB, and there is room.
pub fn larger(facts: &mut Facts, wish: &mut Wish) {
    volume(facts).sized(Bytes::new(GIB));
    volume(facts).group.free = ROOM;
    wish.purpose = Purpose::Size(Bytes::new(2 * GIB));
}

pub fn none(facts: &mut Facts) {
    facts.device = None;
    facts.lvm = Some(Lvm::NoVolume);
}

/// A group with so many bytes free, in extents of one byte.
pub fn free(bytes: u64) -> Room {
    Room::Group(Group {
        name: "vg".to_owned(),
        size: ROOM,
        free: Bytes::new(bytes),
        metadata_free: ROOM,
        metadata_size: ROOM,
        extent: NonZeroU64::MIN,
        missing: 0,
        exported: false,
        shared: false,
        disks: Vec::new(),
    })
}

/// A shared group with 9 bytes free. `locks`: the state of its locks.
pub fn shared_room(facts: &mut Facts, locks: Option<LeaseState>) {
    let Room::Group(mut group) = free(9) else {
        unreachable!()
    };
    group.shared = true;
    facts.room = Some(Room::Group(group));
    facts.locks = locks;
}

/// The same, and the first of its disks is too small.
pub fn free_beside_short(bytes: u64) -> Room {
    let Room::Group(mut group) = free(bytes) else {
        unreachable!()
    };
    let short = short_disk(bytes);
    let whole = GroupDisk {
        path: "/dev/sda".into(),
        size: short.end(),
        ..short.clone()
    };
    group.disks = vec![short, whole];
    Room::Group(group)
}

/// A group with so many extents of 4 MiB free.
pub fn extents(free: u64) -> Room {
    let Room::Group(mut group) = self::free(free.saturating_mul(EXTENT)) else {
        unreachable!()
    };
    group.extent = NonZeroU64::new(EXTENT).unwrap();
    Room::Group(group)
}

/// Options of lvcreate that make two copies.
pub fn raid1_options() -> Vec<String> {
    vec!["--type=raid1".to_owned()]
}

pub fn raid1() -> Spread {
    Spread::of_options(&raid1_options())
}

/// The volume does not exist, and may be created with 9 bytes.
pub fn absent(facts: &mut Facts, wish: &mut Wish) {
    none(facts);
    wish.group.create = true;
    wish.size = Some(Bytes::new(9));
}

pub fn lv(name: &str) -> Option<LvName> {
    LvName::parse(name).ok()
}

pub fn vg_pool() -> LvId {
    LvId::parse("vg/pool").unwrap()
}

/// `vg0/db` is mounted already at the directory for the mount.
pub fn db() -> Occupied {
    Occupied {
        dir: "/var/lib/kubelet/plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/data"
            .into(),
        by: "vg0/db".shown(),
        name: Some("data".to_owned()),
    }
}

pub const POD: &str = "/var/lib/kubelet/pods/1/volumes/k~lvm/a";
pub const GLOBAL: &str = "/var/lib/kubelet/plugins/kubernetes.io/flexvolume/k/lvm/mounts/other";
pub const MACHINE: &str = "/run/kata-containers/shared/sandboxes/1/mounts/a";

pub fn below(holder: &str) -> Reason {
    Reason::PartOfDevice {
        holders: vec![holder.to_owned()],
        unlocked: None,
    }
}

pub fn unlocked() -> Unlocked {
    let (kind, name) = (Luks::One, "old".to_owned());
    Unlocked { kind, name }
}

pub fn host_mount(pods: bool) -> Reason {
    let at = "/srv".into();
    Reason::HostMount { at, pods }
}

pub fn mounted(facts: &mut Facts, at: &str, options: &str, super_options: &str) {
    uses(facts).mounts.push(Mounted {
        row: row(at, "ext4", options, super_options),
        hidden: false,
        kubelets: at.starts_with("/var/lib/kubelet"),
        runtimes: at.starts_with("/run/kata-containers"),
        global: at.contains("/mounts/"),
        own_global: at.contains("/mounts/a"),
    });
}

/// Something else is mounted over the last mount.
pub fn hidden(facts: &mut Facts) {
    uses(facts).mounts.last_mut().unwrap().hidden = true;
}

/// A pod has a subvolume of the btrfs mounted.
pub fn mounted_btrfs(facts: &mut Facts, root: &str) {
    mounted(facts, POD, "rw", "rw");
    let last = uses(facts).mounts.last_mut().unwrap();
    last.row.fs_type = "btrfs".to_owned();
    last.row.root = root.into();
}

pub fn there(facts: &mut Facts, fs: &str, options: &str, super_options: &str) {
    uses(facts).there = Some(There::This(row(POD, fs, options, super_options)));
}

pub fn filesystem<T>(fs: T, uuid: &str) -> Filesystem<T> {
    let uuid = uuid.to_owned();
    Filesystem { fs, uuid }
}

pub fn found(fs: FsType) -> FilesystemState {
    FilesystemState {
        filesystem: filesystem(fs, "u"),
        covers: Bytes::new(GIB),
        device: Bytes::new(GIB),
        half: false,
        block: Bytes::new(4096),
        largest_block: Bytes::new(4096),
        condition: Condition::Unknown,
        is_part: false,
        only_unmounted: false,
    }
}

pub fn holds(facts: &mut Facts, fs: FsType, change: fn(&mut FilesystemState)) {
    let mut found = found(fs);
    change(&mut found);
    facts.content = Some(Content::Filesystem(found));
}

/// LVM's metadata has so many bytes free.
pub fn metadata(facts: &mut Facts, free: u64) {
    let free = Bytes::new(free);
    match (&mut facts.lvm, &mut facts.room) {
        (_, Some(Room::Group(group))) => group.metadata_free = free,
        (Some(Lvm::Volume { volume, .. }), _) => volume.group.metadata_free = free,
        other => panic!("{other:?}"),
    }
}

pub fn full_metadata(free: u64) -> Decision {
    Decision::Refuse(Reason::MetadataFull(Bytes::new(free)))
}

/// So much is free on disks with sectors as small as the volume's, and the rest on another disk of the group.
pub fn fitting(facts: &mut Facts, free: u64) {
    let rest = ROOM.get().saturating_sub(free);
    let ground = facts.ground.as_mut().unwrap();
    ground.sector = Bytes::new(512);
    ground.disks = vec![
        disk_to_grow_on("/dev/sda", free, 512),
        disk_to_grow_on("/dev/sdb", rest, 4096),
    ];
}

/// Another disk of the group is too small, and so much is free on the others.
pub fn beside_short(facts: &mut Facts, free: u64) {
    let short = DiskToGrowOn {
        disk: short_disk(free),
        sector: Some(Bytes::new(512)),
    };
    let ground = facts.ground.as_mut().unwrap();
    ground.sector = Bytes::new(512);
    ground.disks = vec![short, disk_to_grow_on("/dev/sda", free, 512)];
}

fn disk_to_grow_on(path: &str, free: u64, sector: u64) -> DiskToGrowOn {
    DiskToGrowOn {
        disk: GroupDisk {
            path: path.into(),
            free: Bytes::new(free),
            extents: ROOM,
            begin: Bytes::default(),
            size: ROOM,
            allocatable: true,
            missing: false,
        },
        sector: Some(Bytes::new(sector)),
    }
}

/// A disk that is smaller than LVM's metadata says, with so much free by LVM's metadata.
pub fn short_disk(free: u64) -> GroupDisk {
    GroupDisk {
        path: "/dev/sdb".into(),
        free: Bytes::new(free),
        extents: Bytes::new(797 << 20),
        begin: Bytes::default(),
        size: Bytes::new(230 << 20),
        allocatable: true,
        missing: false,
    }
}

/// The volume is a thick snapshot of an origin with this size.
pub fn thick_snapshot(facts: &mut Facts, of: u64) {
    let volume = volume(facts);
    volume.role = "public,snapshot,thicksnapshot".to_owned();
    (volume.origin, volume.origin_size) = (lv("origin"), Some(Bytes::new(of)));
}

/// A thin volume of which LVM says this part was written, in percent.
pub fn thin(facts: &mut Facts, written: Option<f64>) {
    let volume = volume(facts);
    volume.layout = "thin,sparse".into();
    volume.data_percent = written;
}

/// A copy of a volume with these tags.
pub fn copied(facts: &mut Facts, tags: &str) {
    volume(facts).origin = lv("origin");
    facts.origin = Some(Record::parse(tags.split(',')));
}

pub const ORIGIN: &str = "public,origin,thickorigin";
pub const SNAPSHOT: &str = "public,snapshot,thinsnapshot";

pub fn held() -> Doubt {
    Doubt::Recorded(filesystem("ext4".to_owned(), "u"))
}

pub fn permit(facts: &mut Facts, doubts: &[Doubt], given: u64) {
    let tag = lvm::permission_tag(&Doubt::names(doubts), given);
    volume(facts).record.tags.push(tag.clone());
    let all = volume(facts).record.tags.join(",");
    tags(facts, &all);
}
