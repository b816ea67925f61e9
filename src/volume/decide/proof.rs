//! All cases of [`decide`], by representatives of everything that can be seen and wished: it is looked as
//! the driver looks, level by level, and each level shows each of its representatives. Checked are the
//! promises of docs/safety.md.

use std::collections::BTreeSet;

use super::decision::{Create, Decision, Grow, Level, Purpose, Wish};
use super::doubt::Doubt;
use super::facts::{Content, Elsewhere, Facts, Lvm, Occupied, Openers, Pool, There, Uses};
use super::reason::Reason;
use super::rules::decide;
use super::sample::*;
use crate::lvm::{Locks, Record, Volume};
use crate::names::{Bytes, FsType, LvUuid};
use crate::volume::device::Failure;

/// One thing that can be seen, from the sight of a volume that is blank, active and nobody's.
type See = fn(&mut Facts);

const DEVICES: [See; 3] = [
    |_| (),
    |f| f.device = None,
    |f| f.not_its_device = Some("a pool".into()),
];

const USES: [See; 21] = [
    |_| (),
    |f| mounted(f, POD, "rw", "rw"),
    |f| mounted(f, POD, "ro", "rw"),
    |f| mounted(f, POD, "rw", "ro"),
    |f| mounted_btrfs(f, "/"),
    |f| mounted_btrfs(f, "/sub"),
    |f| mounted(f, "/var/lib/kubelet/plugins/k/mounts/a", "rw", "rw"),
    |f| mounted(f, "/srv", "rw", "rw"),
    |f| there(f, "ext4", "rw", "rw"),
    |f| there(f, "ext4", "ro", "ro"),
    |f| there(f, "xfs", "rw", "ro"),
    |f| uses(f).there = Some(There::Another(occupied())),
    |f| uses(f).name_taken = Some(occupied()),
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
];

const ANSWERS: [See; 8] = [
    |f| f.lvm = Some(Lvm::Silent("it hangs".into())),
    |f| f.lvm = Some(Lvm::NoGroup),
    |f| f.lvm = Some(Lvm::Hidden),
    |f| no_volume(f, None),
    |f| no_volume(f, Some(0)),
    |f| no_volume(f, Some(9 * GIB)),
    |f| {
        no_volume(f, None);
        pool(f, 99.0, 1.0, "");
    },
    |f| {
        no_volume(f, None);
        pool(f, 1.0, 1.0, "");
    },
];

/// What is odd about a volume that LVM shows.
const ODDITIES: [See; 17] = [
    |_| (),
    |f| volume(f).layout = "thin,pool".into(),
    |f| lose(f),
    |f| volume(f).health = "partial".into(),
    |f| volume(f).health = "snapshot invalid".into(),
    |f| volume(f).uuid = LvUuid::of("another"),
    |f| unused_table(f),
    |f| pool(f, 1.0, 1.0, ""),
    |f| pool(f, 99.0, 1.0, ""),
    |f| pool(f, 1.0, 99.0, ""),
    |f| pool(f, 1.0, 1.0, "failed"),
    |f| unseen_pool(f),
    |f| volume(f).size = Bytes::new(GIB / 4),
    |f| volume(f).writable = Some(false),
    |f| volume(f).writable = None,
    |f| {
        shared(f, Locks::Held);
        f.locks = None;
    },
    |f| volume(f).open = true,
];

const LOCKS: [fn() -> Locks; 8] = [
    || Locks::Silent("no".into()),
    || Locks::NotStarted,
    || Locks::Starting,
    || Locks::Lost,
    || Locks::Held,
    || Locks::Shared,
    || Locks::NotHeld,
    || Locks::Elsewhere(None),
];

const OPENERS: [See; 9] = [
    |f| *openers(f) = Openers::default(),
    |f| openers(f).processes = vec![process(false)],
    |f| openers(f).processes = vec![process(true)],
    |f| openers(f).loops = vec!["loop0".into()],
    |f| openers(f).unseen = 1,
    |f| openers(f).has_filesystem = true,
    |f| openers(f).elsewhere = elsewhere(false),
    |f| openers(f).elsewhere = elsewhere(true),
    |f| {
        openers(f).elsewhere = elsewhere(false);
        openers(f).processes = vec![process(false)];
    },
];

