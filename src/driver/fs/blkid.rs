//! Asks blkid(8) what is on a device.

use anyhow::{Context, Result};

use crate::host::{Command, Host, Node, Output};
use crate::names::{Filesystem, Foreign, FsType, Shown};

/// blkid(8): "the specified token was not found, or no identification". blkid gives the same code if it cannot read the
/// device. Only the driver's own reading tells the two apart.
const NOTHING: i32 = 2;
/// blkid(8): "ambivalent low-level probing result".
const AMBIVALENT: i32 = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed {
    /// blkid finds nothing; the device may also be unreadable.
    Nothing,
    Filesystem(Filesystem),
    /// Other content: LUKS, a partition table, a RAID member, an unknown filesystem.
    Other(Foreign),
    Several,
}

/// Asks blkid what is on `device`. blkid probes the device for all kinds of content, and uses no cache.
pub fn probe(host: &Host, device: &Node) -> Result<Probed> {
    ask(host, device, &[])
}

/// Asks only which of the driver's filesystems is on `device`. blkid of util-linux 2.41 gives up at the first place
/// that it cannot read. If blkid looks only for these filesystems, it reads fewer places.
pub fn probe_filesystems(host: &Host, device: &Node) -> Result<Probed> {
    let types = FsType::ALL.map(FsType::as_str).join(",");
    ask(host, device, &["--match-types", &types])
}

fn ask(host: &Host, device: &Node, more: &[&str]) -> Result<Probed> {
    let command = Command::reads("blkid", host.limits.query)
        .args(["--probe", "--output", "export"])
        .args(more)
        .accept(&[0, NOTHING, AMBIVALENT])
        .device(device);
    let output = host
        .run(&command)
        .with_context(|| format!("probing {}", device.name.shown()))?;
    Ok(parse(&output))
}

/// Whether wipefs(8) lists several signatures. With `--no-act`, wipefs changes nothing. blkid is not enough: for
/// several signatures, blkid of util-linux 2.36 and 2.38 exits with 8, but blkid of 2.41 and 2.42 exits with 2, as if
/// there were none.
pub fn has_several(host: &Host, device: &Node) -> Result<bool> {
    let command = Command::reads("wipefs", host.limits.query)
        .args(["--no-act", "--noheadings", "--output", "TYPE"])
        .device(device);
    let output = host
        .run(&command)
        .with_context(|| format!("listing the signatures on {}", device.name.shown()))?;
    Ok(are_several(&output.text()))
}

fn are_several(types: &str) -> bool {
    let mut all = types.split_whitespace();
    // A second signature of the same type is a copy of the first, for example of a partition table.
    all.next()
        .is_some_and(|first| all.any(|next| next != first))
}

fn parse(output: &Output) -> Probed {
    let export = output.text();
    let (kind, table) = (value(&export, "TYPE"), value(&export, "PTTYPE"));
    match (output.code, kind, table) {
        (NOTHING, ..) => Probed::Nothing,
        (AMBIVALENT, ..) => Probed::Several,
        (_, Some(kind), _) => match FsType::parse(kind) {
            Ok(fs) => Probed::Filesystem(Filesystem {
                fs,
                uuid: value(&export, "UUID").unwrap_or_default().to_owned(),
            }),
            Err(_) => Probed::Other(kind.shown()),
        },
        (_, None, Some(table)) => Probed::Other(format!("a partition table ({table})").shown()),
        // blkid found content without a type. The device is not blank.
        (_, None, None) => Probed::Other("something that blkid cannot name".shown()),
    }
}

/// The value of a key in blkid's output for export.
fn value<'a>(export: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = export.lines().filter_map(|line| line.split_once('='));
    pairs.find_map(|(name, value)| (name == key).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_blkid_prints() {
        let other = |what: &str| Probed::Other(what.shown());
        let cases = [
            (
                "filesystem",
                "DEVNAME=/dev/x\nUUID=0b1c\nBLOCK_SIZE=1024\nTYPE=ext4\n",
                Probed::Filesystem(Filesystem {
                    fs: FsType::Ext4,
                    uuid: "0b1c".to_owned(),
                }),
            ),
            (
                "other",
                "DEVNAME=/dev/x\nUUID=1\nTYPE=crypto_LUKS\n",
                other("crypto_LUKS"),
            ),
            (
                "label that looks like a key",
                "LABEL=TYPE=xfs\nTYPE=swap\n",
                other("swap"),
            ),
            (
                "table",
                "PTUUID=1\nPTTYPE=gpt\n",
                other("a partition table (gpt)"),
            ),
            (
                "neither",
                "DEVNAME=/dev/x\n",
                other("something that blkid cannot name"),
            ),
        ];
        for (name, stdout, want) in cases {
            let output = Output {
                stdout: stdout.into(),
                ..Output::default()
            };
            assert_eq!(parse(&output), want, "{name}");
        }
        for (code, want) in [(NOTHING, Probed::Nothing), (AMBIVALENT, Probed::Several)] {
            let output = Output {
                code,
                ..Output::default()
            };
            assert_eq!(parse(&output), want, "{code}");
        }
        for (types, want) in [("", false), ("gpt\ngpt\n", false), ("gpt\next4\n", true)] {
            assert_eq!(are_several(types), want, "{types:?}");
        }
    }
}
