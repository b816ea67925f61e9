//! Counts how much of its group a volume takes. RAID takes more than the volume's size.

use std::num::NonZeroU64;

use crate::names::Bytes;

const MIB: u64 = 1 << 20;

/// The images over which LVM spreads a volume: stripes, copies, parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    pub images: u64,
    /// The number of images among which the data is divided. Each of these has whole extents. Copies and parity do not
    /// count.
    pub data: NonZeroU64,
    /// Whether each image has RAID metadata beside it.
    pub metadata: bool,
    /// Whether each image has checksums beside it.
    pub integrity: bool,
}

impl Spread {
    pub const LINEAR: Self = Self {
        images: 1,
        data: NonZeroU64::MIN,
        metadata: false,
        integrity: false,
    };

    /// The spread that lvcreate's options ask for. An unknown type counts as three copies. Source: lvcreate(8),
    /// lvmraid(7).
    pub fn of_options(words: &[String]) -> Self {
        let kind = value(words, "", "--type");
        let (stripes, copies, parity): (u64, u64, u64) = match kind.unwrap_or("linear") {
            "linear" | "striped" => (1, 1, 0),
            "raid0" | "raid0_meta" => (2, 1, 0),
            "raid1" | "mirror" => (1, 2, 0),
            kind if kind.starts_with("raid10") => (2, 2, 0),
            kind if kind.starts_with("raid4") || kind.starts_with("raid5") => (2, 1, 1),
            kind if kind.starts_with("raid6") => (3, 1, 2),
            _ => (1, 3, 0),
        };
        let stripes = number(words, "-i", "--stripes").unwrap_or(stripes);
        let data = NonZeroU64::new(stripes).unwrap_or(NonZeroU64::MIN);
        let more = number(words, "-m", "--mirrors").map(|mirrors| mirrors.saturating_add(1));
        let copies = more.unwrap_or(copies);
        let images = data.get().saturating_mul(copies).saturating_add(parity);
        let integrity = value(words, "", "--raidintegrity");
        Self {
            images,
            data,
            metadata: images > data.get() || kind == Some("raid0_meta"),
            integrity: integrity.is_some_and(|value| value != "n"),
        }
    }

    /// The spread of a volume, by `lv_layout`, `stripes` and `data_stripes` of lvs(8). Metadata and checksums beside
    /// the images are left out: they count only for a new volume.
    pub(super) fn of_report(layout: &str, images: u64, data: u64) -> Self {
        let mut kinds = layout.split(',');
        let is_copied = kinds.any(|kind| ["raid1", "mirror"].contains(&kind));
        let data = NonZeroU64::new(data).filter(|_| !is_copied);
        // A thin volume has no images, and counts as one.
        Self {
            images: images.max(1),
            data: data.unwrap_or(NonZeroU64::MIN),
            ..Self::LINEAR
        }
    }

    /// The size to which LVM rounds this size up: whole extents on each image.
    pub fn whole(self, size: Bytes, extent: NonZeroU64) -> Bytes {
        let unit = extent.saturating_mul(self.data);
        size.round_up(unit).unwrap_or(Bytes::new(u64::MAX))
    }

    /// The bytes that a volume of this size takes from its group. The number may be too large, but is never too small.
    pub fn takes(self, size: Bytes, extent: NonZeroU64) -> Bytes {
        /// dm-raid's superblock, and a bit for each of at most 2^21 regions. Source: Linux'
        /// drivers/md/dm-raid.c, `validate_region_size`.
        const METADATA: u64 = 4096 + (1 << 18);
        /// Checksums for each 500 MB, and the journal of a large image. Source: lvm2
        /// `lib/metadata/integrity_manip.c`, `_lv_size_bytes_to_integrity_meta_bytes`.
        const CHECKSUMS: u64 = 4 * MIB;
        const JOURNAL: u64 = 64 * MIB;
        let image = self.whole(size, extent).get() / self.data;
        let checksums = (image / (500 * MIB))
            .saturating_add(1)
            .saturating_mul(CHECKSUMS)
            .saturating_add(JOURNAL);
        let mut all = image;
        for (is_there, bytes) in [(self.metadata, METADATA), (self.integrity, checksums)] {
            if is_there {
                let whole = Bytes::new(bytes).round_up(extent).unwrap_or_default();
                all = all.saturating_add(whole.get());
            }
        }
        Bytes::new(all.saturating_mul(self.images))
    }
}