/// Each part of a record, alone and together.
const RECORDS: [&str; 12] = [
    "",
    "flexvolume.new",
    "flexvolume.making=ext4",
    "flexvolume.making=xfs",
    "flexvolume.making=zfs",
    "flexvolume.new,flexvolume.making=ext4",
    "flexvolume.fs=ext4:u",
    "flexvolume.fs=ext4:another",
    "flexvolume.fs=xfs:u",
    "flexvolume.fs=btrfs:u",
    "flexvolume.fs=ext4:u,flexvolume.making=ext4",
    "flexvolume.fs=ext4:another,flexvolume.making=xfs",
];

/// What an operator gave up.
const PERMISSIONS: [Permission; 6] = [
    Permission::None,
    Permission::Named(NOW),
    Permission::Named(NOW - 90_000),
    Permission::Named(NOW + 9_000),
    Permission::Others(NOW),
    Permission::Nothing,
];

#[derive(Clone, Copy, PartialEq)]
enum Permission {
    None,
    /// Just what speaks against it, at this time.
    Named(u64),
    /// Something else.
    Others(u64),
    /// It names nothing, as an older driver's.
    Nothing,
}

const DISKS: [See; 3] = [
    |_| (),
    |f| f.read_only = true,
    |f| f.read_only_disk = Some("sda".into()),
];

fn occupied() -> Occupied {
    Occupied {
        dir: POD.into(),
        by: "vg/other".into(),
        name: None,
    }
}

fn elsewhere(hosts: bool) -> Vec<Elsewhere> {
    let mut by = is_claimed();
    for one in &mut by {
        one.hosts = hosts;
    }
    by
}

fn lose(facts: &mut Facts) {
    if let Some(Lvm::Volume { lost, .. }) = &mut facts.lvm {
        *lost = true;
    }
}

fn unused_table(facts: &mut Facts) {
    if let Some(Lvm::Volume { unused_table, .. }) = &mut facts.lvm {
        *unused_table = true;
    }
}

fn unseen_pool(facts: &mut Facts) {
    if let Some(Lvm::Volume { pool, .. }) = &mut facts.lvm {
        *pool = Some(Pool::Unseen(vg_pool()));
    }
}

fn no_volume(facts: &mut Facts, free: Option<u64>) {
    let free = free.map(Bytes::new);
    facts.lvm = Some(Lvm::NoVolume { free, pool: None });
}

/// Blank with each set of doubts, each filesystem in each state, and all else.
fn contents() -> Vec<Content> {
    let single = [
        Doubt::Mark("an ext superblock".into()),
        young(),
        Doubt::Data(0),
        Doubt::Data(4096),
    ];
    let mut all = vec![
        Content::Damaged(FsType::Ext4),
        Content::Other("LUKS".into()),
        Content::Several,
        Content::Unreadable {
            at: 0,
            error: "EIO".into(),
        },
        Content::Failed("blkid".into()),
        Content::Claimed(None),
    ];
    for fs in [FsType::Ext4, FsType::Xfs] {
        for uuid in ["u", "another"] {
            all.push(Content::Claimed(Some((fs, uuid.to_owned()))));
        }
    }
    for set in 0..1_usize << single.len() {
        let is_in = |n: &usize| set >> n & 1 == 1;
        let doubts: Vec<Doubt> = (0..single.len())
            .filter(is_in)
            .map(|n| single[n].clone())
            .collect();
        let zero = doubts.is_empty();
        all.push(Content::Blank { zero, doubts });
    }
    all.push(Content::Blank {
        zero: false,
        doubts: Vec::new(),
    });
    for fs in [FsType::Ext2, FsType::Ext4, FsType::Xfs, FsType::Btrfs] {
        for covers in [GIB / 2, GIB, 2 * GIB] {
            for half in [false, true] {
                let covers = Bytes::new(covers);
                all.push(Content::Filesystem(super::Filesystem {
                    covers,
                    half,
                    ..found(fs)
                }));
            }
        }
    }
    all
}

