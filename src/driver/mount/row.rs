//! One mount, as the kernel shows it in a line of mountinfo.

use std::path::{Path, PathBuf};

use nix::libc::MS_NOSYMFOLLOW;
use nix::mount::MsFlags;

use crate::host::DeviceNumber;

/// One mount. Source: proc(5), `/proc/pid/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub id: u64,
    pub parent: u64,
    /// The filesystem's device number. A btrfs has a number that belongs to no device.
    pub device: DeviceNumber,
    /// The directory of the filesystem that is visible at the mount point: `/`, unless a directory was bound.
    pub root: PathBuf,
    pub mount_point: PathBuf,
    pub options: String,
    /// The peer group of this mount. A copy of a mount is in the same peer group, or follows that group. Source: Linux'
    /// Documentation/filesystems/sharedsubtree.rst.
    pub peers: Option<u64>,
    /// The peer group whose mounts and unmounts this mount follows.
    pub master: Option<u64>,
    pub fs_type: String,
    /// The source of the mount, as the caller of mount(2) named it.
    pub source: PathBuf,
    pub super_options: String,
    /// The disks of a btrfs, since [`Self::device`] is none of them. Empty for other types.
    pub disks: Vec<DeviceNumber>,
}

impl Row {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let id = fields.next()?.parse().ok()?;
        let parent = fields.next()?.parse().ok()?;
        let device = fields.next()?.parse().ok()?;
        let root = unescape(fields.next()?);
        let mount_point = unescape(fields.next()?);
        let options = fields.next()?.to_owned();
        let (mut peers, mut master) = (None, None);
        // Any number of optional fields, up to a single hyphen.
        for field in fields.by_ref().take_while(|field| *field != "-") {
            match field.split_once(':') {
                Some(("shared", group)) => peers = group.parse().ok(),
                Some(("master", group)) => master = group.parse().ok(),
                _ => {}
            }
        }
        Some(Self {
            id,
            parent,
            device,
            root,
            mount_point,
            options,
            peers,
            master,
            fs_type: fields.next()?.to_owned(),
            source: unescape(fields.next()?),
            super_options: fields.next().unwrap_or_default().to_owned(),
            disks: Vec::new(),
        })
    }

    pub fn is_read_only(&self) -> bool {
        self.is_mount_read_only() || self.is_filesystem_read_only()
    }

    pub fn is_mount_read_only(&self) -> bool {
        has_option(&self.options, "ro")
    }

    /// See [`restricting`].
    pub fn flags(&self) -> MsFlags {
        restricting(self.options.split(','))
    }

    /// Whether the filesystem itself is read-only, so that no mount of it can be writable.
    pub fn is_filesystem_read_only(&self) -> bool {
        has_option(&self.super_options, "ro")
    }

    /// Whether the mount shows the whole filesystem, not one directory of it.
    pub fn is_whole(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Whether one of the two mounts is a copy of the other, or both are copies of a third. If a mount was made
    /// private, the kernel does not show this.
    pub fn is_copy_of(&self, other: &Self) -> bool {
        self.groups()
            .any(|group| other.groups().any(|its| its == group))
    }

    fn groups(&self) -> impl Iterator<Item = u64> {
        [self.peers, self.master].into_iter().flatten()
    }

    pub fn is_of(&self, device: DeviceNumber) -> bool {
        self.device == device || self.disks.contains(&device)
    }

    /// The number of the block device below this mount. If there is none, the number that the kernel gave the
    /// filesystem.
    pub fn block_device(&self) -> DeviceNumber {
        self.disks.first().copied().unwrap_or(self.device)
    }
}

/// The flags by which a mount restricts what may be done through it, by their names for mount(8). Other options are
/// left out. The flags about access times need not be listed: if none of them is given, a remount keeps them. Source:
/// mount(2), "Remounting an existing mount".
pub fn restricting<'a>(names: impl IntoIterator<Item = &'a str>) -> MsFlags {
    names.into_iter().map(flag).collect()
}

fn flag(name: &str) -> MsFlags {
    match name {
        "ro" => MsFlags::MS_RDONLY,
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        // The crate nix has no constant for this flag.
        "nosymfollow" => MsFlags::from_bits_retain(MS_NOSYMFOLLOW),
        _ => MsFlags::empty(),
    }
}

fn has_option(options: &str, wanted: &str) -> bool {
    options.split(',').any(|option| option == wanted)
}

/// Undoes the kernel's escapes. The backslash is replaced last, since the result may look like another escape. Source:
/// Linux' `fs/proc_namespace.c`.
fn unescape(field: &str) -> PathBuf {
    const ESCAPED: [(&str, &str); 5] = [
        (r"\040", " "),
        (r"\011", "\t"),
        (r"\012", "\n"),
        (r"\043", "#"),
        (r"\134", r"\"),
    ];
    let mut text = field.to_owned();
    if field.contains('\\') {
        for (escape, character) in ESCAPED {
            text = text.replace(escape, character);
        }
    }
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_is_an_option_and_not_a_part_of_one() {
        let cases = [
            ("this mount", "ro,noatime", "rw", true),
            ("its filesystem", "rw", "ro,x=1", true),
            ("neither", "rw,errors=remount-ro", "rw,x=ro", false),
        ];
        for (name, own, fs, want) in cases {
            let line = format!("1 2 0:3 / /a {own} - ext4 /dev/x {fs}");
            assert_eq!(Row::parse(&line).unwrap().is_read_only(), want, "{name}");
        }
    }

    #[test]
    fn a_mount_is_restricted_by_five_of_its_flags() {
        let line = "1 2 0:3 / /a ro,nosuid,nodev,noexec,nosymfollow,relatime - ext4 /dev/x rw";
        let all = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let all = all | MsFlags::from_bits_retain(MS_NOSYMFOLLOW);
        let of_row = |line: &str| Row::parse(line).unwrap().flags();
        assert_eq!(of_row(line), all);
        let only_super = "1 2 0:3 / /a rw,noatime - ext4 /dev/x ro,nosuid";
        assert_eq!(of_row(only_super), MsFlags::empty());
    }
}
