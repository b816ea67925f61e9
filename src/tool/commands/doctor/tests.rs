//! For each check, a node with one fault, and the finding that this gives.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use super::facts::LvmFacts;
use super::*;
use crate::commands::survey::{NodeHealth, Outcome, Verdict};
use crate::kubelet::Kubelet;
use driver::config::{Config, VolumeGroup};
use driver::host::{Lack, own_name};
use driver::lvm::{
    Disk, Fault, Group, GroupDisk, KeptAway, LeaseState, ReadOnlyBy, Record, Report, Udev,
};
use driver::names::{Bytes, Encryption, LvId, LvName, VgName};
use driver::volume::{Decision, Reason};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// A volume that the driver made, a thin pool with a volume, and a snapshot. Each has 64 MiB.
fn volumes() -> Vec<Health> {
    let mut sample: Value =
        serde_json::from_str(include_str!("../../../driver/lvm/sample.json")).unwrap();
    let sample = sample["report"][0]["lv"][0].take();
    let row = |(lv, layout, role, pool)| {
        let mut row = sample.clone();
        for (field, value) in [
            ("lv_name", lv),
            ("lv_uuid", lv),
            ("lv_tags", "flexvolume.fs=ext4:u"),
            ("lv_layout", layout),
            ("lv_role", role),
            ("pool_lv", pool),
            ("data_percent", "10"),
            ("vg_free", "4194304"),
        ] {
            row[field] = Value::from(value);
        }
        row
    };
    let rows = [
        ("data", "linear", "public", ""),
        ("pool", "thin,pool", "private", ""),
        ("snap", "linear", "public,snapshot,thicksnapshot", ""),
        ("thin", "thin,sparse", "public", "pool"),
    ];
    let report = serde_json::json!({"report": [{"lv": rows.map(row)}]}).to_string();
    let volumes = Report::parse(report.as_bytes()).unwrap();
    let volumes = volumes.volumes("lv").unwrap();
    let health = volumes.into_iter().map(|volume| Health {
        is_ours: true,
        verdict: Some(verdict(&volume.id, Outcome::Decided(Decision::Ready))),
        limit: 90,
        pool: None,
        suspended: None,
        outgrown: None,
        failed_filesystem: None,
        has_errors: false,
        ran_out_of: None,
        lacks_node: false,
        lock: None,
        header: None,
        is_kept_idle: false,
        globals: Vec::new(),
        unused_global: None,
        is_written: false,
        btrfs_at: None,
        volume,
    });
    health.collect()
}

fn verdict(id: &LvId, outcome: Outcome) -> Verdict {
    let (id, steps) = (id.clone(), Vec::new());
    Verdict { id, outcome, steps }
}

/// A disk whose partition was made smaller.
fn short_disk() -> GroupDisk {
    GroupDisk {
        path: "/dev/sdb".into(),
        free: Bytes::new(MIB),
        extents: Bytes::new(64 * MIB),
        begin: Bytes::new(MIB),
        size: Bytes::new(32 * MIB),
        allocatable: true,
        missing: false,
    }
}

fn kept(vg: &str) -> KeptAway {
    let (vg, owner) = (vg.to_owned(), "of host other".to_owned());
    let why = format!("{vg} is another host's");
    KeptAway { vg, owner, why }
}

fn group(name: &str) -> GroupHealth {
    let group = Group {
        name: name.to_owned(),
        size: Bytes::new(1024 * MIB),
        free: Bytes::new(4 * MIB),
        metadata_free: Bytes::new(MIB),
        metadata_size: Bytes::new(2 * MIB),
        extent: NonZeroU64::new(4 * MIB).unwrap(),
        missing: 0,
        exported: false,
        shared: false,
        disks: Vec::new(),
    };
    GroupHealth {
        group,
        twins: 1,
        is_ours: true,
        kept: None,
        disks: Vec::new(),
    }
}

