//! A LUKS2 header has no MAC: who can write to the disk can write any. One that encrypts badly, or not at all, is
//! refused by name.

use super::*;
use crate::crypt::lost::{filled, refuses_unchanged, still_holds};

const COPY: usize = 16 << 10;
const JSON: usize = 4096;

/// Writes both copies of the header with this change of their JSON, and with a checksum that is right.
fn rewrite(device: &str, change: impl Fn(&str) -> String) {
    let all = fs::File::open(device).unwrap();
    let mut head = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(all, 2 * COPY as u64), &mut head).unwrap();
    for copy in head.chunks_mut(COPY) {
        let json = copy[JSON..].split(|byte| *byte == 0).next().unwrap();
        let text = str::from_utf8(json).unwrap();
        let json = change(text);
        assert_ne!(json, text, "nothing was changed");
        copy[JSON..].fill(0);
        copy[JSON..][..json.len()].copy_from_slice(json.as_bytes());
        copy[448..512].fill(0);
        fs::write("/run/rewrite.copy", &copy).unwrap();
        let sum = run("sha256sum", &["/run/rewrite.copy"]);
        for (at, byte) in copy[448..480].iter_mut().enumerate() {
            *byte = u8::from_str_radix(&sum[2 * at..2 * at + 2], 16).unwrap();
        }
    }
    fs::write("/run/rewrite.head", &head).unwrap();
    sh(&format!(
        "dd if=/run/rewrite.head of={device} conv=notrunc,fsync status=none"
    ));
}

/// A change of the part of the JSON that begins with `from`.
fn within(from: &'static str, old: &'static str, new: &'static str) -> impl Fn(&str) -> String {
    move |json| {
        let (before, after) = json.split_once(from).unwrap();
        format!("{before}{from}{}", after.replacen(old, new, 1))
    }
}

const SEGMENTS: &str = "\"segments\":";
const SLOTS: &str = "\"keyslots\":";
const AES: &str = "aes-xts-plain64";

/// A change of the JSON of a header.
type Edit = Box<dyn Fn(&str) -> String>;

#[test]
fn a_header_that_encrypts_badly_or_not_at_all_is_refused_by_name() {
    let group = Group::new("headers-of");
    let node = with_key(Mode::MountOnly, "headers-of");
    let volume = filled(&node, &group, "data");
    let device = volume.device();
    sh(&format!(
        "dd if={device} of=/run/headers-of.kept bs=1M count=4 status=none"
    ));
    let restore = format!("dd if=/run/headers-of.kept of={device} conv=notrunc,fsync status=none");
    let cases: [(Edit, &str); 14] = [
        (
            Box::new(within(SEGMENTS, AES, "cipher_null-ecb")),
            "cipher_null-ecb",
        ),
        (Box::new(within(SEGMENTS, AES, "null")), "null"),
        (Box::new(within(SEGMENTS, AES, "aes-ecb")), "aes-ecb"),
        (
            Box::new(within(SEGMENTS, AES, "aes-cbc-null")),
            "aes-cbc-null",
        ),
        (
            Box::new(within(SEGMENTS, AES, "capi:ecb(cipher_null)-plain64")),
            "capi:ecb(cipher_null)",
        ),
        (
            Box::new(within(SLOTS, AES, "cipher_null-ecb")),
            "cipher_null-ecb",
        ),
        (Box::new(within(SLOTS, AES, "aes-ecb-null")), "aes-ecb-null"),
        (
            Box::new(within(SLOTS, "\"key_size\":64", "\"key_size\":8")),
            "8",
        ),
        (
            Box::new(within(SLOTS, "\"luks2\"", "\"reencrypt\"")),
            "reencrypt",
        ),
        (
            Box::new(within(SEGMENTS, "\"crypt\"", "\"linear\"")),
            "linear",
        ),
        (
            Box::new(within(SEGMENTS, "\"crypt\"", "\"hw-opal\"")),
            "hw-opal",
        ),
        (
            Box::new(within(
                SEGMENTS,
                "\"crypt\",",
                "\"crypt\",\"integrity\":{\"type\":\"hmac(sha256)\",\"journal_encryption\":\"none\",\"journal_integrity\":\"none\"},",
            )),
            "integrity",
        ),
        (Box::new(within(SEGMENTS, "16777216", "8192")), "8192"),
        (
            Box::new(within(
                "\"config\":",
                "{",
                "{\"requirements\":{\"mandatory\":[\"online-reencrypt\"]},",
            )),
            "online-reencrypt",
        ),
    ];
    for (change, name) in &cases {
        rewrite(&device, change);
        refuses_unchanged(&node, &volume, &["headers-of/data is LUKS2 with ", name]);
        let (said, code) = node.says(&["adopt", "headers-of/data"]);
        assert!(code == 1 && !is_open(&volume), "{said}");
        sh(&restore);
    }
    // In one copy alone, the newer one, and in words that would steer a terminal.
    rewrite(&device, within(SEGMENTS, AES, "aes\\u001b[2J\\n-ecb"));
    let reply = node.mount("pod", &volume);
    assert!(
        reply.message.contains("aes") && !reply.message.contains('\u{1b}'),
        "{reply:?}"
    );
    sh(&restore);
    still_holds(&node, &volume, "data");
}

