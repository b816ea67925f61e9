use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc::{EPIPE, O_NONBLOCK};

/// More messages than this are not about one mount.
const MOST: usize = 10_000;

/// The kernel's own log from some moment on: a tool says that a system call failed, the kernel says
/// why. Without the right to read it, it is empty. Source: the kernel's
/// `Documentation/ABI/testing/dev-kmsg`.
pub struct KernelLog(Option<File>);

impl KernelLog {
    /// What is said from now on.
    pub fn from_now() -> Self {
        let mut options = File::options();
        let file = options
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open("/dev/kmsg");
        Self(
            file.ok()
                .filter(|mut file| file.seek(SeekFrom::End(0)).is_ok()),
        )
    }

    /// What was said of this device (`dm-3`), on one line.
    pub fn about(self, device: &str) -> String {
        let Some(mut file) = self.0 else {
            return String::new();
        };
        let mut said = Vec::new();
        let mut record = [0; 8192];
        for _ in 0..MOST {
            match file.read(&mut record) {
                Ok(length) => {
                    let text = String::from_utf8_lossy(record.get(..length).unwrap_or_default());
                    said.extend(message(&text, device).map(str::to_owned));
                }
                // Others said so much since that some of it is lost.
                Err(e) if e.raw_os_error() == Some(EPIPE) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        said.dedup();
        said.join("; ")
    }
}

/// The message of a record, if it is about this device.
fn message<'a>(record: &'a str, device: &str) -> Option<&'a str> {
    let (_, text) = record.split_once(';')?;
    let text = text.lines().next()?;
    let rest = text.split(device).skip(1);
    let mut ends = rest.map(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
    ends.any(|is_whole| is_whole).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_for_the_device_that_it_names() {
        let cases = [
            (
                "4,812,99,-;XFS (dm-3): bad\n SUBSYSTEM=block\n",
                Some("XFS (dm-3): bad"),
            ),
            (
                "4,812,99,-;BTRFS error (device dm-3 state E): x",
                Some("BTRFS error (device dm-3 state E): x"),
            ),
            ("4,812,99,-;XFS (dm-31): bad\n", None),
            ("4,812,99,-;other\n DEVICE=dm-3\n", None),
            ("XFS (dm-3)", None),
            ("", None),
        ];
        for (record, want) in cases {
            assert_eq!(message(record, "dm-3"), want, "{record:?}");
        }
    }
}