fn well() -> NodeFacts {
    NodeFacts {
        config: Config::default(),
        config_problem: None,
        has_config_file: true,
        udev: Udev::Listens,
        lock_problem: None,
        host_name: "node".to_owned(),
        plugin_dir: Some(crate::kubelet::PLUGIN_DIR.into()),
        plugin_dir_problem: None,
        kubelets: Vec::new(),
        missing_tools: BTreeSet::new(),
        distrusted_tools: Vec::new(),
        lvm: Ok(LvmFacts {
            volumes: volumes(),
            groups: vec![group("vg")],
            node: NodeHealth::default(),
        }),
    }
}

impl NodeFacts {
    fn lvm(&mut self) -> &mut LvmFacts {
        self.lvm.as_mut().unwrap()
    }

    fn of(&mut self, lv: &str) -> &mut Health {
        let mut all = self.lvm().volumes.iter_mut();
        all.find(|one| one.volume.id.lv().as_str() == lv).unwrap()
    }

    fn record(&mut self, tags: &[&str]) {
        self.of("data").volume.record = Record::parse(tags.iter().copied());
    }

    fn merging(&mut self, failed: &str) {
        let volume = &mut self.of("data").volume;
        volume.attr = "Owi-a-----".to_owned();
        failed.clone_into(&mut volume.merge_failed);
    }

    fn fault(&mut self, fault: Fault) {
        let (vg, path) = ("vg".to_owned(), "/dev/sdb".into());
        self.group().disks = vec![Disk { vg, path, fault }];
    }

    fn group(&mut self) -> &mut GroupHealth {
        &mut self.lvm().groups[0]
    }

    fn table(&mut self, vg: &str, policy: VolumeGroup) {
        let vg = VgName::parse(vg).unwrap();
        self.config.volume_groups.insert(vg, policy);
    }

    fn lose(&mut self, tool: &'static str) {
        self.missing_tools.insert(tool);
    }

    /// Adds a group of another host, which LVM does not list.
    fn hide(&mut self, vg: &str, is_named: bool) {
        let kept = kept(vg);
        self.lvm().node.hidden = vec![(kept, is_named)];
    }

    fn next(&mut self, lv: &str, outcome: Outcome) {
        let one = self.of(lv);
        one.verdict = Some(verdict(&one.volume.id, outcome));
    }

    fn refuse(&mut self, lv: &str, reason: Reason) {
        self.next(lv, Outcome::Decided(Decision::Refuse(reason)));
    }

    fn kubelet(&mut self, line: &str) {
        self.kubelets.push(Kubelet::sample(line));
    }

    /// The findings, and the exit code.
    fn bad(&self) -> (Vec<Value>, u8) {
        let printed = findings(self).printed(true, 80).unwrap();
        let mut found: Vec<Value> = serde_json::from_str(&printed.stdout).unwrap();
        found.retain(|one| one["severity"] != "ok");
        (found, printed.code)
    }
}

/// Columns: the check; the severity; the volume, directory or disk; a part of the finding or of its command; the fault.
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, fn(&mut NodeFacts));

