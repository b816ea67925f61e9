//! Nodes that lack something to open an encrypted volume. Commands and the mount name it alike, and before anything is
//! written.

use super::*;

#[test]
fn each_command_judges_a_key_file_as_the_mount_does() {
    let (mut node, group, volume) = with_filled("judged");
    let blank = group.linear("blank", "48m").encrypted();
    let (file, dir) = (Path::new("/run/judged.other"), Path::new("/run/judged.dir"));
    fs::create_dir_all(dir).unwrap();
    let long = "x".repeat((64 << 10) + 1);
    for (content, words) in [
        (Some(""), "it is empty"),
        (Some(&*long), "it is longer than 64 KiB"),
        (None, "it is not a regular file"),
    ] {
        let key = if let Some(content) = content {
            written(file, content, 0o600);
            file
        } else {
            dir
        };
        node.configure(Mode::MountOnly, &config(key));
        let words = format!("reading the key_file {}: {words}", key.display());
        refuses_unchanged(&node, &volume, &[&words]);
        refuses_unchanged(&node, &blank, &[&words]);
        let option = ["-o", "encryption=luks2"];
        for lv in ["data", "blank"] {
            let id = group.path(lv);
            node.prints(&[&["check", &id][..], &option].concat(), &words, 1);
        }
        let (said, _) = node.says(&["status", "judged"]);
        assert!(said.contains("no-key"), "{said}");
        let (said, _) = node.says(&["doctor", "--json"]);
        assert!(said.contains(&words), "{said}");
    }
}

/// A kernel of which the modules are away, as after an upgrade of its package.
#[test]
fn a_kernel_without_dm_crypt_is_named_before_a_volume_gets_its_header() {
    let (node, group, volume) = with_filled("no-module");
    let blank = group.linear("blank", "48m").encrypted();
    bash(
        "rmmod dm_crypt; dir=/run/no-modules/$(uname -r); mkdir -p $dir
        for list in modules.dep modules.builtin; do
            grep -v dm-crypt /lib/modules/$(uname -r)/$list > $dir/$list
        done
        mount --bind /run/no-modules /lib/modules",
    );
    let words = ["this kernel has no dm-crypt", "modinfo dm-crypt"];
    let back = Finally("umount /lib/modules".to_owned());
    refuses_unchanged(&node, &volume, &words);
    refuses_unchanged(&node, &blank, &words);
    assert_eq!(group.tags("blank"), "");
    for lv in ["data", "blank"] {
        let check = ["check", &group.path(lv), "-o", "encryption=luks2"];
        node.prints(&check, words[0], 1);
    }
    drop(back);
    still_holds(&node, &volume, "data");
    node.write("pod", &blank, "made");
}

/// The passphrase has changed since the time of mkfs, whose tags vgcfgrestore(8) has brought back.
#[test]
fn a_passphrase_that_has_changed_is_no_reason_to_wipe_a_volume() {
    let (node, group, volume) = with_filled("rotated");
    let tags = group.tags("data");
    again::as_if_making(&group, &volume, "ext4");
    let other = with_secret(&volume, "d3Jvbmc=");
    let reply = node.refuses_mount(&other, &["does not open rotated/data", "vgcfgrestore"]);
    let [tries, wipes] = ["--test-passphrase", "wipefs"].map(|word| reply.message.find(word));
    assert!(tries.unwrap() < wipes.unwrap(), "{reply:?}");
    still_holds(&node, &volume, "data");
    assert_eq!(group.tags("data"), tags);
}

#[test]
fn a_permission_to_format_says_nothing_of_what_is_inside_an_encrypted_volume() {
    let (node, _group, _volume) = with_filled("unseen-inside");
    let allow = ["allow-format", "unseen-inside/data", "--yes"];
    let said = node.prints(&allow, "only who opens it sees what is inside", 1);
    assert!(!said.contains("holds a filesystem"), "{said}");
}

/// Everybody on the host can read the arguments of a process.
#[test]
fn a_passphrase_that_a_person_gives_check_is_not_on_its_command_line() {
    let script = "tr '\\0' ' ' < /proc/$PPID/cmdline >> /run/typed.seen\nexec $REAL \"$@\"";
    let (_tools, node) = Tools::new().put("lvs", script).node();
    let (_group, volume) = Group::with_data("typed");
    let pair = format!("kubernetes.io/secret/passphrase={IN_BASE64}");
    let check = ["check", "typed/data", "-o", "encryption=luks2", "-o", &pair];
    node.prints(&check, "typed/data", 0);
    let seen = read(Path::new("/run/typed.seen"));
    assert!(!seen.is_empty() && !seen.contains(IN_BASE64), "{seen}");
    assert!(seen.contains("call-stdin"), "{seen}");
    node.refuses_mount(&volume.encrypted(), &["no passphrase came"]);
}

/// kubelet's limits are the driver's, too.
#[test]
fn a_limit_of_kubelet_is_an_error_of_the_call() {
    let (node, _group, volume) = with_filled("short");
    let dir = precreated(node.pod_dir("pod", &volume));
    let (exe, json) = (node.exe(), volume.json_for("pod"));
    let args = ["mount", text(&dir), &json];
    for (limit, words) in [
        // The header that the driver writes for cryptsetup has 16 MiB. Files of LVM's own are smaller than this limit.
        ("-f 8000", "File too large"),
        ("-n 12", "Too many open files"),
        ("-n 20", "Too many open files"),
    ] {
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let mut limited = assert_cmd::Command::new("bash");
        limited.args(["-c", &script]).arg(&exe).args(args);
        Reply::of(args, &limited.output().unwrap()).is_failure(&[words]);
    }
    still_holds(&node, &volume, "data");
}
