//! Mount options: which ones a pod, or the node's config, may set.

use Who::{Nobody, Node, Pod};
use anyhow::{Result, bail};

use crate::names::cited;

/// The most characters of options. The kernel accepts one page. Source: Linux' fs/namespace.c, `copy_mount_options`.
const LONGEST: usize = 4000;

/// Options by which a node restricts files, each with the option that would undo it. Source: mount(8)
/// "FILESYSTEM-INDEPENDENT MOUNT OPTIONS".
const FINAL: [(&str, &str); 4] = [
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("nosymfollow", "symfollow"),
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountOptions(Vec<String>);

impl MountOptions {
    /// Parses a pod's options, in the form that mount(8) accepts after `-o`. An empty text is an empty list.
    pub fn of_pod(text: &str) -> Result<Self> {
        Self::parse(text, Pod)
    }

    /// Parses options of the node's config, or of the driver itself.
    pub fn of_node(text: &str) -> Result<Self> {
        Self::parse(text, Node)
    }

    fn parse(text: &str, by: Who) -> Result<Self> {
        if text.len() > LONGEST {
            bail!("mount options longer than {LONGEST} characters");
        }
        // mount(8) does not split options at a comma that is in quotes or after a backslash. This code would split
        // there, so it refuses these characters.
        let allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '`' | '\\');
        if let Some(c) = text.chars().find(|c| !allowed(*c)) {
            bail!(
                "mount options hold {c:?}: write them as option,option=value with neither spaces \
                 nor quotes"
            );
        }
        let options: Vec<String> = text
            .split(',')
            .filter(|option| !option.is_empty())
            .map(str::to_owned)
            .collect();
        for option in &options {
            if let Err(reason) = may_set(by, option) {
                bail!("mount option {} is refused: {reason}", cited(option));
            }
        }
        let options = Self(options);
        if options.is_read_only() && options.is_read_write() {
            bail!("mount options hold both ro and rw; leave one out");
        }
        Ok(options)
    }

    pub fn is_read_only(&self) -> bool {
        self.0.iter().any(|option| option == "ro")
    }

    pub fn is_read_write(&self) -> bool {
        self.0.iter().any(|option| option == "rw")
    }

    /// Adds `other` after these options. As in mount(8), a later option wins.
    pub fn and(&self, other: &Self) -> Self {
        Self([&*self.0, &*other.0].concat())
    }

    /// Those of [`FINAL`] that the node's options set, and that no later option of the node takes back. Every mount gets
    /// them.
    pub fn finals(&self) -> impl Iterator<Item = &'static str> {
        let kept = FINAL.iter().filter(|(no, yes)| {
            let mut last_first = self.0.iter().rev();
            last_first
                .find(|option| option == no || option == yes)
                .is_some_and(|last| last == no)
        });
        kept.map(|(no, _)| *no)
    }

    /// Adds a pod's options to the node's, which are `self`. The pod's options win, except against [`FINAL`]. Also
    /// returns the pod's options that lost.
    pub fn and_of_pod(&self, pod: &Self) -> (Self, Vec<String>) {
        let no: Vec<&str> = self.finals().collect();
        let is_taking_back = |option: &String| {
            let mut kept = FINAL.iter().filter(|(name, _)| no.contains(name));
            kept.any(|(_, yes)| option == yes)
        };
        let (overruled, pods): (Vec<String>, Vec<String>) =
            pod.0.iter().cloned().partition(is_taking_back);
        let mut all = self.and(&Self(pods));
        // The node's restrictions come last, so that no word like `defaults`, which stands for several options, follows
        // them.
        all.0
            .retain(|option| !no.contains(&option.as_str()) && !is_taking_back(option));
        all.0.extend(no.iter().map(|option| (*option).to_owned()));
        (all, overruled)
    }

    /// All options as one value of mount's `-o`. `None` if there are no options.
    pub fn joined(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(","))
    }
}

/// Who may set an option. `Node` may also set the options of `Pod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Who {
    Pod,
    Node,
    Nobody,
}