fn number(words: &[String], short: &str, long: &str) -> Option<u64> {
    let text = value(words, short, long)?;
    text.trim_start_matches('+').parse().ok()
}

/// The value of an option. LVM accepts it in the same word (`-m1`, `--mirrors=1`) or in the next. A long name may be
/// abbreviated.
fn value<'a>(words: &'a [String], short: &str, long: &str) -> Option<&'a str> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        if name.len() > 3 && long.starts_with(name) || name == short {
            return joined.or_else(|| rest.next().map(String::as_str));
        }
        if let Some(value) = word.strip_prefix(short).filter(|_| !short.is_empty()) {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: NonZeroU64 = NonZeroU64::new(4 * MIB).unwrap();

    #[test]
    #[rustfmt::skip] // a row is a line
    fn counts_what_lvcreate_takes() {
        // With extents of 4 MiB. Columns: lvcreate's options, the wanted size, the size that LVM makes of it, the space
        // that it takes from the group.
        let cases = [
            ("", 30, 32, 32),
            ("--type linear", 32, 32, 32),
            ("--type raid1 --mirrors 1", 30, 32, 72),
            ("--type=raid1", 30, 32, 72),
            ("-m1", 30, 32, 72),
            ("-m 2", 30, 32, 108),
            ("--mirr 2 --alloc anywhere", 30, 32, 108),
            ("--mirrors=+1 --nosync", 30, 32, 72),
            ("--mirrors 0", 30, 32, 32),
            ("--type mirror --mirrorlog core -m1", 30, 32, 72),
            ("-i2", 30, 32, 32),
            ("--stripes 3 --stripesize 64", 30, 36, 36),
            ("--type raid0", 30, 32, 32),
            ("--type raid0_meta", 30, 32, 40),
            ("--type raid4", 30, 32, 60),
            ("--type raid5", 30, 32, 60),
            ("--type raid5_n -i3", 30, 36, 64),
            ("--type raid6", 30, 36, 80),
            ("--type raid10", 30, 32, 80),
            ("-i 2 -m 1", 30, 32, 80),
            ("--type raid10_near -i 3", 30, 36, 96),
            ("--type raid1 --raidintegrity y", 100, 100, 2 * (100 + 4 + 68)),
            ("--type raid1 --raidintegrity n", 100, 100, 208),
            ("--type raid1 --raidintegrity y --raidintegritymode bitmap", 1200, 1200, 2 * (1200 + 4 + 76)),
            ("--type unheard-of", 30, 32, 108),
        ];
        for (options, asked, whole, taken) in cases {
            let words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
            let spread = Spread::of_options(&words);
            let mib = |bytes: Bytes| bytes.get() / MIB;
            let asked = Bytes::new(asked * MIB);
            let found = (mib(spread.whole(asked, EXTENT)), mib(spread.takes(asked, EXTENT)));
            assert_eq!(found, (whole, taken), "{options}");
        }
        let most = Bytes::new(u64::MAX);
        assert_eq!(Spread::LINEAR.whole(most, EXTENT), most);
    }

    #[test]
    fn counts_what_lvextend_takes_by_what_lvs_shows() {
        for (layout, images, data, want) in [
            ("linear", 1, 1, (1, 1)),
            ("thin,sparse", 0, 0, (1, 1)),
            ("striped", 3, 3, (3, 3)),
            ("raid,raid1", 2, 2, (2, 1)),
            ("mirror", 2, 2, (2, 1)),
            ("raid,raid0", 2, 2, (2, 2)),
            ("raid,raid5,raid5_ls", 3, 2, (3, 2)),
            ("raid,raid6,raid6_zr", 5, 3, (5, 3)),
            ("raid,raid10", 4, 2, (4, 2)),
        ] {
            let spread = Spread::of_report(layout, images, data);
            assert_eq!((spread.images, spread.data.get()), want, "{layout}");
        }
    }
}
