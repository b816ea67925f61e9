//! Mistakes in a file, each with its message: one line with file, line and key.

use crate::config::Config;

/// `⏎` ends a line of the file.
const MISTAKES: &str = r#"
atach = true -> line 1, atach: unknown key; did you mean "attach"?
⏎⏎fs-group = true -> line 3, fs-group: unknown key; did you mean "fs_group"?
colour = 1 -> line 1, colour: unknown key; known here: attach, selinux_relabel,
"a\u001b\"" = 1 -> line 1, "a\u{1b}\"": unknown key; known here: attach,
query = 30 -> line 1, query: unknown key; it belongs in the table [limits]
create = true -> line 1, create: unknown key; it belongs in a table [volume_group.NAME]
mkfs_options = [] -> line 1, mkfs_options: unknown key; it belongs in a table [filesystem.TYPE]
[limits]⏎log = "none" -> line 2, limits.log: unknown key; it belongs at the beginning of the file
[limits]⏎⏎queri = 1 -> line 3, limits.queri: unknown key; did you mean "query"?
⏎stale_backups = "ignore" -> line 2, stale_backups: this key is gone: backup superblocks of xfs and
limits.query = 0 -> line 1, limits.query: whole seconds from 1 to 86400
limits.lock = 86401 -> line 1, limits.lock: whole seconds from 1 to 86400
limits.lock = -1 -> limits.lock: whole seconds from 1 to 86400
limits.lock = 1.5 -> limits.lock: whole seconds from 1 to 86400
limits.lock = "1" -> limits.lock: whole seconds from 1 to 86400
limits.lock = 99999999999999999999999 -> limits.lock: whole seconds from 1 to 86400
limits = 3 -> line 1, limits: invalid type: integer `3`, expected a table
limits = ["1"] -> line 1, limits: whole seconds from 1 to 86400
filesystem = 3 -> line 1, filesystem: invalid type: integer `3`, expected a map
[[filesystem.xfs]] -> line 1, filesystem.xfs: invalid type: map, expected a sequence
[[volume_group]] -> line 1, volume_group: invalid type: sequence, expected a map
attach = "no" -> line 1, attach: invalid type: string "no", expected a boolean
attach = -> line 1, at "attach =":
attach = yes -> line 1, at "attach = yes":
[limits⏎query = 3 -> line 1, at "[limits":
attach = 1⏎log = yes -> line 2, at "log = yes":
log = "none"⏎attach = true⏎attach = false -> line 3, at "attach = false": duplicate key
node_name = "a b" -> node_name: a node's name is letters
kubelet_dirs = [] -> kubelet_dirs: at least one directory
⏎kubelet_dirs = [⏎"/a",⏎""] -> line 2, kubelet_dirs: "" is not an absolute path
kubelet_dirs = ["/"] -> kubelet_dirs: "/" must be a path below /
kubelet_dirs = "/a" -> kubelet_dirs: invalid type: string "/a", expected a sequence
kubelet_dirs = [⏎1] -> line 2, kubelet_dirs: invalid type: integer `1`, expected a string
tool_dirs = ["bin"] -> tool_dirs: "bin" is not an absolute path
tool_dirs = ["/a/../b"] -> tool_dirs: "/a/../b" must be a path below /
tool_dirs = ["/a\u0000"] -> tool_dirs: "/a\0" holds a control character
default_fs = "zfs" -> line 1, default_fs: "zfs" is not a filesystem of this driver; it knows ext2, ext3,
default_fs = "" -> default_fs: "" is not a filesystem
thin_pool_limit = 0 -> thin_pool_limit: whole percent from 1 to 100
thin_pool_limit = 101 -> thin_pool_limit: whole percent from 1 to 100
thin_pool_limit = 357 -> thin_pool_limit: whole percent from 1 to 100
encryption = "luks2" -> line 1, encryption: invalid type: string "luks2", expected a table
key_file = "/etc/key" -> line 1, key_file: unknown key; it belongs in the table [encryption]
encryption.key_file = "key" -> encryption.key_file: "key" is not an absolute path
encryption.key_file = "/etc/" -> encryption.key_file: "/etc/" is a directory, not a file
encryption.pbkdf_memory = 64 -> encryption.pbkdf_memory: a size in quotes and with its unit
encryption.pbkdf_memory = "31k" -> encryption.pbkdf_memory: a size from "32k" to "4g"
encryption.pbkdf_memory = "5g" -> encryption.pbkdf_memory: a size from "32k" to "4g"
encryption.pbkdf_iterations = 3 -> encryption.pbkdf_iterations: 0, or a whole number from 4 to
[volume_group.data]⏎encryption = "luks1" -> line 2, volume_group.data.encryption: "luks1" is not a kind
log = "lvm.log" -> log: "syslog", "none" or the absolute path of a file
log = "/var/log/" -> log: "syslog", "none" or the absolute path of a file
log = "/exec/example.com~lvm/log" -> log: "/exec/example.com~lvm/log" is in the driver's own
filesystem.Ext4 = {} -> line 1, filesystem.Ext4: "Ext4" is not a filesystem
[filesystem.zfs]⏎x = 1 -> line 1, filesystem.zfs: "zfs" is not a filesystem of this driver
filesystem.xfs.mkfs_option = [] -> filesystem.xfs.mkfs_option: unknown key; did you mean "mkfs_options"?
[filesystem.xfs]⏎⏎mkfs_options = ["-f"] -> line 3, filesystem.xfs.mkfs_options: "-f" is not for here
filesystem.xfs.mount_options = "bind" -> line 1, filesystem.xfs.mount_options: mount option "bind" is
filesystem.xfs.mount_options = "noatime,ro" -> the volume says whether it is read-only
⏎[volume_group] -> line 2, volume_group: name at least one group
[volume_group."a b"]⏎create = true -> line 1, volume_group."a b": "a b" is not a name for a volume group:
[volume_group.my.group] -> volume_group.my.group: unknown key; known here: thin_pool,
[volume_group.my.group] -> a volume group's name with a dot in it is written in quotes
[volume_group.data]⏎attach = true -> volume_group.data.attach: unknown key; it belongs at the beg
[volume_group.data]⏎thin_pool = "" -> line 2, volume_group.data.thin_pool: "" is not a name for a logical
[volume_group.data]⏎max_size = 10 -> max_size: a size in quotes and with its unit, such as "10g"
[volume_group.data]⏎max_size = "0" -> max_size: it would allow no volume at all
[volume_group.data]⏎reserve = "5%" -> line 2, volume_group.data.reserve: "5%" is not a size
[volume_group.'a.b']⏎⏎filesystem.ext4.mkfs_options = ["-n"] -> line 3, volume_group."a.b".filesystem.ext4.mkfs_options: "-n"
"#;

#[test]
fn a_mistake_is_named_with_its_line_and_key() {
    for row in MISTAKES.trim().lines() {
        let (text, want) = row.split_once("-> ").unwrap_or_else(|| panic!("{row}"));
        let text = text.trim_end().replace('⏎', "\n");
        let error = Config::parse(&text, "config.toml").expect_err(row);
        assert!(error.contains(want), "{text}\n got {error}\nwant {want}");
        assert!(error.starts_with("config.toml, line "), "{error}");
        assert!(!error.contains(char::is_control), "{error}");
    }
}

#[test]
fn all_mistakes_are_named_at_once() {
    let named = |text: &str| {
        let mistakes = Config::mistakes(text.as_bytes(), "f");
        let keys = mistakes.iter().map(|one| one.split(": ").next().unwrap());
        keys.map(str::to_owned).collect::<Vec<_>>()
    };
    let of_values = "atach = true
        log = 'x'
        [limits]
        query = 0
        lock = 5
        check = 'a'
        [filesystem.ext4]
        mkfs_options = ['-F']
        [filesystem.xfs]
        mkfs_options = ['-f']
        mount_options = 'bind'
        [volume_group.'a b']
        create = true
        [volume_group.vg0]
        max_size = 10";
    let want = [
        "f, line 1, atach",
        "f, line 2, log",
        "f, line 4, limits.query",
        "f, line 6, limits.check",
        "f, line 8, filesystem.ext4.mkfs_options",
        "f, line 10, filesystem.xfs.mkfs_options",
        "f, line 11, filesystem.xfs.mount_options",
        "f, line 12, volume_group.\"a b\"",
        "f, line 15, volume_group.vg0.max_size",
    ];
    assert_eq!(named(of_values), want);
    // Keys after a line that is not TOML may belong to any table.
    let want = [
        "f, line 1, log",
        "f, line 2, at \"attach = yes\"",
        "f, line 4, at \"[limits\"",
    ];
    assert_eq!(named("log = 'x'\nattach = yes\n\n[limits\n"), want);
    // A group that is taken out leaves no table that would allow none.
    assert_eq!(
        named("[volume_group.vg0]\ncreate = 1"),
        ["f, line 2, volume_group.vg0.create"]
    );
    assert_eq!(named("log = \"\u{1}\"\n").len(), 1);
    assert_eq!(Config::mistakes(b"a = 1\n\xff", "f").len(), 1);
    assert!(named("attach = false").is_empty());
}

#[test]
fn options_of_lvcreate_that_the_driver_decides_are_refused() {
    let cases = [
        (r#"["--type", "raid1", "-m", "1"]"#, ""),
        (r#"["--stripes", "2", "--stripesize=64k", "-Cy"]"#, ""),
        (r#"["-r", "auto"]"#, ""),
        (r#"["--alloc", "anywhere", "--nosync"]"#, ""),
        (r#"["-n", "x"]"#, "the driver decides --name"),
        (r#"["--name=x"]"#, "the driver decides --name"),
        (r#"["--nam", "x"]"#, "the driver decides --name"),
        (r#"["-L1g"]"#, "the driver decides --size"),
        (r#"["-l", "100%FREE"]"#, "the driver decides --extents"),
        (r#"["-T"]"#, "the driver decides --thin"),
        (r#"["--thinpool", "p"]"#, "the driver decides --thinpool"),
        (r#"["--addtag", "a"]"#, "the driver decides --addtag"),
        (r#"["-y"]"#, "the driver decides --yes"),
        (r#"["-Wn"]"#, "the driver decides --wipesignatures"),
        (r#"["-an"]"#, "the driver decides --activate"),
        (r#"["-pr"]"#, "the driver decides --permission"),
        (r#"[""]"#, "\"\" is not an option of lvcreate"),
        (r#"["--"]"#, "\"--\" is not an option of lvcreate"),
        (r#"["other"]"#, "\"other\" is not an option of lvcreate"),
        (r#"["-m", "1", "other"]"#, "\"other\" is not an option"),
        (r#"["--mirrors=1", "other"]"#, "\"other\" is not an option"),
        (r#"["--type raid1"]"#, "each word on its own: [\"--type\", "),
        (r#"["--type\u0000"]"#, "\"--type\\0\" is not an option"),
        (r#""-m1""#, "expected a sequence"),
    ];
    for (options, want) in cases {
        let text = format!("volume_group.data.lvcreate_options = {options}");
        match Config::parse(&text, "f") {
            Ok(_) => assert_eq!(want, "", "{options}"),
            Err(e) => assert!(e.contains(want) && !want.is_empty(), "{options}: {e}"),
        }
    }
}

#[test]
fn mkfs_options_that_overwrite_or_reach_elsewhere_are_refused() {
    let cases = [
        ("ext4", r#"["-m", "5", "-O", "^has_journal"]"#, true),
        ("xfs", r#"["-m", "reflink=1", "-n", "ftype=1"]"#, true),
        ("btrfs", r#"["-n", "32k", "--csum=xxhash", "-M"]"#, true),
        ("ext4", r#"["-F"]"#, false),
        ("ext3", r#"["-FF"]"#, false),
        ("ext2", r#"["-n"]"#, false),
        ("ext4", r#"["-S"]"#, false),
        ("xfs", r#"["-f"]"#, false),
        ("xfs", r#"["-l", "logdev=/dev/sdb"]"#, false),
        ("btrfs", r#"["--force"]"#, false),
        ("btrfs", r#"["-M", "/dev/sdb"]"#, false),
        ("btrfs", r#"["/dev/sdb"]"#, false),
        ("btrfs", r#"["--"]"#, false),
        ("ext4", r#"["-m 5"]"#, false),
        ("ext4", r#"[""]"#, false),
    ];
    for (fs, options, want) in cases {
        for table in ["filesystem", "volume_group.data.filesystem"] {
            let text = format!("{table}.{fs}.mkfs_options = {options}");
            let result = Config::parse(&text, "f");
            assert_eq!(result.is_ok(), want, "{text}: {result:?}");
        }
    }
}