#[rustfmt::skip] // a row is a line
const ROWS: &[Row] = &[
    ("config", "failed", "", "line 3", |f| f.config_problem = Some("line 3".to_owned())),
    ("config", "warning", "", "[volume_group.nosuch]", |f| f.table("nosuch", VolumeGroup::default())),
    ("config", "warning", "", "thin_pool = ", |f| f.table("vg", VolumeGroup { thin_pool: LvName::parse("data").ok(), ..VolumeGroup::default() })),
    ("udev", "warning", "", "systemctl restart systemd-udevd", |f| f.udev = Udev::NoSocket),
    ("udev", "warning", "", "no process listens", |f| f.udev = Udev::Killed),
    ("udev", "failed", "", "hostIPC: true", |f| f.udev = Udev::CannotBeHeard),
    ("locks", "failed", "", "df -i /run", |f| f.lock_problem = Some("full".to_owned())),
    ("plugin-directory", "warning", "", "anybody", |f| f.plugin_dir_problem = Some("anybody may write".to_owned())),
    ("kubelet", "failed", "", "--plugin-dir /other", |f| f.kubelet("kubelet --volume-plugin-dir=/other")),
    ("kubelet", "failed", "", "not node", |f| f.kubelet("kubelet --hostname-override=n")),
    ("tools", "failed", "", "lvchange not found", |f| f.lose("lvchange")),
    ("tools", "failed", "", "default_fs: install e2fsprogs", |f| f.lose("mkfs.ext4")),
    ("tools", "warning", "", "install xfsprogs", |f| f.lose("mkfs.xfs")),
    ("tools", "failed", "", "lvs is not run", |f| f.distrusted_tools = vec![("lvs", "lvs is not run: /bin is anybody's".to_owned())]),
    ("tools", "note", "", "sanlock is not run", |f| f.distrusted_tools = vec![("sanlock", "sanlock is not run".to_owned())]),
    ("tools", "failed", "", "pvs not found in tool_dirs: install lvm2", |f| f.lose("pvs")),
    ("tools", "warning", "", "encryption needs: install cryptsetup-bin", |f| f.lose("cryptsetup")),
    ("tools", "failed", "", "no cryptsetup", |f| { f.lose("cryptsetup"); f.table("vg", VolumeGroup { encryption: Some(Encryption::Luks2), ..VolumeGroup::default() }); }),
    ("tools", "failed", "", "install lvm2-lockd", |f| { f.lose("lvmlockctl"); f.group().group.shared = true; }),
    ("luks-header", "failed", "vg/data", "no answer", |f| f.of("data").header = Some("no answer".to_owned())),
    ("suspended", "warning", "vg/data", "dmsetup resume vg-data", |f| f.of("data").suspended = Some("vg-data".to_owned())),
    ("larger-device", "failed", "vg/data", "vgcfgrestore --list vg\"", |f| f.of("data").outgrown = Some(Bytes::new(99 << 30))),
    ("volume-health", "warning", "vg/pool", "lvconvert --repair vg/pool", |f| f.of("pool").volume.health = "failed".to_owned()),
    ("volume-health", "warning", "vg/pool", "lvs -a -o +devices,lv_health_status vg\"", |f| f.of("pool").volume.health = "partial".to_owned()),
    ("pool-full", "warning", "vg/thin", "its thin pool vg/pool is nearly full", |f| { let mut pool = f.of("pool").volume.clone(); pool.data_percent = Some(95.0); f.of("thin").pool = Some(pool); }),
    ("missing-disks", "failed", "vg", "2 disks are missing", |f| f.group().group.missing = 2),
    ("mounts", "failed", "vg/gone", "pvs -a", |f| f.lvm().node.lost = LvId::parse("vg/gone").into_iter().collect()),
    ("lvm", "failed", "", "broken", |f| f.lvm = Err("broken".to_owned())),
    ("lvm", "failed", "", "no answer", |f| f.lvm().node.disks_unknown = Some("no answer".to_owned())),
    ("lvm", "failed", "mute", "no lock", |f| { f.lvm().node.silent.insert(VgName::parse("mute").unwrap(), "no lock".to_owned()); }),
    ("duplicate-groups", "failed", "vg", "vgrename UUID vg-2", |f| f.group().twins = 2),
    ("groups", "note", "away", "another host's", |f| f.hide("away", false)),
    ("groups", "failed", "vg", "another host's", |f| f.group().kept = Some(kept("vg"))),
    ("groups", "warning", "vg", "vgimport vg", |f| f.group().group.exported = true),
    ("groups", "note", "vg", "vgimport vg", |f| (f.group().group.exported, f.group().is_ours) = (true, false)),
    ("room", "warning", "vg", "vgs -o +vg_mda_size,vg_mda_free vg", |f| f.group().group.metadata_free = Bytes::new(MIB / 20)),
    ("duplicate-disks", "failed", "vg", "`vgimportclone --basevgname vg-2 DISK`", |f| f.fault(Fault::Duplicate)),
    ("missing-disks", "failed", "vg", "`vgreduce --removemissing vg`", |f| f.fault(Fault::Missing)),
    ("missing-disks", "failed", "vg", "vgextend --restoremissing vg /dev/sdb", |f| f.fault(Fault::Returned)),
    ("missing-disks", "failed", "vg", "pvresize /dev/sdb", |f| f.group().group.disks.push(short_disk())),
    ("snapshot-full", "warning", "vg/snap", "lvextend --extents +20%ORIGIN vg/snap", |f| f.of("snap").volume.data_percent = Some(80.0)),
    ("volume-health", "warning", "vg/data", "LVM puts vg/data back", |f| f.merging("unknown")),
    ("volume-health", "warning", "vg/data", "lvchange -ay vg/data", |f| f.merging("merge failed")),
    ("suspended", "warning", "vg/data", "dmsetup resume vg-data", |f| { f.of("data").suspended = Some("vg-data".to_owned()); f.refuse("data", Reason::HeldElsewhere(None)); }),
    ("next-mount", "failed", "vg/data", "[swap]", |f| f.refuse("data", Reason::Swap)),
    ("next-mount", "note", "vg/data", "[read-only-volume]", |f| f.refuse("data", Reason::ReadOnlyVolume(ReadOnlyBy::Metadata))),
    ("next-mount", "failed", "vg/data", "[read-only-volume]", |f| { f.of("data").is_written = true; f.refuse("data", Reason::ReadOnlyVolume(ReadOnlyBy::Metadata)); }),
    ("next-mount", "warning", "vg/data", "broken", |f| f.next("data", Outcome::Unknown("broken".to_owned()))),
    ("filesystem-errors", "failed", "vg/data", "dmesg", |f| f.of("data").failed_filesystem = Some(Reason::Swap)),
    ("filesystem-errors", "warning", "vg/data", "check vg/data; dmesg", |f| f.of("data").has_errors = true),
    ("filesystem-full", "warning", "vg/data", "lvextend --resizefs", |f| f.of("data").ran_out_of = Some(Lack::Space)),
    ("filesystem-full", "warning", "vg/data", "&& btrfs filesystem resize max /k/one\"", |f| { f.of("data").ran_out_of = Some(Lack::Space); f.of("data").btrfs_at = Some("/k/one".into()); }),
    ("filesystem-full", "note", "vg/data", "lvextend --resizefs", |f| (f.of("data").is_ours, f.of("data").ran_out_of) = (false, Some(Lack::Space))),
    ("next-mount", "note", "vg/data", "is partial", |f| { f.of("data").is_ours = false; f.refuse("data", Reason::Partial); }),
    ("filesystem-full", "warning", "vg/data", "no inode is left", |f| f.of("data").ran_out_of = Some(Lack::Inodes)),
    ("volume-health", "warning", "vg/data", "lvs -a -o +devices,lv_health_status vg\"", |f| f.of("data").volume.health = "partial".to_owned()),
    ("volume-health", "warning", "vg/data", "lvchange --refresh vg/data", |f| f.of("data").volume.health = "refresh needed".to_owned()),
    ("volume-health", "warning", "vg/data", "no pod gets the volume", |f| { f.of("data").volume.health = "error".to_owned(); }),
    ("mkfs-unfinished", "warning", "vg/data", "mkfs.xfs was not seen to end", |f| f.record(&["flexvolume.making=xfs"])),
    ("may-be-formatted", "warning", "vg/data", "check vg/data", |f| f.record(&["flexvolume.mayformat=mark:1"])),
    ("kept-from-others", "warning", "vg/data", "lvchange -an vg/data", |f| f.of("data").is_kept_idle = true),
    ("two-global-mounts", "warning", "vg/data", "unmountdevice /k/one && ", |f| f.of("data").globals = vec!["/k/one".into(), "/k/two".into()]),
    ("unused-global-mount", "warning", "vg/data", "unmountdevice /k/one\"", |f| f.of("data").unused_global = Some("/k/one".into())),
    ("pool-full", "warning", "vg/pool", "lvextend --size +", |f| f.of("pool").volume.data_percent = Some(95.0)),
    ("pool-full", "warning", "vg/pool", "vgextend vg DISK && lvextend", |f| {
        let pool = &mut f.of("pool").volume;
        (pool.metadata_percent, pool.group.free) = (Some(95.0), Bytes::new(0));
    }),
    ("volume-lock", "failed", "vg/data", "mounted, but", |f| f.of("data").lock = Some(LeaseState::Lost)),
    ("device-node", "failed", "vg/data", "vgmknodes vg", |f| f.of("data").lacks_node = true),
];

