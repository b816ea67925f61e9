//! Which LUKS2 headers and kernel tables keep a secret.

use super::sample::*;
use serde_json::{Value, json};

use crate::crypt::DmTable;
use crate::names::Shown;
use crate::volume::decide::decision::Decision;
use crate::volume::decide::encrypted::{require_header, require_opened};
use crate::volume::decide::facts::{Content, Facts};
use crate::volume::decide::reason::Reason;
use crate::volume::decide::rules::decide;

fn is_refused(facts: &Facts, what: &str) {
    let reason = Reason::Cipher(what.shown());
    assert_eq!(decide(facts, &wish()), Decision::Refuse(reason), "{what}");
}

fn digest(json: &mut Value) -> &mut Value {
    &mut json["digests"]["0"]
}

/// Renames a member.
fn renamed(json: &mut Value, from: &str, to: &str) {
    let members = json.as_object_mut().unwrap();
    let value = members.remove(from).unwrap();
    members.insert(to.to_owned(), value);
}

type Change = fn(&mut Value);

#[rustfmt::skip] // a row is a line
const ODD: [(Change, &str); 45] = [
    (|l| segment(l)["encryption"] = "cipher_null-ecb".into(), "segments.0.encryption \"cipher_null-ecb\""),
    (|l| segment(l)["encryption"] = "".into(), "segments.0.encryption \"\""),
    (|l| segment(l)["encryption"] = "aes-xts-plain64 ".into(), "segments.0.encryption \"aes-xts-plain64 \""),
    (|l| segment(l)["encryption"] = "aes-xts-plain64\0".into(), "segments.0.encryption \"aes-xts-plain64\\u0000\""),
    (|l| segment(l)["type"] = "linear".into(), "segments.0.type \"linear\""),
    (|l| segment(l)["integrity"] = json!({}), "segments.0.integrity, which the driver does not know"),
    (|l| segment(l)["offset"] = "".into(), "a segment at byte 0, in the header itself"),
    (|l| segment(l)["offset"] = "4096".into(), "a segment at byte 4096, in the header itself"),
    (|l| segment(l)["offset"] = "+16777216".into(), "segments.0.offset \"+16777216\""),
    (|l| segment(l)["size"] = "512".into(), "segments.0.size \"512\""),
    (|l| segment(l)["iv_tweak"] = "8".into(), "segments.0.iv_tweak \"8\""),
    (|l| segment(l)["iv_tweak"] = json!(["0"]), "segments.0.iv_tweak"),
    (|l| { segment(l).as_object_mut().unwrap().remove("size"); }, "no segments.0.size"),
    (|l| segment(l)["sector_size"] = 8192.into(), "sectors of 8192 bytes"),
    (|l| l["segments"]["1"] = segment(l).clone(), "2 segments"),
    (|l| renamed(&mut l["segments"], "0", "1"), "no segment with the number 0"),
    (|l| l["segments"] = json!({}), "0 segments"),
    (|l| slot(l)["area"]["encryption"] = "cipher_null".into(), "keyslots.0.area.encryption \"cipher_null\""),
    (|l| slot(l)["type"] = "reencrypt".into(), "keyslots.0.type \"reencrypt\""),
    (|l| slot(l)["key_size"] = 1.into(), "a key of 1 bytes in a key slot"),
    (|l| slot(l)["area"]["key_size"] = 16.into(), "a key of 16 bytes in a key slot"),
    (|l| slot(l)["priority"] = 3.into(), "an unknown priority in a key slot"),
    (|l| slot(l)["af"]["stripes"] = 1.into(), "keyslots.0.af.stripes 1"),
    (|l| slot(l)["af"]["type"] = "luks2".into(), "keyslots.0.af.type \"luks2\""),
    (|l| slot(l)["af"]["hash"] = "crc32".into(), "the hash crc32 in a key slot"),
    (|l| slot(l)["area"]["type"] = "journal".into(), "keyslots.0.area.type \"journal\""),
    (|l| slot(l)["area"]["offset"] = "4096".into(), "a key slot at byte 4096"),
    (|l| slot(l)["area"]["size"] = "16777216".into(), "a key slot at byte 32768"),
    (|l| slot(l)["kdf"]["type"] = "none".into(), "the key derivation none in a key slot"),
    (|l| { slot(l)["kdf"]["type"] = "pbkdf2".into(); slot(l)["kdf"]["hash"] = "crc32".into(); }, "the hash crc32 in a key slot"),
    (|l| slot(l)["kdf"]["hash"] = "sha256".into(), "keyslots.0.kdf.hash, which the driver does not know"),
    (|l| slot(l)["kdf"]["salt"] = "AAAA".into(), "another salt than 32 bytes in a key slot"),
    (|l| digest(l)["type"] = "argon2id".into(), "digests.0.type \"argon2id\""),
    (|l| digest(l)["iterations"] = 0.into(), "a digest of another size, or with sha256"),
    (|l| digest(l)["salt"] = "AAAA".into(), "a digest of another size, or with sha256"),
    (|l| digest(l)["hash"] = "crc32".into(), "a digest of another size, or with crc32"),
    (|l| digest(l)["digest"] = "AAAA".into(), "a digest of another size, or with sha256"),
    (|l| digest(l)["keyslots"] = json!(["1"]), "no key slot of its segment, or several digests"),
    (|l| digest(l)["keyslots"] = json!(["0", "1"]), "digests.0.keyslots"),
    (|l| digest(l)["segments"] = json!([]), "no key slot of its segment, or several digests"),
    (|l| l["digests"]["1"] = digest(l).clone(), "no key slot of its segment, or several digests"),
    (|l| l["segments2"] = true.into(), "segments2, which the driver does not know"),
    (|l| slot(l)["kdf"]["x"] = true.into(), "keyslots.0.kdf.x, which the driver does not know"),
    (|l| l["config"]["json_size"] = "12289".into(), "config.json_size \"12289\""),
    (|l| l["config"]["requirements"] = json!({ "mandatory": ["another-one"] }), "the requirement another-one"),
];

