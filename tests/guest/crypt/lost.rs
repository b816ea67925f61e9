//! States in which the driver could lose the data of an encrypted volume, or give it to another volume's pod. Then
//! nothing is written, and the message says what to do.

use super::*;
use crate::data::lvm_conf::LvmConf;

/// Saves the header of a device to a file, or the other way round.
fn header(command: &str, file: &str, volume: &Volume) {
    let device = volume.device();
    sh(&format!(
        "cryptsetup {command} -q --header-backup-file {file} {device}"
    ));
}

#[test]
fn a_wrong_key_or_none_is_said_and_changes_nothing() {
    let (mut node, group, volume) = with_filled("wrong-key");
    let blank = group.linear("blank", "48m").encrypted();
    let other = Path::new("/run/wrong-key.other");
    written(other, "another", 0o600);
    node.configure(Mode::MountOnly, &config(other));
    let words = ["/run/wrong-key.other does not open wrong-key/data"];
    refuses_unchanged(&node, &volume, &words);
    let secret = with_secret(&volume, "d3Jvbmc=");
    let words = ["the passphrase of the volume's Secret does not open"];
    refuses_unchanged(&node, &secret, &words);
    // The passphrase of the Secret comes before that of the file. While the volume is open, no passphrase is asked for.
    let right = with_secret(&volume, IN_BASE64);
    node.up("right", &right);
    node.finds(&secret, "data");
    node.down("right", &right);
    refuses_unchanged(&node, &secret, &words);
    still_holds(&node, &right, "data");
    written(other, &format!("{PASSPHRASE}\n"), 0o600);
    refuses_unchanged(&node, &volume, &["does not open"]);

    // Nothing is made without a key either.
    for (content, mode, word) in [("", 0o600, "it is empty"), ("key", 0o644, "0644")] {
        written(other, content, mode);
        for volume in [&volume, &blank] {
            refuses_unchanged(&node, volume, &["/run/wrong-key.other", word]);
        }
    }
    fs::remove_file(other).unwrap();
    refuses_unchanged(&node, &blank, &["/run/wrong-key.other"]);
    node.configure(Mode::MountOnly, "");
    for volume in [&volume, &blank] {
        refuses_unchanged(&node, volume, &["no passphrase came", "`secretRef`"]);
    }
    assert_eq!(group.tags("blank"), "");
    node.configure(Mode::MountOnly, &config(&key_file("wrong-key")));
    still_holds(&node, &volume, "data");
}

#[test]
fn a_header_on_a_disk_that_fails_is_told_like_any_other_content() {
    let node = with_key(Mode::MountOnly, "dark");
    let (disk, _group, volume) = Disk::with_data("dark", "ext4", 48);
    let volume = volume.encrypted();
    node.write("pod", &volume, "kept");
    disk.fail(0..48 * MIB);
    let words = ["cannot be read at byte 0 ", "`dmesg`", "[unreadable]"];
    refuses_unchanged(&node, &volume, &words);
    disk.heal();
    still_holds(&node, &volume, "kept");
}

#[test]
fn a_header_that_is_gone_or_of_another_volume_is_named_and_never_made_anew() {
    let (node, group, volume) = with_filled("headers");
    let other = filled(&node, &group, "other");
    let device = volume.device();
    let [its, others] = [&volume, &other].map(|volume| {
        let file = format!("/run/headers.{}", volume.lv());
        header("luksHeaderBackup", &file, volume);
        file
    });
    let restore = |file: &str| header("luksHeaderRestore", file, &volume);
    let tags = group.tags("data");
    let [uuid, foreign] = [&volume, &other].map(luks_uuid);

    // Of the two copies one is enough.
    for from in [0, 4] {
        overwrite(&device, "/dev/zero", from, 4);
        still_holds(&node, &volume, "data");
        restore(&its);
    }
    // Both; the keys beside them; all of it that is not data; and noise in its place.
    let words = [&*uuid, "cryptsetup luksHeaderRestore"];
    for size in [8, 1024, 4096] {
        overwrite(&device, "/dev/zero", 0, size);
        refuses_unchanged(&node, &volume, &words);
        let (said, code) = node.says(&["allow-format", "headers/data", "--yes"]);
        assert_ne!(code, 0, "{said}");
        refuses_unchanged(&node, &volume, &words);
    }
    overwrite(&device, "/dev/urandom", 0, 256);
    refuses_unchanged(&node, &volume, &words);
    // A filesystem in its place is not the one that was inside.
    run("mkfs.ext4", &["-qF", &device]);
    refuses_unchanged(&node, &volume, &[&uuid, "there is ext4"]);
    restore(&others);
    refuses_unchanged(&node, &volume, &[&uuid, &foreign]);
    assert_eq!(group.tags("data"), tags);
    restore(&its);
    // mkfs has written over what was inside.
    node.refuses_mount(&volume, &["inside according to its tag"]);
    assert!(!is_open(&volume));
    still_holds(&node, &other, "other");
}

