//! The table of mounts, as the kernel shows it in mountinfo.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::btrfs::find_disks;
use super::row::Row;
use crate::host::{DeviceNumber, Kernel};
use crate::names::Shown;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub fn read(kernel: &Kernel) -> Result<Self> {
        const MOUNTINFO: &str = "/proc/self/mountinfo";
        let text = kernel
            .read(Path::new(MOUNTINFO))
            .with_context(|| format!("reading {MOUNTINFO}"))?;
        let mut table = Self::parse(&text);
        find_disks(kernel, &mut table.rows, true);
        Ok(table)
    }

    /// Parses the text of another process's mountinfo, and finds the disks of each btrfs.
    pub fn of(kernel: &Kernel, text: &str) -> Self {
        let mut table = Self::parse(text);
        find_disks(kernel, &mut table.rows, false);
        table
    }

    /// Parses the text of mountinfo. Leaves out invalid lines.
    pub fn parse(text: &str) -> Self {
        Self {
            // lines() would drop a carriage return at the end of a name: the kernel does not escape it.
            rows: text.split('\n').filter_map(Row::parse).collect(),
        }
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn of_device(&self, device: DeviceNumber) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.is_of(device)).collect()
    }

    pub fn by_id(&self, id: u64) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Whether both mounts are at the same directory. If a directory is bound to several places, each of them may show
    /// a copy of each mount in it, under another path.
    pub fn are_at_one_place(&self, one: &Row, other: &Row) -> bool {
        match (self.place(one), self.place(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one.mount_point == other.mount_point,
        }
    }

    /// The directory of a mount point: its filesystem, and its path in that filesystem.
    fn place(&self, row: &Row) -> Option<(DeviceNumber, PathBuf)> {
        let parent = self.by_id(row.parent)?;
        let path = row.mount_point.strip_prefix(&parent.mount_point).ok()?;
        Some((parent.device, parent.root.join(path)))
    }

    /// Whether the end of `own`, a mount of this table, also ends `copy`, a mount of another namespace's table. The
    /// kernel carries an unmount from the mount in which `own` is to its peers and to the mounts that follow it.
    /// Source: Linux' Documentation/filesystems/sharedsubtree.rst, "umount".
    pub fn takes_along(&self, own: &Row, (others, copy): (&Self, &Row)) -> bool {
        let parents = self.by_id(own.parent).zip(others.by_id(copy.parent));
        let follows = parents.is_some_and(|(parent, its)| {
            parent.peers.is_some() && [its.peers, its.master].contains(&parent.peers)
        });
        let place = self.place(own);
        follows && place.is_some() && place == others.place(copy)
    }

    /// Each path to a mount. There are several if the directory of its mount point is bound to other places, too.
    pub fn paths(&self, row: &Row) -> impl Iterator<Item = PathBuf> {
        let in_parent = self.place(row);
        let all = self.rows.iter().filter_map(move |other| {
            let (device, whole) = in_parent.as_ref()?;
            let path = whole.strip_prefix(&other.root).ok()?;
            (other.device == *device).then(|| other.mount_point.join(path))
        });
        std::iter::once(row.mount_point.clone()).chain(all)
    }

    /// Whether the path of this mount leads to it. If not, another mount is at that path or above it, and hides this
    /// one.
    pub fn is_visible(&self, row: &Row) -> bool {
        let seen = self.seen_at(&row.mount_point);
        seen.is_none_or(|seen| seen.id == row.id)
    }

    /// The mount to which a path leads. `None`: the table does not show the root.
    fn seen_at(&self, path: &Path) -> Option<&Row> {
        let is_root = |row: &&Row| {
            row.mount_point == Path::new("/")
                && self.by_id(row.parent).is_none_or(|one| one == *row)
        };
        let mut seen = self.rows.iter().find(is_root)?;
        // Each step leads to another mount, unless the table is damaged.
        for _ in &self.rows {
            // A path begins below what is mounted over the root.
            let mounts = self
                .on_top_of(seen.id)
                .filter(|row| row.mount_point != Path::new("/"));
            let on_the_way =
                mounts.filter(|row| row.id != seen.id && path.starts_with(&row.mount_point));
            match on_the_way.min_by_key(|row| row.mount_point.components().count()) {
                Some(next) => seen = next,
                None => break,
            }
        }
        Some(seen)
    }

    pub fn on_top_of(&self, id: u64) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.parent == id)
    }
}

