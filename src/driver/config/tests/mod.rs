mod mistakes;
mod page;

use proptest::prelude::*;

use super::*;

const EXAMPLE: &str = include_str!("../../../../examples/config.toml");

/// Parses a config. Drops tables of filesystems without a key, which mean the same as no table.
fn parsed(text: &str) -> Config {
    let mut config = Config::parse(text, "config.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    config
        .filesystems
        .retain(|_, of_fs| *of_fs != FsConfig::default());
    config
}

fn vg(name: &str) -> VgName {
    VgName::parse(name).unwrap()
}

/// The example config with all commented settings and tables switched on. A comment of prose has a space after its "#",
/// a setting has none.
fn uncommented() -> String {
    let lines = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_mistake_elsewhere_leaves_the_mode_and_the_log_as_they_are() {
    let file = || LogTarget::File("/l".into());
    let cases = [
        (
            "unknown key",
            "attach = false\nx = 1",
            false,
            LogTarget::Syslog,
        ),
        (
            "wrong value elsewhere",
            "default_fs = 1\nattach = false\nlog = '/l'",
            false,
            file(),
        ),
        (
            "wrong table",
            "log = 'none'\n[limits]\nquery = 0",
            true,
            LogTarget::None,
        ),
        ("no mode", "x = 1", true, LogTarget::Syslog),
        ("no bool", "attach = 1\nlog = '/l'", true, file()),
        (
            "no log",
            "log = 'x'\nattach = false",
            false,
            LogTarget::Syslog,
        ),
        (
            "not TOML before",
            "x = \nattach = false\nlog = '/l'",
            false,
            file(),
        ),
        (
            "not TOML after",
            "attach = false\nlog = '/l'\n[limits",
            false,
            file(),
        ),
        (
            "not TOML there",
            "attach = false\nlog = ",
            false,
            LogTarget::Syslog,
        ),
    ];
    for (name, text, attach, log) in cases {
        assert!(Config::from_bytes(text.as_bytes(), "f").is_err(), "{name}");
        let config = Config::saved_from(text.as_bytes(), "f");
        assert_eq!(
            (config.attach, config.log, &*config.file),
            (attach, log, "f"),
            "{name}"
        );
    }
}

#[test]
fn no_key_at_all_is_the_default() {
    assert_eq!(parsed(""), Config::default());
    assert_eq!(parsed("[limits]\n[filesystem.xfs]\n"), Config::default());
    assert_eq!(Loaded::default().require().unwrap(), &Config::default());
    let broken = Loaded {
        problem: Some("f, line 1".to_owned()),
        ..Loaded::default()
    };
    assert_eq!(broken.require().unwrap_err().to_string(), "f, line 1");
}

#[test]
fn the_example_as_it_is_changes_nothing() {
    assert_eq!(parsed(EXAMPLE), Config::default());
}

#[test]
fn the_example_shows_the_defaults_and_one_group() {
    let text = uncommented();
    let config = parsed(&text);
    let group = config.volume_groups.get(&vg("data")).unwrap();
    assert!(group.create && group.max_size > Some(group.reserve));
    let rest = Config {
        volume_groups: BTreeMap::new(),
        ..config.clone()
    };
    assert_eq!(rest, Config::default());
    for table in [
        "",
        "limits.",
        "encryption.",
        "volume_group.data.",
        "filesystem.xfs.",
    ] {
        let error = Config::parse(&format!("{table}'?' = 1"), "f").unwrap_err();
        let (_, known) = error
            .split_once("expected one of ")
            .or(error.split_once("expected "))
            .unwrap();
        let (known, _) = known.split_once(", in ").unwrap_or((known, ""));
        for key in known.split('`').skip(1).step_by(2) {
            let is_shown = |line: &str| {
                ["#KEY = ", "[KEY]", "[KEY.", ".KEY."]
                    .iter()
                    .any(|form| line.contains(&form.replace("KEY", key)))
            };
            assert!(EXAMPLE.lines().any(is_shown), "{key} is not in the example");
        }
    }
}

#[test]
fn reads_every_key() {
    let config = parsed(
        r#"
        attach = false
        selinux_relabel = false
        supports_metrics = true
        fs_group = false
        requires_fs_resize = false
        node_name = "node-1.example"
        kubelet_dirs = ["/data/kubelet", "/var/lib/kubelet"]
        runtime_dirs = ["/run/machines"]
        default_fs = "xfs"
        tool_dirs = ["/opt/lvm/sbin"]
        deactivate = true
        thin_pool_limit = 80
        log = "/var/log/lvm.log"
        limits = { query = 1, activate = 2, make = 3, check = 4, mount = 5, resize = 6, lock = 86_400 }
        encryption = { key_file = "/etc/key", pbkdf_memory = "32k", pbkdf_iterations = 4, allow_discards = true }
        filesystem.ext4 = { mkfs_options = ["-I", "256"], mount_options = "noatime" }
        [volume_group."my.group"]
        thin_pool = "pool0"
        encryption = "luks2"
        key_file = "/etc/groups-key"
        create = true
        max_size = "2g"
        reserve = "1g"
        lvcreate_options = ["--stripes=2", "-I", "64k"]
        filesystem.ext4 = { mkfs_options = ["-i", "65536"], mount_options = "nodev" }
        "#,
    );
    let seconds = Duration::from_secs;
    let ext4 = |mkfs: [&str; 2], mount| {
        let of_fs = FsConfig {
            mkfs_options: mkfs.map(str::to_owned).to_vec(),
            mount_options: MountOptions::of_node(mount).unwrap(),
        };
        BTreeMap::from([(FsType::Ext4, of_fs)])
    };
    let group = VolumeGroup {
        thin_pool: Some(LvName::parse("pool0").unwrap()),
        encryption: Some(Encryption::Luks2),
        key_file: Some("/etc/groups-key".into()),
        create: true,
        max_size: Some(Bytes::new(2 << 30)),
        reserve: Bytes::new(1 << 30),
        lvcreate_options: ["--stripes=2", "-I", "64k"].map(str::to_owned).to_vec(),
        filesystems: ext4(["-i", "65536"], "nodev"),
    };
    let want = Config {
        file: "config.toml".to_owned(),
        attach: false,
        selinux_relabel: false,
        supports_metrics: true,
        fs_group: false,
        requires_fs_resize: false,
        node_name: Some("node-1.example".to_owned()),
        kubelet_dirs: vec!["/data/kubelet".into(), "/var/lib/kubelet".into()],
        runtime_dirs: vec!["/run/machines".into()],
        default_fs: FsType::Xfs,
        tool_dirs: vec!["/opt/lvm/sbin".into()],
        deactivate: true,
        thin_pool_limit: 80,
        log: LogTarget::File("/var/log/lvm.log".into()),
        limits: Limits {
            query: seconds(1),
            activate: seconds(2),
            make: seconds(3),
            check: seconds(4),
            mount: seconds(5),
            resize: seconds(6),
            lock: seconds(86_400),
        },
        luks: Luks {
            key_file: Some("/etc/key".into()),
            pbkdf_memory: Bytes::new(32 << 10),
            pbkdf_iterations: Some(4),
            allow_discards: true,
        },
        filesystems: ext4(["-I", "256"], "noatime"),
        volume_groups: BTreeMap::from([(vg("my.group"), group)]),
    };
    assert_eq!(config, want);

    let (ours, other) = (vg("my.group"), vg("other"));
    assert_eq!(config.encryption(&ours), Some(Encryption::Luks2));
    assert_eq!(config.encryption(&other), None);
    let key_file = |vg| config.key_file(vg).and_then(std::path::Path::to_str);
    assert_eq!(
        (key_file(&ours), key_file(&other)),
        (Some("/etc/groups-key"), Some("/etc/key"))
    );
    let both = ["-I", "256", "-i", "65536"];
    assert_eq!(config.mkfs_options(&ours, FsType::Ext4), both);
    assert_eq!(config.mkfs_options(&other, FsType::Ext4), both[..2]);
    assert!(config.mkfs_options(&ours, FsType::Xfs).is_empty());
    let joined = |vg, fs| config.mount_options(vg, fs).joined();
    assert_eq!(
        joined(&ours, FsType::Ext4).as_deref(),
        Some("noatime,nodev")
    );
    assert_eq!(joined(&other, FsType::Ext4).as_deref(), Some("noatime"));
    assert_eq!(joined(&ours, FsType::Xfs), None);
}

#[test]
fn values_may_be_as_long_and_as_short_as_they_say() {
    assert_eq!(parsed("log = 'none'").log, LogTarget::None);
    assert_eq!(parsed("log = 'syslog'").log, LogTarget::Syslog);
    assert_eq!(parsed("node_name = ''").node_name, None);
    let named = |length| format!("node_name = '{}'", "n".repeat(length));
    assert_eq!(parsed(&named(253)).node_name.unwrap().len(), 253);
    assert!(Config::parse(&named(254), "f").is_err());
}

#[test]
fn once_a_group_is_named_the_others_are_refused() {
    let any = Config::default();
    assert_eq!(any.policy(&vg("data")).unwrap(), None);

    let config = Config::parse("[volume_group.data]\n", "/etc/lvm.toml").unwrap();
    let policy = config.policy(&vg("data")).unwrap();
    assert_eq!(policy, Some(&VolumeGroup::default()));
    let error = config.policy(&vg("my.root")).unwrap_err().to_string();
    let want = "this node's config does not allow the volume group my.root: add a table \
                [volume_group.\"my.root\"] to /etc/lvm.toml, or name another group";
    assert_eq!(error, want);
}

#[test]
fn bytes_must_be_text() {
    let error = Config::from_bytes(b"attach = true\nlog = \"\xff\"\n", "f").unwrap_err();
    assert_eq!(error, "f, line 2: this is not valid UTF-8 text");
    let with_mark = Config::from_bytes(b"\xef\xbb\xbfattach = false\r\n", "f");
    assert!(
        !with_mark.unwrap().attach,
        "an editor's byte order mark and line ends"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_a_config_or_one_line(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = Config::from_bytes(&bytes, "f") {
            prop_assert!(error.starts_with("f, line ") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn any_arrangement_of_the_file_is_a_config_or_one_line(
        parts in proptest::collection::vec(
            prop_oneof![
                proptest::sample::select(EXAMPLE.split_inclusive([' ', '.', '[', ']', '"', '#']).collect::<Vec<_>>()).prop_map(str::to_owned),
                "[\\[\\]{}=.\"'\\n\\\\0-9a-z_-]{1,8}",
                ".{0,4}",
            ],
            0..30,
        )
    ) {
        let text = parts.concat();
        if let Err(error) = Config::parse(&text, "f") {
            prop_assert!(error.starts_with("f, ") && !error.contains('\n'), "{error}");
        }
    }
}
