//! For each check, a node that is well but for one answer, and what is found then.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::time::Duration;

use super::facts::{Crypto, Hidden, Mounted, Selinux, Tool, Unmounted, UsedDisk};
use super::host::all_tools;
use super::*;
use crate::commands::survey::Outcome;
use crate::kubelet::Kubelet;
use driver::config::{Config, LogTarget, VolumeGroup};
use driver::crypt::Header;
use driver::host::Lack;
use driver::host::holders::Process;
use driver::lvm::{Disk, Fault, Group, KeptAway, LeaseState, Lost, Record, Report, Udev};
use driver::names::{Bytes, FsType, LvId, LvName, Shown, VgName};
use driver::volume::{Decision, Reason};
use serde_json::Value;

const MIB: u64 = 1 << 20;
const OLD: Option<Duration> = Some(Duration::from_secs(600));

/// A volume that the driver made, a thin pool with a volume, and a snapshot, all of 64 MiB.
/// What a LUKS2 header says that the driver made.
const LAYOUT: &str = r#"{"segments":[{"kind":"crypt","cipher":"aes-xts-plain64","offset":16777216,
    "has_integrity":false}],"keyslots":[{"kind":"luks2","cipher":"aes-xts-plain64","key_size":64,
    "volume_key_size":64}],"requirements":[],"end":16777216}"#;

