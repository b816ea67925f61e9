//! Attacks by a pod's author, or by somebody between the author and the driver.

/// An option, words of the reason why it is refused, and its values as JSON, two spaces apart.
pub const REFUSED: &str = r#"
// An option or another operand in the place of a name.
volumegroup | LVM allows |  "-vg"  "--force"  "--config=devices{}"  "vg --force"  "vg/data"  "/dev/vg"  "*"  "."  ".."
volumegroup | volumegroup is missing |  ""
volumegroup | this node's config does not allow the volume group |  "other"
volumeID | LVM allows |  "-data"  "--yes"  "-an"  "/dev/sda"  "../sda"  "../../etc/passwd"  "$(reboot)"
volumeID | LVM allows |  "data\nreboot"  "data\u0000"  "\u0000"  "data\u001b[2J"
volumeID | LVM allows |  "d\u0430ta"  "data\u202egpj"  "data\u2028"
volumeID | name alone |  "vg/data"  "other/data"  "/dev/vg/data"  "/dev/mapper/vg-data"
volumeID | volumeID is missing |  ""
volumeID | not valid JSON |  "\ud800"
// Names that LVM keeps for itself, and layers below volumes.
volumeID | for itself |  "snapshot0"  "pvmove0"  "data_tdata"  "data_tmeta"  "data_mlog"
// Filesystems that are none, or that a helper of mount would be found for.
kubernetes.io/fsType | not a filesystem of this driver |  "ext4 -F"  "ext4\n"  "EXT4"  "ext4,xfs"
kubernetes.io/fsType | not a filesystem of this driver |  "-o"  "../../bin/sh"  "nfs"  "fuse.sshfs"
// Sizes.
size | reading option size |  "-1g"  "+100%FREE"  "100%VG"  "1g --type=raid1"  "1e9g"  "0x10g"
size | size is 0 |  "0"
size | is not a string |  1073741824
// Thin pools.
thinpool | reading option thinpool |  "-pool"  "--wipesignatures=n"  "vg/pool"  "../pool"
// Mount options that would mount something else, elsewhere, or run something.
mountoptions | is refused |  "bind"  "rbind"  "noatime,remount"  "move"  "loop"
mountoptions | is refused |  "X-mount.mkdir=0777"  "helper=sh"  "device=/dev/sda"  "errors=panic"
mountoptions | both ro and rw |  "ro,rw"
mountoptions | neither spaces |  "noatime -o bind"  "noatime\nbind"  "a\\054bind"
mountoptions | nobody may set it |  "-o"  "=x"  "nosuchoption"  "NOATIME"  "x-systemd.automount"
// Options that make Linux read something else than the volume's filesystem as it is, or that harm the node.
mountoptions | another superblock |  "sb=32768"  "noatime,sb=1"  "sb="
mountoptions | is refused |  "abort"  "debug"  "noload"  "norecovery"  "rescue=all"  "nouid32"
mountoptions | the whole node |  "warn_on_error"  "fatal_errors=panic"  "errors=panic"
mountoptions | only mount_options in config.toml may set it |  "context=system_u:object_r:etc_t:s0"
mountoptions | its value must be |  "commit=soon"  "commit"  "subvol="  "allocsize=1t"
mountoptions | it takes no value |  "nosuid=recursive"  "ro=vfs"
// kubelet's own keys, which the options of a manifest replace.
kubernetes.io/readwrite | must be ro or rw |  "rw,exec"  "RO"
kubernetes.io/readwrite | is not a string |  true
kubernetes.io/pvOrVolumeName | is not a name to Kubernetes |  "../../etc"  "a\nb"
// Nearly a known name, so that it would be left out in silence.
volumegroup\u0000 | did you mean volumegroup |  "other"
VolumeID | did you mean volumeID |  "other"
mount_options | did you mean mountoptions |  "bind"
Size | did you mean size |  "1g"
"#;

/// [`REFUSED`] one by one: option, value, words of the reason.
pub fn refused() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = REFUSED.lines().filter(|line| line.contains(" |  "));
    lines.flat_map(|line| {
        let (head, values) = line.split_once(" |  ").unwrap();
        let (option, reason) = head.split_once(" | ").unwrap();
        values.split("  ").map(move |value| (option, value, reason))
    })
}

/// An option and its value, which mean nothing bad: the call goes on, with checked words.
pub const HARMLESS: &[(&str, &str)] = &[
    ("volumeID", r#""a+b_c.d-e""#),
    ("volumeID", r#""data--force""#),
    ("volumeID", r#""new-f""#),
    ("volumeID", r#""mapper""#),
    ("kubernetes.io/fsType", r#""""#),
    ("kubernetes.io/pod.uid", r#""--help; reboot\n""#),
    ("kubernetes.io/serviceAccount.name", r#""$(reboot)""#),
    ("kubernetes.io/mounterArgs.FsGroup", r#""-1 -R /""#),
    ("kubernetes.io/unknown", r#""--yes""#),
    ("example.com/--config", r#""--config""#),
    ("--config", r#""global{}""#),
    ("lvcreate_options", r#""--type=raid1""#),
    ("mkfs_options", r#""-F""#),
    ("node_name", r#""other\u0000""#),
    ("tool_dirs", r#""/tmp""#),
    ("", r#""--""#),
];

/// Every call-out that takes arguments.
pub const NAMES: &str = "attach detach waitforattach isattached mountdevice unmountdevice mount \
    unmount expandfs expandvolume";

/// Whole documents that are no options, and words of the reason.
#[rustfmt::skip] // a row is a line
pub const DOCUMENTS: &[(&str, &str)] = &[
    ("", "not a JSON object"),
    ("null", "not a JSON object"),
    ("--help", "not a JSON object"),
    ("{", "not valid JSON"),
    ("{}", "volumegroup is missing"),
    (r#"{"volumegroup":"vg","volumeID":"data"} {"volumeID":"x"}"#, "not valid JSON"),
    (r#"{"volumegroup":"vg","volumeID":"data"}; reboot"#, "not valid JSON"),
    (r#"{"volumegroup":"vg","volumeID":"data",}"#, "not valid JSON"),
    (r#"{"volumegroup":"vg","volumeID":["data"]}"#, "is not a string"),
    (r#"{"volumegroup":"vg","volumeID":null}"#, "is not a string"),
    ("{\"volumegroup\":\"vg\",\"volumeID\":\"a\tb\"}", "not valid JSON"),
    (r#"{"volumegroup":"vg","volumeID":"d","kubernetes.io/readwrite":"ro","mountoptions":"noatime,rw"}"#, "holds rw"),
    (r#"{"volumegroup":"vg","volumeID":"d","kubernetes.io/readwrite":"ro","mountoptions":",,rw,,"}"#, "holds rw"),
];

/// Words in the place of a directory.
#[rustfmt::skip]
pub const DIRECTORIES: &[&str] = &[
    "", "/", "//", ".", "relative", "-o", "/a/../etc", "/a/./b", "/..", "/a\nb", "/a\u{1b}b", "{}",
];

/// Words in the place of a device.
#[rustfmt::skip]
pub const DEVICES: &[&str] = &[
    "relative", "/etc/passwd", "/dev/../etc/passwd", "/dev/mapper/../sda", "/dev/a\nb",
    "LABEL=x", "UUID=0", "/proc/self/mem", "//dev/sda", "none", "{}",
];
