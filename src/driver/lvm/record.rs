//! The driver's record of a volume, in tags on the volume itself. Tags survive reboots, moves to another node and the
//! loss of every other state. Tags: lvm(8) "TAGS".

use crate::names::{Filesystem, FsType, ObjectName};

const PREFIX: &str = "flexvolume.";
pub const MAKING: &str = "flexvolume.making=";
const MADE: &str = "flexvolume.fs=";
const LUKS: &str = "flexvolume.luks=";
/// In [`MAKING`], the prefix for a filesystem that is being made inside an encrypted volume. See [`Unfinished::tag`].
const IN_LUKS: &str = "luks2:";
const VOLUME: &str = "flexvolume.volume=";
/// Prefix of the tag with a permission to format. After it come the evidence that the permission overrules, and the
/// time when an operator gave the permission. The permission is valid for one mkfs within a day.
pub const MAY_FORMAT: &str = "flexvolume.mayformat";
/// Tag of a volume on which the driver has written nothing. The driver's lvcreate creates the volume with this tag, in
/// one change of LVM's metadata. The change that sets [`MAKING`] removes this tag.
pub const NEW: &str = "flexvolume.new";
const CONTENT: [&str; 4] = [MADE, MAKING, MAY_FORMAT, NEW];
/// In seconds: how long a permission to format is valid, and how far ahead the clock of the host that gave it may have
/// been.
const A_DAY: u64 = 86_400;
const CLOCKS_APART: u64 = 300;

/// Whether a permission that was given at this time is less than a day old.
fn is_recent(given: u64, now: u64) -> bool {
    now.saturating_sub(given) < A_DAY
}

/// A change of tags, which LVM makes completely or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags {
    pub add: Vec<String>,
    pub remove: Vec<String>,
}

/// A mkfs that was started, and whose end was not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The filesystem's type.
    pub fs: String,
    /// The UUID that mkfs gives to the filesystem: whatever has it is this mkfs's work. Empty: the tag is an older
    /// driver's, which let mkfs choose. mkfs.btrfs chooses its own UUID, too: see `fs/tools.rs`.
    pub uuid: String,
    /// The UUID of the LUKS2 header in which the filesystem is being made.
    pub luks: Option<String>,
}

impl Unfinished {
    /// The tag `flexvolume.making=<type>:<uuid>`, in an encrypted volume `flexvolume.making=luks2:<type>:<header's
    /// UUID>:<uuid>`.
    pub fn tag(&self) -> String {
        let Self { fs, uuid, luks } = self;
        match luks {
            Some(luks) => format!("{MAKING}{IN_LUKS}{fs}:{luks}:{uuid}"),
            None => format!("{MAKING}{fs}:{uuid}"),
        }
    }

    /// Whether a filesystem with this UUID is the work of this mkfs.
    pub fn made(&self, uuid: &str) -> bool {
        self.is_own() && self.uuid == uuid
    }

    /// Whether the driver knows the work of this mkfs: by the UUID in the tag, and the type.
    fn is_own(&self) -> bool {
        !self.uuid.is_empty() && FsType::parse(&self.fs).is_ok()
    }

