//! The kernel's log, which tells why a system call of a tool failed.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc::O_NONBLOCK;

use crate::names::folded;

/// The messages of the kernel's log from a certain moment on. A tool's message says that a system call failed; the
/// kernel's log says why. If the driver may not read the log, there are no messages. Source: the kernel's
/// `Documentation/ABI/testing/dev-kmsg`.
pub struct KernelLog(Option<File>);

impl KernelLog {
    pub fn from_now() -> Self {
        let mut options = File::options();
        let file = options.read(true).custom_flags(O_NONBLOCK);
        let at_end = |mut file: File| file.seek(SeekFrom::End(0)).is_ok().then_some(file);
        Self(file.open("/dev/kmsg").ok().and_then(at_end))
    }

    /// The messages about this device, such as `dm-3`, on one line of at most 2 KiB.
    pub fn about(self, device: &str) -> String {
        /// The most records that are read: more than one mount causes.
        const MOST: usize = 10_000;
        // Each read returns one record. After the last record, a read fails.
        let lines = self.0.into_iter().flat_map(|file| {
            let lines = BufReader::new(file).lines();
            lines.map_while(Result::ok).take(MOST)
        });
        let mut said: Vec<String> = lines.filter_map(|line| message(&line, device)).collect();
        said.dedup();
        folded(&said.join("; "))
    }
}

/// The message of a record, if it is about this device. Only the record's first line is its message.
fn message(record: &str, device: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    let rest = text.split(device).skip(1);
    let mut ends = rest.map(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
    ends.any(|is_whole| is_whole).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_for_the_device_that_it_names() {
        let cases = [
            ("4,812,99,-;XFS (dm-3): bad", Some("XFS (dm-3): bad")),
            (
                "4,812,99,-;BTRFS error (device dm-3 state E): x",
                Some("BTRFS error (device dm-3 state E): x"),
            ),
            ("4,812,99,-;XFS (dm-31): bad\n", None),
            (" DEVICE=dm-3", None),
            ("XFS (dm-3)", None),
            ("", None),
        ];
        for (record, want) in cases {
            assert_eq!(message(record, "dm-3").as_deref(), want, "{record:?}");
        }
    }
}