/// Each purpose, type, kind of access and policy, each with each other.
fn wishes() -> Vec<Wish> {
    let small = Some(Bytes::new(9));
    let policies = [
        Create::default(),
        Create {
            allowed: true,
            ..Create::default()
        },
        Create {
            allowed: true,
            size: small,
            ..Create::default()
        },
        Create {
            allowed: true,
            size: small,
            largest: Some(Bytes::new(8)),
            ..Create::default()
        },
        Create {
            allowed: true,
            size: small,
            reserve: Bytes::new(99 * GIB),
            ..Create::default()
        },
        Create {
            allowed: true,
            size: small,
            pool: lv("pool"),
            asked_pool: lv("other"),
            ..Create::default()
        },
    ];
    let mut all = Vec::new();
    for purpose in [
        Purpose::Filesystem,
        Purpose::Device,
        Purpose::Size(Bytes::new(1)),
        Purpose::Size(Bytes::new(2 * GIB)),
    ] {
        for fs in [None, Some(FsType::Ext4), Some(FsType::Xfs)] {
            for bits in 0..8_u8 {
                for create in &policies {
                    all.push(Wish {
                        purpose,
                        fs,
                        read_only: bits & 1 > 0,
                        subvolume: bits & 2 > 0,
                        by_hand: bits & 4 > 0,
                        create: create.clone(),
                        ..wish()
                    });
                }
            }
        }
    }
    all.push(Wish {
        not_allowed: Some("not for pods".into()),
        ..wish()
    });
    all
}

/// Nothing was looked at yet.
fn unseen() -> Facts {
    Facts {
        uses: None,
        lvm: None,
        content: None,
        ..blank()
    }
}

#[derive(Default)]
struct Cases {
    number: u64,
    reasons: BTreeSet<&'static str>,
    contents: Vec<Content>,
}

impl Cases {
    /// Looks as far as the decision wants, with each representative of each level.
    fn explore(&mut self, facts: &Facts, wish: &Wish, looked: &[Level]) {
        let decision = decide(facts, wish);
        self.number += 1;
        let Decision::Look(level) = decision else {
            if let Decision::Refuse(reason) = &decision {
                self.reasons.insert(reason.into());
            }
            check(facts, wish, &decision);
            return;
        };
        assert!(
            !looked.contains(&level),
            "{level:?} twice: {facts:?} {wish:?}"
        );
        let looked = [looked, &[level]].concat();
        for facts in self.sights(facts, wish, level) {
            self.explore(&facts, wish, &looked);
        }
    }

    /// What a look at this level may show.
    fn sights(&self, facts: &Facts, wish: &Wish, level: Level) -> Vec<Facts> {
        let seen = |change: &dyn Fn(&mut Facts)| {
            let mut facts = facts.clone();
            change(&mut facts);
            facts
        };
        match level {
            Level::Uses => {
                let is_one = |n: usize| {
                    move |f: &mut Facts| {
                        f.uses = Some(Uses::default());
                        USES[n](f);
                    }
                };
                (0..USES.len()).map(|n| seen(&is_one(n))).collect()
            }
            Level::Lvm => {
                let mut all: Vec<Facts> = ANSWERS.iter().map(|see| seen(see)).collect();
                for odd in ODDITIES {
                    all.push(seen(&|f| {
                        f.lvm = blank().lvm;
                        volume(f).size = Bytes::new(GIB);
                        volume(f).free = ROOM;
                        odd(f);
                    }));
                }
                all
            }
            Level::Locks => LOCKS
                .iter()
                .map(|lock| seen(&|f| f.locks = Some(lock())))
                .collect(),
            Level::Openers => OPENERS.iter().map(|see| seen(see)).collect(),
            // Of a wish only these count here, and all others would make it long.
            Level::Content
                if wish.subvolume || wish.by_hand || wish.create != Create::default() =>
            {
                vec![seen(&|f| f.content = blank().content)]
            }
            Level::Content => self.with_content(facts),
        }
    }

    /// Each content with each record, permission and kind of disk.
    fn with_content(&self, facts: &Facts) -> Vec<Facts> {
        let mut all = Vec::new();
        for content in &self.contents {
            for (record, permission) in RECORDS
                .into_iter()
                .flat_map(|record| PERMISSIONS.map(|permission| (record, permission)))
            {
                for disk in DISKS {
                    let mut facts = facts.clone();
                    facts.content = Some(content.clone());
                    volume(&mut facts).record = recorded(record, permission, content);
                    disk(&mut facts);
                    all.push(facts);
                }
            }
        }
        all
    }
}

