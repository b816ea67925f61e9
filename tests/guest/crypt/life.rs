//! A whole life of an encrypted volume, as kubelet has it.

use super::*;

/// Two pods, one after the other and at once, a growth and a read-only pod; closed after the last of them.
pub fn lives(node: &Node, group: &Group, volume: &Volume, fs: &str) {
    let tags = || group.tags(volume.lv());
    let dir = node.up("first", volume);
    write_synced(&dir.join("page"), "written");
    let made = tags();
    assert!(made.starts_with(&format!("flexvolume.fs={fs}:")), "{made}");
    let luks = format!(",flexvolume.luks={}", luks_uuid(volume));
    assert!(made.ends_with(&luks), "{made}");
    let kind = sh(&format!("blkid -p -o value -s TYPE {}", volume.device()));
    assert_eq!(kind, "crypto_LUKS");

    // Another pod needs no passphrase while it is mounted.
    let second = node.up("second", volume);
    assert_eq!(read(&second.join("page")), "written");
    node.down("first", volume);
    assert!(is_open(volume));
    let before = filesystem_size(&second);
    // The kernel grows no btrfs to less than 256 MiB.
    let least = if fs == "btrfs" { 288 << 20 } else { 0 };
    let larger = (group.size(volume.lv()) + (32 << 20)).max(least);
    node.grow("second", volume, larger).is_success();
    assert!(filesystem_size(&second) > before + (24 << 20), "{fs}");
    node.all_down(&["second"], volume);
    assert!(!is_open(volume));

    let reader = volume.clone().read_only();
    node.finds(&reader, "written");
    node.down_globally(&reader);
    assert!(!is_open(volume));
    node.write("last", volume, "again");
    node.down_globally(volume);
    assert!(!is_open(volume));
    assert_eq!(tags(), made);
}

#[test]
fn a_volume_lives_with_the_key_of_its_node_or_of_its_secret() {
    let group = Group::new("crypt-key");
    let by_key = with_key(Mode::Attach, "crypt-key");
    let by_secret = Node::with_config(Mode::MountOnly, &format!("[encryption]\n{QUICK}"));
    let before = mounts();
    for (fs, size) in SIZES {
        let volume = group.linear(fs, size).fs(fs).encrypted();
        lives(&by_key, &group, &volume, fs);
    }
    let volume = group.linear("secret", "48m").encrypted();
    let volume = with_secret(&volume, IN_BASE64);
    lives(&by_secret, &group, &volume, "ext4");
    assert_eq!(mounts(), before);
}

#[test]
fn a_pod_that_only_reads_plays_back_the_log_after_a_crash_unless_the_volume_is_read_only() {
    let node = with_key(Mode::MountOnly, "crypt-log");
    for (fs, size) in SIZES {
        let group = Group::new("crypt-log");
        let [volume, copy] = ["data", "copy"].map(|lv| group.linear(lv, size).fs(fs).encrypted());
        write_synced(&node.up("pod", &volume).join("page"), "in the log");
        let (from, to) = (volume.device(), copy.device());
        sh(&format!(
            "dd if={from} of={to} bs=1M iflag=direct conv=fsync status=none"
        ));
        for tag in group.tags("data").split(',') {
            group.lv("lvchange", &["--addtag", tag], "copy");
        }
        node.down("pod", &volume);
        let reader = copy.clone().read_only();
        let dir = node.up("reader", &reader);
        assert_eq!(read(&dir.join("page")), "in the log", "{fs}");
        assert!(mount_at(&dir).unwrap().options.starts_with("ro"));
        node.down("reader", &reader);
        group.lv("lvchange", &["--permission", "r"], "copy");
        let read_only = || run("blockdev", &["--getro", &copy.mounted()]).trim() == "1";
        node.up("reader", &reader);
        assert!(read_only());
        node.down("reader", &reader);
        node.refuses_mount(&copy, &["lvchange --permission rw crypt-log/copy"]);
        group.lv("lvchange", &["--permission", "rw"], "copy");
        node.up("writer", &copy);
        assert!(!read_only());
        node.down("writer", &copy);
    }
}

