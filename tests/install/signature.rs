//! A release's signature: the commands that RELEASE.md and Start print, with a key of the test's own.

use std::fs;
use std::process::Command;

use crate::plugin_dir::file;
use crate::support::needs;
use tempfile::TempDir;

/// The line of a page that begins so.
fn printed(page: &str, begin: &str) -> String {
    let text = fs::read_to_string(file(page)).unwrap();
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with(begin));
    line.unwrap_or_else(|| panic!("{page}: {begin}")).to_owned()
}

#[test]
fn what_is_signed_is_verified_by_the_lines_that_the_pages_print() {
    needs!("openssh-client", "ssh-keygen");
    let dir = TempDir::new().unwrap();
    let runs = |line: &str| {
        let mut shell = Command::new("sh");
        let status = shell.args(["-euc", line]).current_dir(&dir).output();
        status.unwrap().status.success()
    };
    let verify = printed("docs/start.md", "ssh-keygen -Y verify");
    let check = printed("docs/start.md", "sha256sum --check");
    assert!(runs(
        "ssh-keygen -q -t ed25519 -N '' -f KEY; ssh-keygen -q -t ed25519 -N '' -f OTHER
        echo content > flexvolume-lvm.deb; sha256sum flexvolume-lvm.deb > SHA256SUMS
        echo \"release namespaces=\\\"flexvolume-lvm\\\" $(cut -d ' ' -f 1,2 KEY.pub)\" > allowed_signers"
    ));
    assert!(runs(&printed("install/RELEASE.md", "ssh-keygen -Y sign")));
    assert!(runs(&verify) && runs(&check));
    // Another file, another list, another key.
    assert!(runs("echo other > flexvolume-lvm.deb") && runs(&verify) && !runs(&check));
    assert!(runs("sha256sum flexvolume-lvm.deb > SHA256SUMS") && !runs(&verify) && runs(&check));
    let with_other = "rm SHA256SUMS.sig; ssh-keygen -Y sign -n flexvolume-lvm -f OTHER SHA256SUMS";
    assert!(runs(with_other) && !runs(&verify));
}
