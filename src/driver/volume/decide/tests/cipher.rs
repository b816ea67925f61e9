//! What keeps a secret, and what does not.

use super::sample::*;
use crate::crypt::{DmTable, Layout};
use crate::names::Shown;
use crate::volume::decide::decision::Decision;
use crate::volume::decide::facts::{Content, Facts};
use crate::volume::decide::reason::Reason;
use crate::volume::decide::rules::decide;

fn is_refused(facts: &Facts, what: &str) {
    let reason = Reason::Cipher(what.shown());
    assert_eq!(decide(facts, &wish()), Decision::Refuse(reason), "{what}");
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_header_that_does_not_encrypt_as_the_driver_does_is_refused_by_name() {
    type Change = fn(&mut Layout);
    let cases: [(Change, &str); 13] = [
        (|l| segment(l).cipher = "cipher_null-ecb".into(), "the cipher cipher_null-ecb"),
        (|l| segment(l).cipher = String::new(), "the cipher "),
        (|l| segment(l).cipher = "aes-xts-plain64 ".into(), "the cipher aes-xts-plain64 "),
        (|l| segment(l).kind = "linear".into(), "a segment of the type linear"),
        (|l| segment(l).integrity = Some(true.into()), "integrity"),
        (|l| segment(l).offset.clear(), "a segment at byte 0, in the header itself"),
        (|l| segment(l).offset = "4096".into(), "a segment at byte 4096, in the header itself"),
        (|l| l.segments.extend([("1".into(), layout().segments["0"].clone())]), "2 segments"),
        (|l| l.segments.clear(), "0 segments"),
        (|l| slot(l).area.cipher = "cipher_null".into(), "the cipher cipher_null in a key slot"),
        (|l| slot(l).kind = "reencrypt".into(), "a key slot of the type reencrypt"),
        (|l| slot(l).key_size = 1, "a key of 1 bytes in a key slot"),
        (|l| { l.config.requirements.insert("mandatory".into(), vec!["online-reencrypt".into()]); }, "the requirement online-reencrypt"),
    ];
    for (change, what) in cases {
        for make in [encrypted, encrypted_and_open] {
            let mut facts = blank();
            make(&mut facts);
            facts.content = Some(says(LUKS, change));
            is_refused(&facts, what);
            // In one of the copies alone.
            for (copy, says, what) in [(0, Some(layout()), what), (1, None, "a LUKS2 header that cannot be read")] {
                let Some(Content::Luks(header)) = &mut facts.content else { unreachable!() };
                header.layouts[copy] = says;
                is_refused(&facts, what);
            }
        }
    }
}

#[test]
#[rustfmt::skip] // a row is a line
fn a_table_of_the_kernel_that_does_not_encrypt_the_volume_is_refused() {
    type Change = fn(&mut DmTable);
    let cases: [(Change, &str); 6] = [
        (|t| t.target = "no crypt".into(), "a table of the type no crypt"),
        (|t| t.cipher = "cipher_null-ecb".into(), "the cipher cipher_null-ecb in the kernel"),
        (|t| t.has_key = false, "another table in the kernel than its own"),
        (|t| t.has_integrity = true, "another table in the kernel than its own"),
        (|t| t.below = None, "another table in the kernel than its own"),
        (|t| t.offset = Some(0), "another table in the kernel than its own"),
    ];
    for (change, what) in cases {
        let mut facts = blank();
        encrypted_and_open(&mut facts);
        change(&mut facts.inside.as_mut().unwrap().table);
        is_refused(&facts, what);
    }
}
