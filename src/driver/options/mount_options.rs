//! Mount options that a volume may carry.
//!
//! They reach mount(8) as one value of `-o`. Options that would mount something else than this volume,
//! or in another way than the driver assumes, are refused.

use anyhow::{Result, bail};

/// The kernel takes one page of them: mount(2) "data".
const LONGEST: usize = 4000;

/// Options that are refused, with the reason. Names with `=` at their end stand for any value.
///
/// Source: mount(8) "FILESYSTEM-INDEPENDENT MOUNT OPTIONS", "FILESYSTEM-SPECIFIC MOUNT OPTIONS",
/// "LOOP-DEVICE SUPPORT", "DM-VERITY SUPPORT"; ext4(5), xfs(5), btrfs(5).
#[rustfmt::skip] // a row is a line
const REFUSED: [(&str, &str); 8] = [
    ("bind rbind move remount", "it asks for another operation than mounting the volume"),
    ("shared rshared slave rslave private rprivate unbindable runbindable", "kubelet decides how mounts propagate (mountPropagation of the container)"),
    ("loop loop= offset= sizelimit= encryption encryption=", "it would mount a loop device, not the volume"),
    ("source= device= logdev= rtdev= journal_dev= journal_path=", "it names another device than the volume's"),
    ("helper= uhelper=", "it names a program that mount or umount would run"),
    ("user user= users nouser nousers owner noowner group nogroup", "it is about who may mount, and only kubelet does"),
    ("nofail", "a mount that failed would look like one that did not"),
    ("errors=panic fatal_errors=panic fatal_errors=bug", "an error in this volume would stop the whole node"),
];

/// Options by which a node restricts files, and the options that would take them back. Source:
/// mount(8) "FILESYSTEM-INDEPENDENT MOUNT OPTIONS".
const FINAL: [(&str, &str); 4] = [
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("nosymfollow", "symfollow"),
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountOptions(Vec<String>);

impl MountOptions {
    /// Parses a list as mount(8) takes after `-o`. An empty text is an empty list.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > LONGEST {
            bail!("mount options longer than {LONGEST} characters");
        }
        // Quotes and backslashes would let a comma mean something else to mount(8) than here.
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
            if let Some(reason) = why_refused(option) {
                bail!("mount option {option:?} is refused: {reason}; leave it out");
            }
        }
        let options = Self(options);
        if options.is_read_only() && options.is_read_write() {
            bail!("mount options hold both ro and rw; leave one out");
        }
        Ok(options)
    }

    pub fn read_only() -> Self {
        Self(vec!["ro".to_owned()])
    }

    pub fn is_read_only(&self) -> bool {
        self.0.iter().any(|option| option == "ro")
    }

    pub fn is_read_write(&self) -> bool {
        self.0.iter().any(|option| option == "rw")
    }

    /// Joins these and `other`, which wins as the later one does in mount(8). Only `ro` is final, on
    /// whichever side it is.
    pub fn and(&self, other: &Self) -> Self {
        let read_only = self.is_read_only() || other.is_read_only();
        let mut all: Vec<String> = Vec::new();
        for option in self.0.iter().chain(&other.0) {
            let is_repeated = matches!(option.as_str(), "ro" | "rw") && all.contains(option);
            let is_overruled = read_only && option == "rw";
            if !(is_repeated || is_overruled) {
                all.push(option.clone());
            }
        }
        Self(all)
    }

    /// Joins these, the node's, and a pod's, which win except against `ro` and [`FINAL`]. Also returns the
    /// pod's options that were dropped for that.
    pub fn and_of_pod(&self, pod: &Self) -> (Self, Vec<String>) {
        let kept = FINAL.iter().filter(|(no, yes)| {
            let mut last_first = self.0.iter().rev().map(|option| name_of(option));
            last_first.find(|name| name == no || name == yes).as_deref() == Some(no)
        });
        let (no, yes): (Vec<&str>, Vec<&str>) = kept.copied().unzip();
        let is_one_of = |names: &[&str], option: &str| names.contains(&&*name_of(option));
        let (overruled, pods): (Vec<String>, Vec<String>) =
            (pod.0.iter().cloned()).partition(|option| is_one_of(&yes, option));
        let mut all = self.and(&Self(pods));
        // At the end, so that no word that stands for several, such as `defaults`, comes after them.
        all.0
            .retain(|option| !is_one_of(&no, option) && !is_one_of(&yes, option));
        all.0.extend(no.into_iter().map(str::to_owned));
        (all, overruled)
    }

    /// All but `ro`, as one value of `-o`. `None` if there are none.
    pub fn without_read_only(mut self) -> Option<String> {
        self.0.retain(|option| option != "ro");
        self.joined()
    }

    /// As one value of `-o`. `None` if there are no options.
    pub fn joined(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(","))
    }
}

/// The name of an option that may have a value: since util-linux 2.39 `suid=vfs` is `suid` too.
fn name_of(option: &str) -> String {
    let name = option.split('=').next().unwrap_or_default();
    name.to_ascii_lowercase()
}