    fn parse(value: &str) -> Self {
        let is_in_luks = value.starts_with(IN_LUKS);
        let mut words = value.strip_prefix(IN_LUKS).unwrap_or(value).split(':');
        let mut next = || words.next().map(str::to_owned);
        Self {
            fs: next().unwrap_or_default(),
            luks: if is_in_luks { next() } else { None },
            uuid: next().unwrap_or_default(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// `flexvolume.fs=<type>:<uuid>`: the volume holds this filesystem.
    pub made: Option<Filesystem<String>>,
    /// `flexvolume.making=…`: see [`Unfinished::tag`].
    pub making: Option<Unfinished>,
    /// `flexvolume.luks=<uuid>`: the volume is encrypted, and its LUKS2 header has this UUID. The filesystem of
    /// [`Self::made`] is inside.
    pub luks: Option<String>,
    /// An operator's permission to format the volume: the evidence that it overrules, and when it was given, in seconds
    /// since the epoch. A permission of an older driver names no evidence, and permits nothing.
    pub permission: Option<(String, u64)>,
    /// Whether the driver created this volume, and has not begun to make a filesystem on it.
    pub new: bool,
    /// kubelet's names of the volume. Recorded only if the driver is to deactivate the volume after its last use.
    pub names: Vec<String>,
    pub tags: Vec<String>,
}

impl Record {
    pub fn parse<'a>(tags: impl IntoIterator<Item = &'a str>) -> Self {
        let mut record = Self::default();
        for tag in tags.into_iter().filter(|tag| tag.starts_with(PREFIX)) {
            record.tags.push(tag.to_owned());
            if let Some(value) = tag.strip_prefix(MAKING) {
                record.making = Some(Unfinished::parse(value));
            } else if let Some(value) = tag.strip_prefix(MADE) {
                let (fs, uuid) = value.split_once(':').unwrap_or((value, ""));
                record.made = Some(Filesystem {
                    fs: fs.to_owned(),
                    uuid: uuid.to_owned(),
                });
            } else if let Some(uuid) = tag.strip_prefix(LUKS) {
                record.luks = Some(uuid.to_owned());
            } else if let Some(name) = tag.strip_prefix(VOLUME) {
                record.names.push(name.to_owned());
            } else if let Some(value) = tag.strip_prefix(MAY_FORMAT) {
                let permission = value.strip_prefix('=').unwrap_or_default();
                let (what, time) = permission.rsplit_once(':').unwrap_or_default();
                record.permission = Some((what.to_owned(), time.parse().unwrap_or(0)));
            } else if tag == NEW {
                record.new = true;
            }
        }
        record
    }

    /// The type of the filesystem that is being made inside an encrypted volume, and the UUID of its LUKS2 header.
    pub fn making_in_luks(&self) -> Option<(&str, &str)> {
        let making = self.making.as_ref()?;
        Some((&making.fs, making.luks.as_deref()?))
    }

    /// The mkfs whose end was not recorded, if the driver knows its work.
    pub fn own_making(&self) -> Option<&Unfinished> {
        self.making.as_ref().filter(|mkfs| mkfs.is_own())
    }

    /// The UUID of the volume's LUKS2 header. luksFormat may not have finished that header.
    pub fn luks_uuid(&self) -> Option<&str> {
        match &self.luks {
            Some(uuid) => Some(uuid),
            None => self.making_in_luks().map(|(_, uuid)| uuid),
        }
    }

    /// Whether an operator's permission overrules exactly the evidence `what`, and is valid at the time `now`.
    pub fn permits(&self, what: &str, now: u64) -> bool {
        self.permission.as_ref().is_some_and(|(named, given)| {
            named == what && *given <= now.saturating_add(CLOCKS_APART) && is_recent(*given, now)
        })
    }

    /// Whether a tag could lead to mkfs, now or later: the volume is new, mkfs has begun, or there is a permission that
    /// is less than a day old.
    pub fn may_allow_mkfs(&self, now: u64) -> bool {
        let permission = self.permission.as_ref();
        self.new
            || self.making.is_some()
            || permission.is_some_and(|(_, given)| is_recent(*given, now))
    }

    /// The tags about the volume's filesystem: that it is made, that mkfs has begun, a permission to format, and
    /// [`NEW`].
    pub fn content_tags(&self) -> impl Iterator<Item = &str> {
        self.tags_of(&CONTENT)
    }

    fn tags_of(&self, starts: &'static [&str]) -> impl Iterator<Item = &str> {
        let is_one = |tag: &&str| starts.iter().any(|start| tag.starts_with(start));
        self.tags.iter().map(String::as_str).filter(is_one)
    }

    /// The change that records this filesystem. `luks`: the UUID of the LUKS2 header, if the filesystem is inside one.
    pub fn holding(&self, filesystem: &Filesystem, luks: Option<&str>) -> Tags {
        let Filesystem { fs, uuid } = filesystem;
        let mut tags = self.setting(format!("{MADE}{fs}:{uuid}"));
        if let Some(luks) = luks.filter(|luks| self.luks.as_deref() != Some(luks)) {
            let Tags { add, remove } = self.setting(format!("{LUKS}{luks}"));
            tags.add.extend(add);
            tags.remove.extend(remove);
        }
        tags
    }

    /// The change that adds kubelet's name of the volume, and removes the names that nothing uses any more, so that
    /// `detach` of an old name does not find the volume.
    pub fn naming(&self, name: &ObjectName, is_used: impl Fn(&str) -> bool) -> Tags {
        let old = self.names.iter().filter(|known| !is_used(known));
        Tags {
            add: vec![volume_tag(name)],
            remove: old.map(|old| format!("{VOLUME}{old}")).collect(),
        }
    }

    /// The change that sets `tag`, and removes the tags that it replaces. A volume has at most one tag for a begun
    /// mkfs, one for a permission and one for a LUKS2 header: a new one replaces the old one. The tag of a made
    /// filesystem replaces four: that of an earlier filesystem, of a begun mkfs, of a permission, and [`NEW`].
    pub fn setting(&self, tag: String) -> Tags {
        let starts = match &tag {
            tag if tag.starts_with(MADE) => &CONTENT[..],
            tag if tag.starts_with(MAKING) => &[MAKING, NEW],
            tag if tag.starts_with(LUKS) => &[LUKS],
            tag if tag.starts_with(MAY_FORMAT) => &[MAY_FORMAT],
            _ => &[],
        };
        let old = self.tags_of(starts).filter(|old| *old != tag);
        Tags {
            remove: old.map(str::to_owned).collect(),
            add: vec![tag],
        }
    }
}

pub fn permission_tag(what: &str, time: u64) -> String {
    format!("{MAY_FORMAT}={what}:{time}")
}

/// The tag with kubelet's name of a volume.
pub fn volume_tag(name: &ObjectName) -> String {
    format!("{VOLUME}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn making(fs: FsType, uuid: &str, luks: Option<&str>) -> String {
        let unfinished = Unfinished {
            fs: fs.to_string(),
            uuid: uuid.to_owned(),
            luks: luks.map(str::to_owned),
        };
        let tag = unfinished.tag();
        assert_eq!(Record::parse([&*tag]).own_making(), Some(&unfinished));
        tag
    }

    #[test]
    fn each_tag_is_on_the_page_for_programs() {
        let page = include_str!("../../../docs/reference.md");
        for tag in [MAKING, MADE, VOLUME, MAY_FORMAT, NEW] {
            assert!(page.contains(&format!("| `{tag}")), "{tag}");
        }
    }

    #[test]
    fn reads_its_own_tags_and_no_others() {
        let record = Record::parse([
            "backup",
            "flexvolume.fs=ext4:0b1c",
            "flexvolume.volume=data",
            "flexvolumes",
        ]);
        let made = record.made.clone().unwrap();
        assert_eq!(made.to_string(), "ext4 0b1c");
        assert_eq!(record.names, ["data"]);
        assert_eq!(record.tags.len(), 2);
        assert!(record.making.is_none() && record.permission.is_none() && !record.new);
        assert_eq!(
            record.content_tags().collect::<Vec<_>>(),
            ["flexvolume.fs=ext4:0b1c"]
        );
    }

    #[test]
    fn what_an_encrypted_volume_is_or_becomes_is_known_by_its_header() {
        let ext4 = making(FsType::Ext4, "u", Some("0b1c"));
        let record = Record::parse([ext4.as_str()]);
        assert_eq!(record.making_in_luks(), Some(("ext4", "0b1c")));
        assert_eq!(record.luks_uuid(), Some("0b1c"));
        let again = making(FsType::Xfs, "u", Some("0b1c"));
        assert_eq!(record.setting(again).remove, [ext4]);
        let filesystem = Filesystem {
            fs: FsType::Ext4,
            uuid: "u".to_owned(),
        };
        let change = Record::parse(["flexvolume.luks=old"]).holding(&filesystem, Some("0b1c"));
        assert_eq!(change.add, ["flexvolume.fs=ext4:u", "flexvolume.luks=0b1c"]);
        assert_eq!(change.remove, ["flexvolume.luks=old"]);
        // A new record of the filesystem inside does not change the record of the header.
        let made = ["flexvolume.fs=ext4:u", "flexvolume.luks=0b1c"];
        let record = Record::parse(made);
        assert_eq!(record.luks_uuid(), Some("0b1c"));
        assert_eq!(record.content_tags().collect::<Vec<_>>(), made[..1]);
        for tag in ["flexvolume.making=luks2:ext4", "flexvolume.making=ext4"] {
            let record = Record::parse([tag]);
            assert_eq!(
                (record.luks_uuid(), record.own_making()),
                (None, None),
                "{tag}"
            );
        }
        let older = Record::parse(["flexvolume.making=luks2:ext4:0b1c"]);
        assert_eq!(
            (older.luks_uuid(), older.own_making()),
            (Some("0b1c"), None)
        );
    }

    #[test]
    fn a_tag_without_a_uuid_still_says_that_there_was_a_filesystem() {
        let record = Record::parse(["flexvolume.fs=xfs"]);
        assert_eq!(record.made.unwrap().uuid, "");
    }

    #[test]
    fn what_is_on_a_volume_now_replaces_all_that_was_said_of_it() {
        let record = Record::parse([
            NEW,
            "flexvolume.making=xfs",
            "flexvolume.mayformat=data-0:1700000000",
            "flexvolume.volume=data",
        ]);
        assert!(record.new);
        let made = Filesystem {
            fs: FsType::Ext4,
            uuid: "0b1c".to_owned(),
        };
        let change = record.holding(&made, None);
        assert_eq!(change.add, ["flexvolume.fs=ext4:0b1c"]);
        let gone = [
            NEW,
            "flexvolume.making=xfs",
            "flexvolume.mayformat=data-0:1700000000",
        ];
        assert_eq!(change.remove, gone);
        let begun = record.setting(making(FsType::Ext4, "0b1c", None));
        assert_eq!(begun.remove, gone[..2]);
        assert_eq!(record.setting(gone[1].to_owned()).remove, gone[..1]);
        let given = record.setting(permission_tag("data-0", 1_700_000_001));
        assert_eq!(given.remove, gone[2..]);
    }

    #[test]
    fn a_new_name_of_kubelets_replaces_the_names_that_nothing_uses() {
        let record = Record::parse(["flexvolume.volume=pv-1", "flexvolume.volume=pv-2"]);
        let new = ObjectName::parse("pv-3").unwrap();
        let change = record.naming(&new, |old| old == "pv-2");
        assert_eq!(change.add, ["flexvolume.volume=pv-3"]);
        assert_eq!(change.remove, ["flexvolume.volume=pv-1"]);
    }

    #[test]
    fn a_permission_is_for_one_thing_and_for_a_day() {
        const GIVEN: u64 = 1_700_000_000;
        let given = permission_tag("data-0", GIVEN);
        let cases = [
            ("just now", given.as_str(), "data-0", GIVEN, true),
            ("a day later", &given, "data-0", GIVEN + A_DAY, false),
            (
                "by a clock that is ahead",
                &given,
                "data-0",
                GIVEN - 60,
                true,
            ),
            ("from another time", &given, "data-0", GIVEN - 3600, false),
            ("for something else", &given, "data-512", GIVEN, false),
            ("of an older driver", MAY_FORMAT, "", GIVEN, false),
            (
                "without a time",
                "flexvolume.mayformat=data-0",
                "",
                GIVEN,
                false,
            ),
        ];
        for (name, tag, what, now, want) in cases {
            assert_eq!(Record::parse([tag]).permits(what, now), want, "{name}");
        }
    }
}