/// What speaks against formatting it.
fn doubts(record: &Record, content: &Content) -> Vec<Doubt> {
    let held = record.made.as_ref();
    let held = held.map(|made| Doubt::Held(made.fs.clone(), made.uuid.clone()));
    let seen = match content {
        Content::Blank { doubts, .. } => doubts.clone(),
        _ => Vec::new(),
    };
    held.into_iter().chain(seen).collect()
}

/// The same without what the half of an ext may leave.
fn doubts_left(facts: &Facts) -> Vec<Doubt> {
    let volume = volume_of(facts);
    let of_mke2fs = volume.record.making.as_deref() == Some("ext4");
    let is_small = volume.size.get() < 512 << 20;
    let is_left = |doubt: &Doubt| match doubt {
        Doubt::Backup(_) => of_mke2fs,
        Doubt::Data(at) => of_mke2fs && is_small && *at >= 2048,
        Doubt::Held(..) | Doubt::Mark(_) => false,
    };
    let mut all = doubts(&volume.record, facts.content.as_ref().unwrap());
    all.retain(|doubt| !is_left(doubt));
    all
}

fn recorded(tags: &str, permission: Permission, content: &Content) -> Record {
    let record = Record::parse(tags.split(','));
    let tag = match permission {
        Permission::None => return record,
        Permission::Named(at) => {
            crate::lvm::permission_tag(&Doubt::names(&doubts(&record, content)), at)
        }
        Permission::Others(at) => crate::lvm::permission_tag("something-else", at),
        Permission::Nothing => "flexvolume.mayformat".to_owned(),
    };
    Record::parse(tags.split(',').chain([tag.as_str()]))
}

/// The promises, none of which goes by how `decide` comes to its decision.
fn check(facts: &Facts, wish: &Wish, decision: &Decision) {
    let case = || format!("{decision:?}\n{facts:?}\n{wish:?}");
    match decision {
        Decision::Make { fs, again } => {
            assert!(may_be_made(facts, wish), "{}", case());
            let content = facts.content.as_ref();
            assert_eq!(
                *again,
                matches!(content, Some(Content::Filesystem(_))),
                "{}",
                case()
            );
            if *again {
                assert_eq!(volume_of(facts).record.making.as_deref(), Some(fs.as_str()));
            } else {
                assert_eq!(*fs, wish.fs.unwrap_or(wish.default_fs), "{}", case());
            }
            without_one_permission(facts, wish);
            with_one_doubt_more(facts, wish);
        }
        Decision::Mount(mount) => {
            assert!(is_known_and_well(facts), "{}", case());
            assert!(wish.fs.is_none_or(|fs| fs == mount.fs), "{}", case());
            let made = &volume_of(facts).record.made;
            assert!(
                made.as_ref().is_none_or(|made| made.uuid == mount.uuid),
                "{}",
                case()
            );
            let writes = mount.check || mount.grow != Grow::Not;
            assert!(!(wish.read_only && writes), "{}", case());
        }
        Decision::Extend | Decision::Create(_) | Decision::Activate | Decision::Resume => {
            let is_silent = matches!(facts.lvm, Some(Lvm::Silent(_) | Lvm::Hidden) | None);
            assert!(!is_silent, "{}", case());
            let is_making = matches!(decision, Decision::Create(_));
            assert!(!(wish.read_only && is_making), "{}", case());
        }
        Decision::Bind(row) => {
            assert!(
                wish.fs.is_none_or(|fs| fs.as_str() == row.fs_type),
                "{}",
                case()
            );
            let is_its = facts
                .uses
                .as_ref()
                .is_some_and(|uses| uses.mounts.iter().any(|m| m.row == *row));
            assert!(is_its, "{}", case());
        }
        Decision::Keep { .. } | Decision::Ready | Decision::Refuse(_) | Decision::Look(_) => {}
    }
}

fn volume_of(facts: &Facts) -> &Volume {
    facts.volume().unwrap()
}

