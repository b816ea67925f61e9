//! Representatives of all facts about a volume.

use super::super::sample::*;
use crate::lvm::LeaseState;
use crate::names::{Bytes, LvUuid, Shown};
use crate::volume::decide::facts::{Facts, Ground, Lvm, Pool};
use crate::volume::decide::uses::{Elsewhere, Occupied, Openers, There};
use crate::volume::mounted_filesystem::Failure;

/// A change of the facts about a blank and active volume that nobody uses.
pub type See = fn(&mut Facts);

pub const DEVICES: [See; 3] = [
    |_| (),
    |f| f.device = None,
    |f| f.not_its_device = Some("a pool".into()),
];

pub const USES: [See; 26] = [
    |_| (),
    |f| mounted(f, POD, "rw", "rw"),
    |f| mounted(f, POD, "ro", "rw"),
    |f| mounted(f, POD, "rw", "ro"),
    |f| mounted_btrfs(f, "/"),
    |f| mounted_btrfs(f, "/sub"),
    |f| mounted(f, "/var/lib/kubelet/plugins/k/mounts/a", "rw", "rw"),
    |f| {
        mounted(f, POD, "rw", "rw");
        hidden(f);
    },
    |f| mounted(f, "/srv", "rw", "rw"),
    |f| mounted(f, GLOBAL, "rw", "rw"),
    |f| mounted(f, MACHINE, "rw", "rw"),
    |f| {
        mounted(f, MACHINE, "rw", "rw");
        mounted(f, POD, "rw", "rw");
    },
    |f| there(f, "ext4", "rw", "rw"),
    |f| there(f, "ext4", "ro", "ro"),
    |f| there(f, "xfs", "rw", "ro"),
    |f| uses(f).there = Some(There::Another(occupied())),
    |f| uses(f).swap = true,
    |f| uses(f).holders = vec!["dm-7".into()],
    |f| uses(f).suspended = Some("vg-lv".into()),
    |f| uses(f).suspended = Some("vg-pool".into()),
    |f| {
        mounted(f, POD, "rw", "rw");
        uses(f).failure = Some(Failure::Errors);
    },
    |f| {
        mounted(f, POD, "rw", "rw");
        uses(f).failure = Some(Failure::ShutDown);
    },
    |f| {
        mounted(f, POD, "rw", "rw");
        mounted(f, "/srv", "rw", "rw");
    },
    |f| {
        mounted(f, POD, "rw", "rw");
        uses(f).suspended = Some("vg-lv".into());
    },
    |f| {
        mounted(f, POD, "rw", "rw");
        uses(f).mounted_read_only_device = true;
    },
    |f| {
        mounted(f, GLOBAL, "rw", "rw");
        uses(f).mounted_read_only_device = true;
        uses(f).suspended = Some("vg-lv".into());
    },
];

/// An encrypted volume that is open.
pub const OPENED: [See; 7] = [
    |f| opened(f, LUKS),
    |f| opened(f, "another"),
    |f| {
        opened(f, LUKS);
        uses(f).inside.as_mut().unwrap().read_only = true;
    },
    |f| {
        opened(f, LUKS);
        mounted(f, POD, "rw", "rw");
    },
    |f| {
        opened(f, LUKS);
        there(f, "ext4", "rw", "rw");
    },
    |f| {
        opened(f, LUKS);
        uses(f).holders = vec!["dm-7".into()];
    },
    |f| {
        opened(f, LUKS);
        uses(f).suspended = Some("vg-lv".into());
    },
];

pub const ANSWERS: [See; 4] = [
    |f| f.lvm = Some(Lvm::Silent("it hangs".into())),
    |f| f.lvm = Some(Lvm::NoGroup),
    |f| f.lvm = Some(Lvm::Hidden),
    |f| f.lvm = Some(Lvm::NoVolume),
];

/// Grounds on which a volume may grow.
pub const GROUNDS: [See; 8] = [
    |f| {
        f.ground = Some(Ground {
            largest: Some(Bytes::new(GIB)),
            ..Ground::default()
        });
    },
    |f| f.ground = Some(Ground::default()),
    |f| {
        f.ground = Some(Ground {
            device: Some(Bytes::new(0)),
            ..Ground::default()
        });
    },
    |f| {
        f.ground = Some(Ground {
            short: Some(short_disk(0)),
            ..Ground::default()
        });
    },
    |f| {
        f.ground = Some(Ground::default());
        beside_short(f, 0);
    },
    |f| {
        f.ground = Some(Ground::default());
        beside_short(f, 9 * GIB);
    },
    |f| {
        f.ground = Some(Ground::default());
        fitting(f, 0);
    },
    |f| {
        f.ground = Some(Ground::default());
        fitting(f, 9 * GIB);
    },
];

pub const ROOMS: [See; 7] = [
    |f| f.lvm = Some(Lvm::NoGroup),
    |f| f.lvm = Some(Lvm::Silent("no".into())),
    |f| f.room = Some(free(0)),
    |f| f.room = Some(free(9 * GIB)),
    |f| pool(f, 99.0, 1.0, ""),
    |f| pool(f, 1.0, 1.0, ""),
    |f| shared_room(f, None),
];