#[test]
fn each_check_finds_its_own_fault_and_no_other() {
    assert_eq!(well().bad(), (Vec::new(), 0));
    for (check, verdict, about, words, fault) in ROWS {
        let mut facts = well();
        fault(&mut facts);
        let (found, code) = facts.bad();
        let [one] = found.as_slice() else {
            panic!("{check} {words}: {found:?}")
        };
        assert_eq!(
            (&one["check"], &one["severity"]),
            (&(*check).into(), &(*verdict).into())
        );
        assert_eq!(one["about"].as_str().unwrap_or_default(), *about, "{one}");
        assert!(one.to_string().contains(words), "{one}");
        let want = [("note", 0), ("failed", 1), ("warning", 3)];
        assert!(want.contains(&(*verdict, code)), "{code} {one}");
    }
}

#[test]
fn each_check_has_a_row_and_is_in_the_schema() {
    /// Checks that only tests/guest/doctor/faults.rs covers.
    const ELSEWHERE: [&str; 1] = ["volumes"];
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/schemas/doctor.json")).unwrap();
    let words = schema["items"]["properties"]["check"]["enum"]
        .as_array()
        .unwrap();
    let words: BTreeSet<&str> = words.iter().filter_map(Value::as_str).collect();
    let rows = ROWS.iter().map(|(check, ..)| *check);
    let rows = rows.chain(ELSEWHERE);
    assert_eq!(rows.collect::<BTreeSet<_>>(), words);
}