fn why_refused(option: &str) -> Option<&'static str> {
    let option = option.to_ascii_lowercase();
    if option.starts_with("x-") || option.starts_with("verity.") {
        return Some("it is an instruction to mount or systemd, not to the filesystem");
    }
    if option.starts_with("ro=") || option.starts_with("rw=") {
        return Some("write ro or rw alone");
    }
    if option.starts_with(['-', '=']) {
        return Some("it has no name");
    }
    let fits = |name: &str| name == option || (name.ends_with('=') && option.starts_with(name));
    REFUSED
        .iter()
        .find(|(names, _)| names.split(' ').any(fits))
        .map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_is_about_the_filesystem() {
        let cases = [
            ("", None),
            (",", None),
            ("noatime", Some("noatime")),
            ("noatime,,discard,", Some("noatime,discard")),
            (
                "subvol=a/b,compress=zstd:3",
                Some("subvol=a/b,compress=zstd:3"),
            ),
            (
                "ro,journal_checksum,data=journal",
                Some("ro,journal_checksum,data=journal"),
            ),
            ("errors=remount-ro", Some("errors=remount-ro")),
            ("grpid,usrquota,logbufs=8", Some("grpid,usrquota,logbufs=8")),
        ];
        for (text, want) in cases {
            let options = MountOptions::parse(text).unwrap();
            assert_eq!(options.joined().as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn refuses_what_would_mount_something_else() {
        let refused = "bind rbind move remount shared rshared slave private rprivate unbindable \
            loop loop=/dev/loop0 offset=4096 sizelimit=1 encryption=aes source=/dev/sda device=/dev/sda \
            logdev=/dev/sda rtdev=/dev/sda journal_dev=0x801 journal_path=/dev/sda helper=x \
            uhelper=udisks2 user user=root users nouser owner group nofail x-systemd.automount \
            X-mount.mkdir X-mount.idmap=b x-gvfs-show verity.roothash=00 errors=panic \
            fatal_errors=panic fatal_errors=bug BIND ro,rw rw,ro noatime,bind ro=vfs =x -o";
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
        for text in refused.split_whitespace().chain(with_spaces) {
            assert!(MountOptions::parse(text).is_err(), "{text:?}");
        }
        assert!(MountOptions::parse(&"a".repeat(LONGEST)).is_ok());
        assert!(MountOptions::parse(&"a".repeat(LONGEST + 1)).is_err());
    }

    #[test]
    fn an_error_names_the_option_and_the_reason() {
        let error = MountOptions::parse("noatime,bind").unwrap_err().to_string();
        assert_eq!(
            error,
            r#"mount option "bind" is refused: it asks for another operation than mounting the volume; leave it out"#
        );
    }

    #[test]
    fn what_comes_later_wins_but_read_only_stays() {
        let cases = [
            ("", "", None),
            ("noatime", "discard", Some("noatime,discard")),
            ("noatime", "relatime", Some("noatime,relatime")),
            ("ro", "rw", Some("ro")),
            ("rw,noatime", "ro", Some("noatime,ro")),
            ("ro", "ro", Some("ro")),
            ("rw", "rw", Some("rw")),
        ];
        for (first, second, want) in cases {
            let [a, b] = [first, second].map(|text| MountOptions::parse(text).unwrap());
            assert_eq!(a.and(&b).joined().as_deref(), want, "{first:?} {second:?}");
        }
    }

    #[test]
    #[rustfmt::skip] // a row is a line
    fn what_the_node_keeps_from_pods_is_final() {
        let cases = [
            ("", "", None, ""),
            ("noatime", "suid,relatime", Some("noatime,suid,relatime"), ""),
            ("nosuid", "noatime", Some("noatime,nosuid"), ""),
            ("nosuid,nodev,noexec,nosymfollow", "suid,dev,exec,symfollow", Some("nosuid,nodev,noexec,nosymfollow"), "suid,dev,exec,symfollow"),
            ("nosuid", "SUID,Suid", Some("nosuid"), "SUID,Suid"),
            ("nosuid", "nosuid,suid,noatime,suid", Some("noatime,nosuid"), "suid,suid"),
            ("nosuid", "suid=vfs,suid=recursive", Some("nosuid"), "suid=vfs,suid=recursive"),
            ("nosuid", "nosuid=fs", Some("nosuid"), ""),
            ("nosuid=recursive", "suid", Some("nosuid"), "suid"),
            ("nosuid,noatime", "defaults", Some("noatime,defaults,nosuid"), ""),
            ("nosuid", "exec,suiddir", Some("exec,suiddir,nosuid"), ""),
            ("nosuid,suid", "noexec", Some("nosuid,suid,noexec"), ""),
            ("suid,nosuid", "suid", Some("nosuid"), "suid"),
            ("noexec", "rw,exec,ro", Some("ro,noexec"), "exec"),
        ];
        for (node, pod, want, overruled) in cases {
            // Not parsed: what `parse` refuses must not undo it either.
            let [a, b] = [node, pod].map(|text| MountOptions(text.split_terminator(',').map(str::to_owned).collect()));
            let (all, left_out) = a.and_of_pod(&b);
            assert_eq!((all.joined().as_deref(), left_out.join(",")), (want, overruled.to_owned()), "{node:?} {pod:?}");
        }
    }
}
