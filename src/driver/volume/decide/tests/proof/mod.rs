//! Goes through all cases of [`decide`], with representatives of all facts and wishes. Like the driver, this looks
//! level by level. Each level gives each of its representatives.

mod blank;
mod contents;
mod known;
mod promises;
mod sights;

use std::collections::BTreeSet;
use std::num::NonZero;
use std::thread;

use strum::IntoEnumIterator;

use super::sample::*;
use crate::config::VolumeGroup;
use crate::crypt::DmTable;
use crate::names::{Bytes, FsType};
use crate::volume::decide::decision::{Decision, Level, Making};
use crate::volume::decide::facts::{Content, Decrypted, Facts};
use crate::volume::decide::reason::Word;
use crate::volume::decide::rules::decide;
use crate::volume::decide::uses::Uses;
use crate::volume::decide::wish::{Purpose, Wish};
use contents::{CONTENTS, recorded};
use promises::{check, lvm_before_activation};
use sights::*;

/// All combinations of purpose, type, access and policy.
fn wishes() -> Vec<Wish> {
    let created = || Wish {
        group: VolumeGroup {
            create: true,
            ..VolumeGroup::default()
        },
        size: Some(Bytes::new(9)),
        ..wish()
    };
    let [mut without_size, mut bounded, mut reserved, mut elsewhere] = [0; 4].map(|_| created());
    without_size.size = None;
    bounded.group.max_size = Some(Bytes::new(8));
    reserved.group.reserve = Bytes::new(99 * GIB);
    elsewhere.group.thin_pool = lv("pool");
    elsewhere.asked_pool = lv("other");
    let policies = [
        wish(),
        without_size,
        created(),
        bounded,
        reserved,
        elsewhere,
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
                for policy in &policies {
                    all.push(Wish {
                        purpose,
                        fs,
                        read_only: bits & 1 > 0,
                        subvolume: bits & 2 > 0,
                        by_hand: bits & 4 > 0,
                        ..policy.clone()
                    });
                }
            }
        }
    }
    for (encrypted, has_key) in [
        (Some(true), true),
        (Some(true), false),
        (Some(false), false),
        (None, false),
    ] {
        for (purpose, fs, read_only) in [
            (Purpose::Filesystem, Some(FsType::Ext4), false),
            (Purpose::Filesystem, None, true),
            (Purpose::Size(Bytes::new(2 * GIB)), None, false),
        ] {
            all.push(Wish {
                purpose,
                fs,
                read_only,
                encrypted,
                has_key,
                ..wish()
            });
        }
    }
    for (fs, read_only) in [
        (None, false),
        (Some(FsType::Ext4), true),
        (Some(FsType::Xfs), false),
    ] {
        all.push(Wish {
            global: true,
            fs,
            read_only,
            ..wish()
        });
    }
    all.push(Wish {
        not_allowed: Some("not for pods".into()),
        ..wish()
    });
    all
}

/// The facts before the first look.
fn unseen() -> Facts {
    Facts {
        uses: None,
        lvcreate_ended: false,
        lvm: None,
        content: None,
        ground: None,
        ..blank()
    }
}

#[derive(Default)]
struct Cases {
    number: u64,
    reasons: BTreeSet<&'static str>,
    /// How often each of four decisions on encrypted volumes came: mount, open, make the header, make the filesystem
    /// inside.
    encrypted: [u64; 4],
}

impl Cases {
    /// All cases of these wishes.
    fn of<'a>(wishes: impl Iterator<Item = &'a Wish>) -> Self {
        let mut cases = Self::default();
        for wish in wishes {
            for device in DEVICES {
                let mut facts = unseen();
                device(&mut facts);
                cases.explore(&facts, wish, &[]);
            }
        }
        cases
    }

    fn and(mut self, other: Self) -> Self {
        self.number = self.number.saturating_add(other.number);
        self.reasons.extend(other.reasons);
        for (sum, more) in self.encrypted.iter_mut().zip(other.encrypted) {
            *sum = sum.saturating_add(more);
        }
        self
    }

    /// Looks as far as the decision needs, with each representative of each level.
    fn explore(&mut self, facts: &Facts, wish: &Wish, looked: &[Level]) {
        let decision = decide(facts, wish);
        self.number = self.number.saturating_add(1);
        let Decision::Look(level) = decision else {
            if let Decision::Refuse(reason) = &decision {
                self.reasons.insert(reason.into());
            }
            let kinds = [
                is_open(facts) && matches!(decision, Decision::Mount(_)),
                matches!(decision, Decision::Open { .. }),
                matches!(
                    &decision,
                    Decision::Make {
                        how: Making::InLuks { .. },
                        ..
                    }
                ),
                matches!(
                    &decision,
                    Decision::Make {
                        how: Making::InOpenLuks,
                        ..
                    }
                ),
            ];
            for (number, is_one) in self.encrypted.iter_mut().zip(kinds) {
                *number = number.saturating_add(u64::from(is_one));
            }
            check(facts, wish, &decision);
            if facts.lvm.is_some() && !matches!(decision, Decision::Refuse(_)) {
                lvm_before_activation(facts, wish);
            }
            return;
        };
        assert!(
            !looked.contains(&level),
            "{level:?} twice: {facts:?} {wish:?}"
        );
        let looked = [looked, &[level]].concat();
        for facts in sights(facts, wish, level) {
            self.explore(&facts, wish, &looked);
        }
    }
}