/// What an attacker makes: the volume's own header with no cipher, and a filesystem with the UUID of the record.
#[test]
fn a_plain_filesystem_behind_a_header_without_a_cipher_is_not_mounted() {
    let group = Group::new("no-cipher");
    let node = with_key(Mode::MountOnly, "no-cipher");
    let volume = filled(&node, &group, "data");
    let tags = group.tags("data");
    let uuid = tags
        .split(',')
        .find_map(|tag| tag.strip_prefix("flexvolume.fs=ext4:"));
    shell(&format!(
        "truncate -s 32M /run/no-cipher.img; mkfs.ext4 -q -U {} /run/no-cipher.img
        dd if=/run/no-cipher.img of={} bs=1M seek=16 conv=notrunc,fsync status=none",
        uuid.unwrap(),
        volume.device()
    ));
    rewrite(&volume.device(), within(SEGMENTS, AES, "cipher_null-ecb"));
    refuses_unchanged(&node, &volume, &["cipher_null-ecb"]);
    // Open already, as a killed call leaves it.
    let name = volume.mounted().replace("/dev/mapper/", "");
    let open = [
        "open",
        "--key-file",
        "/run/no-cipher.key",
        &volume.device(),
        &name,
    ];
    run("cryptsetup", &open);
    node.mount("pod", &volume).is_failure(&["cipher_null-ecb"]);
    assert!(!is_open(&volume));
}

#[test]
fn a_table_of_the_kernel_that_does_not_encrypt_is_refused_though_the_header_is_right() {
    let group = Group::new("null-table");
    let node = with_key(Mode::MountOnly, "null-table");
    let volume = filled(&node, &group, "data");
    let name = volume.mounted().replace("/dev/mapper/", "");
    let luks = run("cryptsetup", &["luksUUID", &volume.device()]);
    let uuid = format!("CRYPT-LUKS2-{}-{name}", luks.trim().replace('-', ""));
    for table in [
        "crypt cipher_null-ecb - 0",
        "crypt aes-cbc-plain64 00112233445566778899aabbccddeeff 0",
        "linear",
    ] {
        let table = format!("0 65536 {table} {} 32768", volume.device());
        run(
            "dmsetup",
            &["create", &name, "--table", &table, "--uuid", &uuid],
        );
        node.mount("pod", &volume).is_failure(&["null-table/data"]);
        shell(&format!(
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
    let device = volume.device();
    shell(&format!(
        "cryptsetup luksFormat -q --type luks2 --pbkdf-memory 32 --pbkdf-force-iterations 4 --integrity hmac-sha256 \
         --integrity-no-wipe --key-file /run/integrity.key {device}"
    ));
    let (said, code) = node.says(&["adopt", "integrity/data"]);
    assert!(code == 1 && said.contains("integrity"), "{said}");
    assert!(!is_open(&volume));
    let luks = run("cryptsetup", &["luksUUID", &device]);
    for tag in [
        format!("flexvolume.luks={}", luks.trim()),
        "flexvolume.fs=ext4:u".to_owned(),
    ] {
        group.lv("lvchange", &["--addtag", &tag], "data");
    }
    refuses_unchanged(&node, &volume, &["integrity"]);
}