/// All was looked at, and no answer is one that nobody could give.
fn is_known_and_well(facts: &Facts) -> bool {
    let Some(Lvm::Volume {
        volume, pool, lost, ..
    }) = &facts.lvm
    else {
        return false;
    };
    let is_held = match &facts.locks {
        None => volume.lock.is_none(),
        Some(locks) => *locks == Locks::Held,
    };
    let nobody_writes = facts.openers.as_ref().map_or(!volume.open, |openers| {
        openers.unseen == 0
            && openers.loops.is_empty()
            && openers.processes.iter().all(|process| !process.writes)
    });
    let is_nobodys = facts
        .uses
        .as_ref()
        .is_some_and(|uses| !uses.swap && uses.holders.is_empty() && uses.suspended.is_none());
    let is_read = !matches!(
        facts.content,
        None | Some(
            Content::Unreadable { .. }
                | Content::Failed(_)
                | Content::Several
                | Content::Other(_)
                | Content::Damaged(_)
        )
    );
    facts
        .device
        .as_ref()
        .is_some_and(|device| device.lv_uuid == volume.uuid)
        && facts.not_its_device.is_none()
        && !lost
        && !matches!(pool, Some(Pool::Unseen(_)))
        && is_held
        && nobody_writes
        && is_nobodys
        && is_read
}

/// docs/safety.md: mkfs runs only on what is blank beyond doubt, or is what its own mkfs left.
fn may_be_made(facts: &Facts, wish: &Wish) -> bool {
    let volume = volume_of(facts);
    let record = &volume.record;
    let is_alone = facts
        .uses
        .as_ref()
        .is_some_and(|uses| uses.mounts.is_empty())
        && facts.openers.as_ref().is_none_or(Openers::is_nobody);
    let is_writable =
        !facts.read_only && facts.read_only_disk.is_none() && volume.writable != Some(false);
    let pool_has_room = match &facts.lvm {
        Some(Lvm::Volume {
            pool: Some(Pool::Seen(pool)),
            ..
        }) => {
            pool.health.is_empty()
                && pool.data_percent < Some(95.0)
                && pool.metadata_percent < Some(95.0)
        }
        _ => true,
    };
    let is_permitted = |doubts: &[Doubt]| {
        let given = record.permission.as_ref();
        given.is_some_and(|(what, at)| {
            *what == Doubt::names(doubts) && *at <= NOW + 300 && NOW < *at + 86_400
        })
    };
    let is_blank = match facts.content.as_ref().unwrap() {
        Content::Blank { .. } => {
            let doubts = doubts_left(facts);
            doubts.is_empty() || (is_permitted(&doubts) && !record.new)
        }
        Content::Filesystem(found) => {
            found.half
                && record.made.is_none()
                && record.making.as_deref() == Some(found.fs.as_str())
        }
        _ => false,
    };
    is_known_and_well(facts)
        && !wish.read_only
        && wish.purpose == Purpose::Filesystem
        && is_alone
        && is_writable
        && pool_has_room
        && is_blank
}

/// What is formatted without a permission, is so with any; what needs one, is not without it.
fn without_one_permission(facts: &Facts, wish: &Wish) {
    let mut less = facts.clone();
    let needs = !doubts_left(facts).is_empty();
    let record = &mut volume(&mut less).record;
    let tags = record
        .tags
        .iter()
        .filter(|tag| !crate::lvm::is_permission(tag));
    *record = Record::parse(tags.map(String::as_str));
    let is_made = matches!(decide(&less, wish), Decision::Make { .. });
    assert_eq!(is_made, !needs, "{facts:?}");
}

/// One thing more that speaks against it, and it is not formatted.
fn with_one_doubt_more(facts: &Facts, wish: &Wish) {
    let mut more = facts.clone();
    let Some(Content::Blank { doubts, zero }) = &mut more.content else {
        return;
    };
    *zero = false;
    doubts.push(Doubt::Mark("one more".into()));
    let decision = decide(&more, wish);
    assert!(
        matches!(decision, Decision::Refuse(_)),
        "{decision:?} {more:?}"
    );
}

#[test]
fn every_case_keeps_every_promise_and_reaches_every_reason() {
    let mut cases = Cases {
        contents: contents(),
        ..Cases::default()
    };
    for wish in wishes() {
        for device in DEVICES {
            let mut facts = unseen();
            device(&mut facts);
            cases.explore(&facts, &wish, &[]);
        }
    }
    println!("{} cases", cases.number);
    let all: BTreeSet<&str> = <Reason as strum::VariantNames>::VARIANTS
        .iter()
        .copied()
        .collect();
    let missed: Vec<_> = all.difference(&cases.reasons).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
}