/// Faults of a volume that LVM reports.
pub const ODDITIES: [See; 39] = [
    |_| (),
    |f| volume(f).layout = "thin,pool".into(),
    |f| volume(f).health = "partial".into(),
    |f| {
        volume(f).layout = "raid,raid1".into();
        volume(f).health = "partial".into();
    },
    |f| volume(f).group.metadata_free = Bytes::new(0),
    |f| volume(f).group.missing = 1,
    |f| letter(volume(f), 5, 'I'),
    |f| letter(volume(f), 9, 'Z'),
    |f| volume(f).health = "refresh needed".into(),
    |f| volume(f).uuid = LvUuid::of("another"),
    |f| unused_table(f),
    |f| pool(f, 1.0, 1.0, ""),
    |f| pool(f, 99.0, 1.0, ""),
    |f| pool(f, 1.0, 99.0, ""),
    |f| pool(f, 1.0, 1.0, "failed"),
    |f| pool(f, 1.0, 1.0, "partial"),
    |f| unseen_pool(f),
    |f| volume(f).sized(Bytes::new(1 << 20)),
    |f| volume(f).sized(Bytes::new(GIB / 4)),
    |f| volume(f).role = ORIGIN.into(),
    |f| volume(f).role = SNAPSHOT.into(),
    |f| thick_snapshot(f, GIB),
    |f| volume(f).writable = Some(false),
    |f| volume(f).writable = None,
    |f| {
        shared(f, LeaseState::Held);
        f.locks = None;
    },
    |f| volume(f).open = true,
    |f| f.larger_device = Some(Bytes::new(9 * GIB)),
    |f| merging(f, "unknown"),
    |f| merging(f, "merge failed"),
    |f| volume(f).health = "failed".into(),
    |f| merging(f, ""),
    |f| tags(f, "flexvolume.fs=ext4:u"),
    |f| thin(f, Some(0.0)),
    |f| thin(f, Some(12.5)),
    |f| thin(f, None),
    |f| {
        thin(f, Some(0.0));
        copied(f, "");
    },
    |f| {
        thin(f, Some(12.5));
        copied(f, "flexvolume.fs=ext4:u");
    },
    |f| {
        thick_snapshot(f, GIB);
        copied(f, "flexvolume.fs=xfs:u");
    },
    |f| {
        volume(f).layout = "raid,raid10".into();
        volume(f).health = "partial".into();
        volume(f).group.missing = 2;
    },
];

pub const LOCKS: [fn() -> LeaseState; 8] = [
    || LeaseState::Silent("no".into()),
    || LeaseState::NotStarted,
    || LeaseState::Starting,
    || LeaseState::Lost,
    || LeaseState::Held,
    || LeaseState::Shared,
    || LeaseState::NotHeld,
    || LeaseState::Elsewhere(None),
];

pub const OPENERS: [See; 11] = [
    |f| *openers(f) = Openers::default(),
    |f| openers(f).processes = vec![process(false)],
    |f| openers(f).processes = vec![process(true)],
    |f| openers(f).loops = loops(true),
    |f| openers(f).loops = loops(false),
    |f| openers(f).unseen = 1,
    |f| openers(f).has_filesystem = true,
    |f| {
        openers(f).elsewhere = elsewhere(false);
        openers(f).has_errors = true;
    },
    |f| openers(f).elsewhere = elsewhere(false),
    |f| openers(f).elsewhere = elsewhere(true),
    |f| {
        openers(f).elsewhere = elsewhere(false);
        openers(f).processes = vec![process(false)];
    },
];

/// The parts of a record, alone and together.
pub const RECORDS: [&str; 15] = [
    "",
    "flexvolume.new",
    "flexvolume.making=ext4",
    "flexvolume.making=ext4:u",
    "flexvolume.making=xfs:another",
    "flexvolume.making=zfs:u",
    "flexvolume.new,flexvolume.making=ext4:u",
    "flexvolume.fs=ext4:u",
    "flexvolume.fs=ext4:another",
    "flexvolume.fs=xfs:u",
    "flexvolume.fs=btrfs:u",
    "flexvolume.fs=ext4:u,flexvolume.making=ext4:u",
    "flexvolume.fs=ext4:another,flexvolume.making=xfs:u",
    ENCRYPTED,
    ENCRYPTING,
];

/// The records that matter for a volume that is encrypted or is to be encrypted.
pub const OF_LUKS: [&str; 5] = [
    "",
    "flexvolume.making=ext4:u",
    "flexvolume.fs=ext4:u",
    ENCRYPTED,
    ENCRYPTING,
];

/// The permissions: which evidence they overrule, and when they were given.
pub const PERMISSIONS: [Permission; 6] = [
    Permission::None,
    Permission::Named(NOW),
    Permission::Named(NOW - 90_000),
    Permission::Named(NOW + 9_000),
    Permission::Others(NOW),
    Permission::Nothing,
];

#[derive(Clone, Copy, PartialEq)]
pub enum Permission {
    None,
    /// A permission for exactly the present doubts, given at this time.
    Named(u64),
    /// A permission for other doubts, given at this time.
    Others(u64),
    /// A permission of an older driver, which names no doubts.
    Nothing,
}

pub const DISKS: [See; 5] = [
    |_| (),
    |f| f.read_only = true,
    |f| f.read_only_disk = Some("sda".into()),
    |f| f.astray = ["sdz".to_owned()].into(),
    |f| f.stand_in = Some("vg-lv-missing_0_0".into()),
];

pub fn occupied() -> Occupied {
    Occupied {
        dir: POD.into(),
        by: "vg/other".shown(),
        name: None,
    }
}

pub fn elsewhere(hosts: bool) -> Vec<Elsewhere> {
    let mut by = is_claimed();
    for one in &mut by {
        one.hosts = hosts;
    }
    by
}

pub fn unused_table(facts: &mut Facts) {
    if let Some(Lvm::Volume { unused_table, .. }) = &mut facts.lvm {
        *unused_table = true;
    }
}

pub fn unseen_pool(facts: &mut Facts) {
    if let Some(Lvm::Volume { pool, .. }) = &mut facts.lvm {
        *pool = Some(Pool::Unseen(vg_pool()));
    }
}
