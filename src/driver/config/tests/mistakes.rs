//! Mistakes in a config file, each with its message: one line with file, line and key.

use crate::config::Config;

/// `⏎` ends a line of the file; ` … ` stands for words of the message.
const MISTAKES: &str = r#"
atach = true -> line 1: unknown field `atach`, expected one of `attach`,
⏎⏎fs-group = true -> line 3: unknown field `fs-group`, expected one of `attach`,
colour = 1 -> line 1: unknown field `colour`, expected one of `attach`,
"a\u001b\"" = 1 -> line 1: unknown field `a "`, expected one of `attach`,
query = 30 -> line 1: unknown field `query`, expected one of `attach`,
create = true -> line 1: unknown field `create`, expected one of `attach`,
mkfs_options = [] -> line 1: unknown field `mkfs_options`, expected one of
[limits]⏎log = "none" -> line 2: unknown field `log`, expected one of `query`, … in `limits`
[limits]⏎⏎queri = 1 -> line 3: unknown field `queri`, expected one of `query`, … in `limits`
limits.query = 0 -> line 1: whole seconds from 1 to 86400, in `limits.query`
limits.lock = 86401 -> line 1: whole seconds from 1 to 86400, in `limits.lock`
limits.lock = -1 -> line 1: whole seconds from 1 to 86400, in `limits.lock`
limits.lock = 1.5 -> line 1: whole seconds from 1 to 86400, in `limits.lock`
limits.lock = "1" -> line 1: whole seconds from 1 to 86400, in `limits.lock`
limits.lock = 99999999999999999999999 -> line 1: whole seconds from 1 to 86400, in `limits.lock`
limits = 3 -> line 1: invalid type: integer `3`, expected a table, in `limits`
limits = ["1"] -> line 1: whole seconds from 1 to 86400, in `limits`
filesystem = 3 -> line 1: invalid type: integer `3`, expected a map, in `filesystem`
[[filesystem.xfs]] -> line 1: invalid type: map, expected a sequence, in `filesystem.xfs`
[[volume_group]] -> line 1: invalid type: sequence, expected a map, in `volume_group`
attach = "no" -> line 1: invalid type: string "no", expected a boolean, in `attach`
attach = -> line 1: string values must be quoted, expected literal string
attach = yes -> line 1: string values must be quoted, expected literal string
[limits⏎query = 3 -> line 1: unclosed table, expected `]`
attach = 1⏎log = yes -> line 2: string values must be quoted, expected literal string
log = "none"⏎attach = true⏎attach = false -> line 3: duplicate key
node_name = "a b" -> line 1: a node's name is letters, digits, dots and hyphens, at most 253, not "a b", in `node_name`
kubelet_dirs = [] -> line 1: at least one directory, in `kubelet_dirs`
⏎kubelet_dirs = [⏎"/a",⏎""] -> line 2: "" is not an absolute path below /, without ".." and … in `kubelet_dirs`
kubelet_dirs = ["/"] -> line 1: "/" is not an absolute path below /, without ".." and … in `kubelet_dirs`
runtime_dirs = ["run"] -> line 1: "run" is not an absolute path below /, without ".." and … in `runtime_dirs`
kubelet_dirs = "/a" -> line 1: invalid type: string "/a", expected a sequence, in `kubelet_dirs`
kubelet_dirs = [⏎1] -> line 2: invalid type: integer `1`, expected a string, in `kubelet_dirs`
tool_dirs = ["bin"] -> line 1: "bin" is not an absolute path below /, without … in `tool_dirs`
tool_dirs = ["/a/../b"] -> line 1: "/a/../b" is not an absolute path below /, without … in `tool_dirs`
tool_dirs = ["/a\u0000"] -> line 1: "/a\0" is not an absolute path below /, without … in `tool_dirs`
default_fs = "zfs" -> line 1: unknown variant `zfs`, expected one of `ext2`, … in `default_fs`
thin_pool_limit = 0 -> line 1: whole percent from 1 to 100, in `thin_pool_limit`
thin_pool_limit = 101 -> line 1: whole percent from 1 to 100, in `thin_pool_limit`
thin_pool_limit = 357 -> line 1: whole percent from 1 to 100, in `thin_pool_limit`
encryption = "luks2" -> line 1: invalid type: string "luks2", expected a table, in `encryption`
key_file = "/etc/key" -> line 1: unknown field `key_file`, expected one of `attach`,
encryption.key_file = "key" -> line 1: not an absolute path of a file, without … in `encryption.key_file`
encryption.key_file = "/etc/" -> line 1: not an absolute path of a file, without … in `encryption.key_file`
encryption.key_file = 5 -> line 1: not an absolute path of a file, without … in `encryption.key_file`
encryption.key_file = hunter2 -> line 1: string values must be quoted, expected literal string
encryption.key_file =⏎hunter2 -> line 2: key with no value, expected `=`
encryption.key_file = """⏎hunter2⏎ -> line 3: invalid multi-line basic string, expected `"`
log = "/var/log/" -> line 1: "syslog", "none" or a file, and "/var/log/" is a directory, and not a file, in `log`
encryption.pbkdf_memory = 64 -> line 1: a size in quotes and with its unit, such as "10g", in `encryption.pbkdf_memory`
encryption.pbkdf_memory = "31k" -> line 1: a size from "32k" to "4g", in `encryption.pbkdf_memory`
encryption.pbkdf_memory = "5g" -> line 1: a size from "32k" to "4g", in `encryption.pbkdf_memory`
encryption.pbkdf_iterations = 3 -> line 1: 0, or a whole number from 4 to 4294967295, in `encryption.pbkdf_iterations`
[volume_group.data]⏎encryption = "luks1" -> line 2: unknown variant `luks1`, expected `luks2`, … in `volume_group.data.encryption`
log = "lvm.log" -> line 1: "syslog", "none" or a file, and "lvm.log" is not an absolute path … in `log`
log = "/exec/example.com~lvm/log" -> line 1: "/exec/example.com~lvm/log" is in the driver's own … in `log`
filesystem.Ext4 = {} -> line 1: unknown variant `Ext4`, expected one of `ext2`, … in `filesystem`
[filesystem.zfs]⏎x = 1 -> line 1: unknown variant `zfs`, expected one of `ext2`, … in `filesystem`
filesystem.xfs.mkfs_option = [] -> line 1: unknown field `mkfs_option`, expected `mkfs_options` or `mount_options`, in `filesystem.xfs`
[filesystem.xfs]⏎⏎mkfs_options = ["-f"] -> line 1: "-f" is not for here: the driver decides what mkfs.xfs … in `filesystem`
filesystem.xfs.mount_options = "bind" -> line 1: mount option "bind" is refused: it asks for another … in `filesystem.xfs.mount_options`
filesystem.xfs.mount_options = "noatime,ro" -> line 1: the volume says whether it is read-only (readOnly): … in `filesystem.xfs.mount_options`
⏎[volume_group] -> line 2: name at least one group: [volume_group.NAME], in `volume_group`
[volume_group."a b"]⏎create = true -> line 1: "a b" is not a name for a volume group: LVM allows … in `volume_group`
[volume_group.my.group] -> line 1: unknown field `group`, expected one of `thin_pool`, … in `volume_group.my`
[volume_group.data]⏎attach = true -> line 2: unknown field `attach`, expected one of … in `volume_group.data`
[volume_group.data]⏎thin_pool = "" -> line 2: "" is not a name for a logical volume: LVM allows … in `volume_group.data.thin_pool`
[volume_group.data]⏎max_size = 10 -> line 2: a size in quotes and with its unit, such as "10g", in `volume_group.data.max_size`
[volume_group.data]⏎max_size = "0" -> line 2: it would allow no volume at all, in `volume_group.data.max_size`
[volume_group.data]⏎reserve = "5%" -> line 2: "5%" is not a size: write a number and a unit (b s … in `volume_group.data.reserve`
[volume_group.'a.b']⏎⏎filesystem.ext4.mkfs_options = ["-n"] -> line 3: "-n" is not for here: the driver decides what mkfs.ext4 … in `volume_group.a.b.filesystem`
"#;

#[test]
fn a_mistake_is_named_with_its_line_and_key() {
    for row in MISTAKES.trim().lines() {
        let (text, want) = row.split_once("-> ").unwrap_or_else(|| panic!("{row}"));
        let text = text.trim_end().replace('⏎', "\n");
        let error = Config::parse(&text, "config.toml").expect_err(row);
        for want in want.split(" … ") {
            assert!(error.contains(want), "{text}\n got {error}\nwant {want}");
        }
        assert!(error.starts_with("config.toml, line "), "{error}");
        assert!(!error.contains(char::is_control), "{error}");
        assert!(!error.contains("hunter2"), "a passphrase: {error}");
    }
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
        // Short options may be joined, up to the first that takes a value.
        (r#"["-qq", "-vv", "-dv", "-qI64k", "-in"]"#, ""),
        (r#"["-qn", "x"]"#, "the driver decides --name"),
        (r#"["-vL1g"]"#, "the driver decides --size"),
        (r#"["-qan"]"#, "the driver decides --activate"),
        (r#"["-qpr"]"#, "the driver decides --permission"),
        (r#"["-KHWn"]"#, "the driver decides --wipesignatures"),
        (r#"["-qt"]"#, "the driver decides --test"),
        (r#"["-äy"]"#, ""),
        (r#"[""]"#, "\"\" is not an option of lvcreate"),
        (r#"["--"]"#, "\"--\" is not an option of lvcreate"),
        (r#"["other"]"#, "\"other\" is not an option of lvcreate"),
        (r#"["-m", "1", "other"]"#, "\"other\" is not an option"),
        (r#"["--mirrors=1", "other"]"#, "\"other\" is not an option"),
        (
            r#"["--type raid1"]"#,
            "nor the value of one; write each word on its own",
        ),
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
        ("ext4", r#"["-qn"]"#, false),
        ("ext4", r#"["-vqF"]"#, false),
        ("ext4", r#"["-cc", "-qLn", "-DFx"]"#, false),
        ("ext4", r#"["-cc", "-qLn", "-Enodiscard,Fx"]"#, true),
        ("xfs", r#"["-f"]"#, false),
        ("xfs", r#"["-Kf"]"#, false),
        ("xfs", r#"["-KN"]"#, false),
        ("xfs", r#"["-qLfN"]"#, true),
        ("btrfs", r#"["-Kf"]"#, false),
        ("btrfs", r#"["-qvMV"]"#, false),
        ("btrfs", r#"["--forc"]"#, false),
        ("btrfs", r#"["--h"]"#, false),
        ("xfs", r#"["-l", "logdev=/dev/sdb"]"#, false),
        ("btrfs", r#"["--force"]"#, false),
        ("btrfs", r#"["-M", "/dev/sdb"]"#, false),
        ("btrfs", r#"["/dev/sdb"]"#, false),
        ("btrfs", r#"["--"]"#, false),
        ("ext4", r#"["-U", "random"]"#, false),
        ("ext4", r#"["-qUclear"]"#, false),
        ("xfs", r#"["-m", "crc=1,uuid=0b1c"]"#, false),
        ("xfs", r#"["-muuid=0b1c"]"#, false),
        ("btrfs", r#"["-U", "0b1c"]"#, false),
        ("btrfs", r#"["--uu=0b1c"]"#, false),
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
