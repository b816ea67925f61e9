//! Sizes in bytes. Parses sizes as people write them for LVM.

use std::fmt;
use std::num::NonZeroU64;

use anyhow::{Error, Result};

use super::invalid;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// The size for people: about three digits, in the largest unit.
    #[allow(clippy::cast_precision_loss)] // it is rounded anyway
    pub fn rounded(self) -> String {
        let mut value = self.0 as f64;
        for unit in ["bytes", "KiB", "MiB", "GiB", "TiB"] {
            if value < 1023.5 {
                let decimals = usize::from(value < 99.95);
                let number = format!("{value:.decimals$}");
                let short = number.strip_suffix(".0").unwrap_or(&number);
                return format!("{short} {unit}");
            }
            value /= 1024.0;
        }
        format!("{value:.0} PiB")
    }

    /// Parses a size as people write it for LVM: a number, which may have decimals, and a unit. Without a unit, the
    /// number counts MiB. Rounds up to whole bytes. Source: lvcreate(8) `--size` and "Size[UNIT]".
    pub fn parse_lvm(text: &str) -> Result<Self> {
        const FORM: &str = "write a number and a unit (b s k m g t p e, or KiB MiB GiB …), such as \
            512m, 1.5g or 10GiB; without a unit it is MiB";
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = text.strip_suffix(unit).unwrap_or(text);
        // `.5g` and `5.g` are numbers for LVM, too.
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let is_number = is_digits(decimals) && !(whole.is_empty() && decimals.is_empty());
        let Some(shift) = shift(unit).filter(|_| is_number) else {
            return Err(error(text, FORM));
        };
        scaled(whole, decimals, shift).map(Self).ok_or_else(|| {
            error(
                text,
                "it is more than 64 bits hold, or more exact than a byte",
            )
        })
    }

    /// Rounds up to whole multiples of `unit`, as LVM does to extents. `None`: the result does not fit into 64 bits.
    pub fn round_up(self, unit: NonZeroU64) -> Option<Self> {
        self.0.checked_next_multiple_of(unit.get()).map(Self)
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn error(text: &str, why: &str) -> Error {
    invalid(text, &format!("size: {why}"))
}

/// The exponent of two that a unit stands for. LVM counts in powers of 1024 and ignores the unit's case, so `GB` is
/// GiB: lvcreate(8) "Size[UNIT]". LVM ignores other text after the letter; this function refuses it. `None`: the text
/// is no unit.
fn shift(unit: &str) -> Option<u32> {
    let lower = unit.to_ascii_lowercase();
    let Some(letter) = lower.chars().next() else {
        return Some(20);
    };
    let shift = match letter {
        'b' => 0,
        's' => 9,
        letter => *[10, 20, 30, 40, 50, 60].get("kmgtpe".find(letter)?)?,
    };
    let is_written_so = match lower.get(1..) {
        Some("") => true,
        Some("b" | "i" | "ib") => shift >= 10,
        _ => false,
    };
    is_written_so.then_some(shift)
}

/// `whole.decimals` × 2^`shift`, rounded up to a whole number. Counts with integers, so the result is exact. `None`:
/// the result does not fit into 64 bits, or there are too many decimals.
fn scaled(whole: &str, decimals: &str, shift: u32) -> Option<u64> {
    let decimals = decimals.trim_end_matches('0');
    let digits: u128 = format!("0{whole}{decimals}").parse().ok()?;
    let divisor = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let bytes = digits.checked_mul(1_u128.checked_shl(shift)?)?;
    u64::try_from(bytes.div_ceil(divisor)).ok()
}

impl fmt::Display for Bytes {
    /// Prints the size in the largest unit of which it is a whole multiple. So the size is never rounded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut value = self.0;
        let mut name = if value == 1 { "byte" } else { "bytes" };
        for larger in NAMES {
            if value == 0 || !value.is_multiple_of(1024) {
                break;
            }
            (value, name) = (value / 1024, larger);
        }
        f.pad(&format!("{value} {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_rounded_for_people() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 512, "1 MiB"),
            (64 << 20, "64 MiB"),
            ((1 << 30) - 1, "1 GiB"),
            (123_456_789, "118 MiB"),
            (12_345_678_901, "11.5 GiB"),
            (u64::MAX, "16384 PiB"),
        ];
        for (bytes, want) in cases {
            assert_eq!(Bytes(bytes).rounded(), want, "{bytes}");
        }
    }

    #[test]
    fn parses_what_lvm_users_write() {
        let cases = [
            ("MiB without a unit", "100", Some(100 << 20)),
            ("bytes", "100b", Some(100)),
            ("sectors", "3s", Some(3 * 512)),
            ("either case", "3S", Some(3 * 512)),
            ("k", "2k", Some(2 << 10)),
            ("m", "2M", Some(2 << 20)),
            ("g", "2g", Some(2 << 30)),
            ("t", "2T", Some(2 << 40)),
            ("p", "2p", Some(2 << 50)),
            ("e", "15E", Some(15 << 60)),
            ("kubernetes", "10Gi", Some(10 << 30)),
            ("in full", "10GiB", Some(10 << 30)),
            ("decimals", "1.5g", Some(3 << 29)),
            (
                "zeros after the point",
                "1.50000000000000000000000g",
                Some(3 << 29),
            ),
            ("part of a byte", "1.3k", Some(1332)),
            ("zero", "0", Some(0)),
            ("largest", "18446744073709551615b", Some(u64::MAX)),
            ("one more than fits", "18446744073709551616b", None),
            ("too large by its unit", "16e", None),
            ("too large by its decimals", "15.9999999999999999999e", None),
            (
                "just fits",
                "15.99999999999999e",
                Some(18_446_744_073_709_540_087),
            ),
            ("as LVM reads it", "10GB", Some(10 << 30)),
            ("no whole part", ".5g", Some(1 << 29)),
            ("no decimals", "5.g", Some(5 << 30)),
            ("more than a unit", "10GBs", None),
            ("unit of its own", "10gibibytes", None),
            ("bytes in full", "10bib", None),
            ("bytes with i", "10bi", None),
            ("sectors with i", "10si", None),
            ("neither", ".g", None),
            ("two points", "1.2.3g", None),
            ("comma", "1,5g", None),
            ("space", "10 g", None),
            ("sign", "+10g", None),
            ("negative", "-10g", None),
            ("percent", "100%FREE", None),
            ("unit alone", "g", None),
            ("exponent", "1e3", None),
            ("hexadecimal", "0x10", None),
            ("empty", "", None),
        ];
        for (name, input, want) in cases {
            let got = Bytes::parse_lvm(input).ok().map(Bytes::get);
            assert_eq!(got, want, "{name}: {input:?}");
        }
    }

    #[test]
    fn prints_the_exact_number_in_the_largest_unit() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (1025, "1025 bytes"),
            (10 << 30, "10 GiB"),
            (3 << 29, "1536 MiB"),
            (1 << 63, "8 EiB"),
            (u64::MAX, "18446744073709551615 bytes"),
        ];
        for (bytes, want) in cases {
            assert_eq!(Bytes::new(bytes).to_string(), want);
        }
    }

    #[test]
    fn rounds_up_and_never_down() {
        let cases = [
            (0, 4 << 20, Some(0)),
            (1, 4 << 20, Some(4 << 20)),
            (4 << 20, 4 << 20, Some(4 << 20)),
            ((4 << 20) + 1, 4 << 20, Some(8 << 20)),
            (u64::MAX, 1, Some(u64::MAX)),
            (u64::MAX, 2, None),
        ];
        for (bytes, unit, want) in cases {
            let unit = NonZeroU64::new(unit).unwrap();
            let got = Bytes::new(bytes).round_up(unit).map(Bytes::get);
            assert_eq!(got, want, "{bytes} {unit}");
        }
    }
}
