//! Reads the log: the journal, or the file that config.toml names.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Error, Result, bail};

use super::call::Call;
use driver::config::{Config, LogTarget};
use driver::host::trust::require_roots;
use driver::host::{Command, Host};
use driver::names::Shown;

/// At most this many lines of the journal, or bytes of a log file, are read. The oldest are left out.
const MOST_LINES: usize = 5000;
const MOST_BYTES: u64 = 8 << 20;

/// The fields of an entry that are read. With all fields, the entries of a long journal would exceed the limit of a
/// tool's output.
const FIELDS: &str = "FLEXVOLUME_CALL,FLEXVOLUME_VOLUME,FLEXVOLUME_POD,FLEXVOLUME_NAME,FLEXVOLUME_MOUNTOPTIONS,\
                      FLEXVOLUME_STEPS,FLEXVOLUME_TOOK_MS,FLEXVOLUME_OUTCOME,FLEXVOLUME_MESSAGE";

/// The calls since `oldest` (seconds since the epoch), the oldest first.
pub fn read(host: &Host, config: &Config, oldest: u64) -> Result<Vec<Call>> {
    let mut calls = match &config.log {
        LogTarget::None => bail!(
            "nothing is logged: {} says log = \"none\"; \"syslog\" would",
            config.file
        ),
        LogTarget::Syslog => of_journal(host, config, oldest)?,
        LogTarget::File(file) => {
            require_own(host, config, file)?;
            of_file(host, file)?
        }
    };
    calls.retain(|call| call.time >= oldest);
    Ok(calls)
}

fn of_journal(host: &Host, config: &Config, oldest: u64) -> Result<Vec<Call>> {
    let command = Command::journalctl(config.limits.query)
        .args(["--output=json", "--quiet", "--no-pager"])
        .args([format!("--output-fields={FIELDS}")])
        // Any user may write an entry with this identifier, and root may follow advice in it. So only root's entries
        // are read.
        .args(["--identifier=flexvolume-lvm", "_UID=0"])
        // The newest come first, so that the limit leaves out the oldest.
        .args(["--reverse", &format!("--lines={MOST_LINES}")])
        .args([format!("--since=@{oldest}")]);
    let help = if nix::unistd::geteuid().is_root() {
        "without one, look where the syslog daemon writes, such as /var/log/syslog, or set `log` in config.toml to a file"
    } else {
        "use sudo, or be in a group that may read it, such as systemd-journal"
    };
    let output = host
        .run(&command)
        .with_context(|| format!("asking the journal ({help})"))?;
    if output.stdout.is_empty() {
        require_a_journal(host, config)?;
    }
    let entries = output.stdout.rsplit(|byte| *byte == b'\n');
    Ok(entries.filter_map(Call::parse).collect())
}

fn require_a_journal(host: &Host, config: &Config) -> Result<()> {
    let is_there = |path: &&str| host.kernel.exists(Path::new(path));
    let help = if !is_there(&"/dev/log") {
        "start journald (`systemctl start systemd-journald.socket`)"
    } else if !["/run/log/journal", "/var/log/journal"]
        .iter()
        .any(is_there)
    {
        "look where its syslog daemon writes, such as /var/log/syslog"
    } else {
        return Ok(());
    };
    bail!(
        "there is no log, since this host keeps no journal: {help}, or set `log` in {} to a file",
        config.file
    );
}

/// Fails if the driver does not write to this log, since it follows no link there, or if others may write to it: root
/// may follow advice in an entry.
fn require_own(host: &Host, config: &Config, file: &Path) -> Result<()> {
    if host.kernel.link(file).is_ok() {
        bail!(
            "the driver does not write to {}, a symbolic link: name its target in `log` of {}",
            file.shown(),
            config.file
        );
    }
    if host.kernel.exists(file) {
        require_roots(file).map_err(Error::msg)?;
    }
    Ok(())
}

fn of_file(host: &Host, file: &Path) -> Result<Vec<Call>> {
    let bytes = match host.kernel.read_end(file, MOST_BYTES) {
        Ok(bytes) => bytes,
        // The driver's first call creates the file.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).with_context(|| format!("reading {}", file.shown())),
    };
    // A full disk may have cut an entry before its newline. Then the next entry is on the same line. No value contains
    // the beginning of an entry, since JSON escapes quotes.
    let text = String::from_utf8_lossy(&bytes).replace("{\"time\":\"", "\n{\"time\":\"");
    let lines = text.as_bytes().split(|byte| *byte == b'\n');
    Ok(lines.filter_map(Call::parse).collect())
}
