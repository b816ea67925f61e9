//! The kernel's log, which tells why a system call of a tool failed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc::O_NONBLOCK;

use crate::names::{folded, folded_to};

/// The messages of the kernel's log from a certain moment on. A tool's message says that a system call failed; the
/// kernel's log says why. If the driver may not read the log, there are no messages. Source: the kernel's
/// `Documentation/ABI/testing/dev-kmsg`.
pub struct KernelLog(Option<File>);

impl KernelLog {
    pub fn from_now() -> Self {
        let at_end = |mut log: File| log.seek(SeekFrom::End(0)).is_ok().then_some(log);
        Self(open().and_then(at_end))
    }

    /// The messages about this device, such as `dm-3`, or about a mount of this type, such as `xfs`, on one line of at
    /// most 2 KiB. A mount option that the kernel does not know is no message about a device.
    pub fn about(self, device: &str, fs: &str) -> String {
        /// The most records that are read: more than one mount causes.
        const MOST: usize = 10_000;
        // Each read returns one record. After the last record, a read fails.
        let lines = self.0.into_iter().flat_map(|file| {
            let lines = BufReader::new(file).lines();
            lines.map_while(Result::ok).take(MOST)
        });
        let of_type = format!("{fs}: ");
        let mut said: Vec<String> = lines
            .filter_map(|line| message(&line, device, &of_type))
            .collect();
        said.dedup();
        folded(&said.join("; "))
    }
}

/// The kernel's log, from its beginning. `None`: the driver may not read it.
fn open() -> Option<File> {
    let mut options = File::options();
    let log = options.read(true).custom_flags(O_NONBLOCK);
    log.open("/dev/kmsg").ok()
}

/// The kernel's message that it killed a tool of this name for want of memory, in the last minute. `None`: it did not,
/// or its log cannot be read. Source: Linux' `mm/oom_kill.c`, `__oom_kill_process`.
pub fn out_of_memory(tool: &str) -> Option<String> {
    /// The longest name that the kernel keeps of a process: `TASK_COMM_LEN` less its NUL.
    const LONGEST: usize = 15;
    const RECENT: u64 = 60;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let now: u64 = uptime.split('.').next()?.parse().ok()?;
    let name = format!("({})", tool.get(..LONGEST).unwrap_or(tool));
    let lines = BufReader::new(open()?).lines().map_while(Result::ok);
    let said = lines.filter_map(|line| killed(&line, &name, now.saturating_sub(RECENT)));
    said.last().map(|said| folded_to(&said, 256))
}

/// The message of a record that says that the kernel killed a process of this name, `(e2fsck)`. `since`: in seconds
/// since the boot.
fn killed(record: &str, name: &str, since: u64) -> Option<String> {
    const MICROSECONDS: u64 = 1_000_000;
    let (head, text) = record.split_once(';')?;
    let at: u64 = head.split(',').nth(2)?.parse().ok()?;
    let is_it = text.contains("Killed process ") && text.contains(name);
    (is_it && at / MICROSECONDS >= since).then(|| text.to_owned())
}

/// The message of a record, if it is about this device, or begins with `of_type`. Only the record's first line is its
/// message.
fn message(record: &str, device: &str, of_type: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    if text.starts_with(of_type) {
        return Some(text.to_owned());
    }
    let rest = text.split(device).skip(1);
    let mut ends = rest.map(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
    ends.any(|is_whole| is_whole).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_process_is_found_by_its_name_and_the_time() {
        let text = "Memory cgroup out of memory: Killed process 77 (e2fsck) total-vm:4kB";
        let record = format!("3,900,61000000,-;{text}");
        let cases = [
            ("(e2fsck)", 61, Some(text)),
            ("(e2fsck)", 62, None),
            ("(mkfs.ext4)", 0, None),
        ];
        for (name, since, want) in cases {
            assert_eq!(
                killed(&record, name, since).as_deref(),
                want,
                "{name} {since}"
            );
        }
        assert_eq!(
            killed("3,900,61000000,-;e2fsck (e2fsck): hello", "(e2fsck)", 0),
            None
        );
    }

    #[test]
    fn a_message_counts_for_the_device_that_it_names() {
        let cases = [
            ("4,812,99,-;XFS (dm-3): bad", Some("XFS (dm-3): bad")),
            (
                "4,812,99,-;BTRFS error (device dm-3 state E): x",
                Some("BTRFS error (device dm-3 state E): x"),
            ),
            ("4,812,99,-;XFS (dm-31): bad\n", None),
            (
                "3,813,99,-;xfs: Unknown parameter 'barrier'",
                Some("xfs: Unknown parameter 'barrier'"),
            ),
            (" DEVICE=dm-3", None),
            ("XFS (dm-3)", None),
            ("", None),
        ];
        for (record, want) in cases {
            assert_eq!(
                message(record, "dm-3", "xfs: ").as_deref(),
                want,
                "{record:?}"
            );
        }
    }
}
