//! A LUKS2 header has no MAC, so whoever can write to the disk can write any header. A header that encrypts badly or
//! not at all is refused, and the message says why.

use super::forge::*;
use super::*;

/// The part of the header, what stands there instead of what, and the word of the message. Quotes are left out.
#[rustfmt::skip] // a row is a line
const BAD: [(&str, &str, &str, &str); 13] = [
    (SEGMENTS, AES, "cipher_null-ecb", "cipher_null-ecb"),
    (SEGMENTS, AES, "null", "null"),
    (SEGMENTS, AES, "aes-ecb", "aes-ecb"),
    (SEGMENTS, AES, "aes-cbc-null", "aes-cbc-null"),
    (SEGMENTS, AES, "capi:ecb(cipher_null)-plain64", "capi:ecb(cipher_null)"),
    (SLOTS, AES, "cipher_null-ecb", "cipher_null-ecb"),
    (SLOTS, AES, "aes-ecb-null", "aes-ecb-null"),
    (SLOTS, "'key_size':64", "'key_size':8", "8"),
    (SLOTS, "'luks2'", "'reencrypt'", "reencrypt"),
    (SEGMENTS, "'crypt'", "'linear'", "linear"),
    (SEGMENTS, "'crypt'", "'hw-opal'", "hw-opal"),
    (SEGMENTS, "'crypt',", "'crypt','integrity':{'type':'hmac(sha256)','journal_encryption':'none','journal_integrity':'none'},", "integrity"),
    (SEGMENTS, "16777216", "8192", "8192"),
];

#[test]
fn a_header_that_encrypts_badly_or_not_at_all_is_refused_by_name() {
    let (node, _group, volume) = with_filled("headers-of");
    let device = volume.device();
    sh(&format!(
        "dd if={device} of=/run/headers-of.kept bs=4k count=1024 status=none"
    ));
    let restore = || overwrite(&device, "/run/headers-of.kept", 0, 1024);
    for (part, old, new, name) in BAD {
        let [old, new] = [old, new].map(|text| text.replace('\'', "\""));
        rewrite(&device, within(part, &old, &new));
        refuses_unchanged(&node, &volume, &["headers-of/data is LUKS2 with ", name]);
        node.prints(&["adopt", "headers-of/data"], "", 1);
        assert!(!is_open(&volume), "{name}");
        restore();
    }
    // As cryptsetup begins to encrypt anew: a word of its own, since nobody need have attacked.
    let begun = r#"{"requirements":{"mandatory":["online-reencrypt"]},"#;
    rewrite(&device, within(CONFIG, "{", begun));
    refuses_unchanged(&node, &volume, &["[reencryption]"]);
    restore();
    // In words that would steer a terminal.
    rewrite(&device, within(SEGMENTS, AES, "aes\\u001b[2J\\n-ecb"));
    let message = node.mount("pod", &volume).message;
    let is_plain = message.contains("aes") && !message.contains('\u{1b}');
    assert!(is_plain, "{message:?}");
    restore();
    still_holds(&node, &volume, "data");
}

/// What an attacker makes: the volume's own header with no cipher, and a filesystem with the UUID of the record.
#[test]
fn a_plain_filesystem_behind_a_header_without_a_cipher_is_not_mounted() {
    let (node, group, volume) = with_filled("no-cipher");
    let (tags, device) = (group.tags("data"), volume.device());
    let mut tags = tags.split(',');
    let uuid = tags.find_map(|tag| tag.strip_prefix("flexvolume.fs=ext4:"));
    bash(&format!(
        "truncate -s 32M /run/no-cipher.img; mkfs.ext4 -q -U {} /run/no-cipher.img
        dd if=/run/no-cipher.img of={device} bs=1M seek=16 conv=notrunc,fsync status=none",
        uuid.unwrap(),
    ));
    rewrite(&device, within(SEGMENTS, AES, "cipher_null-ecb"));
    refuses_unchanged(&node, &volume, &["cipher_null-ecb"]);
    // Open already, as a killed call leaves it.
    opens(&volume, &name_inside(&volume));
    node.mount("pod", &volume).is_failure(&["cipher_null-ecb"]);
    assert!(!is_open(&volume));
}

