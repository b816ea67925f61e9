//! Attackers who can write to the disk. They want to choose the key of a volume, and then read what pods write to it.

use super::forge::*;
use super::*;

/// The UUID of the filesystem that the driver has recorded.
fn recorded(group: &Group) -> String {
    let tags = group.tags("data");
    let uuid = (tags.split(',')).find_map(|tag| tag.strip_prefix("flexvolume.fs=ext4:"));
    uuid.unwrap().to_owned()
}

/// What a member of a JSON says: from where it begins to the end of its object or text.
fn value<'a>(json: &'a str, member: &str) -> &'a str {
    let (_, value) = json.split_once(&format!("\"{member}\":")).unwrap();
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<serde_json::Value>();
    values.next().unwrap().unwrap();
    &value[..values.byte_offset()]
}

/// The JSON with a second member, whose name ends at a NUL for one reader and not for the other. It has no cipher.
fn twice(json: &str, member: &str) -> String {
    let value = value(json, member);
    let other = value.replace(AES, "cipher_null-ecb");
    let old = format!("\"{member}\":{value}");
    let both = format!("{old},\"{member}\\u0000\":{other}");
    json.replacen(&old, &both, 1)
}

#[test]
fn nobody_without_the_passphrase_chooses_the_key_of_a_volume() {
    let (node, group, volume) = with_filled("attacked");
    let device = volume.device();
    sh(&format!("cp --sparse=always {device} /run/attacked.kept"));
    let own = [0, 1].map(|which| Copy::read(&device, which));
    let attacker = Attacker::new(&volume);
    attacker.plant_key(&device);
    attacker.plant_data(&volume, &recorded(&group));
    let json = attacker.json();
    let open = within(SLOTS, AES, "cipher_null-ecb")(&json);
    // Both copies say this, or the first one alone, by another checksum.
    let both = |json: &str| {
        own.clone()
            .map(|copy| copy.with_json(json).summed("sha256"))
    };
    let alone = |algorithm: &str| {
        let [first, second] = own.clone();
        [first.with_json(&open).summed(algorithm), second.0]
    };
    let mut attacks = vec![("no cipher", both(&open))];
    attacks.extend(["sha512", "sha384"].map(|name| (name, alone(name))));
    let members = ["encryption", "area", "0", "keyslots"];
    attacks.extend(members.map(|member| (member, both(&twice(&json, member)))));
    for (name, copies) in attacks {
        for (which, copy) in copies.iter().enumerate() {
            write(&device, which * COPY, copy);
        }
        let reply = node.mount("pod", &volume);
        assert!(!is_open(&volume), "{name}: {reply:?}");
        reply.is_failure(&["[cipher]"]);
    }
    sh(&format!("cp /run/attacked.kept {device}"));
    still_holds(&node, &volume, "data");
}

/// Between the look at a header and the moment in which cryptsetup reads it, and back.
#[test]
fn a_disk_that_is_written_to_meanwhile_gives_no_other_header() {
    let tools = Tools::new().put(
        "cryptsetup",
        r#"[ "$1" = open ] || exec $REAL "$@"
        dd if=/run/meanwhile.other of=/dev/mapper/meanwhile-data conv=notrunc,fsync status=none
        $REAL "$@"; code=$?
        dd if=/run/meanwhile.head of=/dev/mapper/meanwhile-data conv=notrunc,fsync status=none
        exit $code"#,
    );
    let (mut node, group, volume) = with_filled("meanwhile");
    let device = volume.device();
    let attacker = Attacker::new(&volume);
    let open = within(SLOTS, AES, "cipher_null-ecb")(&attacker.json());
    let copies = [0, 1].map(|which| Copy::read(&device, which));
    fs::write(
        "/run/meanwhile.head",
        [&copies[0].0[..], &copies[1].0].concat(),
    )
    .unwrap();
    let other = copies.map(|copy| copy.with_json(&open).summed("sha256"));
    fs::write("/run/meanwhile.other", other.concat()).unwrap();
    let lines = tools.config() + &config(Path::new("/run/meanwhile.key"));
    node.configure(Mode::MountOnly, &lines);
    attacker.plant_key(&device);
    still_holds(&node, &volume, "data");
    // With a filesystem that the attacker can read.
    attacker.plant_data(&volume, &recorded(&group));
    let reply = node.mount("pod", &volume);
    assert!(!is_open(&volume), "{reply:?}");
    reply.is_failure(&["[inside]"]);
}