#[test]
fn a_header_that_is_changed_while_it_is_open_is_named_at_the_next_mount() {
    let (node, _group, volume) = with_filled("changed");
    let device = volume.device();
    let backup = "/run/changed.header";
    header("luksHeaderBackup", backup, &volume);
    let wipe = || overwrite(&device, "/dev/zero", 0, 256);
    let dir = node.up("first", &volume);
    wipe();
    // What is mounted needs none.
    node.up("second", &volume);
    write_synced(&dir.join("page"), "later");
    node.down("first", &volume);
    node.down("second", &volume);
    assert!(!is_open(&volume));
    refuses_unchanged(&node, &volume, &["luksHeaderRestore"]);

    // Open, as a killed call leaves it: it is looked at all the same.
    let restore = || header("luksHeaderRestore", backup, &volume);
    restore();
    let name = name_inside(&volume);
    opens(&volume, &name);
    wipe();
    // A call that fails closes it.
    node.mount("pod", &volume)
        .is_failure(&["luksHeaderRestore"]);
    assert!(!is_open(&volume));
    restore();
    still_holds(&node, &volume, "later");
    opens(&volume, &name);
    still_holds(&node, &volume, "later");
}

#[test]
fn a_copy_of_an_encrypted_volume_is_foreign_and_never_in_its_place() {
    let (node, group, origin) = with_filled("copies");
    group.lv("lvcreate", &["-s", "-n", "copy", "-L", "32m"], "data");
    let copy = Volume::new(&group, "copy").encrypted();
    refuses_unchanged(&node, &copy, &["LUKS"]);
    node.refuses_mount(&Volume::new(&group, "copy"), &["LUKS"]);
    node.write("pod", &origin, "later");
    // With the tags of its origin it is what they say.
    for tag in group.tags("data").split(',') {
        group.lv("lvchange", &["--addtag", tag], "copy");
    }
    let first = node.up("first", &origin);
    let second = node.up("second", &copy);
    assert_eq!(read(&first.join("page")), "later");
    assert_eq!(read(&second.join("page")), "data");
    node.down("first", &origin);
    assert!(!is_open(&origin) && is_open(&copy));
    node.down("second", &copy);
    assert!(!is_open(&copy));
}

#[test]
fn pods_that_come_at_once_share_one_filesystem() {
    let group = Group::new("crypt-two");
    let node = with_key(Mode::MountOnly, "crypt-two");
    let volume = group.linear("data", "48m").encrypted();
    let pods = ["a", "b", "c"];
    for call in pods.map(|pod| node.start_mount(pod, &volume)) {
        call.reply().is_success();
    }
    let dirs = pods.map(|pod| node.pod_dir(pod, &volume));
    for (pod, dir) in pods.iter().zip(&dirs) {
        write_synced(&dir.join(pod), pod);
        assert_eq!(mount_at(dir).unwrap().source, volume.mounted());
    }
    for pod in pods {
        assert!(dirs.iter().all(|dir| dir.join(pod).exists()));
    }
    for pod in pods {
        assert!(is_open(&volume));
        node.down(pod, &volume);
    }
    assert!(!is_open(&volume));
}

#[test]
fn who_has_it_open_keeps_it_open_and_is_named() {
    let (node, _group, volume) = with_filled("crypt-busy");
    let dir = node.up("pod", &volume);
    let holder = opener(&volume.mounted(), "<");
    // The pod ends all the same.
    let reply = node.does(&["unmount", text(&dir)]);
    assert!(reply.message.contains("sleep (pid "), "{reply:?}");
    assert!(is_open(&volume));
    drop(holder);
    still_holds(&node, &volume, "data");
    // Opened by somebody else under a name of their own.
    opens(&volume, "theirs");
    let words = [
        "crypt-busy/data is encrypted, and open on this host",
        "`cryptsetup close theirs`",
    ];
    node.refuses_mount(&volume, &words);
    closes("theirs");
    still_holds(&node, &volume, "data");
}

