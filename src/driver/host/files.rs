//! Reads files and directories, and makes them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use rustix::fs::{MemfdFlags, memfd_create};
use zeroize::Zeroizing;

use super::kernel::Kernel;
use super::paths::proc_file;

#[allow(clippy::unused_self)] // only a function with a `Kernel` can make these calls
impl Kernel {
    /// Reads a file of /proc or /sys, or a file of LVM's archive.
    pub fn read(&self, path: &Path) -> io::Result<String> {
        // Bytes that are not UTF-8 are replaced: one mount point with such a name must not hide the other mounts.
        if path.starts_with("/sys") {
            // One read gives a whole attribute. Source: Linux' Documentation/filesystems/sysfs.rst.
            let mut page = [0; 4096];
            let length = File::open(path)?.read(&mut page)?;
            let attribute = page.get(..length).unwrap_or_default();
            return Ok(String::from_utf8_lossy(attribute).into_owned());
        }
        Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
    }

    /// Reads at most 16 MiB of a file about another process in /proc, since that process may make the file long. Empty
    /// if there is no such process or file.
    pub fn read_of(&self, pid: u32, name: &str) -> String {
        const MOST: u64 = 16 << 20;
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(proc_file(pid, name)) {
            // A process may end at any time, so the bytes before an error are used.
            let _ = file.take(MOST).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads a file that a person writes. It must be a regular file of at most 1 MiB: a FIFO or a device could make the
    /// call wait.
    pub fn read_bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        at_most_a_mebibyte(open_regular(path)?)
    }

    /// Reads at most `most` + 1 bytes of a regular file. Only one copy of them is in memory, which is wiped when it is
    /// dropped.
    pub fn read_secret(&self, path: &Path, most: usize) -> io::Result<Zeroizing<Vec<u8>>> {
        let file = open_regular(path)?;
        // The buffer has its full size from the beginning: growing would leave copies of a secret in memory.
        let size = most.saturating_add(1);
        let mut bytes = Zeroizing::new(Vec::with_capacity(size));
        file.take(size as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the last `most` bytes of a regular file, or all of a shorter one.
    pub fn read_end(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut file = open_regular(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = fs::read_dir(dir)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// The names in a directory, one by one, since there may be any number. No names if the directory cannot be read.
    pub fn entries(&self, dir: &Path) -> impl Iterator<Item = String> + use<> {
        fs::read_dir(dir)
            .into_iter()
            .flatten()
            .map_while(io::Result::ok)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
    }

    pub fn link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    /// The path without links. Only for paths that always answer, such as kubelet's own directory.
    pub fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    /// A file without a name, for cryptsetup. The file vanishes when its last descriptor is closed. It is in /run/lvm,
    /// since SELinux lets cryptsetup read files there, but not files of `memfd_create(2)`. If LVM has not made that
    /// directory yet, `memfd_create` is used.
    pub(crate) fn unnamed_file(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options.custom_flags(OFlag::O_TMPFILE.bits());
        options.open("/run/lvm").or_else(|_| {
            let flags = MemfdFlags::CLOEXEC;
            // A node may allow only files that cannot be executed, which `NOEXEC_SEAL` makes. Kernels before 6.3 do not
            // know this flag. Source: the kernel's Documentation/userspace-api/mfd_noexec.rst.
            let file = match memfd_create("luks2-header", flags | MemfdFlags::NOEXEC_SEAL) {
                Err(rustix::io::Errno::INVAL) => memfd_create("luks2-header", flags),
                file => file,
            };
            Ok(file?.into())
        })
    }

    /// The release of the kernel, such as `6.12.3-amd64`. `None`: the kernel does not tell.
    pub fn release(&self) -> Option<String> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
        Some(release.trim_end().to_owned())
    }

    pub fn new_uuid(&self) -> io::Result<String> {
        let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        Ok(uuid.trim_end().to_owned())
    }

    pub fn exists(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok()
    }

    /// Makes a directory and its missing parents with mode 0750, as kubelet does.
    pub(crate) fn make_dirs(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o750).create(path)
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

/// Reads a person's text of at most 1 MiB.
pub fn at_most_a_mebibyte(from: impl Read) -> io::Result<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    from.take(MOST.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

/// Opens a regular file to read it: a FIFO may have no writer, and a device no end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}
