//! One or more samples of every [`Reason`].

use crate::config::Config;
use crate::crypt::{Luks, Unlocked};
use crate::fs::{Backup, Mark};
use crate::host::holders::Opener;
use crate::lvm::{GroupDisk, Holder, LeaseState, ReadOnlyBy, twins};
use crate::names::{Bytes, FsType, LvId, LvName, Shown, VgName};
use crate::volume::decide::doubt::Doubt;
use crate::volume::decide::reason::{Flaw, Needed, Reason};
use crate::volume::decide::states::{Help, May, State};
use crate::volume::decide::tests::sample::{data_at, filesystem, first_of_ext, short_disk};
use crate::volume::decide::uses::{Elsewhere, Occupied, Place};
use crate::volume::mounted_filesystem::Failure;

/// A sample of each message, in the order of the reasons. `text` can change each text in a sample. Each value contains
/// a 7 or is a type of filesystem, so that [`super::beginning`] recognises it.
#[allow(clippy::too_many_lines)] // a table
pub fn samples(text: &dyn Fn(&str) -> String) -> Vec<Reason> {
    let id = || LvId::parse("vg7/pool7").unwrap();
    let size = |gib: u64| Bytes::new(gib << 30);
    let short = || GroupDisk {
        path: text("/dev/sdb7").into(),
        size: size(7),
        extents: size(17),
        ..short_disk(0)
    };
    let opener = |writes| {
        vec![Opener {
            pid: 77,
            command: text("vm7").shown(),
            writes,
        }]
    };
    let here = || Place::Here(text("/var/lib/kubelet/pods/7").into());
    let elsewhere = || {
        vec![Elsewhere {
            pid: 77,
            command: text("app7").shown(),
            at: text("/data7").into(),
            hosts: false,
        }]
    };
    let occupied = || Occupied {
        dir: text("/var/lib/kubelet/pods/7").into(),
        by: text("vg7/db7").shown(),
        name: Some(text("data7")),
    };
    let config = Config::parse("[volume_group.other]\n", "/etc/7.toml").unwrap();
    let vg = VgName::parse("vg7").unwrap();
    let locks = |locks: LeaseState| Reason::NoLocks(locks.obstacle(&vg).unwrap());
    let holder = |silent| {
        Reason::HeldElsewhere(Some(Holder {
            host: 7,
            name: text("node-7"),
            silent,
        }))
    };
    let full = |what, percent| Reason::PoolFull {
        pool: id(),
        size: size(70),
        what,
        percent,
        limit: 97,
    };
    let state = |id: &str, says: &str, help| State {
        id: LvId::parse(id).unwrap(),
        may: May::Nothing,
        says: text(says),
        help,
        size: size(70),
    };
    let said = |help| state("vg7/web7", "error7", help);
    let pool_said = |help| state("vg7/pool7", "out_of_data7", help);
    let other = |wanted| Reason::Other {
        what: text("crypto_LUKS7").shown(),
        wanted,
        recorded: None,
    };
    let held = || Doubt::Recorded(filesystem(text("ext4"), &text("7f6b1e88")));
    let held_by = |fs: &str| Doubt::Recorded(filesystem(fs.to_owned(), &text("7f6b1e88")));
    let backup = || {
        Doubt::Backup(Backup {
            offset: 1 << 27,
            uuid: text("7f6b1e88"),
            block_size: 4096,
            written: 1_700_000_007,
        })
    };
    let mark = || Mark {
        what: text("md7 superblock"),
        offset: 70,
        look: "mdadm --examine".to_owned(),
    };
    let copy = |held| Doubt::Copy {
        origin: LvName::parse("data7").unwrap(),
        held,
    };
    vec![
        Reason::NotAllowed(config.policy(&vg).unwrap_err().to_string()),
        Reason::NotItsDevice(text(
            "/dev/mapper/vg7-web7 is device 7:7, which device-mapper calls \"x7\" with UUID \"7\": that \
             is not the logical volume vg7/web7",
        )),
        Reason::AnotherIsThere(occupied()),
        Reason::AnotherIsThere(Occupied {
            name: None,
            ..occupied()
        }),
        Reason::Swap,
        Reason::PartOfDevice {
            holders: vec![text("dm-7")],
            unlocked: None,
        },
        Reason::PartOfDevice {
            holders: vec![text("old7")],
            unlocked: Some(Unlocked {
                kind: Luks::One,
                name: text("old7"),
            }),
        },
        Reason::Loop(vec![text("loop7")]),
        Reason::Open(opener(true)),
        Reason::OpenUnseen,
        Reason::HostMount {
            at: text("/srv/7").into(),
            pods: false,
        },
        Reason::HostMount {
            at: text("/srv/7").into(),
            pods: true,
        },
        Reason::WrongType {
            found: text("xfs"),
            wanted: FsType::Ext4,
        },
        Reason::MountedReadOnly(text("/var/lib/kubelet/pods/7").into()),
        Reason::FilesystemFailed(here(), Failure::Errors),
        Reason::FilesystemFailed(here(), Failure::ShutDown),
        Reason::FilesystemFailed(Place::Elsewhere(elsewhere()), Failure::Errors),
        Reason::FilesystemFailed(Place::Elsewhere(Vec::new()), Failure::Errors),
        Reason::LvmSilent(text(
            "asking LVM for vg7/web7: LVM is locked by lvs7 (pid 77)",
        )),
        Reason::LvmSilent(twins(&vg, 7)),
        Reason::Unknown,
        Reason::NoGroup,
        Reason::NoVolume(None),
        Reason::NoVolume(Some(size(7))),
        Reason::Hidden,
        Reason::NoSize,
        Reason::CreateReadOnly,
        Reason::MetadataFull(Bytes::new(77)),
        Reason::AnotherPool {
            pool: LvName::parse("pool7").unwrap(),
            asked: LvName::parse("pool77").unwrap(),
        },
        Reason::TooLarge {
            size: size(77),
            largest: size(7),
        },
        Reason::Reserve {
            more: size(27),
            free: size(17),
            reserve: size(7),
        },
        Reason::NoRoom(Needed {
            size: size(77),
            more: size(77),
            free: size(17),
            has: Bytes::new(0),
            sector: None,
            short: None,
        }),
        Reason::NoRoom(Needed {
            size: size(77),
            more: size(77),
            free: size(17),
            has: Bytes::new(0),
            sector: None,
            short: Some(short()),
        }),
        Reason::NoRoom(Needed {
            size: size(77),
            more: size(70),
            free: size(17),
            has: size(7),
            sector: None,
            short: None,
        }),
        Reason::NoRoom(Needed {
            size: size(77),
            more: size(70),
            free: size(17),
            has: size(7),
            sector: None,
            short: Some(short()),
        }),
        Reason::NoRoom(Needed {
            size: size(77),
            more: size(70),
            free: size(17),
            has: size(7),
            sector: Some(Bytes::new(7)),
            short: None,
        }),
        Reason::ShortDisk(short()),
        Reason::FilesystemLimit(size(7)),
        Reason::SnapshotSize {
            origin: "origin7".to_owned(),
            size: size(7),
        },
        Reason::Pool,
        locks(LeaseState::Silent(text("7"))),
        locks(LeaseState::NotStarted),
        locks(LeaseState::Starting),
        locks(LeaseState::Lost),
        Reason::HeldElsewhere(None),
        holder(7),
        holder(70),
        Reason::ActiveShared,
        Reason::ActiveWithoutLock,
        Reason::Partial,
        Reason::Degraded(Flaw::Missing(7)),
        Reason::Degraded(Flaw::Unwell(said(Help::Resync))),
        Reason::Degraded(Flaw::Unwell(said(Help::Refresh))),
        Reason::Degraded(Flaw::Unwell(said(Help::Repair))),
        Reason::Degraded(Flaw::Unwell(pool_said(Help::Disk))),
        Reason::PartlyActive {
            stand_in: text("vg7-web7-missing_0_0"),
            pool: None,
        },
        Reason::PartlyActive {
            stand_in: text("vg7-web7-missing_0_0"),
            pool: Some(id()),
        },
        Reason::SnapshotFull,
        Reason::MergeWaits,
        Reason::Unwell(said(Help::Look)),
        Reason::Unwell(State {
            may: May::Read,
            ..said(Help::Again)
        }),
        Reason::Unwell(pool_said(Help::AgainPool)),
        Reason::Unwell(pool_said(Help::Room)),
        Reason::AnotherDevice,
        Reason::LargerDevice {
            device: size(70),
            volume: size(7),
        },
        Reason::Suspended(text("vg7-web7")),
        Reason::Suspended(text("vg7-pool7_tdata")),
        Reason::SuspendedInside(text("vg7-web7")),
        Reason::NoPool(id()),
        full("data", 97.5),
        full("metadata", 98.7),
        Reason::Failed(text("probing /dev/mapper/vg7-web7: 7")),
        Reason::Unreadable {
            at: 4_194_307,
            error: text("EIO7"),
            says: None,
        },
        Reason::Unreadable {
            at: 4_194_307,
            error: text("EIO7"),
            says: Some(said(Help::Refresh)),
        },
        Reason::OldDisk {
            disk: text("sdz7"),
            pool: None,
            inside: None,
        },
        Reason::OldDisk {
            disk: text("sdz7"),
            pool: Some(LvId::parse("vg7/pool7").unwrap()),
            inside: Some("/dev/mapper/inside7".into()),
        },
        Reason::InUse(Vec::new()),
        Reason::InUse(elsewhere()),
        Reason::StillMounted,
        Reason::Several,
        other(Some(FsType::Ext4)),
        other(None),
        Reason::Other {
            what: "a damaged LUKS2 header".shown(),
            wanted: None,
            recorded: None,
        },
        Reason::Other {
            what: text("swap7").shown(),
            wanted: Some(FsType::Ext4),
            recorded: Some(filesystem(text("ext4"), &text("7f6b1e88"))),
        },
        Reason::Damaged(FsType::Ext4),
        Reason::Damaged(FsType::Xfs),
        Reason::Damaged(FsType::Btrfs),
        Reason::NewNotBlank(text("ext4 7f6b1e88")),
        Reason::Encrypted,
        Reason::NotEncrypted,
        Reason::NoKey,
        Reason::Cipher(text("swap7").shown()),
        Reason::Reencryption,
        Reason::TooSmall(Bytes::new(7 << 20)),
        Reason::Header {
            recorded: text("7b1c2d3e"),
            found: text("swap7"),
        },
        Reason::Header {
            recorded: text("7b1c2d3e"),
            found: text("the LUKS2 header 77777777"),
        },
        Reason::Inside {
            recorded: text("ext4 7f6b1e88"),
            found: text("xfs 77777777"),
            ext: None,
        },
        Reason::Inside {
            recorded: text("ext4 7f6b1e88"),
            found: text("no known signature"),
            ext: None,
        },
        Reason::Inside {
            recorded: text("ext4 7f6b1e88"),
            found: backup().to_string(),
            ext: Some(backup()),
        },
        Reason::Inside {
            recorded: text("ext4 7f6b1e88"),
            found: first_of_ext().to_string(),
            ext: Some(first_of_ext()),
        },
        Reason::Swapped {
            recorded: filesystem(text("ext4"), &text("7f6b1e88")),
            found: filesystem(FsType::Xfs, &text("77aa1200")),
        },
        Reason::Reduced {
            what: "LUKS2 header",
            has: size(7),
            covers: size(17),
        },
        Reason::Reduced {
            what: "ext4",
            has: size(7),
            covers: size(70),
        },
        Reason::LargeBlocks {
            fs: FsType::Xfs,
            block: size(17),
            largest: size(7),
            encrypted: false,
        },
        Reason::LargeBlocks {
            fs: FsType::Xfs,
            block: size(17),
            largest: size(7),
            encrypted: true,
        },
        Reason::SeveralDevices(FsType::Btrfs),
        Reason::SeveralDevices(FsType::Xfs),
        Reason::ReadOnlyVolume(ReadOnlyBy::Metadata),
        Reason::ReadOnlyVolume(ReadOnlyBy::Origin),
        Reason::ReadOnlyVolume(ReadOnlyBy::Kernel),
        Reason::ReadOnlyDisk(text("sd7")),
        Reason::BlankReadOnly,
        Reason::BeingRead(opener(false)),
        Reason::Doubts(vec![held()]),
        Reason::Doubts(vec![held_by("xfs"), Doubt::Mark(mark())]),
        Reason::Doubts(vec![held_by("btrfs"), Doubt::Mark(mark())]),
        Reason::Doubts(vec![held(), backup(), data_at(70)]),
        Reason::Doubts(vec![Doubt::Mark(mark())]),
        Reason::Doubts(vec![backup()]),
        Reason::Doubts(vec![held(), first_of_ext(), backup(), data_at(1024)]),
        Reason::Doubts(vec![data_at(70)]),
        Reason::Doubts(vec![copy(None), Doubt::Blocks(text("7.70"))]),
        Reason::Doubts(vec![copy(Some(filesystem(
            text("ext4"),
            &text("7f6b1e88"),
        )))]),
    ]
}
