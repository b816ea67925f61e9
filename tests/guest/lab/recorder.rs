//! A disk that records each write, flush and discard. From the record, a test makes the disk again as a power cut at
//! any of these leaves it.
//!
//! The record is dm-log-writes'. Source: the kernel's Documentation/admin-guide/device-mapper/log-writes.rst.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::kills::Sample;
use crate::prelude::*;

const SECTOR: u64 = 512;
const MAGIC: u64 = 0x6a_7366_7773_6872;
/// Flags of an entry.
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;

/// A disk of device-mapper whose writes are recorded.
pub struct Recorder {
    name: String,
    size: u64,
    /// The files of the disk and of the record, and their loop devices.
    files: [PathBuf; 2],
    loops: [String; 2],
}

impl Recorder {
    pub fn new(name: &str, size: u64) -> Self {
        let files = ["disk", "log"].map(|end| PathBuf::from(format!("/run/{name}.{end}")));
        // The disk begins a little further on, so that LVM sees it once.
        let loops = [looped(&files[0], size + HIDDEN), looped(&files[1], 1 << 30)];
        let (sectors, start) = (size / SECTOR, HIDDEN / SECTOR);
        // LVM leaves out a device with such a UUID, which is one of its own hidden parts.
        let uuid = format!("LVM-{:0>64}-recorded", name.len());
        bash(&format!(
            "set -e
            dmsetup create {name}-below --uuid {uuid} --table '0 {sectors} linear {} {start}'
            dmsetup create {name} --table '0 {sectors} log-writes /dev/mapper/{name}-below {}'",
            loops[0], loops[1]
        ));
        Self {
            name: name.to_owned(),
            size,
            files,
            loops,
        }
    }

    pub fn path(&self) -> String {
        format!("/dev/mapper/{}", self.name)
    }

    /// Notes in the record that something has happened by now.
    pub fn mark(&self, what: &str) {
        sh(&format!("dmsetup message {} 0 mark {what}", self.name));
    }

    /// Ends the recording. The disk is gone afterwards.
    pub fn end(self) -> Record {
        sh(&format!("dmsetup remove --retry {}", self.name));
        Record {
            size: self.size,
            entries: entries(&self.files[1]),
        }
    }
}

const HIDDEN: u64 = 1 << 20;
/// Where LVM begins its first extent on a disk (`pe_start`), in bytes. LVM's metadata is before this byte.
const FIRST_EXTENT: u64 = 1 << 20;