/// Who may set which option, of which filesystems, and why; the message of a refusal has that reason. An option that is
/// not in this table is refused. A pod may set options that concern only its own files. An entry is `name`, without a
/// value, or `name=value`. A value is a number (`N`), a size in bytes or with k, m or g (`SIZE`), any text (`TEXT`), or
/// one of the listed words. An option that nobody may set is refused with any value. Source: mount(8)
/// "FILESYSTEM-INDEPENDENT MOUNT OPTIONS", ext4(5), xfs(5), btrfs(5); `ext4_param_specs`, `xfs_fs_parameters` and
/// `btrfs_fs_parameters` of Linux, and the parsers of older kernels.
#[rustfmt::skip] // a row is a line
const TABLE: [(Who, &str, &str, &str); 31] = [
    (Pod, "all", "ro rw", "if anybody asks for read-only, the mount is read-only"),
    (Pod, "all", "nosuid nodev noexec nosymfollow suid dev exec symfollow defaults", "a pod cannot undo the node's restrictions"),
    (Pod, "all", "noatime atime relatime norelatime strictatime nostrictatime nodiratime diratime lazytime nolazytime iversion noiversion i_version", "times and versions of its own files"),
    (Pod, "all", "sync async dirsync commit=N barrier barrier=1", "when its own writes are on the disk"),
    (Pod, "all", "discard nodiscard discard=sync|async", "when its freed space is given back"),
    (Pod, "all", "acl noacl user_xattr nouser_xattr grpid nogrpid bsdgroups sysvgroups", "attributes and groups of its own files"),
    (Pod, "all", "auto noauto _netdev", "an option of fstab, without effect here"),
    (Pod, "ext", "errors=continue|remount-ro data_err=abort|ignore", "an error harms this volume alone"),
    (Pod, "ext", "data=journal|ordered journal_checksum delalloc nodelalloc auto_da_alloc noauto_da_alloc dioread_lock dioread_nolock nodioread_nolock max_dir_size_kb=N bsddf minixdf", "how its own files are kept"),
    (Pod, "xfs", "inode32 inode64 ikeep noikeep attr2 noattr2 largeio nolargeio allocsize=SIZE filestreams swalloc noalign wsync logbufs=N logbsize=SIZE", "how its own files are kept"),
    (Pod, "btrfs", "compress compress=no|none|lzo|zlib|zlib:N|zstd|zstd:N compress-force compress-force=no|none|lzo|zlib|zlib:N|zstd|zstd:N", "how its own files are kept"),
    (Pod, "btrfs", "autodefrag noautodefrag datacow nodatacow datasum nodatasum flushoncommit noflushoncommit treelog notreelog max_inline=SIZE space_cache space_cache=v1|v2 nospace_cache ssd nossd ssd_spread nossd_spread", "how its own files are kept"),
    (Pod, "btrfs", "subvol=TEXT subvolid=N", "a part of its own volume"),
    (Node, "all", "context=TEXT fscontext=TEXT defcontext=TEXT rootcontext=TEXT", "SELinux labels keep pods apart"),
    (Node, "ext, xfs", "quota noquota usrquota grpquota prjquota usrjquota=TEXT grpjquota=TEXT jqfmt=vfsold|vfsv0|vfsv1 uquota gquota pquota uqnoenforce gqnoenforce pqnoenforce qnoenforce resuid=N resgid=N", "how much each user may have"),
    (Node, "ext, btrfs", "nobarrier barrier=0 data=writeback journal_async_commit nojournal_checksum", "a power cut may lose what was synced, or show what the disk held before"),
    (Node, "ext, xfs", "stripe=N sunit=N swidth=N dax dax=always|inode|never inlinecrypt", "it describes the disks"),
    (Node, "ext", "journal_ioprio=N inode_readahead_blks=N min_batch_time=N max_batch_time=N init_itable init_itable=N noinit_itable block_validity noblock_validity nombcache no_mbcache prefetch_block_bitmaps no_prefetch_block_bitmaps mb_optimize_scan=N", "it takes the node's memory, or time of its disks"),
    (Node, "btrfs", "thread_pool=N metadata_ratio=N skip_balance clear_cache", "it takes the node's memory, or time of its disks"),
    (Node, "btrfs", "degraded user_subvol_rm_allowed", "data may be lost"),
    (Node, "xfs", "nouuid", "it hides that a volume is a copy of another one"),
    (Nobody, "all", "bind rbind move remount", "it asks for another operation than mounting the volume"),
    (Nobody, "all", "shared rshared slave rslave private rprivate unbindable runbindable", "kubelet decides how mounts propagate (mountPropagation of the container)"),
    (Nobody, "all", "loop offset sizelimit encryption", "it would mount a loop device, not the volume"),
    (Nobody, "all", "source device logdev rtdev journal_dev journal_path", "it names another device than the volume's"),
    (Nobody, "all", "helper uhelper user users nouser nousers owner noowner group nogroup nofail", "it is about how mount runs, which only the driver decides"),
    (Nobody, "ext", "sb", "it names another superblock, which a file in the volume may hold"),
    (Nobody, "all", "errors=panic fatal_errors warn_on_error", "an error in this volume could stop the whole node"),
    (Nobody, "all", "noload norecovery nologreplay recovery usebackuproot rescue", "it mounts a filesystem that is not recovered"),
    (Nobody, "ext", "nouid32", "files of some other owners become root's"),
    (Nobody, "all", "abort debug debug_want_extra_isize test_dummy_encryption enospc_debug ref_verify check_int check_int_data check_int_print_mask fragment", "it is for tests of Linux itself"),
];

