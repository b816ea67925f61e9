//! The executable that the tests run, as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;

use super::run;
use super::tools::skipped;

/// The executable of this build. If the clone belongs to another user, this is a copy in a directory of the present
/// user: the driver believes no config beside an executable that another user could replace.
pub fn driver() -> &'static Path {
    static DRIVER: OnceLock<PathBuf> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let built = assert_cmd::cargo::cargo_bin!("lvm");
        let user = nix::unistd::Uid::effective().as_raw();
        assert_eq!(
            user, 0,
            "the driver works for root only: run this test by cargo or tests/run.sh"
        );
        let is_own = |path: &Path| fs::metadata(path).unwrap().uid() == user;
        if is_own(built) && built.parent().is_some_and(is_own) {
            return built.to_owned();
        }
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("user-{user}"));
        fs::create_dir_all(&dir).unwrap();
        chown(&dir, Some(user), None).unwrap();
        let driver = dir.join("lvm");
        // Another test may be running the copy that is there. Another process writes this one: see `put`.
        let new = dir.join(process::id().to_string());
        let paths = [built, &new].map(|path| path.to_str().unwrap());
        run("cp", &paths);
        fs::rename(&new, &driver).unwrap();
        driver
    })
}

/// Whether the test runs as root of this machine, and not as root of the namespace that tests/runner makes for a user.
/// In the namespace there is no other user, and the files of the machine's root belong to nobody. Inside tests/run.sh,
/// which asks for root, the test fails if it does not run as root.
pub fn is_root_of_this_machine() -> bool {
    fs::metadata("/usr").unwrap().uid() == 0 || skipped("root (tests/run.sh host)")
}