impl Drop for Recorder {
    fn drop(&mut self) {
        let name = &self.name;
        let all = fs::read_dir("/dev/mapper").unwrap();
        let is_there = all.flatten().any(|one| one.file_name() == name.as_str());
        if is_there {
            lenient("dmsetup", &["remove", "--retry", name]);
        }
        lenient("dmsetup", &["remove", "--retry", &format!("{name}-below")]);
        for device in &self.loops {
            lenient("losetup", &["--detach", device]);
        }
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

/// The writes, flushes, discards and marks of a disk, in their order.
pub struct Record {
    size: u64,
    entries: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    at: u64,
    length: u64,
    flags: u64,
    /// The written bytes. A discard has none.
    bytes: Vec<u8>,
}

fn entries(log: &Path) -> Vec<Entry> {
    let log = File::open(log).unwrap();
    let numbers = |at: u64| -> [u64; 4] {
        let mut bytes = [0; 32];
        log.read_exact_at(&mut bytes, at).unwrap();
        std::array::from_fn(|n| u64::from_le_bytes(bytes[n * 8..][..8].try_into().unwrap()))
    };
    let [magic, version, count, sector] = numbers(0);
    assert_eq!((magic, version, sector & 0xffff_ffff), (MAGIC, 1, SECTOR));
    let mut at = SECTOR;
    let mut all = Vec::new();
    for _ in 0..count {
        let [start, sectors, flags, data] = numbers(at);
        at += SECTOR;
        let length = if flags & MARK != 0 {
            data
        } else {
            sectors * SECTOR
        };
        let mut bytes = Vec::new();
        if flags & MARK != 0 {
            // The text stands behind the entry's own numbers, in its sector.
            bytes = vec![0; usize::try_from(data).unwrap()];
            log.read_exact_at(&mut bytes, at - SECTOR + 32).unwrap();
        } else if flags & DISCARD == 0 {
            bytes = vec![0; usize::try_from(length).unwrap()];
            log.read_exact_at(&mut bytes, at).unwrap();
            at += length;
        }
        let entry = Entry {
            at: start * SECTOR,
            length,
            flags,
            bytes,
        };
        all.push(entry);
    }
    all
}

impl Entry {
    fn is(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    fn apply(&self, disk: &File) {
        if self.is(MARK) || self.length == 0 {
            return;
        }
        if self.is(DISCARD) {
            // A disk that zeroes what is discarded.
            let zeros = vec![0; usize::try_from(self.length).unwrap()];
            disk.write_all_at(&zeros, self.at).unwrap();
        } else {
            disk.write_all_at(&self.bytes, self.at).unwrap();
        }
    }
}

/// A disk as a power cut leaves it.
pub struct Cut {
    /// For a message: at which entry, and which of the writes before it are missing.
    pub name: String,
    /// The marks before the cut.
    pub marks: Vec<String>,
    file: PathBuf,
    /// The loop device.
    pub disk: String,
}

impl Drop for Cut {
    fn drop(&mut self) {
        lenient("losetup", &["--detach", &self.disk]);
        let _ = fs::remove_file(&self.file);
    }
}

/// Which of the writes since the last flush reach the disk.
#[derive(Clone, Copy)]
enum Arrived {
    /// Only the first of them, this many.
    First(usize),
    AllBut(usize),
    /// Those whose bits are set in this number: bit 0 for the first write.
    Random(u64),
}

impl Record {
    /// How many writes, flushes and discards there are.
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.is(MARK)).count()
    }

    /// Makes a disk for each power cut after the mark `from`. A power cut comes after each write. At each flush there
    /// are more cuts: each lacks one of the writes since the flush before, or some of them at random. Takes `most` of
    /// all cuts by the sample's order, and some that lack a write of LVM's metadata.
    pub fn each_cut(
        &self,
        from: &str,
        most: usize,
        sample: &mut Sample,
        case: impl Fn(&Cut),
    ) -> usize {
        let all = self.cuts(from, sample);
        let (of_lvm, others) = all.into_iter().partition(|cut| self.lacks_metadata(cut));
        let mut cuts = sample.of(others, most);
        cuts.extend(sample.of(of_lvm, most / 4));
        cuts.sort_by_key(|(epoch, ..)| *epoch);
        let file = PathBuf::from("/run/durable");
        let durable = File::create(&file).unwrap();
        durable.set_len(self.size).unwrap();
        let (mut applied, mut marks) = (0, Vec::new());
        let count = cuts.len();
        for (start, end, arrived) in cuts {
            for entry in &self.entries[applied..start] {
                entry.apply(&durable);
                marks.extend(entry.mark());
            }
            applied = start;
            case(&self.cut(&file, (start, end), arrived, marks.clone()));
        }
        fs::remove_file(&file).unwrap();
        count
    }

    /// Whether the cut lacks a write of LVM's metadata, and nothing else.
    fn lacks_metadata(&self, (start, _, arrived): &(usize, usize, Arrived)) -> bool {
        matches!(arrived, Arrived::AllBut(one) if self.entries[start + one].at < FIRST_EXTENT)
    }

    /// The cuts. Each has three parts: the first entry that is not flushed yet, the end of the entries that may be on
    /// the disk, and which of these are.
    fn cuts(&self, from: &str, sample: &mut Sample) -> Vec<(usize, usize, Arrived)> {
        let is_it = |entry: &Entry| entry.mark().as_deref() == Some(from);
        let begin = self.entries.iter().position(is_it).expect("the mark");
        let mut cuts = Vec::new();
        let mut start = begin;
        for end in begin..self.entries.len() {
            let is_durable = self.entries[end].is(FLUSH) || self.entries[end].is(FUA);
            let so_far = end - start;
            cuts.push((start, end, Arrived::First(so_far)));
            if is_durable {
                cuts.extend((0..so_far).map(|one| (start, end, Arrived::AllBut(one))));
                let random = |sample: &mut Sample| sample.below(usize::MAX) as u64;
                cuts.extend(
                    (0..so_far.min(4)).map(|_| (start, end, Arrived::Random(random(sample)))),
                );
            }
            if self.entries[end].is(FLUSH) {
                start = end;
            }
        }
        cuts
    }

    fn cut(
        &self,
        durable: &Path,
        (start, end): (usize, usize),
        arrived: Arrived,
        mut marks: Vec<String>,
    ) -> Cut {
        let file = PathBuf::from("/run/cut.disk");
        run("cp", &["--sparse=always", text(durable), text(&file)]);
        let disk = File::options().write(true).open(&file).unwrap();
        let mut missing = Vec::new();
        for (n, entry) in self.entries[start..end].iter().enumerate() {
            let has_arrived = match arrived {
                Arrived::First(number) => n < number,
                Arrived::AllBut(one) => n != one,
                Arrived::Random(bits) => bits >> (n % 64) & 1 == 1,
            };
            marks.extend(entry.mark());
            // What the kernel has forced to the disk is there.
            if has_arrived || entry.is(FUA) || entry.is(FLUSH) {
                entry.apply(&disk);
            } else {
                missing.push(n + start);
            }
        }
        Cut {
            name: format!(
                "before entry {end} of {}, without {missing:?}",
                self.entries.len()
            ),
            marks,
            disk: run("losetup", &["--find", "--show", text(&file)]),
            file,
        }
    }
}

impl Entry {
    fn mark(&self) -> Option<String> {
        let text = self
            .bytes
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or_default();
        self.is(MARK)
            .then(|| String::from_utf8_lossy(text).into_owned())
    }
}
