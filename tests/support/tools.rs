//! Which tools this machine has.

use std::io::Write as _;
use std::path::PathBuf;

/// Whether all these tools are on this machine. Inside tests/run.sh, which installs them, they have to be.
pub fn is_here(package: &str, tools: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_there = |tool: &&str| dirs.iter().any(|dir| dir.join(tool).exists());
    tools.iter().all(is_there) || skipped(&format!("{package} (apt install {package})"))
}

/// Prints what this test needs and does not have. Returns `false`. Inside tests/run.sh the test fails instead.
pub fn skipped(needs: &str) -> bool {
    let said = format!("skipped: needs {needs}");
    assert!(std::env::var_os("FLEXVOLUME_LVM_ALL").is_none(), "{said}");
    let test = std::thread::current();
    // libtest hides what a test that passes prints.
    let _ = writeln!(
        std::io::stderr(),
        "{}: {said}",
        test.name().unwrap_or_default()
    );
    false
}