#[test]
fn a_group_is_encrypted_whatever_a_pod_asks_for() {
    let group = Group::new("crypt-group");
    let file = key_file("crypt-group");
    let policy = "[volume_group.crypt-group]\nencryption = 'luks2'\ncreate = true\n";
    let node = Node::with_config(Mode::MountOnly, &(config(&file) + policy));
    let plain = Volume::new(&group, "made").with("size", "64m");
    let made = plain.clone().encrypted();
    node.mount("pod", &plain).is_success();
    let mount = mount_at(&node.pod_dir("pod", &plain)).unwrap();
    assert_eq!(mount.source, made.mounted());
    node.down("pod", &plain);
    assert!(!is_open(&made));
}

#[test]
fn a_thin_volume_lives_too_and_its_pool_gets_back_what_is_free_if_the_config_says_so() {
    let group = Group::new("crypt-thin");
    group.pool();
    let mut node = with_key(Mode::MountOnly, "crypt-thin");
    let volume = group.thin("ext4", "48m").encrypted();
    lives(&node, &group, &volume, "ext4");
    let table = || run("dmsetup", &["table", &volume.mounted()]);
    node.up("pod", &volume);
    assert!(!table().contains("allow_discards"), "{}", table());
    node.down("pod", &volume);
    let config = config(Path::new("/run/crypt-thin.key")) + "allow_discards = true\n";
    node.configure(Mode::MountOnly, &config);
    let dir = node.up("pod", &volume);
    assert!(table().contains("allow_discards"), "{}", table());
    let percent = || group.data_percent(volume.lv());
    fs::write(dir.join("large"), vec![7; 16 << 20]).unwrap();
    run("sync", &["-f", text(&dir)]);
    let full = percent();
    fs::remove_file(dir.join("large")).unwrap();
    run("sync", &["-f", text(&dir)]);
    run("fstrim", &[text(&dir)]);
    assert!(percent() + 10.0 < full, "{full} {}", percent());
    node.down("pod", &volume);
}

#[test]
fn what_a_disk_writes_at_once_is_encrypted_at_once() {
    let file = "/run/crypt-sectors.disk";
    let node = with_key(Mode::MountOnly, "crypt-sectors");
    for size in ["512", "4096"] {
        let disk = looped_in(size, Path::new(file), 1 << 30);
        let group = Group::on("crypt-sectors", &[&disk]);
        let volume = group.linear("data", "48m").encrypted();
        node.write("pod", &volume, "made");
        let dump = run("cryptsetup", &["luksDump", &volume.device()]);
        assert!(dump.contains(&format!("sector: {size} [bytes]")), "{dump}");
        for volume in [volume, group.linear("plain", "48m")] {
            node.write("pod", &volume, size);
            node.finds(&volume, size);
        }
        drop(group);
        run("losetup", &["-d", &disk]);
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn what_stands_is_kept_only_if_it_is_of_the_kind_that_is_wanted() {
    let group = Group::new("crypt-kept");
    for mode in BOTH_MODES {
        let node = with_key(mode, "crypt-kept");
        let [plain, closed] = ["plain", "closed"].map(|kind| format!("{kind}-{}", mode.lv()));
        let plain = group.linear(&plain, "48m");
        let open = group.linear(&closed, "48m");
        let closed = open.clone().encrypted();
        for (there, wanted, words) in [
            (&plain, plain.clone().encrypted(), "[not-encrypted]"),
            (&closed, open, "[encrypted]"),
        ] {
            let dir = node.up("pod", there);
            let pod = wanted.json_for("pod");
            node.refuses(&["mount", text(&dir), &pod], &[words]);
            if mode == Mode::Attach {
                let (global, device) = (node.global_dir(there), there.device());
                let again = ["mountdevice", text(&global), &device, &wanted.json()];
                node.refuses(&again, &[words]);
            }
            node.mount("pod", there).is_success();
            node.all_down(&["pod"], there);
        }
    }
}

#[test]
fn what_a_failed_mount_has_opened_is_closed_though_somebody_looks_at_the_volume() {
    // The volume's lock is held a little longer than the call holds it, as by `metrics`.
    let fails = "(sleep 1) <&0 >/dev/null 2>&1 & exit 32";
    let tools = Tools::new().put("mount", fails);
    let key = config(&key_file("crypt-looked"));
    let mut node = Node::with_config(Mode::MountOnly, &key);
    let group = Group::new("crypt-looked");
    let volume = filled(&node, &group, "data");
    node.configure(Mode::MountOnly, &format!("{}{key}", tools.config()));
    node.mount("pod", &volume)
        .is_failure(&["mounting crypt-looked/data"]);
    assert!(!is_open(&volume));
}