/// The facts after a look at this level, once for each of its representatives. They are made one after the other: all
/// those of a content together would not fit into the processor's cache.
fn sights<'a>(
    facts: &'a Facts,
    wish: &'a Wish,
    level: Level,
) -> Box<dyn Iterator<Item = Facts> + 'a> {
    let seen = move |change: &dyn Fn(&mut Facts)| {
        let mut facts = facts.clone();
        change(&mut facts);
        facts
    };
    let each = move |sees: &'static [See]| Box::new(sees.iter().map(move |see| seen(see)));
    match level {
        Level::Uses => {
            let opened = OPENED.iter().take_while(|_| is_simple(wish));
            Box::new(USES.iter().chain(opened).map(move |see| {
                seen(&|f| {
                    f.uses = Some(Uses::default());
                    see(f);
                })
            }))
        }
        Level::Lvm => {
            // For a volume that is encrypted or is to be encrypted, only every fourth.
            let is_short = is_open(facts) || wish.encrypted.is_some();
            let odd = ODDITIES.iter().step_by(if is_short { 4 } else { 1 });
            let odd = odd.map(move |odd| {
                seen(&|f| {
                    f.lvm = blank().lvm;
                    volume(f).sized(Bytes::new(GIB));
                    volume(f).group.free = ROOM;
                    if is_open(f) {
                        tags(f, ENCRYPTED);
                    }
                    odd(f);
                })
            });
            let without_record = is_open(facts).then(|| seen(&|f| f.lvm = blank().lvm));
            Box::new(each(&ANSWERS).chain(odd).chain(without_record))
        }
        Level::Creation => Box::new([seen(&|f| f.lvcreate_ended = true)].into_iter()),
        Level::LeaseState => Box::new(
            LOCKS
                .iter()
                .map(move |lock| seen(&|f| f.locks = Some(lock()))),
        ),
        Level::Ground => each(&GROUNDS),
        Level::Room => each(&ROOMS),
        Level::Openers => each(&OPENERS),
        // With all contents, the proof would take too long.
        Level::Content if !is_simple(wish) => {
            Box::new([seen(&|f| f.content = blank().content)].into_iter())
        }
        Level::Content => Box::new(with_content(facts, wish)),
        Level::Decrypted => {
            let inside = move |content: &Content, table: DmTable| {
                let content = content.clone();
                let inside = Decrypted { content, table };
                seen(&|f| f.decrypted = Some(inside.clone()))
            };
            let is_plain = |content: &&Content| !matches!(content, Content::Luks(_));
            let all = CONTENTS.iter().filter(is_plain);
            let all = all.map(move |content| inside(content, table()));
            // Here only the kernel's table is wrong.
            let odd = DmTable {
                cipher: "null".into(),
                ..table()
            };
            let plain = Content::Filesystem(found(FsType::Ext4));
            Box::new(all.chain([inside(&plain, odd)]))
        }
    }
}

/// Each content with each record, permission and kind of disk. For an encrypted volume, and for one that is to be
/// encrypted, only the combinations that some rule judges differently.
fn with_content<'a>(facts: &'a Facts, wish: &'a Wish) -> impl Iterator<Item = Facts> + 'a {
    let may_meet = |content: &Content, record: &str, permission: Permission| {
        let is_luks = [ENCRYPTED, ENCRYPTING].contains(&record);
        let is_header = matches!(content, Content::Luks(_));
        let is_plain = wish.encrypted.is_none() && !is_luks;
        let is_short = OF_LUKS.contains(&record)
            && [Permission::None, Permission::Named(NOW)].contains(&permission);
        is_luks && is_short || !is_open(facts) && !is_header && (is_plain || is_short)
    };
    let all = CONTENTS.iter().flat_map(|content| {
        let of_record = move |record| PERMISSIONS.map(|permission| (content, record, permission));
        RECORDS.into_iter().flat_map(of_record)
    });
    let all =
        all.filter(move |(content, record, permission)| may_meet(content, record, *permission));
    all.flat_map(|(content, record, permission)| {
        let mut facts = facts.clone();
        facts.content = Some(content.clone());
        volume(&mut facts).record = recorded(record, permission, &facts);
        // A permission that permits nothing permits nothing on an odd disk either.
        let is_odd = ![Permission::None, Permission::Named(NOW)].contains(&permission);
        let disks = DISKS.iter().take(if is_odd { 1 } else { DISKS.len() });
        disks.map(move |disk| {
            let mut facts = facts.clone();
            disk(&mut facts);
            facts
        })
    })
}

/// Whether only those fields of this wish that matter for content differ from the default.
fn is_simple(wish: &Wish) -> bool {
    !wish.subvolume && !wish.by_hand && wish.group == VolumeGroup::default() && wish.size.is_none()
}

fn is_open(facts: &Facts) -> bool {
    facts
        .uses
        .as_ref()
        .is_some_and(|uses| uses.inside.is_some())
}

#[test]
fn every_case_keeps_every_promise_and_reaches_every_reason() {
    let wishes = wishes();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let cases = thread::scope(|scope| {
        let all_of = |part: usize| {
            let mine = wishes.iter().skip(part).step_by(processors);
            scope.spawn(|| Cases::of(mine))
        };
        let parts: Vec<_> = (0..processors).map(all_of).collect();
        let parts = parts.into_iter().map(|part| part.join().unwrap());
        parts.reduce(Cases::and).unwrap()
    });
    println!("{} cases, {:?} encrypted", cases.number, cases.encrypted);
    assert!(!cases.encrypted.contains(&0), "{:?}", cases.encrypted);
    let all: BTreeSet<&str> = Word::iter().map(Into::into).collect();
    let missed: Vec<_> = all.difference(&cases.reasons).collect();
    assert!(
        missed.is_empty(),
        "no wish or sight of ../sample leads to {missed:?}"
    );
}
