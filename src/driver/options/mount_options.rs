//! Mount options that a volume may carry: those that [`allowed`](super::allowed) has.

use anyhow::{Result, bail};

use super::allowed::Who::{self, Node, Pod};
use super::allowed::may_set;
use crate::names::quoted;

/// The kernel takes one page of them: mount(2) "data".
const LONGEST: usize = 4000;

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
    /// Parses what a pod sets, as mount(8) takes it after `-o`. An empty text is an empty list.
    pub fn of_pod(text: &str) -> Result<Self> {
        Self::parse(text, Pod)
    }

    /// Parses what the node's config sets, or the driver itself.
    pub fn of_node(text: &str) -> Result<Self> {
        Self::parse(text, Node)
    }

    fn parse(text: &str, by: Who) -> Result<Self> {
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
            if let Err(reason) = may_set(by, option) {
                bail!("mount option {} is refused: {reason}", quoted(option));
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

    /// Adds `other` to these options. As in mount(8), the later option wins.
    pub fn and(&self, other: &Self) -> Self {
        Self([&*self.0, &*other.0].concat())
    }

    /// The options of [`FINAL`] among these of the node: they restrict each mount.
    pub fn finals(&self) -> impl Iterator<Item = &'static str> {
        let kept = FINAL.iter().filter(|(no, yes)| {
            let mut last_first = self.0.iter().rev();
            last_first
                .find(|option| option == no || option == yes)
                .is_some_and(|last| last == no)
        });
        kept.map(|(no, _)| *no)
    }

    /// Adds a pod's options to the node's (`self`). The pod's win, but not over `ro` and [`FINAL`]: also returns
    /// those that lost.
    pub fn and_of_pod(&self, pod: &Self) -> (Self, Vec<String>) {
        let no: Vec<&str> = self.finals().collect();
        let is_taking_back = |option: &String| {
            let mut kept = FINAL.iter().filter(|(name, _)| no.contains(name));
            kept.any(|(_, yes)| option == yes)
        };
        let (overruled, pods): (Vec<String>, Vec<String>) =
            pod.0.iter().cloned().partition(is_taking_back);
        let mut all = self.and(&Self(pods));
        // At the end, so that no word that stands for several, such as `defaults`, comes after them.
        all.0
            .retain(|option| !no.contains(&option.as_str()) && !is_taking_back(option));
        all.0.extend(no.iter().map(|option| (*option).to_owned()));
        (all, overruled)
    }

    /// As one value of `-o`. `None` if there are no options.
    pub fn joined(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(","))
    }
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
}
