//! Counts reads of a device, and tests what a failed read leads to.

use std::cell::RefCell;
use std::io::{self, ErrorKind};

use super::MIB;
use crate::fs::primary::read_primary;
use crate::fs::scan::{Extent, examine};
use crate::fs::superblock::ReadAt;

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A blank device that records its reads, and on which some bytes cannot be read.
#[derive(Default)]
struct Broken {
    size: u64,
    bad: Option<u64>,
    /// Whether a read returns the good bytes before the bad ones, as the kernel does.
    short: bool,
    /// How often a read of the bad bytes fails before it succeeds.
    times: RefCell<Option<u32>>,
    error: Option<ErrorKind>,
    reads: RefCell<Vec<(u64, u64)>>,
}

impl Broken {
    /// A device without bad bytes.
    fn of(size: u64) -> Self {
        Self {
            size,
            ..Self::default()
        }
    }

    fn bad_at(size: u64, bad: u64) -> Self {
        let bad = Some(bad);
        Self {
            bad,
            ..Self::of(size)
        }
    }
}

impl ReadAt for Broken {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.size.min(offset + into.len() as u64);
        let length = end.saturating_sub(offset);
        self.reads.borrow_mut().push((offset, length));
        if let Some(bad) = self.bad.filter(|bad| (offset..end).contains(bad)) {
            let left = &mut *self.times.borrow_mut();
            let fails = left.is_none_or(|left| left > 0);
            *left = left.map(|left| left.saturating_sub(1));
            let before = (bad - offset) / 4096 * 4096;
            if fails && self.short && before > 0 {
                return Ok(usize::try_from(before).unwrap());
            } else if fails {
                return Err(self
                    .error
                    .map_or(io::Error::from_raw_os_error(5), io::Error::from));
            }
        }
        into[..usize::try_from(length).unwrap()].fill(0);
        Ok(usize::try_from(length).unwrap())
    }
}

#[test]
fn a_sector_that_cannot_be_read_is_named_wherever_it_is() {
    for size in [512, 100 * 1024, 17 * MIB, 2 * GIB, 3 * TIB] {
        let whole = Broken::of(size);
        assert_eq!(examine(&whole, size, Extent::Whole).unreadable, None);
        let reads = whole.reads.take();
        // Tests the first and last sector of each read at the ends, and of some reads between.
        let ends = reads.len().min(16);
        let (ends, between) = reads.split_at(ends);
        let sample = between.iter().step_by(1 + between.len() / 12);
        for (offset, length) in ends.iter().chain(sample).copied() {
            for (bad, short) in [
                (offset, false),
                (offset + length - 1, false),
                (offset + length - 1, true),
            ] {
                let broken = Broken {
                    short,
                    ..Broken::bad_at(size, bad)
                };
                let found = examine(&broken, size, Extent::Whole).unreadable;
                let found = found.unwrap_or_else(|| panic!("{size}: {bad} went unnoticed"));
                let is_right = if short {
                    found.offset == bad / 4096 * 4096
                } else {
                    (offset..=bad).contains(&found.offset)
                };
                assert!(is_right, "{size}: {bad}: {found:?}");
                assert!(found.error.contains("os error 5"), "{}", found.error);
            }
        }
    }
}

#[test]
fn every_byte_of_both_ends_is_read() {
    let small = [1, 512, 100 * 1024, 8 * MIB + 1];
    for size in small
        .into_iter()
        .chain([16 * MIB - 512, 17 * MIB + 512, TIB])
    {
        let device = Broken::of(size);
        let _ = examine(&device, size, Extent::Whole);
        let mut reads = device.reads.take();
        reads.sort_unstable();
        for end in [0..size.min(8 * MIB), size.saturating_sub(8 * MIB)..size] {
            let mut at = end.start;
            for (offset, length) in &reads {
                if *offset <= at {
                    at = at.max(offset + length);
                }
            }
            assert!(at >= end.end, "{size}: read to {at} of {end:?}");
        }
    }
}

#[test]
fn doubtful_reads_are_errors_and_interrupted_ones_are_repeated() {
    let size = 40 * MIB;
    let bad = 24 * MIB;
    let case = |times, error| {
        let times = RefCell::new(times);
        let device = Broken {
            times,
            error,
            ..Broken::bad_at(size, bad)
        };
        examine(&device, size, Extent::Whole).unreadable
    };
    assert_eq!(case(Some(1), Some(ErrorKind::Interrupted)), None);
    let second_try = case(Some(1), None).expect("a read that failed once");
    assert!(second_try.offset <= bad, "{second_try:?}");

    // The device is shorter than the kernel said.
    let device = Broken::of(size);
    let found = examine(&device, size + 4 * MIB, Extent::Whole)
        .unreadable
        .unwrap();
    assert_eq!(found.offset, size);

    // An unreadable primary superblock does not count as missing.
    for bad in [0, 1024, 65_536 + 100] {
        let device = Broken::bad_at(size, bad);
        assert!(read_primary(&device).is_err(), "{bad}");
    }
    assert_eq!(read_primary(&Broken::of(512)).unwrap(), None);
}