/// Fails unless [`TABLE`] lets `by` set the option. The error says why, or which values the option takes.
fn may_set(by: Who, option: &str) -> Result<(), String> {
    let (name, value) = split(option);
    let all = TABLE.iter().flat_map(|(who, _, options, why)| {
        let forms = options.split(' ').map(split);
        forms.map(move |(name, values)| (*who, name, values, *why))
    });
    let its: Vec<_> = all.filter(|row| row.1 == name).collect();
    let fits = |who: Who, values: Option<&str>| match (values, value) {
        (None, value) => value.is_none() || who == Nobody,
        (Some(values), Some(value)) => values.split('|').any(|form| is_one(value, form)),
        (Some(_), None) => false,
    };
    let found = its.iter().find(|(who, _, values, _)| fits(*who, *values));
    match found.or(its.first()) {
        Some((who, _, values, _)) if *who <= by && fits(*who, *values) => Ok(()),
        Some((who, _, values, _)) if *who <= by => Err(match values {
            Some(values) => format!("its value must be {values}"),
            None => "it takes no value".to_owned(),
        }),
        Some((Node, _, _, why)) => Err(format!(
            "only mount_options in config.toml may set it ({why}); leave it out"
        )),
        Some((.., why)) => Err(format!("{why}; leave it out")),
        None => Err("nobody may set it; docs/mount-options.md lists who may set which".to_owned()),
    }
}

/// The name, and the value if it has one.
fn split(option: &str) -> (&str, Option<&str>) {
    match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    }
}