#[test]
fn a_table_of_the_kernel_that_does_not_encrypt_is_refused_though_the_header_is_right() {
    let (node, _group, volume) = with_filled("null-table");
    let (name, device) = (name_inside(&volume), volume.device());
    let uuid = format!("CRYPT-LUKS2-{}-{name}", luks_uuid(&volume).replace('-', ""));
    for table in [
        "crypt cipher_null-ecb - 0",
        "crypt aes-cbc-plain64 00112233445566778899aabbccddeeff 0",
        "linear",
    ] {
        bash(&format!(
            "dmsetup create {name} --table '0 65536 {table} {device} 32768' --uuid {uuid}"
        ));
        node.mount("pod", &volume).is_failure(&["[cipher]"]);
        bash(&format!(
            "dmsetup remove --retry {name} 2> /dev/null || true"
        ));
        assert!(!is_open(&volume));
    }
    still_holds(&node, &volume, "data");
}

#[test]
fn a_volume_with_integrity_is_refused_and_not_left_open() {
    let group = Group::new("integrity");
    let node = with_key(Mode::MountOnly, "integrity");
    let volume = group.linear("data", "64m").encrypted();
    sh(&format!(
        "cryptsetup luksFormat {QUICKLY} --type luks2 --integrity hmac-sha256 --integrity-no-wipe \
         --key-file /run/integrity.key {}",
        volume.device()
    ));
    node.prints(&["adopt", "integrity/data"], "integrity", 1);
    assert!(!is_open(&volume));
    let luks = format!("flexvolume.luks={}", luks_uuid(&volume));
    let tags = ["--addtag", &luks, "--addtag", "flexvolume.fs=ext4:u"];
    group.lv("lvchange", &tags, "data");
    refuses_unchanged(&node, &volume, &["integrity"]);
}

/// What `cryptsetup --persistent` keeps in the header.
#[test]
fn the_options_of_the_kernels_table_are_those_of_the_config_and_not_of_the_header() {
    let (node, _group, volume) = with_filled("persistent");
    let (name, device) = (name_inside(&volume), volume.device());
    let opens = |options: &str| {
        bash(&format!(
            "cryptsetup open --key-file /run/persistent.key {options} {device} {name}"
        ));
    };
    let table = || {
        node.up("pod", &volume);
        let table = run("dmsetup", &["table", &volume.mounted()]);
        node.down("pod", &volume);
        table
    };
    let plain = table();
    opens("--allow-discards --persistent");
    closes(&name);
    let dump = run("cryptsetup", &["luksDump", &device]);
    assert!(dump.contains("allow-discards"), "{dump}");
    assert_eq!(table(), plain);
    // Open already, as a person opens it.
    opens("");
    let open = run("dmsetup", &["table", &volume.mounted()]);
    assert!(open.contains("allow_discards"), "{open}");
    assert_eq!(table(), plain);
    // What only makes it faster stays.
    opens("--perf-no_read_workqueue --persistent");
    closes(&name);
    let fast = table();
    assert!(fast.ends_with(" 1 no_read_workqueue"), "{fast}");
    still_holds(&node, &volume, "data");
}

/// As the page says. To open the volume, cryptsetup reads no header of the disk.
#[test]
fn a_damaged_copy_is_mended_when_the_volume_is_closed() {
    let (node, _group, volume) = with_filled("mended");
    let device = volume.device();
    for which in [0, 1] {
        let copy = || Copy::read(&device, which).0;
        write(&device, which * COPY, &[0; COPY]);
        node.up("pod", &volume);
        assert!(copy().iter().all(|byte| *byte == 0), "{which}");
        node.down("pod", &volume);
        assert!(copy().iter().any(|byte| *byte != 0), "{which}");
    }
    still_holds(&node, &volume, "data");
}