/// LVM reads what is inside an open volume, and waits in the kernel if that is suspended below.
#[test]
fn a_suspended_volume_keeps_lvm_waiting_and_each_call_has_the_remedy() {
    let (mut node, group, volume) = with_filled("crypt-stuck");
    let lines = config(Path::new("/run/crypt-stuck.key"));
    let other = group.linear("other", "32m");
    let dir = node.up("pod", &volume);
    let remedy = "dmsetup clear crypt--stuck-data && dmsetup resume --noudevsync crypt--stuck-data";
    // If this case fails, what takes its volumes away would wait, too.
    let _resumed = suspended("crypt--stuck-data");
    // What is asked for from here on waits in the kernel, or starts no process.
    node.configure(
        Mode::MountOnly,
        &format!("{lines}[limits]\nquery = 5\nactivate = 5\n"),
    );
    let command = format!("`{remedy}`");
    // Of its own calls none asks LVM.
    let words = [&*command, "`lvchange --refresh crypt-stuck/data`"];
    let refused = node.mount("second", &volume);
    refused.is_failure(&words);
    node.grow("pod", &volume, 80 << 20).is_failure(&words);
    node.call(&["unmount", text(&dir)]).is_failure(&words);
    // Nor does a command about it.
    node.prints(&["check", "--idle", "crypt-stuck/data"], &command, 1);
    // Others do, which reads all devices where no hints say which ones are disks (lvmdevices(8)).
    let forget = || sh("rm -f /run/lvm/hints");
    forget();
    node.mount("other", &other).is_failure(&[&command]);
    forget();
    let (said, code) = node.says(&["doctor"]);
    assert!(code != 0 && said.contains(&command), "{said}");
    bash(refused.command("dmsetup clear ").unwrap());
    sh(refused.command("lvchange --refresh ").unwrap());
    node.configure(Mode::MountOnly, &lines);
    node.grow("pod", &volume, 80 << 20).is_success();
    node.visit(&other);
    node.down("pod", &volume);
    still_holds(&node, &volume, "data");
}

/// As a call leaves it that is killed between the two.
#[test]
fn one_that_stayed_open_is_named_with_the_command_that_closes_it() {
    let (node, _group, volume) = with_filled("crypt-left");
    let dir = node.up("pod", &volume);
    {
        let _conf = LvmConf::new("devices {\n global_filter = [ \"r|.*|\" ]\n}\n");
        let words = "crypt-left/data is mounted for pods, and LVM does not know it any more";
        node.prints(&["status"], words, 0);
    }
    run("umount", &[text(&dir)]);
    let idle = ["check", "--idle", "crypt-left/data"];
    let close = format!("cryptsetup close {}", volume.mounted());
    node.prints(&idle, &format!("run `{close}`"), 1);
    sh(&close);
    node.prints(&idle, "crypt-left/data is ready", 0);
    still_holds(&node, &volume, "data");
}

#[test]
fn with_the_filter_of_the_page_lvm_does_not_wait_for_a_suspended_volume() {
    let (node, group, volume) = with_filled("crypt-filter");
    let other = group.linear("other", "32m");
    node.up("pod", &volume);
    let page = include_str!("../../../docs/encryption.md");
    let filter = page.lines().find(|line| line.starts_with("global_filter"));
    let _conf = LvmConf::new(&format!("devices {{\n{}\n}}\n", filter.unwrap()));
    let resumed = suspended("crypt--filter-data");
    sh("rm -f /run/lvm/hints");
    node.visit(&other);
    drop(resumed);
    node.down("pod", &volume);
    still_holds(&node, &volume, "data");
}

#[test]
fn what_a_killed_cryptsetup_left_is_named_with_its_remedy() {
    let (node, _group, volume) = with_filled("crypt-killed");
    let name = name_inside(&volume);
    // cryptsetup makes the device first, loads its table then, and at last lets the kernel use the table.
    let uuid = format!("CRYPT-LUKS2-{}-{name}", luks_uuid(&volume).replace('-', ""));
    let table = format!(
        "0 8 crypt aes-xts-plain64 {} 0 {} 32768",
        "0".repeat(128),
        volume.device()
    );
    for loads in [false, true] {
        run("dmsetup", &["create", &name, "--notable", "--uuid", &uuid]);
        if loads {
            run("dmsetup", &["load", &name, "--table", &table]);
        }
        let remedy = format!("dmsetup remove {name}");
        node.refuses_mount(&volume, &[&format!("run `{remedy}`")]);
        sh(&remedy);
    }
    still_holds(&node, &volume, "data");
}