/// The id of the mount at `path`; if several are stacked there, the topmost one. `None`: nothing is mounted exactly
/// there. Compares the ids of the mounts that `path` and its parent directory are on, and reads no table. So neither
/// many mounts nor a dead filesystem can delay the answer.
pub fn mounted_at(kernel: &Kernel, path: &Path) -> Result<Option<u64>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    let looking = || format!("looking at {}", path.shown());
    let id = match kernel.mount_id(path) {
        Ok(id) => id,
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => return Ok(None),
        Err(e) => return Err(e).with_context(looking),
    };
    let Some(parent) = path.parent() else {
        return Ok(Some(id));
    };
    // If the parent is a link, "." follows it: /var/lib/kubelet may be a link to another disk.
    let parent_id = kernel.mount_id(&parent.join(".")).with_context(looking)?;
    Ok((id != parent_id).then_some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str =
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";

    #[test]
    fn parses_the_example_of_the_manual_page() {
        let table = Table::parse(ROW);
        let row = table.by_id(36).unwrap();
        assert_eq!(row.parent, 35);
        assert_eq!(row.device.to_string(), "98:0");
        assert_eq!(row.root, Path::new("/mnt1"));
        assert_eq!(row.mount_point, Path::new("/mnt2"));
        assert_eq!(row.fs_type, "ext3");
        assert_eq!(row.source, Path::new("/dev/root"));
        assert!(!row.is_read_only() && !row.is_whole());
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn understands_what_the_kernel_writes_and_skips_the_rest() {
        let cases = [
            ("no optional field", "1 2 0:3 / /a ro - tmpfs none rw", Some("/a")),
            ("two optional fields", "1 2 0:3 / /a ro shared:1 master:2 - t n rw", Some("/a")),
            ("space", r"1 2 0:3 / /a\040b ro - tmpfs none rw", Some("/a b")),
            ("backslash", r"1 2 0:3 / /a\134b ro - tmpfs none rw", Some(r"/a\b")),
            ("no such escape", r"1 2 0:3 / /a\9xyb ro - tmpfs none rw", Some(r"/a\9xyb")),
            ("escape cut off", r"1 2 0:3 / /a\04 ro - tmpfs none rw", Some(r"/a\04")),
            ("no super options", "1 2 0:3 / /a ro - tmpfs none", Some("/a")),
            ("no hyphen", "1 2 0:3 / /a ro tmpfs none rw", None),
            ("no numbers", "x 2 0:3 / /a ro - tmpfs none rw", None),
            ("empty", "", None),
        ];
        for (name, line, want) in cases {
            let table = Table::parse(line);
            let got = table.rows().first().map(|row| row.mount_point.as_path());
            assert_eq!(got, want.map(Path::new), "{name}: {line:?}");
        }
    }

    #[test]
    fn a_carriage_return_belongs_to_the_row() {
        let table = Table::parse("1 2 0:3 / /a ro - tmpfs none rw\r\n");
        assert_eq!(table.by_id(1).unwrap().super_options, "rw\r");
    }

    #[test]
    fn mounts_of_one_filesystem_and_on_top_of_each_other_are_found() {
        let mut table = Table::parse(
            "36 1 98:0 / /a rw,noatime - ext4 /dev/x rw,errors=continue\n\
             37 36 98:0 /b /a/b rw - ext4 /dev/x rw\n38 1 0:50 / /c rw - btrfs /dev/y rw",
        );
        let number = |text: &str| text.parse::<DeviceNumber>().unwrap();
        let disk = number("8:1");
        table.rows[2].disks = vec![disk, number("8:2")];
        let ids = |rows: Vec<&Row>| rows.iter().map(|row| row.id).collect::<Vec<_>>();
        assert_eq!(ids(table.of_device(number("98:0"))), [36, 37]);
        for its in ["0:50", "8:1", "8:2"] {
            assert_eq!(ids(table.of_device(number(its))), [38]);
        }
        assert_eq!(ids(table.on_top_of(36).collect()), [37]);
        let disks = [0, 2].map(|at| table.rows[at].block_device());
        assert_eq!(disks, [number("98:0"), disk]);
        let is_whole: Vec<bool> = table.rows.iter().map(Row::is_whole).collect();
        assert_eq!(is_whole, [true, false, true]);
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn a_mount_is_hidden_by_another_at_its_path_or_above() {
        const BEGINS: &str = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /k rw - ext4 /dev/b rw\n\
                              3 2 254:1 / /k/pod rw - ext4 /dev/c rw\n";
        let cases = [
            ("nothing more", "", true),
            ("at its path", "4 3 0:9 / /k/pod rw - tmpfs none rw", false),
            ("above it, on the same mount", "4 2 0:9 / /k rw - tmpfs none rw", false),
            ("above it, on another mount", "4 1 0:9 / /k rw - tmpfs none rw", true),
            ("in it", "4 3 0:9 / /k/pod/in rw - tmpfs none rw", true),
            ("beside it", "4 2 0:9 / /k/pod2 rw - tmpfs none rw", true),
            ("over the root", "4 1 0:9 / / rw - tmpfs none rw", true),
            ("a circle", "4 2 0:9 / /k rw - tmpfs none rw\n2 4 0:9 / /k rw - tmpfs none rw", false),
        ];
        for (name, more, want) in cases {
            let table = Table::parse(&format!("{BEGINS}{more}"));
            assert_eq!(table.is_visible(table.by_id(3).unwrap()), want, "{name}");
        }
        let without_root = Table::parse("3 2 254:1 / /k/pod rw - ext4 /dev/c rw");
        assert!(without_root.is_visible(without_root.by_id(3).unwrap()));
    }

    #[test]
    fn the_end_of_a_mount_ends_the_copies_to_which_its_parent_propagates() {
        let table = |parent: &str, at: &str| {
            Table::parse(&format!(
                "1 0 8:1 / / rw {parent} - ext4 /dev/a rw\n2 1 254:0 / {at} rw - ext4 /dev/b rw"
            ))
        };
        let own = table("shared:7", "/k/x");
        let cases = [
            ("shared:7", "/k/x", true),
            ("master:7", "/k/x", true),
            ("shared:9 master:7", "/k/x", true),
            ("shared:9", "/k/x", false),
            ("", "/k/x", false),
            ("master:7", "/elsewhere", false),
        ];
        for (parent, at, want) in cases {
            let other = table(parent, at);
            let copy = (&other, other.by_id(2).unwrap());
            let takes = own.takes_along(own.by_id(2).unwrap(), copy);
            assert_eq!(takes, want, "{parent} {at}");
        }
        // A mount that follows others ends with them, and they do not end with it.
        let [follows, leads] = ["master:7", "shared:7"].map(|parent| table(parent, "/k/x"));
        let copy = (&leads, leads.by_id(2).unwrap());
        assert!(!follows.takes_along(follows.by_id(2).unwrap(), copy));
    }

    #[test]
    fn a_mount_of_this_machine_is_known_by_its_directory() {
        let kernel = Kernel::new().unwrap();
        let table = Table::read(&kernel).unwrap();
        for (path, is_one) in [("/", true), ("/proc", true), ("/proc/self", false)] {
            let rows = table.rows().iter().rev();
            let last = rows.map(|row| (row.id, &row.mount_point));
            let want = last
                .filter(|(_, at)| at.as_os_str() == path)
                .map(|(id, _)| id);
            let id = mounted_at(&kernel, Path::new(path)).unwrap();
            assert_eq!((id.is_some(), id), (is_one, want.take(1).next()), "{path}");
        }
        for none in ["/proc/none", "/proc/version/none"] {
            assert_eq!(mounted_at(&kernel, Path::new(none)).unwrap(), None);
        }
        assert!(mounted_at(&kernel, Path::new("/\0")).is_err());
    }
}
