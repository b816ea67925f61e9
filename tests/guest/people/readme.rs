//! README shows the same output as the driver prints on a node with the same volumes.

use std::fs;

use crate::crypt::with_key;
use crate::prelude::*;

const README: &str = include_str!("../../../README.md");
const GIB: u64 = 1 << 30;

/// The words of it. Sizes depend on versions of mkfs; UUIDs, times and device numbers on chance. README breaks lines at
/// other places.
fn words(text: &str) -> Vec<&str> {
    let is_free = |word: &&str| {
        let word = word.trim_matches(['(', ')', ',', '.']);
        let is_uuid = word.len() == 36 && word.matches('-').count() == 4;
        let is_time = word.len() == 20 && word.ends_with('Z');
        let is_number = word
            .bytes()
            .all(|b| b.is_ascii_digit() || b".:".contains(&b));
        is_uuid || is_time || is_number || ["KiB", "MiB", "GiB"].contains(&word)
    };
    text.split_whitespace()
        .filter(|word| !is_free(word))
        .collect()
}

/// Each command that README shows, with what it prints.
fn shown() -> Vec<(&'static str, &'static str)> {
    let (_, rest) = README.split_once("```console\n# ").expect("a console");
    let (console, _) = rest.split_once("```").unwrap();
    let parts = console.split("\n# ");
    parts.map(|part| part.split_once('\n').unwrap()).collect()
}

#[test]
fn the_readme_shows_what_the_driver_prints() {
    let group = Group::of_size("vg0", 64 * GIB);
    let node = with_key(Mode::MountOnly, "readme");
    for (pod, lv, size, fs) in [
        ("db-0", "shop-db", "10g", "ext4"),
        ("api-0", "media", "20g", "xfs"),
        ("api-1", "media", "", "xfs"),
        ("vault-0", "keys", "1g", "ext4"),
        ("reports-0", "reports", "2g", "ext4"),
    ] {
        fs::create_dir_all(format!("/var/log/pods/shop_{pod}_{pod}")).unwrap();
        let volume = match size {
            "" => Volume::new(&group, lv),
            size => group.linear(lv, size),
        };
        let volume = volume.fs(fs);
        node.up(
            pod,
            &if lv == "keys" {
                volume.encrypted()
            } else {
                volume
            },
        );
    }
    group.linear("new", "2g");
    let reports = Volume::new(&group, "reports");
    // A pod's data, by which the journal is in use however long the volume was mounted.
    write_synced(&node.pod_dir("reports-0", &reports).join("page"), "kept");
    node.down("reports-0", &reports);
    let device = reports.device();
    sh(&format!(
        "dd if=/dev/zero of={device} bs=1M count=1 conv=fsync status=none"
    ));

    let (mut printed, mut wanted) = (String::new(), String::new());
    let shown = shown();
    assert_eq!(shown.len(), 3, "{shown:?}");
    for (command, output) in shown {
        let (prints, wants) = if let Some(args) = command.strip_prefix("flexvolume-lvm ") {
            (node.says(&args.split(' ').collect::<Vec<_>>()).0, output)
        } else {
            // kubelet writes the event, at whose end is the driver's message.
            let (_, reason) = output.split_once("reason: ").unwrap();
            (node.mount("reports-0", &reports).message, reason)
        };
        printed += &["# ", command, "\n", &prints, "\n"].concat();
        wanted += &["# ", command, "\n", wants, "\n"].concat();
    }
    let printed = printed.replace(text(&node.exe()), "flexvolume-lvm");
    assert_eq!(words(&printed), words(&wanted), "{printed}");
}
