//! Makes the directory that is to be a mount point.

use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::host::Kernel;
use crate::names::Shown;

/// Makes `dir` and its missing parents, as kubelet does before it calls.
pub fn make_dirs(kernel: &Kernel, dir: &Path) -> Result<()> {
    let made = kernel.make_dirs(dir);
    let is_file = matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
    // With a link, the mount would be at another place than kubelet thinks.
    if is_file || kernel.link(dir).is_ok() {
        bail!("{} is not a directory; remove it", dir.shown());
    }
    made.with_context(|| format!("making {}", dir.shown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_place_of_a_directory_is_named() {
        let top = tempfile::tempdir().unwrap();
        let kernel = Kernel::new().unwrap();
        let made = |name: &str| make_dirs(&kernel, &top.path().join(name));
        std::fs::write(top.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("/nowhere", top.path().join("link")).unwrap();
        for name in ["file", "link"] {
            let error = format!("{:#}", made(name).unwrap_err());
            assert!(error.ends_with("is not a directory; remove it"), "{error}");
        }
        assert!(made("a/b").is_ok() && made("a/b").is_ok());
    }
}
