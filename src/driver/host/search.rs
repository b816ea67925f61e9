//! Looks for a tool in the directories of the config, and nowhere else.

use super::trust::require_roots_to_run;
use super::{ToolError, selinux};
use crate::names::Shown;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{env, fs, io};
use which::WhichConfig;
use which::sys::Sys;

/// The first executable of this name in `directories` that only root can change.
pub fn find(tool: &str, directories: &[PathBuf]) -> Result<PathBuf, ToolError> {
    let all = env::join_paths(directories).unwrap_or_default();
    let found = WhichConfig::new_with_sys(Directories)
        .binary_name(tool.into())
        .custom_path_list(all.clone())
        .all_results();
    let mut distrust = None;
    for file in found.into_iter().flatten() {
        match require_roots_to_run(&file) {
            Ok(()) => return Ok(file),
            Err(problem) => distrust = distrust.or(Some(problem)),
        }
    }
    let problem = distrust.or_else(|| denied(tool, directories));
    let tool = tool.to_owned();
    Err(match problem {
        Some(problem) => ToolError::Distrusted { tool, problem },
        None => ToolError::Missing {
            tool,
            directories: all.to_string_lossy().into_owned(),
        },
    })
}

/// Why a tool that exists may not be run. The crate `which` takes such a tool for missing.
fn denied(tool: &str, directories: &[PathBuf]) -> Option<String> {
    let mut files = directories.iter().map(|dir| dir.join(tool));
    let file = files.find(|file| access(file, AccessFlags::X_OK) == Err(Errno::EACCES))?;
    Some(format!(
        "{} may not be run: Permission denied{}",
        file.shown(),
        selinux::hint()
    ))
}

/// The system as `which` sees it: without working directory, home and environment, so that none of these steers the
/// search. To find a home, glibc would also read its user database, for which a static executable would load libraries
/// of the node.
struct Directories;

impl Sys for Directories {
    type ReadDirEntry = fs::DirEntry;
    type Metadata = fs::Metadata;

    fn is_windows(&self) -> bool {
        false
    }

    fn current_dir(&self) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn home_dir(&self) -> Option<PathBuf> {
        None
    }

    fn env_split_paths(&self, paths: &OsStr) -> Vec<PathBuf> {
        env::split_paths(paths).collect()
    }

    fn env_path(&self) -> Option<OsString> {
        None
    }

    fn env_path_ext(&self) -> Option<OsString> {
        None
    }

    fn metadata(&self, path: &Path) -> io::Result<fs::Metadata> {
        fs::metadata(path)
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<fs::Metadata> {
        fs::symlink_metadata(path)
    }

    /// `which` calls this only on Windows.
    fn read_dir(&self, _: &Path) -> io::Result<Box<dyn Iterator<Item = io::Result<fs::DirEntry>>>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_valid_executable(&self, path: &Path) -> io::Result<bool> {
        Ok(access(path, AccessFlags::X_OK).is_ok())
    }
}