/// The beginning of each command that a finding prints. Then the file with the case that runs this command as printed
/// and sees the fault gone, or why there is no such case.
#[rustfmt::skip] // a row is a line
const RUN: &[(&str, &str)] = &[
    ("systemctl restart systemd-udevd", "no guest has systemd"),
    ("readlink /proc/1/ns/ipc", "it only looks"),
    ("df /run", "it only looks"),
    ("vgrename UUID ", "tests/guest/doctor/nodes.rs"),
    ("vgimport ", "tests/guest/data/lvm_conf.rs"),
    ("vgs -o +vg_mda_size", "it only looks"),
    ("vgcfgrestore --list ", "it only looks"),
    ("lsblk -o NAME", "only a person can say which of two disks is the copy"),
    ("vgextend --restoremissing ", "tests/guest/doctor/nodes.rs"),
    ("pvresize ", "tests/guest/calls/failed_growth.rs"),
    ("pvs -o pv_name,vg_name,pv_uuid,pv_missing", "it begins with looking: what helps depends on the disk"),
    ("pvs -a", "it only looks"),
    ("dmesg", "it only looks"),
    ("lvm check ", "it only looks"),
    ("lvm explain ", "it only looks"),
    ("lvextend --resizefs ", "tests/guest/doctor/faults.rs"),
    ("lvextend --extents +20%ORIGIN ", "tests/guest/doctor/faults.rs"),
    ("lvextend --extents +20%LV ", "no case fills a btrfs: the command is that of docs/day-two.md, without --resizefs"),
    ("lvextend --size ", "tests/guest/doctor/faults.rs"),
    ("vgextend vg DISK && lvextend ", "only a person has the disk"),
    ("lvs -a -o +devices", "it only looks"),
    ("lvchange -an -S pool_lv=", "the row unwell of the refusals: the message has the same command"),
    ("lvchange -an ", "tests/shared/obstacles.rs"),
    ("lvchange --refresh ", "tests/guest/data/states.rs"),
    ("vgmknodes ", "tests/guest/doctor/faults.rs"),
    ("lvm unmountdevice ", "users/names.rs runs it, by the driver's path"),
];