/// Headers as cryptsetup and other programs make them.
#[rustfmt::skip] // a row is a line
const HEALTHY: [(Change, &str); 14] = [
    (|_| (), "of luksFormat"),
    (|l| l["keyslots"]["3"] = slot(l).clone(), "a key slot of another key"),
    (|l| { l["keyslots"]["11"] = slot(l).clone(); l["keyslots"]["2"] = slot(l).clone(); digest(l)["keyslots"] = json!(["11", "0", "2"]); }, "several key slots"),
    (|l| { renamed(&mut l["keyslots"], "0", "1"); digest(l)["keyslots"] = json!(["1"]); }, "the slot 0 was removed"),
    (|l| renamed(&mut l["digests"], "0", "1"), "encrypted anew"),
    (|l| slot(l)["kdf"] = json!({ "type": "pbkdf2", "hash": "sha512", "iterations": 1000, "salt": slot(l)["kdf"]["salt"] }), "pbkdf2"),
    (|l| slot(l)["kdf"]["type"] = "argon2i".into(), "argon2i"),
    (|l| segment(l)["sector_size"] = 4096.into(), "large sectors"),
    (|l| slot(l)["priority"] = 1.into(), "the usual priority"),
    (|l| slot(l)["key_size"] = 48.into(), "a key of 384 bits"),
    (|l| { slot(l)["af"]["hash"] = "sm3".into(); digest(l)["hash"] = "sm3".into(); }, "sm3"),
    (|l| l["tokens"] = json!({ "0": { "type": "systemd-tpm2", "keyslots": ["0"], "text": "a\nb\u{1b}" } }), "a token"),
    (|l| l["config"]["flags"] = json!(["allow-discards"]), "flags"),
    (|l| {
        l["keyslots"]["5"] = json!({ "type": "luks2", "key_size": 16 });
        l["digests"]["1"] = json!({ "type": "pbkdf2", "keyslots": ["5"], "segments": [] });
        l["config"]["requirements"] = json!({});
    }, "an unbound key slot of another size"),
];

#[test]
fn a_header_that_encrypts_as_the_driver_does_is_opened_whoever_made_it() {
    for (change, what) in HEALTHY {
        let mut facts = blank();
        encrypted(&mut facts);
        facts.content = Some(says(LUKS, change));
        assert_eq!(decide(&facts, &wish()), OPEN, "{what}");
    }
}