/// As the case before, with a volume that this call encrypts.
#[test]
fn what_the_kernel_has_after_the_first_encryption_is_compared_too() {
    let tools = Tools::new().put(
        "cryptsetup",
        r#"[ "$1" = open ] || exec $REAL "$@"
        $REAL "$@" || exit
        for name; do :; done
        set -- $(dmsetup table $name)
        dmsetup reload $name --table "0 $2 crypt cipher_null-ecb - 0 $7 32768"
        dmsetup suspend $name; dmsetup resume $name"#,
    );
    let mut node = with_key(Mode::MountOnly, "first-table");
    let lines = config(Path::new("/run/first-table.key"));
    let group = Group::new("first-table");
    let volume = group.linear("data", "48m").encrypted();
    node.configure(Mode::MountOnly, &(tools.config() + &lines));
    let reply = node.mount("pod", &volume);
    assert!(!is_open(&volume), "{reply:?}");
    reply.is_failure(&["cipher_null-ecb", "[cipher]"]);
    node.configure(Mode::MountOnly, &lines);
    node.write("pod", &volume, "made");
    still_holds(&node, &volume, "made");
}

/// cryptsetup reads the header on the disk when it resizes and closes a volume. What is written there meanwhile neither
/// changes how the kernel encrypts nor keeps a pod from ending.
#[test]
fn a_header_that_is_written_under_a_pod_changes_no_table_and_keeps_no_pod() {
    let (node, _group, volume) = with_filled("under-a-pod");
    let device = volume.device();
    let attacker = Attacker::new(&volume);
    sh(&format!(
        "dd if={device} of=/run/under-a-pod.kept bs=4k count=1024 status=none"
    ));
    let own = Copy::read(&device, 0).json();
    let changed = |part, old: &str, new: &str| within(part, old, new)(&own);
    let mandatory = r#"{"requirements":{"mandatory":["later"]},"#;
    let reencrypt = r#"{"requirements":{"mandatory":["online-reencrypt-v2"]},"#;
    let jsons = [
        ("the attacker's", attacker.json()),
        ("no cipher", changed(SEGMENTS, AES, "cipher_null-ecb")),
        ("a cipher of less", changed(SEGMENTS, AES, "aes-ecb")),
        ("linear", changed(SEGMENTS, "\"crypt\"", "\"linear\"")),
        ("later data", changed(SEGMENTS, "16777216", "20971520")),
        (
            "a short segment",
            changed(SEGMENTS, "\"dynamic\"", "\"1048576\""),
        ),
        ("other sectors", changed(SEGMENTS, ":512", ":4096")),
        ("a requirement", changed(CONFIG, "{", mandatory)),
        ("a re-encryption", changed(CONFIG, "{", reencrypt)),
        ("no JSON", "[".repeat(9000)),
        ("empty JSON", "{}".to_owned()),
    ];
    let mut size: u64 = 48 << 20;
    for (name, json) in jsons {
        let dir = node.up("pod", &volume);
        let row = || run("dmsetup", &["table", "--showkeys", &volume.mounted()]);
        let without_size = |row: &str| row.splitn(3, ' ').nth(2).unwrap().to_owned();
        let before = without_size(&row());
        for which in [0, 1] {
            let copy = Copy::read(&device, which).with_json(&json);
            write(&device, which * COPY, &copy.summed("sha256"));
        }
        size += 8 << 20;
        let grown = node.grow("pod", &volume, size);
        assert_eq!(without_size(&row()), before, "{name}: {grown:?}");
        write_synced(&dir.join("page"), "later");
        node.down("pod", &volume);
        assert!(!is_open(&volume), "{name}");
        overwrite(&device, "/run/under-a-pod.kept", 0, 1024);
        still_holds(&node, &volume, "later");
    }
}
