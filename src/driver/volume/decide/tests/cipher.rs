//! Which LUKS2 headers and kernel tables keep a secret.

use super::sample::*;
use crate::crypt::{DmTable, KeyDigest, Layout};
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

fn digest(layout: &mut Layout) -> &mut KeyDigest {
    layout.digests.get_mut(&0).unwrap()
}

type Change = fn(&mut Layout);

#[rustfmt::skip] // a row is a line
const ODD: [(Change, &str); 37] = [
    (|l| segment(l).cipher = "cipher_null-ecb".into(), "the cipher cipher_null-ecb"),
    (|l| segment(l).cipher = String::new(), "the cipher "),
    (|l| segment(l).cipher = "aes-xts-plain64 ".into(), "the cipher aes-xts-plain64 "),
    (|l| segment(l).kind = "linear".into(), "a segment of the type linear"),
    (|l| segment(l).integrity = Some(true.into()), "integrity"),
    (|l| segment(l).offset.clear(), "a segment at byte 0, in the header itself"),
    (|l| segment(l).offset = "4096".into(), "a segment at byte 4096, in the header itself"),
    (|l| segment(l).size = "512".into(), "a segment of the size 512, with the tweak 0"),
    (|l| segment(l).iv_tweak = "8".into(), "a segment of the size dynamic, with the tweak 8"),
    (|l| segment(l).sector_size = 8192, "sectors of 8192 bytes"),
    (|l| { let other = segment(l).clone(); l.segments.insert(1, other); }, "2 segments"),
    (|l| { let other = l.segments.remove(&0).unwrap(); l.segments.insert(1, other); }, "no segment with the number 0"),
    (|l| l.segments.clear(), "0 segments"),
    (|l| slot(l).area.cipher = "cipher_null".into(), "the cipher cipher_null in a key slot"),
    (|l| slot(l).kind = "reencrypt".into(), "a key slot of the type reencrypt"),
    (|l| slot(l).key_size = 1, "a key of 1 bytes in a key slot"),
    (|l| slot(l).priority = Some(3), "an unknown priority in a key slot"),
    (|l| slot(l).af.stripes = 1, "1 stripes of the type luks1 in a key slot"),
    (|l| slot(l).af.hash = "crc32".into(), "the hash crc32 in a key slot"),
    (|l| slot(l).area.kind = "journal".into(), "an area of the type journal at byte 32768 in a key slot"),
    (|l| slot(l).area.offset = "4096".into(), "an area of the type raw at byte 4096 in a key slot"),
    (|l| slot(l).area.size = "16777216".into(), "an area of the type raw at byte 32768 in a key slot"),
    (|l| slot(l).kdf.kind = "none".into(), "the key derivation none in a key slot"),
    (|l| { slot(l).kdf.kind = "pbkdf2".into(); slot(l).kdf.hash = "crc32".into(); }, "the hash crc32 in a key slot"),
    (|l| slot(l).kdf.salt = "AAAA".into(), "another salt than 32 bytes in a key slot"),
    (|l| digest(l).kind = "argon2id".into(), "a digest of the type argon2id, with sha256"),
    (|l| digest(l).iterations = 0, "a digest of the type pbkdf2, with sha256"),
    (|l| digest(l).salt = "AAAA".into(), "a digest of the type pbkdf2, with sha256"),
    (|l| digest(l).hash = "crc32".into(), "a digest of the type pbkdf2, with crc32"),
    (|l| digest(l).digest = "AAAA".into(), "a digest of the type pbkdf2, with sha256"),
    (|l| digest(l).keyslots = vec!["1".into()], "no key slot of its segment, or several digests"),
    (|l| digest(l).segments.clear(), "no key slot of its segment, or several digests"),
    (|l| { let other = digest(l).clone(); l.digests.insert(1, other); }, "no key slot of its segment, or several digests"),
    (|l| { l.others.insert("segments2".into(), true.into()); }, "segments2, which the driver does not know"),
    (|l| { segment(l).others.insert("flags".into(), true.into()); }, "flags, which the driver does not know"),
    (|l| { slot(l).kdf.others.insert("x".into(), true.into()); }, "x, which the driver does not know"),
    (|l| { l.config.requirements.insert("mandatory".into(), vec!["another-one".into()]); }, "the requirement another-one"),
];

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
    for (change, what) in cases {
        let mut facts = blank();
        encrypted_and_open(&mut facts);
        change(&mut facts.inside.as_mut().unwrap().table);
        is_refused(&facts, what);
        // The same holds just after it was opened.
        let (Some(Content::Luks(header)), Some(inside)) = (&facts.content, &facts.inside) else {
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
    let inside = facts.inside.as_mut().unwrap();
    inside.table.options.push("allow_discards".into());
    assert_eq!(decide(&facts, &wish()), OPEN);
    let mut allowed = wish();
    allowed.allow_discards = true;
    assert!(matches!(decide(&facts, &allowed), Decision::Mount(_)));
    let mut keyless = wish();
    keyless.has_key = false;
    assert_eq!(decide(&facts, &keyless), Decision::Refuse(Reason::NoKey));
    facts.inside.as_mut().unwrap().content = Content::Claimed(None);
    assert_ne!(decide(&facts, &wish()), OPEN);
}
