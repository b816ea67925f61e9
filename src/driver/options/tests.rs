use super::*;

/// JSON with the options that every volume needs, followed by `more`.
fn with(more: &str) -> String {
    let comma = if more.is_empty() { "" } else { "," };
    format!(r#"{{"volumegroup":"vg","volumeID":"data"{comma}{more}}}"#)
}

fn error(json: &str) -> String {
    format!("{:#}", Options::parse(json).unwrap_err())
}

#[test]
fn reads_all_that_kubelet_sends() {
    let options = Options::parse(
        r#" {"volumegroup":"my-vg","volumeID":"data","size":"1.5g","thinpool":"pool0",
        "mountoptions":"noatime","kubernetes.io/fsType":"xfs","kubernetes.io/readwrite":"rw",
        "kubernetes.io/pvOrVolumeName":"pv-1","kubernetes.io/pod.name":"web-0",
        "kubernetes.io/pod.namespace":"shop","kubernetes.io/pod.uid":"u",
        "kubernetes.io/serviceAccount.name":"default","kubernetes.io/mounterArgs.FsGroup":"100",
        "kubernetes.io/secret/password":"eA==","kubernetes.io/secret/passphrase":"aHVudGVyMg==","encryption":"luks2","color":"blue \u0026 gr\u00fcn"} "#,
    )
    .unwrap();
    let want = Options {
        id: LvId::parse("my-vg/data").unwrap(),
        fs: Some(FsType::Xfs),
        read_only: false,
        size: Some(Bytes::new(3 << 29)),
        thin_pool: Some(LvName::parse("pool0").unwrap()),
        encryption: Some(Encryption::Luks2),
        passphrase: Passphrase::from_base64("aHVudGVyMg==").ok(),
        mount_options: MountOptions::of_pod("noatime").unwrap(),
        volume_name: Some(ObjectName::parse("pv-1").unwrap()),
    };
    assert_eq!(options, want);
}

