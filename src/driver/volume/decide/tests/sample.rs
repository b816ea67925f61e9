//! Values for the rows of the table of `decide`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;

use crate::config::VolumeGroup;
use crate::crypt::{
    CIPHER, DmTable, Header, Keyslot, LAYOUT, Layout, Luks, Segment, Unlocked, layout_of,
};
use crate::fs::{Backup, Condition};
use crate::host::DeviceNumber;
use crate::host::holders::Opener;
use crate::lvm::{self, Group, GroupDisk, Lease, LeaseState, Record, Spread, Volume};
use crate::mount::{Row, Table};
use crate::names::{Bytes, Filesystem, FsType, LvId, LvName, LvUuid, Shown};
use crate::volume::Permit;
use crate::volume::decide::decision::{Decision, Grow, Making, Mount};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::facts::{
    Content, Decrypted, Facts, FilesystemState, Fitting, Ground, Lvm, Pool, Room, Sectors,
    ShortDisk,
};
use crate::volume::decide::reason::Reason;
use crate::volume::decide::uses::{Elsewhere, Mounted, Occupied, Openers, There, Uses};
use crate::volume::decide::wish::{Purpose, Wish};
use crate::volume::device::{Device, Inside};

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
        is_lost: false,
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
        restrictions: BTreeMap::new(),
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

pub fn pool(facts: &mut Facts, data: f64, metadata: f64, health: &str) {
    let mut row = lvm::sample();
    row.id = LvId::parse("vg/pool").unwrap();
    row.data_percent = Some(data);
    row.metadata_percent = Some(metadata);
    health.clone_into(&mut row.health);
    let seen = Pool::Seen(Box::new(row));
    match &mut facts.lvm {
        Some(Lvm::Volume { pool, .. }) => *pool = Some(seen),
        _ => facts.room = Some(Room::Pool(seen)),
    }
}

pub fn full(what: &'static str, percent: f64) -> Decision {
    Decision::Refuse(Reason::PoolFull {
        pool: vg_pool(),
        size: lvm::sample().size,
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
    volume(facts).size = Bytes::new(GIB);
    volume(facts).free = ROOM;
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
        disks: Vec::new(),
    })
}

/// The same, and the first of its disks is too small.
pub fn free_beside_short(bytes: u64) -> Room {
    let Room::Group(mut group) = free(bytes) else {
        unreachable!()
    };
    let ShortDisk { path, size, end } = short_disk();
    let short = GroupDisk {
        path,
        free: Bytes::new(bytes),
        extents: end,
        begin: Bytes::default(),
        size,
        allocatable: true,
        missing: false,
    };
    let whole = GroupDisk {
        path: "/dev/sda".into(),
        size: end,
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
    Reason::Below {
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
        kubelets: at.starts_with("/var/lib/kubelet"),
        runtimes: at.starts_with("/run/kata-containers"),
        global: at.contains("/mounts/"),
        own_global: at.contains("/mounts/a"),
    });
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
        sectors: Sectors::default(),
        block: Bytes::new(4096),
        largest_block: Bytes::new(4096),
        condition: Condition::Unknown,
        is_part: false,
    }
}

pub fn holds(facts: &mut Facts, fs: FsType, change: fn(&mut FilesystemState)) {
    let mut found = found(fs);
    change(&mut found);
    facts.content = Some(Content::Filesystem(found));
}

/// A disk with sectors of 4 KiB, and a filesystem that was made for smaller ones.
pub fn larger_sectors() -> Sectors {
    Sectors {
        filesystem: Bytes::new(512),
        device: Bytes::new(4096),
        larger: vec!["sdb".to_owned()],
    }
}

/// LVM's metadata has so many bytes free.
pub fn metadata(facts: &mut Facts, free: u64) {
    let free = Bytes::new(free);
    match (&mut facts.lvm, &mut facts.room) {
        (_, Some(Room::Group(group))) => group.metadata_free = free,
        (Some(Lvm::Volume { volume, .. }), _) => volume.metadata_free = free,
        other => panic!("{other:?}"),
    }
}

pub fn full_metadata(free: u64) -> Decision {
    Decision::Refuse(Reason::MetadataFull(Bytes::new(free)))
}

/// Only disks with small sectors count, and so much is free on them.
pub fn fitting(facts: &mut Facts, free: u64) {
    facts.ground.as_mut().unwrap().disks = Some(Fitting {
        sector: Some(Bytes::new(512)),
        disks: vec!["/dev/sda".into()],
        free: Bytes::new(free),
        of_group: ROOM,
        short: None,
    });
}

