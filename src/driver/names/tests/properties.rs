//! Properties that all parsers have for any input.

#![allow(clippy::arithmetic_side_effects)] // the reference of a test may overflow: it would fail

use proptest::prelude::*;

use crate::names::{Bytes, FsType, LvId, LvName, VgName, same_host};
use crate::options::{MountOptions, Options, holds_secret};

/// Names that LVM accepts, with more hyphens and dots than people use.
const NAME: &str = "[a-z+_.A-Z0-9][-a-z+_.]{0,40}";

/// Any text, often with words that have a meaning in one of the syntaxes.
fn any_text() -> impl Strategy<Value = String> {
    let telling = "- -- / /dev/ mapper/ vg . .. , = ro rw noatime commit subvol bind x- 1 0.5 18446744073709551616 g KiB \" \
        { } [ : \\u00 \\ volumegroup volumeID kubernetes.io/ secret/ \0 \n ä";
    let telling = proptest::sample::select(telling.split(' ').collect::<Vec<_>>());
    prop_oneof![
        any::<String>(),
        proptest::collection::vec(telling, 0..12).prop_map(|parts| parts.concat()),
    ]
}

fn volume() -> impl Strategy<Value = LvId> {
    (NAME, NAME).prop_filter_map("names that LVM refuses", |(vg, lv)| {
        Some(LvId::new(
            VgName::parse(&vg).ok()?,
            LvName::parse(&lv).ok()?,
        ))
    })
}

proptest! {
    #[test]
    fn a_volume_is_found_again_by_each_of_its_names(id in volume()) {
        let dm_name = id.dm_name();
        let found = [
            LvId::from_dm_name(&dm_name),
            LvId::from_device(id.device().to_str().unwrap()),
            LvId::parse(&id.to_string()).ok(),
        ];
        for found in found {
            prop_assert_eq!(found.as_ref(), Some(&id));
        }
        if id.vg().as_str() != "mapper" {
            let found = LvId::from_device(&format!("/dev/{id}"));
            prop_assert_eq!(found.as_ref(), Some(&id));
        }
    }

    #[test]
    fn two_volumes_never_have_one_device(a in volume(), b in volume()) {
        prop_assert_eq!(a == b, a.dm_name() == b.dm_name());
    }

    #[test]
    fn a_name_that_was_taken_is_a_safe_operand(text in any_text()) {
        for name in [
            VgName::parse(&text).map(|name| name.to_string()),
            LvName::parse(&text).map(|name| name.to_string()),
        ].into_iter().flatten() {
            prop_assert!(!name.starts_with('-') && !name.is_empty() && name != "..");
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+_.-".contains(&b)));
        }
    }

    #[test]
    fn nothing_makes_a_parser_panic(text in any_text()) {
        let _ = VgName::parse(&text);
        let _ = LvName::parse(&text);
        let _ = LvId::parse(&text);
        let _ = LvId::from_dm_name(&text);
        let _ = LvId::from_device(&text);
        let _ = FsType::parse(&text);
        let _ = Bytes::parse_lvm(&text);
        let _ = MountOptions::of_pod(&text);
        let _ = Options::parse(&text);
        let _ = Options::parse(&format!("{{{text}}}"));
        let _ = holds_secret(&text);
        let _ = same_host(&text, "node");
    }

    #[test]
    fn a_size_is_what_integers_say(
        whole in 0_u64..1 << 24,
        decimals in "[0-9]{0,9}",
        unit in proptest::sample::select(vec![
            ("b", 0), ("s", 9), ("k", 10), ("", 20), ("m", 20), ("Gi", 30), ("TiB", 40), ("P", 50),
        ]),
    ) {
        let (unit, shift) = unit;
        let text = match decimals.as_str() {
            "" => format!("{whole}{unit}"),
            decimals => format!("{whole}.{decimals}{unit}"),
        };
        // The expected size: a whole number of 10^-9 units, rounded up to bytes.
        let nano: u128 = format!("{whole}{decimals:0<9}").parse().unwrap();
        let want = (nano << shift).div_ceil(1_000_000_000);
        let got = Bytes::parse_lvm(&text).ok().map(Bytes::get);
        prop_assert_eq!(got, u64::try_from(want).ok(), "{}", text);
    }

    #[test]
    fn a_printed_size_is_read_as_the_same_size(bytes: u64, shift in 0_u32..64) {
        let bytes = Bytes::new(bytes >> shift << (shift / 2));
        let printed = bytes.to_string();
        let (number, unit) = printed.split_once(' ').unwrap();
        let unit = if unit.starts_with("byte") { "b" } else { unit };
        prop_assert_eq!(Bytes::parse_lvm(&format!("{number}{unit}")).unwrap(), bytes);
    }

    #[test]
    fn rounding_up_adds_less_than_a_unit(bytes: u64, unit in 1_u64..=u64::MAX) {
        let rounded = Bytes::new(bytes).round_up(unit.try_into().unwrap());
        if let Some(rounded) = rounded.map(Bytes::get) {
            prop_assert!(rounded >= bytes && rounded - bytes < unit && rounded % unit == 0);
        } else {
            prop_assert!(u128::from(bytes).div_ceil(unit.into()) * u128::from(unit) > u64::MAX.into());
        }
    }

    #[test]
    fn mount_options_that_were_taken_are_one_word(text in any_text()) {
        if let Ok(options) = MountOptions::of_pod(&text) {
            let joined = options.joined().unwrap_or_default();
            prop_assert!(joined.bytes().all(|b| b.is_ascii_graphic()));
            prop_assert_eq!(MountOptions::of_pod(&joined).unwrap(), options);
        }
    }
}
