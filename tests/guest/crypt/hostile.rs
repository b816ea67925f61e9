//! Random headers, as an attacker writes them who can write to the disk. If the driver opens a volume with such a
//! header, it opens the volume with the volume's own key.

use serde_json::{Value, json};

use super::forge::*;
use super::*;
use crate::kills::Sample;

/// How many headers are tried.
const HEADERS: usize = 48;

/// Where in the JSON what can stand instead.
#[rustfmt::skip] // a row is a line
const VALUES: &[(&str, &[&str])] = &[
    ("/segments/0/type", &[r#""linear""#, r#""hw-opal-crypt""#]),
    ("/segments/0/encryption", &[r#""cipher_null-ecb""#, r#""aes-cbc-plain64""#, r#""aes-xts-plain""#, r#""null""#]),
    ("/segments/0/offset", &[r#""33554432""#, r#""0""#, r#""4194304""#, "16777216"]),
    ("/segments/0/size", &[r#""4194304""#, r#""0""#, "7"]),
    ("/segments/0/iv_tweak", &[r#""8""#, r#""18446744073709551616""#]),
    ("/segments/0/sector_size", &["4096", "1024", "0", "131072"]),
    ("/segments/0/flags", &[r#"["backup-final"]"#, "[]"]),
    ("/segments/1", &[r#"{"type":"linear","offset":"16777216","size":"dynamic"}"#]),
    ("/keyslots/0/priority", &["0", "1", "2", "9"]),
    ("/keyslots/0/key_size", &["32", "16", "0"]),
    ("/keyslots/0/type", &[r#""reencrypt""#, r#""luks1""#]),
    ("/keyslots/0/area/encryption", &[r#""cipher_null-ecb""#, r#""aes-cbc-essiv:sha256""#, r#""cipher_null""#]),
    ("/keyslots/0/area/offset", &[r#""4194304""#, r#""16777216""#, r#""0""#, r#""32769""#]),
    ("/keyslots/0/area/size", &[r#""4096""#, r#""1""#]),
    ("/keyslots/0/af/stripes", &["1", "0", "4001"]),
    ("/keyslots/0/af/hash", &[r#""sha512""#, r#""crc32""#]),
    ("/keyslots/0/kdf/type", &[r#""pbkdf2""#, r#""none""#]),
    ("/keyslots/0/kdf/memory", &["64", "0"]),
    ("/digests/0/segments", &["[]", r#"["0","0"]"#, r#"["1"]"#]),
    ("/digests/0/keyslots", &["[]", r#"["0","1"]"#, r#"["1"]"#]),
    ("/digests/0/hash", &[r#""sha512""#, r#""crc32""#]),
    ("/digests/0/digest", &[r#""""#, r#""AAAA""#]),
    ("/digests/0/iterations", &["0", "1"]),
    ("/config/keyslots_size", &[r#""4096""#, r#""134217728""#]),
    ("/config/json_size", &[r#""28672""#, r#""0""#]),
    ("/config/requirements", &[r#"{"mandatory":["online-reencrypt"]}"#, r#"{"optional":["x"]}"#]),
    ("/config/new", &["1"]),
    ("/tokens/1", &[r#"{"type":"other","keyslots":[],"a":[null,{"b":1.5}]}"#, r#""\u0000""#]),
];

/// What leaves a header good.
const HARMLESS: &[(&str, &str)] = &[
    ("/config/flags", r#"["allow-discards"]"#),
    ("/config/flags", r#"["no-read-workqueue","x"]"#),
    ("/keyslots/0/priority", "2"),
    (
        "/tokens/0",
        r#"{"type":"luks2-keyring","keyslots":["0"],"key_description":"hostile"}"#,
    ),
];

fn set(json: &mut Value, place: &str, value: &str) {
    let (parent, name) = place.rsplit_once('/').unwrap();
    let value = serde_json::from_str(value).unwrap();
    if let Some(Value::Object(parent)) = json.pointer_mut(parent) {
        parent.insert(name.to_owned(), value);
    }
}

fn one<'a, T>(dice: &mut Sample, of: &'a [T]) -> &'a T {
    &of[dice.below(of.len())]
}

/// The volume's own header, the attacker's, or parts of both.
fn mixed(dice: &mut Sample, own: &Value, theirs: &Value) -> Value {
    let (mut both, area) = (own.clone(), "/keyslots/0/area/encryption");
    let mut open = theirs.clone();
    set(&mut open, area, "\"cipher_null-ecb\"");
    let which = dice.below(7);
    let (first, second) = if which.is_multiple_of(2) {
        (own, &open)
    } else {
        (&open, own)
    };
    match which {
        0 => return own.clone(),
        1 => return open,
        2 => return theirs.clone(),
        _ => {}
    }
    for (number, from) in [("0", first), ("1", second)] {
        both["keyslots"][number] = from["keyslots"]["0"].clone();
        let mut digest = from["digests"]["0"].clone();
        digest["keyslots"] = json!([number]);
        both["digests"][number] = digest;
    }
    if which > 4 {
        // One digest for both keys.
        both["digests"] = json!({ "0": first["digests"]["0"].clone() });
        both["digests"]["0"]["keyslots"] = json!(["0", "1"]);
    }
    both
}

/// A member twice, by a name that is the same for some readers, or what else one text has and JSON has not.
fn twisted(dice: &mut Sample, json: &str, theirs: &Value) -> String {
    const NAMES: [&str; 9] = [
        "encryption",
        "area",
        "keyslots",
        "segments",
        "digests",
        "offset",
        "digest",
        "kdf",
        "salt",
    ];
    let name = *one(dice, &NAMES);
    let mut open = theirs.clone();
    set(
        &mut open,
        "/keyslots/0/area/encryption",
        "\"cipher_null-ecb\"",
    );
    let slot = &open["keyslots"]["0"];
    let value = [
        &open[name],
        &slot[name],
        &slot["area"][name],
        &open["digests"]["0"][name],
    ];
    let value = value.into_iter().find(|value| !value.is_null()).unwrap();
    let names: Vec<usize> = json
        .match_indices(&format!("\"{name}\":"))
        .map(|(at, _)| at)
        .collect();
    let (before, after) = json.split_at(*one(dice, &names));
    let other = *one(dice, &["\\u0000", "", "\\u0000x", "\\u0001", " "]);
    match dice.below(4) {
        0 => format!("{before}\"{name}{other}\":{value},{after}"),
        // Behind the member itself, which ends where the next one begins, or its object does.
        1 => {
            let member = after.split_once(':').unwrap().1;
            let mut values = serde_json::Deserializer::from_str(member).into_iter::<Value>();
            values.next().unwrap().unwrap();
            let end = after.len() - member.len() + values.byte_offset();
            let (member, after) = after.split_at(end);
            format!("{before}{member},\"{name}{other}\":{value}{after}")
        }
        2 => format!("{before}/* */{after}"),
        _ => format!("{json}{}", one(dice, &["\0x", " ", "x", "{}"])),
    }
}

/// A copy of a header, and where it is written.
fn copy(dice: &mut Sample, own: &Copy, json: &str, size: usize, place: usize) -> Vec<u8> {
    let is_first = place == 0;
    let magic: &[u8] = if is_first {
        b"LUKS\xba\xbe"
    } else {
        b"SKUL\xba\xbe"
    };
    let mut bytes = own.0.clone();
    bytes.resize(size, 0);
    let sequence = [3, 3, 3, 1, 200][dice.below(5)];
    let mut copy = Copy(bytes)
        .with_json(json)
        .with(0, magic)
        .with(8, &(size as u64).to_be_bytes())
        .with(16, &u64::to_be_bytes(sequence))
        .with(256, &(place as u64).to_be_bytes());
    if dice.below(16) == 0 {
        copy = copy.with(168, b"1b1c2d3e-0000-4000-8000-00000000abcd");
    }
    let algorithm = *one(dice, &["sha256", "sha256", "sha256", "sha384", "sha512"]);
    let mut copy = copy.summed(algorithm);
    if dice.below(8) == 0 {
        copy[500] ^= 1;
    }
    copy
}

/// A volume that is attacked.
struct Side {
    volume: Volume,
    /// The table of the kernel, with the volume's own key.
    table: String,
    head: Vec<u8>,
    first: Copy,
    own: Value,
    theirs: Value,
}

fn table(volume: &Volume) -> String {
    run("dmsetup", &["table", "--showkeys", &volume.mounted()])
}

impl Side {
    fn new(node: &Node, group: &Group, lv: &str) -> Self {
        let volume = filled(node, group, lv);
        node.up("pod", &volume);
        let table = table(&volume);
        node.down("pod", &volume);
        let device = volume.device();
        let head = crate::data::foreign::bytes(&device, 0, 1 << 20);
        let attacker = Attacker::new(&volume);
        attacker.plant_key(&device);
        // One volume has its own data, the other one a filesystem that the attacker can read.
        if lv == "planted" {
            let tags = group.tags(lv);
            let mut tags = tags.split(',');
            let uuid = tags.find_map(|tag| tag.strip_prefix("flexvolume.fs=ext4:"));
            attacker.plant_data(&volume, uuid.unwrap());
        }
        let first = Copy::read(&device, 0);
        Self {
            table,
            head,
            own: serde_json::from_str(&first.json()).unwrap(),
            theirs: serde_json::from_str(&attacker.json()).unwrap(),
            first,
            volume,
        }
    }

    /// Writes a header to its disk that is as good as its own.
    fn change(&self, dice: &mut Sample) -> Vec<String> {
        let device = self.volume.device();
        let (mut json, (place, value)) = (self.own.clone(), *one(dice, HARMLESS));
        set(&mut json, place, value);
        let text = json.to_string();
        for which in [0, 1] {
            let copy = Copy::read(&device, which).with_json(&text);
            write(&device, which * COPY, &copy.summed("sha256"));
        }
        vec![text]
    }

    /// Writes any header to its disk.
    fn attack(&self, dice: &mut Sample) -> Vec<String> {
        let size = *one(
            dice,
            &[COPY, COPY, COPY, COPY, 2 * COPY, 8 * COPY, COPY + 4096],
        );
        let mut said = Vec::new();
        for place in [0, size] {
            // Often only one copy is theirs.
            if size == COPY && dice.below(3) == 0 {
                continue;
            }
            let mut json = mixed(dice, &self.own, &self.theirs);
            if dice.below(8) != 0 {
                let size = format!("\"{}\"", size - 4096);
                set(&mut json, "/config/json_size", &size);
            }
            for _ in 0..dice.below(3) {
                let (place, values) = *one(dice, VALUES);
                set(&mut json, place, one::<&str>(dice, values));
            }
            let mut text = json.to_string();
            if dice.below(3) == 0 {
                text = twisted(dice, &text, &self.theirs);
            }
            let copy = copy(dice, &self.first, &text, size, place);
            write(&self.volume.device(), place, &copy);
            said.push(text);
        }
        said
    }

    /// Mounts the volume. Whether that succeeded: then it has its own key, and its own data.
    fn is_mounted(&self, node: &Node, said: &[String]) -> bool {
        let Self { volume, .. } = self;
        let reply = node.mount("pod", volume);
        let context = || format!("{}: {reply:?} {said:#?}", volume.lv());
        let is_mounted = reply.status == "Success";
        if is_mounted {
            let table = table(volume).replace(" 1 no_read_workqueue", "");
            assert_eq!(table, self.table, "{}", context());
            let page = read(&node.pod_dir("pod", volume).join("page"));
            assert_eq!([volume.lv(), &page], ["own", "own"], "{}", context());
            node.down("pod", volume);
        }
        assert!(!is_open(volume), "{}", context());
        is_mounted
    }
}

#[test]
fn whatever_is_opened_is_opened_with_the_volumes_own_key() {
    let group = Group::new("hostile");
    let node = with_key(Mode::MountOnly, "hostile");
    let sides = ["own", "planted"].map(|lv| Side::new(&node, &group, lv));
    let mut dice = Sample::new();
    let mut opened = 0;
    for round in 0..HEADERS {
        let is_good = round.is_multiple_of(6);
        let side = if is_good {
            &sides[0]
        } else {
            one(&mut dice, &sides)
        };
        write(&side.volume.device(), 0, &side.head);
        let said = if is_good {
            side.change(&mut dice)
        } else {
            side.attack(&mut dice)
        };
        let is_mounted = side.is_mounted(&node, &said);
        assert!(is_mounted || !is_good, "{said:?}");
        opened += usize::from(is_mounted);
    }
    println!("{opened} of {HEADERS} were opened");
    assert!((1..HEADERS / 2).contains(&opened), "{opened}");
    let [own, _] = sides;
    write(&own.volume.device(), 0, &own.head);
    still_holds(&node, &own.volume, "own");
}