/// Another disk of the group is too small, and so much is free on the others.
pub fn beside_short(facts: &mut Facts, free: u64) {
    facts.ground.as_mut().unwrap().disks = Some(Fitting {
        sector: None,
        disks: vec!["/dev/sda".into()],
        free: Bytes::new(free),
        of_group: Bytes::new(free),
        short: Some(short_disk()),
    });
}

pub fn short_disk() -> ShortDisk {
    ShortDisk {
        path: "/dev/sdb".into(),
        size: Bytes::new(230 << 20),
        end: Bytes::new(797 << 20),
    }
}

/// The volume is a thick snapshot of an origin with this size.
pub fn thick_snapshot(facts: &mut Facts, of: u64) {
    let volume = volume(facts);
    volume.role = "public,snapshot,thicksnapshot".to_owned();
    (volume.origin, volume.origin_size) = (lv("origin"), Some(Bytes::new(of)));
}

/// The UUID of the LUKS2 header, and then the tags of an encrypted volume.
pub const LUKS: &str = "0b1c2d3e-0000-4000-8000-00000000abcd";
pub const ENCRYPTED: &str =
    "flexvolume.fs=ext4:u,flexvolume.luks=0b1c2d3e-0000-4000-8000-00000000abcd";
pub const ENCRYPTING: &str = "flexvolume.making=luks2:ext4:0b1c2d3e-0000-4000-8000-00000000abcd";

/// A LUKS2 header with this UUID and so many whole copies.
pub fn header(uuid: &str, whole: usize) -> Content {
    Content::Luks(Header {
        uuid: Some(uuid.to_owned()),
        is_whole: whole == 2,
        layouts: vec![Ok(layout()); whole],
    })
}

/// A LUKS2 header whose two copies are whole, with this change in both.
pub fn says(uuid: &str, change: impl Fn(&mut Layout)) -> Content {
    let mut content = whole(uuid);
    if let Content::Luks(header) = &mut content {
        header.layouts.iter_mut().flatten().for_each(change);
    }
    content
}

/// The header that a luksFormat leaves if it is killed before it writes the key slots.
pub fn keyless(uuid: &str) -> Content {
    says(uuid, |layout| layout.keyslots.clear())
}

/// The layout of a header that luksFormat has made.
pub fn layout() -> Layout {
    layout_of(LAYOUT.as_bytes(), 16 << 10).unwrap()
}

/// The decision to open the volume for writing.
pub const OPEN: Decision = Decision::Open { read_only: false };

/// The only segment of a layout, to change it.
pub fn segment(layout: &mut Layout) -> &mut Segment {
    layout.segments.get_mut(&0).unwrap()
}

/// The only key slot of a layout, to change it.
pub fn slot(layout: &mut Layout) -> &mut Keyslot {
    layout.keyslots.get_mut(&0).unwrap()
}

/// `cryptsetup reencrypt` was cut short: two segments have keys of their own, and one is being moved.
pub fn reencrypting(layout: &mut Layout) {
    let segment = segment(layout).clone();
    layout.segments.insert(1, segment);
    slot(layout).kind = "reencrypt".into();
    let mandatory = vec!["online-reencrypt-v2".to_owned()];
    layout
        .config
        .requirements
        .insert("mandatory".into(), mandatory);
}

/// The kernel's table of an open volume.
pub fn table() -> DmTable {
    DmTable {
        target: "crypt".into(),
        cipher: CIPHER.into(),
        has_key: true,
        below: blank().device.map(|device| device.number),
        offset: Some(16 << 20),
        sector_size: 512,
        options: Vec::new(),
    }
}

pub fn whole(uuid: &str) -> Content {
    header(uuid, 2)
}

/// The volume is open, with the header of this UUID.
pub fn opened(facts: &mut Facts, uuid: &str) {
    let mut device = blank().device.unwrap();
    device.number.minor = 2;
    device.path = "/dev/mapper/flexvolume.ab".into();
    device.luks = Some(uuid.to_owned());
    uses(facts).inside = Some(Inside {
        device,
        read_only: false,
    });
    if let Some(Lvm::Volume { volume, .. }) = &mut facts.lvm {
        volume.open = true;
        facts.openers.get_or_insert_default();
    }
}

