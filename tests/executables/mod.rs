//! Programs that tests make and run.

use std::path::Path;

/// Makes an executable file. Another process writes it: if this one did, a test that forks at that
/// moment would keep the file open for writing for a while, and nobody could run it ("Text file
/// busy").
pub fn put(file: &Path, content: impl Into<Vec<u8>>) {
    assert_cmd::Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(file)
        .write_stdin(content)
        .assert()
        .success();
}