#[test]
fn an_option_that_is_not_given_is_none() {
    let empty = r#""kubernetes.io/fsType":"","kubernetes.io/readwrite":"","mountoptions":"","size":"",
        "thinpool":"","kubernetes.io/pvOrVolumeName":"""#;
    for more in ["", empty] {
        let options = Options::parse(&with(more)).unwrap();
        assert_eq!(options.id.to_string(), "vg/data");
        assert_eq!(
            (options.fs, options.size, options.thin_pool),
            (None, None, None)
        );
        assert_eq!(options.volume_name, None);
        assert_eq!(options.mount_options, MountOptions::default());
        assert!(!options.read_only);
    }
}

#[test]
fn read_only_is_said_in_either_way_and_never_taken_back() {
    let cases = [
        (r#""kubernetes.io/readwrite":"ro""#, Some("")),
        (r#""mountoptions":"ro,noatime""#, Some("ro,noatime")),
        (
            r#""kubernetes.io/readwrite":"rw","mountoptions":"ro""#,
            Some("ro"),
        ),
        (
            r#""kubernetes.io/readwrite":"ro","mountoptions":"noatime""#,
            Some("noatime"),
        ),
        (
            r#""kubernetes.io/readwrite":"ro","mountoptions":"noatime,rw""#,
            None,
        ),
        (r#""mountoptions":"ro,rw""#, None),
    ];
    for (more, want) in cases {
        let options = Options::parse(&with(more)).ok();
        let joined = options
            .as_ref()
            .map(|options| options.mount_options.joined().unwrap_or_default());
        assert_eq!(joined.as_deref(), want, "{more}");
        assert!(options.is_none_or(|options| options.read_only), "{more}");
    }
}

#[test]
fn an_error_names_the_option_and_what_to_do() {
    let cases = [
        (
            "{}".to_owned(),
            "option volumegroup is missing; `lvs` shows the names of groups and volumes",
        ),
        (
            r#"{"volumegroup":"","volumeID":"x"}"#.to_owned(),
            "option volumegroup is missing; `lvs` shows the names of groups and volumes",
        ),
        (
            r#"{"volumegroup":"vg"}"#.to_owned(),
            "option volumeID is missing; `lvs` shows the names of groups and volumes",
        ),
        (
            r#"{"volumegroup":"vg","volumeID":"vg/data"}"#.to_owned(),
            r#"option volumeID is "vg/data", and must be the logical volume's name alone: set volumeID to "data" and volumegroup to "vg""#,
        ),
        (
            r#"{"volumegroup":"vg","volumeID":"/dev/vg/data"}"#.to_owned(),
            r#"option volumeID is "/dev/vg/data", and must be the logical volume's name alone: set volumeID to "data" and volumegroup to "vg""#,
        ),
        (
            r#"{"volumegroup":"--all","volumeID":"x"}"#.to_owned(),
            r#"reading option volumegroup: "--all" is not a name for a volume group: LVM allows 1 to 127 of a-z A-Z 0-9 + _ . and -, no hyphen at the beginning, and neither . nor .."#,
        ),
        (
            with(r#""size":100"#),
            r#"one of the options is not a string (column 48); they must be one object of strings, such as {"volumegroup":"vg","volumeID":"data"}"#,
        ),
        (
            with(r#""size":"0""#),
            "option size is 0; leave it out or give the size of the volume",
        ),
        (
            with(r#""thinpool":" ""#),
            r#"reading option thinpool: " " is not a name for a logical volume: LVM allows 1 to 127 of a-z A-Z 0-9 + _ . and -, no hyphen at the beginning, and neither . nor .."#,
        ),
        (
            with(r#""encryption":"""#),
            r#"reading option encryption: "" is not a kind of encryption of this driver; it knows luks2"#,
        ),
        (
            with(r#""kubernetes.io/fsType":"zfs""#),
            r#"reading fsType: "zfs" is not a filesystem of this driver; it knows ext2, ext3, ext4, xfs, btrfs"#,
        ),
        (
            with(r#""kubernetes.io/readwrite":"RO""#),
            r#"option kubernetes.io/readwrite is "RO", and must be ro or rw"#,
        ),
        (
            with(r#""kubernetes.io/pvOrVolumeName":"a/b""#),
            r#"reading option kubernetes.io/pvOrVolumeName: "a/b" is not a name to Kubernetes, which takes a-z, 0-9, hyphens and dots, up to 253 characters, with a letter or digit at both ends"#,
        ),
        (
            with(r#""mountoptions":"bind""#),
            r#"reading option mountoptions: mount option "bind" is refused: it asks for another operation than mounting the volume; leave it out"#,
        ),
        (
            "[]".to_owned(),
            r#"the options are not a JSON object; they must be one object of strings, such as {"volumegroup":"vg","volumeID":"data"}"#,
        ),
        (
            with("") + "x",
            r#"the options are not valid JSON (trailing characters at line 1 column 39); they must be one object of strings, such as {"volumegroup":"vg","volumeID":"data"}"#,
        ),
    ];
    for (json, want) in cases {
        assert_eq!(error(&json), want, "{json}");
    }
}

#[test]
fn a_misspelt_option_finds_the_known_one() {
    let cases = [
        ("volumeGroup", Some("volumegroup")),
        ("volume-group", Some("volumegroup")),
        ("VOLUME_ID", Some("volumeID")),
        ("volumeid", Some("volumeID")),
        ("volumID", Some("volumeID")),
        ("sizes", Some("size")),
        ("----------------------------size", Some("size")),
        ("-----------------------------size", None),
        ("szie", Some("size")),
        ("thin_pool", Some("thinpool")),
        ("mount.options", Some("mountoptions")),
        ("mountOption", Some("mountoptions")),
        ("side-car", None),
        ("type", None),
        ("color", None),
        ("", None),
        ("volumename", None),
        ("kubernetes.io/volumeid", None),
    ];
    for (name, want) in cases {
        let near = nearest(name, &KNOWN).filter(|_| !is_known(name));
        assert_eq!(near, want, "{name}");
        let parsed = Options::parse(&with(&format!(r#""{name}":"hunter2""#)));
        match want {
            None => assert!(parsed.is_ok(), "{name}"),
            Some(known) => assert_eq!(
                parsed.unwrap_err().to_string(),
                format!("unknown option {name:?}; did you mean {known}?")
            ),
        }
    }
}

#[test]
fn an_unknown_option_that_asks_for_encryption_is_refused() {
    let cases = [
        ("encrypted", "luks2"),
        ("encrypt", "true"),
        ("Encrypted", "no"),
        ("enc", "on"),
        ("encripton2", "x"),
        ("volumeEncryption", "x"),
        ("dm-crypt", "x"),
        ("luks", "2"),
        ("LUKS_version", "x"),
        ("cipher", "aes"),
        ("key_file", "/x"),
        ("passphrase", "x"),
        ("secure", "luks2"),
        ("type", "LUKS"),
    ];
    for (name, value) in cases {
        let parsed = Options::parse(&with(&format!(r#""{name}":"{value}""#)));
        let error = parsed.expect_err(name).to_string();
        assert!(
            error.starts_with(&format!("unknown option {name:?}")),
            "{error}"
        );
        assert!(error.contains("encryption"), "{error}");
    }
    for (name, value) in [
        ("description", "encrypted"),
        ("key", "x"),
        ("color", "lucky"),
    ] {
        let parsed = Options::parse(&with(&format!(r#""{name}":"{value}""#)));
        assert!(parsed.is_ok(), "{name}");
    }
}

#[test]
fn a_secret_is_in_no_value_and_in_no_error() {
    let jsons = [
        r#""kubernetes.io/secret/p":"hunter2""#,
        r#""kubernetes.io\/secret\/p":"hunter2","size":1"#,
        r#""kubernetes.io/secret/hunter2":"hunter2","size":"x""#,
        r#""kubernetes.io/secret/p":hunter2"#,
        r#""kubernetes.io/secret/p":"hunter2"#,
        r#""kubernetes.io/secret/p":["hunter2"],"a":1"#,
        r#""kubernetes.io/secret/p":74657"#,
        r#""color":"hunter2","color":"hunter2""#,
        r#""color":"hunter2\x""#,
        r#""color":"hunter2""hunter2""#,
        r#""volumeId":"hunter2""#,
    ];
    for json in jsons {
        let parsed = format!("{:?}", Options::parse(&with(json)));
        let shows = parsed.contains("hunter2") || parsed.contains("74657");
        assert!(!shows, "{parsed}");
    }
    for json in [r#""hunter2""#, "hunter2", r#"["hunter2"]"#] {
        assert!(!error(json).contains("hunter2"), "{json}");
    }
}

#[test]
fn sees_a_secret_in_an_argument_however_it_is_written() {
    let cases = [
        (r#"{"kubernetes.io/secret/p":"x"}"#, true),
        ("garbage kubernetes.io/secret/p", true),
        (r#"{"kubernetes.io/fsType":"x"}"#, false),
        (r#"{"kubernetes.io/secret":"x"}"#, false),
        ("", false),
    ];
    for (argument, want) in cases {
        assert_eq!(holds_secret(argument), want, "{argument}");
    }
}

#[test]
fn size_and_depth_have_an_end() {
    let long = "x".repeat(70_000);
    let deep = "[".repeat(50_000);
    let cases = [
        (
            format!(r#""kubernetes.io/fsType":"{long}""#),
            "reading fsType",
        ),
        (format!(r#""mountoptions":"{long}""#), "longer than 4000"),
        (format!(r#""color":{deep}"#), "is not a string"),
        (format!(r#""volumeId":"{long}""#), "did you mean volumeID"),
    ];
    for (more, want) in cases {
        let error = error(&with(&more));
        assert!(error.contains(want) && error.len() < 1024, "{error}");
    }
    let named = |length| with(&format!(r#""{NAME}":"{}""#, "n".repeat(length)));
    assert!(Options::parse(&named(253)).is_ok());
    assert!(Options::parse(&named(254)).is_err());
    for (name, is_good) in [
        ("Data_1.x+y", true),
        ("_+", true),
        ("a..b", false),
        ("a b", false),
        ("é", false),
    ] {
        let parsed = Options::parse(&with(&format!(r#""{NAME}":"{name}""#)));
        assert_eq!(parsed.is_ok(), is_good, "{name}");
    }
    let secret = format!(r#""kubernetes.io/secret/p":"{long}""#);
    assert!(Options::parse(&with(&secret)).is_ok());
}

#[test]
fn a_field_of_the_volume_among_its_options_is_refused() {
    for (name, field) in [
        ("fsType", "fsType"),
        ("fstype", "fsType"),
        ("filesystem", "fsType"),
        ("readOnly", "readOnly"),
        ("read_only", "readOnly"),
        ("readwrite", "readOnly"),
        ("secretRef", "secretRef"),
    ] {
        let error = error(&with(&format!(r#""{name}":"hunter2""#)));
        let want = format!(
            "{name:?} is not an option: write `{field}` beside `driver` and `options`, not among the \
             options"
        );
        assert_eq!(error, want);
    }
}
