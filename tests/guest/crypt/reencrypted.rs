//! A volume that an operator encrypts with a new key. Until this has ended, only `cryptsetup reencrypt --resume-only`
//! helps, and a backup of the older header would destroy the data.

use super::*;

const REENCRYPT: &str =
    "cryptsetup reencrypt --batch-mode --pbkdf-memory 32 --pbkdf-force-iterations 4";

/// Saves the header to a file, or restores it from there.
fn header(command: &str, file: &str, volume: &Volume) {
    let device = volume.device();
    sh(&format!(
        "cryptsetup {command} -q --header-backup-file {file} {device}"
    ));
}

/// How often the header was written.
fn epoch(device: &str) -> u64 {
    bash(&format!(
        "cryptsetup luksDump {device} | sed -n 's/^Epoch:[ \t]*//p'"
    ))
    .parse()
    .unwrap()
}

/// A part has the new key, and the rest the old one. Each step is made slow enough to be seen.
fn stops_in_the_middle(device: &str, key: &str) {
    let slow = "strace -f -o /dev/null -e trace=fsync,fdatasync -e inject=fsync,fdatasync:delay_exit=50000";
    let resume = "cryptsetup reencrypt -q --resume-only --hotzone-size 64k";
    let begun = epoch(device);
    let _work = Process::new(
        &format!("exec {slow} {resume} {key} {device}"),
        Path::new("/"),
    );
    eventually("a part has the new key", || epoch(device) > begun + 5);
    sh("pkill -INT -x cryptsetup");
    eventually("it has stopped", || {
        bash("pgrep -x cryptsetup || true").is_empty()
    });
}

#[test]
fn a_volume_whose_reencryption_was_cut_short_is_resumed_and_never_restored() {
    let (node, group, volume) = with_filled("anew-cut");
    let tags = group.tags("data");
    let (device, key) = (volume.device(), "--key-file /run/anew-cut.key");
    let [old, new] = ["/run/anew-cut.old", "/run/anew-cut.new"];
    header("luksHeaderBackup", old, &volume);
    for is_early in [true, false] {
        sh(&format!("{REENCRYPT} --init-only {key} {device}"));
        if !is_early {
            stops_in_the_middle(&device, key);
        }
        let dump = sh(&format!("cryptsetup luksDump {device}"));
        assert!(dump.contains("online-reencrypt"), "{dump}");
        node.refuses_mount(&volume, &["[reencryption]"]);
        let reply = node.mount("pod", &volume);
        assert!(!reply.message.contains("luksHeaderRestore"), "{reply:?}");
        node.prints(&["check", "anew-cut/data"], "--resume-only", 1);
        node.prints(&["adopt", "anew-cut/data"], "--resume-only", 1);
        let resume = reply.command("cryptsetup reencrypt --resume-only").unwrap();
        sh(&resume.replace("reencrypt ", &format!("reencrypt -q {key} ")));
        still_holds(&node, &volume, "data");
    }
    // A header from before opens the volume, and shows noise.
    header("luksHeaderBackup", new, &volume);
    header("luksHeaderRestore", old, &volume);
    let words = [
        "no known signature",
        "A header from before",
        "newest backup",
    ];
    refuses_unchanged(&node, &volume, &words);
    header("luksHeaderRestore", new, &volume);
    still_holds(&node, &volume, "data");
    assert_eq!(group.tags("data"), tags);
}
