//! The message names each obstacle to the volumes of a shared group, and its remedy.

use crate::prelude::*;

const MODE: Mode = Mode::MountOnly;

#[test]
fn a_node_without_locks_is_told_how_to_start_them() {
    let pair = pair();
    let (volume, new) = (Volume::new(&pair.a, "started"), Volume::named("not-made"));
    let node = &pair.b;
    node.sh("vgchange --lockstop vg");
    for volume in [&volume, &new] {
        let words = [
            "vg is shared between nodes, and",
            "has not started its locks",
            "`vgchange --lockstart vg`",
            "[no-locks]",
        ];
        node.up(MODE, volume).is_failure(&words);
    }
    node.sh("vgchange --lockstart --lockopt nowait vg");
    let starting = node.up(MODE, &volume);
    if starting.status == "Failure" {
        starting.is_failure(&["are just being started"]);
    }
    node.sh("lvmlockctl --stop-lockspaces --wait 1; lvmlockctl --quit");
    for volume in [&volume, &new] {
        let words = [
            "lvmlockd does not run",
            "`systemctl start sanlock lvmlockd`",
            "[no-locks]",
        ];
        node.up(MODE, volume).is_failure(&words);
    }
    let options = [
        "-o",
        "size=32m",
        "-o",
        "volumegroup=vg",
        "-o",
        "volumeID=not-made",
    ];
    let (check, code) = node.says(MODE, &[&["check"], &options[..]].concat());
    assert!(
        check.contains("lvmlockd does not run") && code == 1,
        "{check}"
    );
    let says = |verdict: &str, words: &str| {
        let (said, _) = node.says(MODE, &["doctor"]);
        let is_it = |line: &str| line.starts_with(verdict) && line.contains(words);
        assert!(said.lines().any(is_it), "{said}");
    };
    says("FAILED", "lvmlockd does not run");
    node.sh("sed -i 's/use_lvmlockd = 1/use_lvmlockd = 0/' /etc/lvm/lvm.conf");
    says("WARNING", "`use_lvmlockd = 1`");
    let refused = node.up(MODE, &volume);
    refused.is_failure(&["`use_lvmlockd = 1`"]);
    node.sh("sed -i 's/use_lvmlockd = 0/use_lvmlockd = 1/' /etc/lvm/lvm.conf; start_lvmlockd");
    node.sh(refused.command("vgchange --lockstart ").unwrap());
    node.can_have(MODE, &volume);
}