/// The volume is encrypted, and its header is the recorded one.
pub fn encrypted(facts: &mut Facts) {
    tags(facts, ENCRYPTED);
    facts.content = Some(whole(LUKS));
}

/// The encrypted volume is open, with the recorded filesystem inside.
pub fn encrypted_and_open(facts: &mut Facts) {
    encrypted(facts);
    opened(facts, LUKS);
    holds_inside(facts, Content::Filesystem(found(FsType::Ext4)));
}

pub fn holds_inside(facts: &mut Facts, content: Content) {
    let table = table();
    facts.inside = Some(Decrypted { content, table });
}

/// A call was killed during the mkfs inside, or somebody restored LVM's metadata of that moment. The volume is open.
pub fn cut_short_inside(facts: &mut Facts, wish: &mut Wish, inside: Content) {
    wish.encrypted = Some(true);
    encrypted_and_open(facts);
    tags(facts, ENCRYPTING);
    holds_inside(facts, inside);
}

/// The device inside looks blank, with these doubts.
pub fn noise<const N: usize>(doubts: [Doubt; N]) -> Content {
    Content::Blank {
        zero: false,
        doubts: doubts.into_iter().collect(),
    }
}

pub const ORIGIN: &str = "public,origin,thickorigin";
pub const SNAPSHOT: &str = "public,snapshot,thinsnapshot";

pub fn young() -> Doubt {
    Doubt::Backup(Backup {
        offset: 134_217_728,
        uuid: "u".to_owned(),
        block_size: 4096,
        written: NOW,
        is_unused: true,
    })
}

/// A backup superblock of an ext that somebody has used.
pub fn used() -> Doubt {
    let Doubt::Backup(backup) = young() else {
        unreachable!()
    };
    Doubt::Backup(Backup {
        is_unused: false,
        ..backup
    })
}

/// Remains of a removed volume, beyond the bytes that lvcreate wipes.
pub fn remains(facts: &mut Facts) {
    let mark = Doubt::Mark("md".to_owned());
    facts.content = Some(Content::Blank {
        zero: false,
        doubts: vec![mark, young(), Doubt::Data(4096)],
    });
}

pub fn data(facts: &mut Facts) {
    facts.content = Some(Content::Blank {
        zero: false,
        doubts: vec![Doubt::Data(0)],
    });
}

pub fn claimed(facts: &mut Facts, hosts: bool) {
    let by = vec![Elsewhere {
        pid: 7,
        command: "app".shown(),
        at: PathBuf::from("/data"),
        hosts,
    }];
    openers(facts).elsewhere = by;
    facts.content = Some(Content::Claimed(Some(filesystem(FsType::Ext4, "u"))));
}

/// The openers of the volume. LVM says that somebody has it open.
pub fn openers(facts: &mut Facts) -> &mut Openers {
    volume(facts).open = true;
    facts.openers.get_or_insert_default()
}

pub fn process(writes: bool) -> Opener {
    Opener {
        pid: 7,
        command: "vm".shown(),
        writes,
    }
}

pub fn is_claimed() -> Vec<Elsewhere> {
    let mut facts = blank();
    claimed(&mut facts, false);
    openers(&mut facts).elsewhere.clone()
}

pub fn mount(fs: FsType, change: fn(&mut Mount)) -> Decision {
    let mut mount = Mount {
        filesystem: filesystem(fs, "u"),
        check: fs.is_ext(),
        grow: Grow::Not,
        record: true,
        alive: None,
    };
    change(&mut mount);
    Decision::Mount(mount)
}

pub fn making(fs: FsType, how: Making) -> Decision {
    let permit = Permit::of(fs);
    Decision::Make { permit, how }
}

pub fn make(fs: FsType) -> Decision {
    making(fs, Making::Plain { again: false })
}

pub fn wrong(found: &str, wanted: FsType) -> Decision {
    let found = found.to_owned();
    Decision::Refuse(Reason::WrongType { found, wanted })
}

pub fn doubts<const N: usize>(doubts: [Doubt; N]) -> Decision {
    Decision::Refuse(Reason::Doubts(doubts.into_iter().collect()))
}

pub fn held() -> Doubt {
    Doubt::Recorded(filesystem("ext4".to_owned(), "u"))
}

pub fn permit(facts: &mut Facts, doubts: &[Doubt], given: u64) {
    let tag = lvm::permission_tag(&Doubt::names(doubts), given);
    volume(facts).record.tags.push(tag.clone());
    let all = volume(facts).record.tags.join(",");
    tags(facts, &all);
}
