//! Checks that nobody but root could have written a file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::getxattr;

use crate::names::Shown;

const ACL: &str = "system.posix_acl_access";

/// Checks the directory of a file, and the directory of each link that leads to the file: a user who can write there
/// can replace the file.
pub(super) fn require_roots_on_the_way(file: &Path) -> Result<(), String> {
    /// The kernel follows at most so many links: `path_resolution(7)`.
    const MOST_LINKS: usize = 40;
    let mut file = file.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(dir) = file.parent().map(Path::to_owned) else {
            break;
        };
        // A name without a directory is relative to the current one.
        let is_here = dir.as_os_str().is_empty();
        require_roots(if is_here { Path::new(".") } else { &dir })?;
        let Ok(target) = fs::read_link(&file) else {
            break;
        };
        // In a sticky directory like /tmp, other users may add links.
        if fs::symlink_metadata(&file).is_ok_and(|link| link.uid() != 0) {
            let shown = file.shown();
            return Err(format!(
                "{shown} is a symbolic link that root did not make; remove it"
            ));
        }
        file = dir.join(target);
    }
    Ok(())
}

/// Fails if anybody but root could read, change or replace this file. Fails also if it is no regular file, is empty, or
/// has more than `most` bytes.
pub fn require_secret(file: &Path, most: usize) -> Result<(), String> {
    const OTHERS: u32 = 0o077;
    require_roots_to_run(file)?;
    let metadata = fs::metadata(file).map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.len() == 0 {
        return Err("it is empty".to_owned());
    }
    if metadata.len() > most as u64 {
        return Err(format!("it is longer than {} KiB", most >> 10));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(format!(
            "others than root may read it (mode {mode:04o}); run `chmod 600 {}`",
            file.quoted()
        ));
    }
    Ok(())
}

/// Fails if anybody but root could change or replace this executable.
pub fn require_roots_to_run(file: &Path) -> Result<(), String> {
    require_roots_on_the_way(file)?;
    require_roots(file)
}

/// Whether a file has an access control list, which may give permissions to other users. None of these users has more
/// permissions than the file's mode gives to the group. Source: acl(5).
fn has_acl(path: &Path) -> bool {
    getxattr(path, ACL, &mut [0_u8; 0]).is_ok()
}

/// Fails if anybody but root could change this file or directory.
pub fn require_roots(path: &Path) -> Result<(), String> {
    const GROUP_WRITES: u32 = 0o020;
    const OTHERS_WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let metadata =
        fs::metadata(path).map_err(|e| format!("{} cannot be looked at: {e}", path.shown()))?;
    let (uid, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if uid != 0 {
        let shown = path.shown();
        return Err(format!(
            "{shown} belongs to user {uid}, and root relies on it; run `chown root {}`",
            path.quoted()
        ));
    }
    // In a sticky directory, such as /tmp, others may add files, but not change or replace root's.
    if metadata.is_dir() && mode & STICKY != 0 {
        return Ok(());
    }
    let group_writes = mode & GROUP_WRITES != 0 && (metadata.gid() != 0 || has_acl(path));
    if group_writes || mode & OTHERS_WRITE != 0 {
        let shown = path.shown();
        return Err(format!(
            "{shown} can be written by others than root (mode {mode:04o}), and root relies on it; run \
             `chmod go-w {}`",
            path.quoted()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nix::unistd::geteuid;
    use rustix::fs::{XattrFlags, setxattr};

    use super::*;

    #[test]
    fn a_list_by_which_another_user_may_write_is_seen() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let is_refused = || require_roots(file.path()).is_err();
        assert_eq!(
            (has_acl(file.path()), is_refused()),
            (false, !geteuid().is_root())
        );
        // Version 2; then kind, permissions and user of each entry. Source: Linux'
        // include/uapi/linux/posix_acl_xattr.h.
        let entries = [
            (1, 6, u32::MAX),
            (2, 6, 65534),
            (4, 4, u32::MAX),
            (16, 6, u32::MAX),
            (32, 4, u32::MAX),
        ];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (kind, permissions, user) in entries {
            list.extend([kind, 0, permissions, 0]);
            list.extend(user.to_le_bytes());
        }
        setxattr(file.path(), ACL, &list, XattrFlags::empty()).unwrap();
        assert_eq!((has_acl(file.path()), is_refused()), (true, true));
    }
}
