//! Says whether SELinux may have caused a failure. Copies the labels of files.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, getxattr, setxattr};

const LABEL: &str = "security.selinux";

pub fn is_enforcing() -> bool {
    match fs::read("/sys/fs/selinux/enforce") {
        Ok(mode) => mode == b"1",
        // Only an enforcing SELinux can keep root from reading this file.
        Err(e) => e.kind() == io::ErrorKind::PermissionDenied,
    }
}

/// Advice after the kernel said "Permission denied". Empty if SELinux is not enforcing.
pub fn hint() -> &'static str {
    if is_enforcing() {
        "; SELinux is enforcing: `ausearch -m avc -ts recent` shows what it denied"
    } else {
        ""
    }
}

/// The text of an error, with [`hint`] if the error is "Permission denied".
pub fn explained(error: &anyhow::Error) -> String {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    let is_denied = causes.any(|cause| cause.kind() == io::ErrorKind::PermissionDenied);
    format!("{error:#}{}", if is_denied { hint() } else { "" })
}

/// Gives `path` the label of `other`.
pub(super) fn label_as(path: &Path, other: &Path) -> io::Result<()> {
    let mut label = vec![0; 4096];
    let length = getxattr(other, LABEL, &mut label)?;
    label.truncate(length);
    Ok(setxattr(path, LABEL, &label, XattrFlags::empty())?)
}