fn volumes() -> Vec<VolumeFacts> {
    let mut sample: Value =
        serde_json::from_str(include_str!("../../../driver/lvm/sample.json")).unwrap();
    let sample = sample["report"][0]["lv"][0].take();
    let row = |(lv, layout, role, pool)| {
        let mut row = sample.clone();
        for (field, value) in [
            ("lv_name", lv),
            ("lv_uuid", lv),
            ("lv_time", "0"),
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
    let volumes = volumes.volumes().unwrap();
    let facts = volumes.into_iter().map(|volume| VolumeFacts {
        is_ours: true,
        is_kept_idle: false,
        lacks_node: false,
        failed: None,
        lock: None,
        next_mount: Some(Outcome::Decided(Decision::Ready)),
        has_errors: false,
        lack: None,
        header: None,
        volume,
    });
    facts.collect()
}

fn group(name: &str) -> Group {
    Group {
        name: name.to_owned(),
        size: Bytes::new(1024 * MIB),
        free: Bytes::new(4 * MIB),
        metadata_free: Bytes::new(MIB),
        metadata_size: Bytes::new(2 * MIB),
        extent: NonZeroU64::new(4 * MIB).unwrap(),
        missing: 0,
        exported: false,
    }
}

fn disk(vg: &str) -> Disk {
    Disk {
        vg: vg.to_owned(),
        path: "/dev/sdb".into(),
        is_open: true,
        is_allocatable: true,
        fault: None,
    }
}

fn crypto() -> Crypto {
    Crypto {
        has_dm_crypt: true,
        has_cipher: true,
        key_problems: Vec::new(),
    }
}

fn selinux(is_mislabelled: bool) -> Selinux {
    let (domain, label) = ("initrc_t".to_owned(), "bin_t".to_owned());
    Selinux {
        domain,
        exe: "/exec/lvm".into(),
        label,
        is_mislabelled,
    }
}

fn well() -> Facts {
    let tools = all_tools().map(|name| Tool {
        name,
        is_there: true,
        problem: None,
    });
    Facts {
        config: Config::default(),
        config_problem: None,
        has_config_file: true,
        device_mapper: Ok("Library version:   1.02.185\n".to_owned()),
        udev: Udev::Listens,
        selinux: None,
        now: 1_000_000_000,
        lvm_lockers: Vec::new(),
        lock_problem: None,
        host_name: "node".to_owned(),
        plugin_dir: Some("/exec".into()),
        plugin_dir_problem: None,
        kubelets: Vec::new(),
        has_log: true,
        tools: tools.collect(),
        crypto: Some(crypto()),
        tool_dir_problems: Vec::new(),
        lvm: Ok(Lvm {
            volumes: volumes(),
            answered_after: Duration::ZERO,
            groups: vec![group("vg")],
            kept_away: Vec::new(),
            hidden: Vec::new(),
            used_disks: Ok(Vec::new()),
            reads_inside: false,
            lost: BTreeSet::new(),
        }),
        mkfs_problems: Vec::new(),
        mounts: Vec::new(),
        unmounted: Vec::new(),
    }
}

impl Facts {
    fn lvm(&mut self) -> &mut Lvm {
        self.lvm.as_mut().unwrap()
    }

    fn of(&mut self, lv: &str) -> &mut VolumeFacts {
        let mut all = self.lvm().volumes.iter_mut();
        all.find(|one| one.volume.id.lv().as_str() == lv).unwrap()
    }

    fn record(&mut self, tags: &[&str]) {
        self.of("data").volume.record = Record::parse(tags.iter().copied());
    }

    fn fault(&mut self, fault: Fault) {
        let fault = Some(fault);
        self.lvm().used_disks = Ok(vec![UsedDisk {
            disk: Disk {
                fault,
                ..disk("vg")
            },
            shared_kind: None,
        }]);
    }

    fn table(&mut self, vg: &str, policy: VolumeGroup) {
        let vg = VgName::parse(vg).unwrap();
        self.config.volume_groups.insert(vg, policy);
    }

    fn lose(&mut self, tool: &str) {
        self.tools.retain(|one| one.name != tool);
    }

    fn mounted(&mut self, age: Option<Duration>) -> &mut Mounted {
        self.mounts.push(Mounted {
            at: "/k/data".into(),
            source: "/dev/mapper/vg-data".into(),
            source_is_gone: false,
            age,
            ended_pod: None,
            is_nodes_alone: false,
        });
        self.mounts.last_mut().unwrap()
    }

    fn crypto(&mut self) -> &mut Crypto {
        self.crypto.as_mut().unwrap()
    }

    /// A record of a LUKS2 header, and that header.
    fn header(&mut self, uuid: &str, is_whole: bool) {
        self.record(&["flexvolume.fs=ext4:u", "flexvolume.luks=of-record"]);
        self.of("data").header = Some(Ok(Some(Header {
            uuid: Some(uuid.to_owned()),
            is_whole,
            layouts: vec![Some(serde_json::from_str(LAYOUT).unwrap())],
        })));
    }

    fn kept(&mut self, vg: &str) {
        let (vg, owner) = (vg.to_owned(), "of host other".to_owned());
        let why = format!("{vg} is another host's");
        self.lvm().kept_away.push(KeptAway { vg, owner, why });
    }

    fn refuse(&mut self, lv: &str, reason: Reason) {
        self.of(lv).next_mount = Some(Outcome::Decided(Decision::Refuse(reason)));
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

/// The check; how bad it is; the volume, directory or disk; a part of what is said or helps; what is wrong.
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, fn(&mut Facts));

#[rustfmt::skip] // a row is a line
const ROWS: &[Row] = &[
    ("config", "failed", "", "line 3", |f| f.config_problem = Some("line 3".to_owned())),
    ("config", "warning", "", "[volume_group.nosuch]", |f| f.table("nosuch", VolumeGroup::default())),
    ("config", "warning", "", "thin_pool = ", |f| f.table("vg", VolumeGroup { thin_pool: LvName::parse("data").ok(), ..VolumeGroup::default() })),
    ("device-mapper", "failed", "", "modprobe dm_mod", |f| f.device_mapper = Err("no".to_owned())),
    ("udev", "warning", "", "systemctl restart systemd-udevd", |f| f.udev = Udev::NoSocket),
    ("udev", "warning", "", "no process listens", |f| f.udev = Udev::Killed),
    ("udev", "failed", "", "hostIPC: true", |f| f.udev = Udev::CannotBeHeard),
    ("clock", "warning", "", "it says 2001-09-09T01:46:40Z, and vg/data was made at 2001-09-10T01:46:41Z", |f| f.of("data").volume.created = 1_000_086_401),
    ("unused-disks", "warning", "vg", "pvchange --allocatable y /dev/sdb", |f| f.lvm().used_disks = Ok(vec![UsedDisk { disk: Disk { is_allocatable: false, ..disk("vg") }, shared_kind: None }])),
    ("selinux", "warning", "", "restorecon -v /exec/lvm", |f| f.selinux = Some(selinux(true))),
    ("lvm-lock", "warning", "", "ps -fp 7", |f| f.lvm_lockers = vec![Process { pid: 7, command: "lvs".shown(), what: "".shown(), age: Duration::from_secs(10) }]),
    ("locks", "failed", "", "df -i /run", |f| f.lock_problem = Some("full".to_owned())),
    ("plugin-directory", "warning", "", "anybody", |f| f.plugin_dir_problem = Some("anybody may write".to_owned())),
    ("kubelet", "failed", "", "--plugin-dir /other", |f| f.kubelet("kubelet --volume-plugin-dir=/other")),
    ("kubelet", "failed", "", "not node", |f| f.kubelet("kubelet --hostname-override=n")),
    ("log", "warning", "", "systemctl start systemd-journald.socket", |f| f.has_log = false),
    ("log", "warning", "", "/nonexistent is not a directory", |f| (f.has_log, f.config.log) = (false, LogTarget::File("/nonexistent/log".into()))),
    ("tools", "failed", "", "lvchange not found", |f| f.lose("lvchange")),
    ("tools", "failed", "", "default_fs: install e2fsprogs", |f| f.lose("mkfs.ext4")),
    ("tools", "warning", "", "install xfsprogs", |f| f.lose("mkfs.xfs")),
    ("tools", "failed", "", "lvs is not run", |f| f.tools[0].problem = Some("lvs is not run: /bin is anybody's".to_owned())),
    ("encryption", "failed", "", "install cryptsetup", |f| f.lose("cryptsetup")),
    ("encryption", "failed", "", "modprobe dm_crypt", |f| f.crypto().has_dm_crypt = false),
    ("encryption", "warning", "", "modprobe xts", |f| f.crypto().has_cipher = false),
    ("encryption", "failed", "", "others than root", |f| f.crypto().key_problems = vec!["others than root".to_owned()]),
    ("encryption", "note", "", "global_filter", |f| f.lvm().reads_inside = true),
    ("luks-header", "warning", "vg/data", "cryptsetup luksUUID /dev/", |f| f.header("of-record", false)),
    ("luks-header", "failed", "vg/data", "luksHeaderRestore", |f| f.header("of-another", true)),
    ("luks-header", "failed", "vg/data", "no answer", |f| { f.header("", true); f.of("data").header = Some(Err("no answer".to_owned())); }),
    ("tools", "note", "", "/opt", |f| f.tool_dir_problems = vec!["/opt is anybody's".to_owned()]),
    ("mkfs-options", "failed", "ext4", "[filesystem.ext4]", |f| f.mkfs_problems = vec![(FsType::Ext4, "-i 1".to_owned())]),
    ("mounts", "failed", "/k/data", "umount /k/data", |f| f.mounted(None).source_is_gone = true),
    ("mounts", "warning", "/k/data", "pod uid, which has no logs", |f| f.mounted(OLD).ended_pod = Some("uid".to_owned())),
    ("mounts", "warning", "/k/data", "umount /k/data", |f| f.mounted(OLD).is_nodes_alone = true),
    ("mounts", "failed", "vg/gone", "pvs -a", |f| f.lvm().lost = LvId::parse("vg/gone").into_iter().collect()),
    ("pod-directories", "warning", "/k/data", "rmdir /k/data", |f| f.unmounted = vec![Unmounted { at: "/k/data".into(), age: OLD, has_files: false }]),
    ("pod-directories", "warning", "/k/data", "ls -la /k/data", |f| f.unmounted = vec![Unmounted { at: "/k/data".into(), age: OLD, has_files: true }]),
    ("lvm", "failed", "", "broken", |f| f.lvm = Err("broken".to_owned())),
    ("duplicate-groups", "failed", "vg", "vgrename UUID vg-2", |f| f.lvm().groups.push(group("vg"))),
    ("hidden-groups", "warning", "away", "lvmconfig devices/filter", |f| f.lvm().hidden.push(Hidden { disk: disk("away"), is_unlisted: false })),
    ("hidden-groups", "warning", "away", "lvmdevices --adddev /dev/sdb", |f| f.lvm().hidden.push(Hidden { disk: disk("away"), is_unlisted: true })),
    ("groups", "note", "away", "another host's", |f| f.kept("away")),
    ("groups", "failed", "vg", "another host's", |f| f.kept("vg")),
    ("room", "warning", "vg", "vgextend vg DISK", |f| f.table("vg", VolumeGroup { create: true, reserve: Bytes::new(4 * MIB), ..VolumeGroup::default() })),
    ("room", "warning", "vg", "vgs -o +vg_mda_size,vg_mda_free vg", |f| f.lvm().groups[0].metadata_free = Bytes::new(MIB / 20)),
    ("disks", "warning", "", "broken", |f| f.lvm().used_disks = Err("broken".to_owned())),
    ("duplicate-disks", "failed", "vg", "vgimportclone --basevgname vg-2 DISK", |f| f.fault(Fault::Duplicate)),
    ("short-disks", "warning", "vg", "pvs -o pv_name,dev_size,pv_size /dev/sdb", |f| f.fault(Fault::Short)),
    ("missing-disks", "failed", "vg", "vgreduce --removemissing vg", |f| f.fault(Fault::Missing)),
    ("missing-disks", "failed", "vg", "vgextend --restoremissing vg /dev/sdb", |f| f.fault(Fault::Returned)),
    ("shared-disks", "warning", "vg", "vgchange --systemid ID vg", |f| f.lvm().used_disks = Ok(vec![UsedDisk { disk: disk("vg"), shared_kind: Some("an iSCSI") }])),
    ("snapshot-full", "warning", "vg/snap", "lvextend --extents +20%ORIGIN vg/snap", |f| f.of("snap").volume.data_percent = Some(80.0)),
    ("next-mount", "failed", "vg/data", "swap", |f| f.refuse("data", Reason::Swap)),
    ("next-mount", "warning", "vg/data", "broken", |f| f.of("data").next_mount = Some(Outcome::Unknown("broken".to_owned()))),
    ("filesystem-errors", "failed", "vg/data", "dmesg", |f| f.of("data").failed = Some(Reason::Swap)),
    ("filesystem-errors", "warning", "vg/data", "check vg/data; dmesg", |f| f.of("data").has_errors = true),
    ("filesystem-full", "warning", "vg/data", "lvextend --resizefs", |f| f.of("data").lack = Some(Lack::Space)),
    ("filesystem-full", "note", "vg/data", "lvextend --resizefs", |f| (f.of("data").is_ours, f.of("data").lack) = (false, Some(Lack::Space))),
    ("next-mount", "note", "vg/data", "is partial", |f| { f.of("data").is_ours = false; f.refuse("data", Reason::Partial(Lost::Data)); }),
    ("filesystem-full", "warning", "vg/data", "no inode is left", |f| f.of("data").lack = Some(Lack::Inodes)),
    ("volume-health", "warning", "vg/data", "lvs -a -o +devices vg/data", |f| f.of("data").volume.health = "partial".to_owned()),
    ("mkfs-unfinished", "warning", "vg/data", "mkfs.xfs was not seen to end", |f| f.record(&["flexvolume.making=xfs"])),
    ("may-be-formatted", "warning", "vg/data", "check vg/data", |f| f.record(&["flexvolume.mayformat=mark:1"])),
    ("kept-from-others", "warning", "vg/data", "lvchange -an vg/data", |f| f.of("data").is_kept_idle = true),
    ("pool-full", "warning", "vg/pool", "lvextend --size +", |f| f.of("pool").volume.data_percent = Some(95.0)),
    ("pool-full", "warning", "vg/pool", "vgextend vg DISK, then: lvextend", |f| {
        let pool = &mut f.of("pool").volume;
        (pool.metadata_percent, pool.free) = (Some(95.0), Bytes::new(0));
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

fn all_checks() -> BTreeSet<&'static str> {
    let of_node = OF_NODE.iter().map(|(name, _)| *name);
    let of_lvm = OF_LVM.iter().map(|(name, _)| *name);
    let of_volume = OF_VOLUME.iter().map(|(name, _)| *name);
    of_node.chain(of_lvm).chain(of_volume).collect()
}

#[test]
fn each_check_has_a_row() {
    /// Shown by tests/guest/faults.rs.
    const ELSEWHERE: [&str; 1] = ["volumes"];
    let rows = ROWS.iter().map(|(check, ..)| *check);
    assert_eq!(rows.chain(ELSEWHERE).collect::<BTreeSet<_>>(), all_checks());
}

#[test]
fn each_check_is_in_the_schema() {
    let all = all_checks();
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/schemas/doctor.json")).unwrap();
    let words = schema["items"]["properties"]["check"]["enum"]
        .as_array()
        .unwrap();
    let words: BTreeSet<&str> = words.iter().filter_map(Value::as_str).collect();
    assert_eq!(words, all);
}

type Case<'a> = (&'a str, &'a dyn Fn(&mut Facts));

#[test]
fn young_watched_and_already_named_things_are_no_fault() {
    let unnamed = |f: &mut Facts, reason| {
        f.of("data").is_ours = false;
        f.refuse("data", reason);
    };
    let cases: [Case; 7] = [
        ("a mount of a pod that ends just now", &|f| {
            f.mounted(Some(Duration::ZERO)).ended_pod = Some("uid".to_owned());
        }),
        ("a clock that is slow by a day", &|f| {
            f.of("data").volume.created = 1_000_086_400;
        }),
        ("what is wrong with a volume that is nobody's", &|f| {
            f.of("data").is_ours = false;
            f.refuse("data", Reason::Several);
        }),
        ("a snapshot with room", &|f| {
            f.of("snap").volume.data_percent = Some(79.0);
        }),
        ("a lock of LVM that was taken just now", &|f| {
            let (command, what) = ("lvs".shown(), "".shown());
            let age = Duration::from_secs(9);
            f.lvm_lockers = vec![Process {
                pid: 7,
                command,
                what,
                age,
            }];
        }),
        ("what the host itself uses", &|f| unnamed(f, Reason::Swap)),
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
    facts.kept("away");
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