/// Whether a value has this form: `TEXT`, `SIZE`, a word, or a word with `N` for a number.
fn is_one(value: &str, form: &str) -> bool {
    match form {
        "TEXT" => !value.is_empty(),
        "SIZE" => is_number(value.strip_suffix(['k', 'm', 'g']).unwrap_or(value)),
        _ => match form.strip_suffix('N') {
            Some(head) => value.strip_prefix(head).is_some_and(is_number),
            None => value == form,
        },
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip] // a row is a line
    fn a_pod_cannot_undo_a_restriction_of_the_node() {
        let cases = [
            ("", "", None, ""),
            ("noatime", "suid,relatime", Some("noatime,suid,relatime"), ""),
            ("nosuid", "noatime", Some("noatime,nosuid"), ""),
            ("nosuid,nodev,noexec,nosymfollow", "suid,dev,exec,symfollow", Some("nosuid,nodev,noexec,nosymfollow"), "suid,dev,exec,symfollow"),
            ("nosuid", "nosuid,suid,noatime,suid", Some("noatime,nosuid"), "suid,suid"),
            ("nosuid,noatime", "defaults", Some("noatime,defaults,nosuid"), ""),
            ("nosuid", "exec,dev", Some("exec,dev,nosuid"), ""),
            ("nosuid,suid", "noexec", Some("nosuid,suid,noexec"), ""),
            ("suid,nosuid", "suid", Some("nosuid"), "suid"),
            ("noexec", "exec,ro", Some("ro,noexec"), "exec"),
            ("noatime", "relatime", Some("noatime,relatime"), ""),
        ];
        for (node, pod, want, overruled) in cases {
            let [a, b] = [node, pod].map(|text| MountOptions::of_node(text).unwrap());
            let (all, left_out) = a.and_of_pod(&b);
            assert_eq!((all.joined().as_deref(), left_out.join(",")), (want, overruled.to_owned()), "{node:?} {pod:?}");
        }
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn takes_what_the_table_has() {
        let cases = [
            ("", None),
            (",", None),
            ("noatime,,discard,", Some("noatime,discard")),
            ("subvol=a/b,compress=zstd:3,max_inline=2k", Some("subvol=a/b,compress=zstd:3,max_inline=2k")),
            ("ro,journal_checksum,data=journal", Some("ro,journal_checksum,data=journal")),
            ("errors=remount-ro,barrier=1,commit=30", Some("errors=remount-ro,barrier=1,commit=30")),
            ("grpid,logbufs=8,logbsize=256k,allocsize=1048576", Some("grpid,logbufs=8,logbsize=256k,allocsize=1048576")),
        ];
        for (text, want) in cases {
            let options = MountOptions::of_pod(text).unwrap();
            assert_eq!(options.joined().as_deref(), want, "{text:?}");
            assert_eq!(MountOptions::of_node(text).unwrap(), options, "{text:?}");
        }
        assert!(MountOptions::of_pod(&"noatime,".repeat(500)).is_ok());
        assert!(MountOptions::of_pod(&"noatime,".repeat(500 + 1)).is_err());
    }

    #[test]
    fn an_option_outside_the_table_is_refused() {
        let nobodys = "bind rbind move remount shared rshared slave private rprivate unbindable \
            loop loop=/dev/loop0 offset=4096 sizelimit=1 encryption=aes source=/dev/sda device=/dev/sda \
            logdev=/dev/sda rtdev=/dev/sda journal_dev=0x801 journal_path=/dev/sda helper=x \
            uhelper=udisks2 user user=root users nouser owner group nofail x-systemd.automount \
            X-mount.mkdir X-mount.idmap=b x-gvfs-show verity.roothash=00 errors=panic sb=1 sb= sb \
            fatal_errors=panic fatal_errors=bug warn_on_error abort debug noload norecovery \
            rescue=all nouid32 BIND Noatime ro,rw rw,ro noatime,bind ro=vfs nosuid=recursive suid=vfs \
            =x = -o nosuchoption commit commit= commit=N commit=5s commit=-1 errors errors= \
            errors=remount-ro:1 compress=zstd:N compress=zstd: compress=gzip subvol= allocsize=k \
            allocsize=1t journal_checksum=0 barrier=2 discard=once";
        let with_spaces = [
            "a b",
            "a\tb",
            "a\nb",
            "a\0",
            "a\"b\"",
            "a'b",
            "a\\054rw",
            "ä",
            "a\u{2028}",
        ];
        for text in nobodys.split_whitespace().chain(with_spaces) {
            assert!(MountOptions::of_pod(text).is_err(), "{text:?}");
            assert!(MountOptions::of_node(text).is_err(), "{text:?}");
        }
        let nodes = "context=system_u:object_r:tmp_t:s0 usrquota nobarrier barrier=0 data=writeback stripe=16 \
            nouuid dax=always resuid=1000 degraded thread_pool=64 init_itable init_itable=0";
        for text in nodes.split_whitespace() {
            assert!(MountOptions::of_pod(text).is_err(), "{text:?}");
            assert!(MountOptions::of_node(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn an_error_names_the_option_and_who_may_set_it() {
        let cases = [
            ("noatime,bind", r#"mount option "bind" is refused: it asks for another operation than mounting the volume; leave it out"#),
            ("sb=1", r#"mount option "sb=1" is refused: it names another superblock, which a file in the volume may hold; leave it out"#),
            ("nouuid", r#"mount option "nouuid" is refused: only mount_options in config.toml may set it (it hides that a volume is a copy of another one); leave it out"#),
            ("nosuch=1", r#"mount option "nosuch=1" is refused: nobody may set it; docs/mount-options.md lists who may set which"#),
            ("barrier=2", r#"mount option "barrier=2" is refused: it takes no value"#),
        ];
        for (text, want) in cases {
            assert_eq!(MountOptions::of_pod(text).unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn the_table_is_the_one_of_the_page() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|row| row.2.split(' ')).collect();
        names.sort_unstable();
        assert!(
            names.is_sorted_by(|a, b| a < b),
            "one of {names:?} is there twice"
        );
        let rows = TABLE.iter().filter_map(|(who, fs, options, why)| {
            let options = options.replace(' ', "`, `").replace('|', "\\|");
            match who {
                Pod => Some(format!("| `{options}` | {fs} | a pod |\n")),
                Node => Some(format!("| `{options}` | {fs} | only the config: {why} |\n")),
                // The page says that an option outside its table is refused.
                Nobody => None,
            }
        });
        let rows: String = rows.collect();
        let page = include_str!("../../../docs/mount-options.md");
        assert!(page.contains(&rows), "docs/mount-options.md lacks\n{rows}");
    }
}