#[test]
fn a_header_that_does_not_encrypt_as_the_driver_does_is_refused_by_name() {
    for (change, what) in ODD {
        for make in [encrypted, encrypted_and_open] {
            let mut facts = blank();
            make(&mut facts);
            facts.content = Some(says(LUKS, change));
            is_refused(&facts, what);
            // The fault is in only one of the two copies.
            let unread = "a LUKS2 header that cannot be read (its checksum is sha512)";
            let unreadable = Err("its checksum is sha512".to_owned());
            for (copy, says, what) in [(0, Ok(layout()), what), (1, unreadable, unread)] {
                let Some(Content::Luks(header)) = &mut facts.content else {
                    unreachable!()
                };
                header.layouts[copy] = says;
                is_refused(&facts, what);
            }
        }
    }
}

#[test]
fn only_an_older_copy_may_lack_key_slots() {
    let Content::Luks(mut header) = half_keyless(LUKS) else {
        unreachable!()
    };
    assert_eq!(require_header(LUKS, Some(&header)), Ok(()));
    header.layouts.reverse();
    let what = "no key slot of its segment, or several digests";
    let reason = Reason::Cipher(what.shown());
    assert_eq!(require_header(LUKS, Some(&header)), Err(reason));
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_table_of_the_kernel_that_does_not_encrypt_the_volume_is_refused() {
    type Change = fn(&mut DmTable);
    let cases: [(Change, &str); 9] = [
        (|t| t.target = "no crypt".into(), "a table of the type no crypt"),
        (|t| t.cipher = "cipher_null-ecb".into(), "the cipher cipher_null-ecb in the kernel"),
        (|t| t.has_key = false, "another table in the kernel than its own"),
        (|t| t.options.push("integrity:28:aead".into()), "the option integrity:28:aead in the kernel"),
        (|t| t.options.push("iv_large_sectors".into()), "the option iv_large_sectors in the kernel"),
        (|t| t.below = None, "another table in the kernel than its own"),
        (|t| t.below.as_mut().unwrap().minor = 7, "another table in the kernel than its own"),
        (|t| t.offset = Some(0), "another table in the kernel than its own"),
        (|t| t.sector_size = 4096, "another table in the kernel than its own"),
    ];
    let mut facts = blank();
    encrypted_and_open(&mut facts);
    facts.decrypted.as_mut().unwrap().table.target.clear();
    let decided = decide(&facts, &wish());
    let says = |why: &str| why.contains("the device inside has no table");
    assert!(matches!(&decided, Decision::Refuse(Reason::Failed(why)) if says(why)), "{decided:?}");
    for (change, what) in cases {
        let mut facts = blank();
        encrypted_and_open(&mut facts);
        change(&mut facts.decrypted.as_mut().unwrap().table);
        is_refused(&facts, what);
        // The same holds just after it was opened.
        let (Some(Content::Luks(header)), Some(inside)) = (&facts.content, &facts.decrypted) else {
            unreachable!()
        };
        let below = facts.device.as_ref().map(|device| device.number);
        let opened = require_opened(LUKS, Some(header), &inside.table, below);
        assert_eq!(opened, Err(Reason::Cipher(what.shown())));
        let opened = require_opened(LUKS, Some(header), &table(), below);
        assert_eq!(opened, Ok(()));
        let without = require_opened(LUKS, None, &table(), below);
        assert!(matches!(without, Err(Reason::Header { .. })));
    }
}

/// Only the node's config decides whether the disk learns which blocks are free: neither the header nor whoever opened
/// the volume.
#[test]
fn a_volume_that_tells_its_disk_too_much_is_opened_anew_unless_it_is_used() {
    let mut facts = blank();
    encrypted_and_open(&mut facts);
    let inside = facts.decrypted.as_mut().unwrap();
    inside.table.options.push("allow_discards".into());
    assert_eq!(decide(&facts, &wish()), OPEN);
    let mut allowed = wish();
    allowed.allow_discards = true;
    assert!(matches!(decide(&facts, &allowed), Decision::Mount(_)));
    let mut keyless = wish();
    keyless.has_key = false;
    assert_eq!(decide(&facts, &keyless), Decision::Refuse(Reason::NoKey));
    facts.decrypted.as_mut().unwrap().content = Content::Claimed(None);
    assert_ne!(decide(&facts, &wish()), OPEN);
}