#[test]
fn another_hosts_group_is_named() {
    let pair = pair();
    let node = &pair.b;
    node.sh("truncate -s 64m /run/foreign && losetup /dev/loop5 /run/foreign
        vgcreate --lock-type none --yes theirs /dev/loop5 && lvcreate --yes -an -Zn -Wn -L 32m -n data theirs
        vgchange --yes --systemid another-host theirs");
    let volume = Volume::of("theirs", "data");
    let words = ["\"another-host\"", "`vgchange --systemid ID theirs`"];
    node.sh("sed -i 's/^.volume_group.vg./[volume_group.theirs]\\n&/' /run/mount-only/exec/*/config.toml");
    node.up(MODE, &volume).is_failure(&words);
    node.sh("losetup -d /dev/loop5; sed -i '/theirs/d' /run/mount-only/exec/*/config.toml");
}

#[test]
fn check_status_and_doctor_tell_who_has_a_volume() {
    let pair = pair();
    let volume = Volume::new(&pair.a, "looked-at");
    Volume::new(&pair.a, "looked-past");
    pair.a.up(MODE, &volume).is_success();
    let check = ["check", "vg/looked-at"];
    for (node, words, code) in [
        (&pair.b, "host 1 (node-a)", 1),
        (&pair.a, "1 would mount", 0),
    ] {
        let (said, is) = node.says(MODE, &check);
        assert!(said.contains(words) && is == code, "{is}: {said}");
    }
    // A list of all has no time to ask for each.
    for names in [&["vg/looked-at"][..], &["vg/looked-at", "vg/looked-past"]] {
        let args = [&["status"], names].concat();
        let (told, _) = pair.b.says(MODE, &args);
        assert!(told.contains("node node-a"), "{told}");
    }
    let (doctor, _) = pair.b.says(MODE, &["doctor"]);
    assert!(!doctor.contains("the next mount is refused"), "{doctor}");
    pair.a.down(MODE, &volume);
    let (said, code) = pair.a.says(MODE, &["check", "--idle", "vg/looked-at"]);
    let words = "in a volume group that nodes share";
    assert!(said.contains(words) && code != 0, "{code}: {said}");
}

#[test]
fn a_volume_active_without_its_own_lock_is_not_mounted() {
    let pair = pair();
    let volume = Volume::new(&pair.a, "unlocked");
    pair.a.sh("lvchange -asy vg/unlocked");
    pair.b.sh("lvchange -asy vg/unlocked");
    let refused = pair.a.up(MODE, &volume);
    refused.is_failure(&["in shared mode"]);
    for node in [&pair.a, &pair.b] {
        node.sh(refused.command("lvchange -an ").unwrap());
    }
    // As if lvmlockd had lost its memory: device-mapper has it, and lvmlockd does not know of it.
    pair.a.sh("lvchange -ay vg/unlocked && dmsetup table vg-unlocked > /run/table && dmsetup info -c --noheadings -o uuid vg-unlocked > /run/uuid
        lvchange -an vg/unlocked && dmsetup create vg-unlocked -u $(cat /run/uuid) /run/table && udevadm settle");
    let refused = pair.a.up(MODE, &volume);
    refused.is_failure(&["does not have its lock"]);
    pair.a.sh(refused.command("lvchange -an ").unwrap());
    pair.b.can_have(MODE, &volume);
}

#[test]
fn a_volume_stays_where_lvmlockd_died_until_it_is_back() {
    let pair = pair();
    let volume = Volume::new(&pair.a, "orphan");
    pair.a.up(MODE, &volume).is_success();
    pair.a.write(MODE, &volume, "safe");
    pair.a.sh("kill -9 $(pidof lvmlockd)");
    let dir = pod_dir(MODE, &volume);
    let left = pair.a.call(MODE, &["unmount", &dir]);
    left.is_failure(&["cannot be given to other nodes", "lvmlockd does not run"]);
    pair.b.up(MODE, &volume).is_failure(&["host 1 (node-a)"]);
    pair.a
        .up(MODE, &volume)
        .is_failure(&["lvmlockd does not run"]);
    pair.a.sh("start_lvmlockd");
    eventually("the locks are adopted", || {
        pair.a.call(MODE, &["unmount", &dir]).status == "Success"
    });
    assert!(!pair.a.has(&volume));
    pair.b.up(MODE, &volume).is_success();
    assert_eq!(pair.b.read(MODE, &volume), "safe");
    pair.b.down(MODE, &volume);
}

#[test]
fn a_node_that_lost_its_lease_mounts_nothing_more_and_gives_up_what_it_has() {
    let pair = pair();
    let [volume, other] = ["leased", "other"].map(|lv| Volume::new(&pair.a, lv));
    pair.a.up(MODE, &volume).is_success();
    pair.a.write(MODE, &volume, "safe");
    // The disk answers nothing but errors.
    pair.a.sh("dmsetup table vg-lvmlock > /run/table
        dmsetup wipe_table --force vg-lvmlock && dmsetup wipe_table --force vg-leased");
    eventually("sanlock gives up", || {
        let reply = pair.a.up(MODE, &other);
        reply.status == "Failure" && reply.message.contains("could not renew its lease")
    });
    pair.a.down(MODE, &volume);
    pair.a
        .sh("dmsetup reload vg-lvmlock /run/table; dmsetup resume vg-lvmlock");
    pair.a.sh("lvmlockctl --drop vg");
    pair.a.join();
    pair.b.up(MODE, &volume).is_success();
    assert_eq!(pair.b.read(MODE, &volume), "safe");
    pair.b.down(MODE, &volume);
    pair.a.can_have(MODE, &other);
}

#[test]
fn a_node_whose_sanlock_died_mounts_nothing_more_until_it_has_joined_again() {
    let pair = pair();
    let [volume, idle, other] = ["mounted", "idle", "third"].map(|lv| Volume::new(&pair.a, lv));
    pair.a.up(MODE, &volume).is_success();
    pair.a.write(MODE, &volume, "safe");
    pair.a.sh("lvchange -ay vg/idle; kill -9 $(pidof sanlock)");
    // lvmlockd does not notice, and LVM would let it be mounted.
    let refused = [&idle, &other].map(|volume| pair.a.up(MODE, volume));
    for reply in &refused {
        reply.is_failure(&["its sanlock died"]);
    }
    let (doctor, _) = pair.a.says(MODE, &["doctor"]);
    assert!(doctor.contains("its sanlock died"), "{doctor}");
    pair.a.down(MODE, &volume);
    pair.b.up(MODE, &volume).is_failure(&["host 1 (node-a)"]);
    pair.a.sh(refused[0].command("vgchange -an ").unwrap());
    pair.a.sh(refused[0].command("lvmlockctl --drop ").unwrap());
    pair.a.sh("sanlock daemon");
    pair.a.join();
    // The old locks of the first node are void now.
    for volume in [&volume, &idle] {
        pair.b.up(MODE, volume).is_success();
    }
    assert_eq!(pair.b.read(MODE, &volume), "safe");
    pair.b.down(MODE, &volume);
    pair.b.down(MODE, &idle);
    pair.a.can_have(MODE, &other);
}

#[test]
fn a_node_whose_leases_are_suspended_is_told_to_resume_them() {
    let pair = pair();
    let volume = Volume::new(&pair.a, "frozen");
    // As an lvcreate leaves them that is killed while it refreshes them.
    pair.a.sh("dmsetup suspend vg-lvmlock");
    let mount = pair.a.up(MODE, &volume);
    let other = Volume::named("frozen-too");
    let unmount = pair.a.call(MODE, &["unmount", &pod_dir(MODE, &other)]);
    let (doctor, _) = pair.a.says(MODE, &["doctor"]);
    assert!(doctor.contains("`dmsetup resume vg-lvmlock`"), "{doctor}");
    pair.a.sh("dmsetup resume vg-lvmlock");
    for reply in [mount, unmount] {
        reply.is_failure(&["sanlock can read no lock", "`dmsetup resume vg-lvmlock`"]);
    }
    // The resume may have come too late to keep the locks.
    eventually("a mount", || {
        let reply = pair.a.up(MODE, &volume);
        if reply.message.contains("`lvmlockctl --drop vg`") {
            pair.a.sh("lvmlockctl --drop vg");
            pair.a.join();
        }
        reply.status == "Success"
    });
    pair.a.down(MODE, &volume);
}

#[test]
fn a_volume_that_is_kept_without_use_is_named() {
    let pair = pair();
    let (mode, volume) = (Mode::Attach, Volume::new(&pair.a, "kept"));
    let (device, json) = (volume.device(), volume.json());
    // And no call follows, since kubelet has been restarted and the pod has gone.
    pair.a
        .call(mode, &["waitforattach", &device, &json])
        .is_success();
    let (doctor, _) = pair.a.says(mode, &["doctor"]);
    let command = told(&doctor, "lvchange -an vg/kept");
    let (status, _) = pair.a.says(mode, &["status"]);
    assert!(status.contains("kept from others"), "{status}");
    let refused = pair.b.up(mode, &volume);
    refused.is_failure(&["host 1 (node-a)", "on that node"]);
    assert_eq!(refused.command("lvchange -an "), Some(command));
    pair.a.sh(command);
    pair.b.can_have(mode, &volume);
}

#[test]
fn calls_that_mount_nothing_keep_nothing() {
    let pair = pair();
    let (mode, volume) = (Mode::Attach, Volume::new(&pair.a, "passing"));
    let (json, name) = (volume.json(), "passing-of-pod");
    let (global, pod) = (global_dir(mode, &volume), pod_dir(mode, &volume));
    let device = volume.device();
    let wait = ["waitforattach", device.as_str(), &json];
    let another = ["waitforattach", "/dev/mapper/vg-another", &json];
    pair.a.call(mode, &another).is_failure(&["vg/passing"]);
    assert!(!pair.a.has(&volume));
    let size = (64 << 20).to_string();
    pair.a
        .call(mode, &["expandfs", &json, "", &pod, &size, "0"])
        .is_success();
    assert!(!pair.a.has(&volume));
    // Nothing was ever mounted there.
    for last in [
        &["unmountdevice", global.as_str()][..],
        &["unmount", &pod],
        &["detach", name, "node-a"],
    ] {
        pair.a.call(mode, &wait).is_success();
        assert!(pair.a.has(&volume));
        pair.a.call(mode, last).is_success();
        assert!(!pair.a.has(&volume), "{last:?}");
    }
}
