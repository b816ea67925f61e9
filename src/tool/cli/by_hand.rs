//! A call-out as a person writes it, with words that kubelet never writes: `-o key=value` in place of JSON, `@file` and
//! `-` in place of a long argument, `--verbose`.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use driver::calls::{self, VERBOSE};
use driver::host::Kernel;
use driver::options::by_hand;

const OPTIONS: &str = "\
<options> is JSON as kubelet writes it, @FILE or - (standard input) with that
JSON, or by hand:
  -o volumegroup=VG -o volumeID=LV [-o fsType=ext4] [-o readwrite=ro]
  [-o KEY=VALUE]...

";
const STEPS: &str = "--verbose tells each step, its command and its time on standard error.\n";

/// A text for people that lists all call-outs and explains how to make one.
pub fn call_outs() -> String {
    let calls =
        calls::ALL.map(|(name, usage)| format!("  {}\n", format!("{name} {usage}").trim_end()));
    format!(
        "Call-outs, as kubelet makes them (each answers with one JSON document):\n{}\n{OPTIONS}{STEPS}",
        calls.concat()
    )
}

/// Whether the call-out mounts, unmounts or changes a volume.
pub fn needs_root(words: &[OsString]) -> bool {
    let name = words.first().and_then(calls::named);
    name.is_some_and(|(name, _)| name.contains("mount") || name.starts_with("expand"))
}

/// Translates a person's call-out into kubelet's words. Words of kubelet's form are not changed.
pub fn translated(kernel: &Kernel, words: &[OsString]) -> Result<Vec<OsString>> {
    let mut call = Vec::new();
    let mut options = Map::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let bytes = word.as_encoded_bytes();
        if word == VERBOSE {
            continue;
        }
        if word == "-o" {
            let pair = rest.next().and_then(|pair| pair.to_str());
            let (key, value) = by_hand(pair.unwrap_or_default())?;
            options.insert(key, Value::from(value));
        } else if word == "-" {
            let mut text = String::new();
            // At most 1 MiB. A longer text would not fit on a command line either.
            let read = std::io::stdin().take(1 << 20).read_to_string(&mut text);
            read.context("reading standard input")?;
            call.push(text.trim().into());
        } else if let Some(file) = bytes.strip_prefix(b"@") {
            let file = String::from_utf8_lossy(file);
            let text = kernel
                .read_bytes(Path::new(&*file))
                .with_context(|| format!("reading {file}"))?;
            call.push(String::from_utf8_lossy(&text).trim().into());
        } else {
            call.push(word.clone());
        }
    }
    if options.is_empty() {
        return Ok(call);
    }
    if let Some((name, usage)) = words.first().and_then(calls::named) {
        let at = place_of_options(name, usage)?.min(call.len());
        call.insert(at, Value::from(options).to_string().into());
    }
    Ok(call)
}

/// At which place of its words a call-out has its options.
fn place_of_options(name: &str, usage: &str) -> Result<usize> {
    let mut arguments = usage.split('<').skip(1);
    let Some(at) = arguments.position(|word| word.starts_with("options")) else {
        bail!("{name} takes no options: leave out -o");
    };
    Ok(at.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::type_complexity)]
    fn options_by_hand_become_kubelets() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("options");
        std::fs::write(&file, "{\"a\":\"b\"}\n").unwrap();
        let file = format!("@{}", file.display());
        let both = r#"{"kubernetes.io/fsType":"xfs","volumeID":"a=b"}"#;
        let pairs = ["-o", "fsType=xfs", "-o", "volumeID=a=b"];
        let cases: [(&[&str], Result<&[&str], &str>); 9] = [
            (
                &["mount", "/x", "-o", "fsType=xfs", "-o", "volumeID=a=b"],
                Ok(&["mount", "/x", both]),
            ),
            (
                &[&["mount"], &pairs[..], &["/x"]].concat(),
                Ok(&["mount", "/x", both]),
            ),
            (
                &[&["attach", "n"], &pairs[..]].concat(),
                Ok(&["attach", both, "n"]),
            ),
            (
                &["mount", "/x", &file],
                Ok(&["mount", "/x", r#"{"a":"b"}"#]),
            ),
            (
                &["mount", "/x", "{}", "--verbose"],
                Ok(&["mount", "/x", "{}"]),
            ),
            (
                &["unmount", "/x", "-o", "a=b"],
                Err("unmount takes no options: leave out -o"),
            ),
            (&["mount", "/x", "-o", "a"], Err("KEY=VALUE")),
            (
                &["mount", "/x", "-o", "fstype=xfs"],
                Err("write -o fsType=TYPE"),
            ),
            (
                &["mount", "/x", "@/nonexistent"],
                Err("reading /nonexistent"),
            ),
        ];
        let kernel = Kernel::new().unwrap();
        for (words, want) in cases {
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            assert!(calls::is_by_hand(&words), "{words:?}");
            match (translated(&kernel, &words), want) {
                (Ok(call), Ok(want)) => assert_eq!(call, want, "{words:?}"),
                (Err(error), Err(want)) => {
                    assert!(format!("{error:#}").contains(want), "{words:?}: {error:#}");
                }
                (got, want) => panic!("{words:?}: {got:?}, not {want:?}"),
            }
        }
        for words in [["mount", "/x", "{\"a\":\"@-o\"}"], ["mount", "-o", "{}"]] {
            assert!(!calls::is_by_hand(&words.map(Into::into)), "{words:?}");
        }
    }
}