#[test]
fn each_command_is_run_in_a_guest_or_the_table_says_why_not() {
    let mut seen = BTreeSet::new();
    for (.., fault) in ROWS {
        let mut facts = well();
        fault(&mut facts);
        for one in facts.bad().0 {
            let Some(command) = one["command"].as_str() else {
                continue;
            };
            let command = command.replace(&own_name(), "lvm");
            let row = RUN.iter().find(|(begins, _)| command.starts_with(begins));
            let (begins, place) = row.unwrap_or_else(|| panic!("no row for {command}"));
            seen.insert(*begins);
            assert!(
                place.contains(' ') || commands::is_run_in(place, begins),
                "{place} does not run {begins}"
            );
        }
    }
    let stale = RUN.iter().filter(|(begins, _)| !seen.contains(begins));
    assert_eq!(stale.count(), 0, "{seen:?}");
}

#[path = "../../../../tests/guest/refusals/commands.rs"]
mod commands;

type Case<'a> = (&'a str, &'a dyn Fn(&mut NodeFacts));

#[test]
fn young_watched_and_already_named_things_are_no_fault() {
    let unnamed = |f: &mut NodeFacts, reason| {
        f.of("data").is_ours = false;
        f.refuse("data", reason);
    };
    let cases: [Case; 6] = [
        ("what is wrong with a volume that is nobody's", &|f| {
            f.of("data").is_ours = false;
            f.refuse("data", Reason::Several);
        }),
        ("a snapshot with room", &|f| {
            f.of("snap").volume.data_percent = Some(79.0);
        }),
        ("what the host itself uses", &|f| unnamed(f, Reason::Swap)),
        ("a kubelet of another name, that names no node", &|f| {
            f.config.attach = false;
            f.kubelet("kubelet --hostname-override=n");
        }),
        ("tools that nothing here needs", &|f| {
            for tool in ["lvmlockctl", "sanlock", "journalctl"] {
                f.lose(tool);
            }
        }),
        ("what another node has", &|f| {
            f.refuse("data", Reason::HeldElsewhere(None));
        }),
    ];
    for (name, change) in cases {
        let mut facts = well();
        change(&mut facts);
        assert_eq!(facts.bad(), (Vec::new(), 0), "{name}");
    }
    let mut facts = well();
    facts.hide("away", true);
    facts.table("away", VolumeGroup::default());
    let verdicts = facts
        .bad()
        .0
        .into_iter()
        .filter(|one| one["check"] == "groups");
    let verdicts: Vec<_> = verdicts.map(|one| one["severity"].clone()).collect();
    assert_eq!(verdicts, ["warning"], "named in the config");
    for lv in ["data", "thin"] {
        facts.refuse(lv, Reason::LvmSilent("twins".to_owned()));
    }
    let twins = facts.bad().0;
    let twins = twins.iter().filter(|one| one["check"] == "next-mount");
    assert_eq!(twins.count(), 1, "not one for each volume");
}

#[test]
fn a_full_pool_is_to_be_extended_and_not_repaired() {
    let mut facts = well();
    let pool = &mut facts.of("pool").volume;
    (pool.health, pool.data_percent) = ("out_of_data".to_owned(), Some(100.0));
    let commands = facts.bad().0.into_iter();
    let commands: Vec<_> = commands.map(|one| one["command"].clone()).collect();
    let extend = Value::from("lvextend --size +13M vg/pool");
    assert_eq!(commands, [extend]);
}
