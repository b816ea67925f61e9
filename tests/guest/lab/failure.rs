//! A failed case prints more than its panic: the driver's last calls with what each logged, LVM's volumes, and the
//! mounts. With KEEP=1 it then opens a shell, before anything of the case is removed.

use std::fs::{self, File};
use std::net::Shutdown;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Output};
use std::sync::{Mutex, Once};

use crate::support::reply::shown;

static CALLS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints the scene whenever a case panics from here on.
pub fn is_shown() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            hook(panic);
            show();
        }));
    });
}

/// Runs a call of the driver. Remembers the call with its answer and its log.
pub fn remembered(args: &[&str], run: impl FnOnce() -> Output) -> Output {
    // There is no journald in a guest, and a command that asks for the log is to find none. The log is read while the
    // call runs: the kernel keeps eleven lines, and dmeventd waits for room for the next one with LVM's locks.
    let log = UnixDatagram::bind("/dev/log").ok();
    let reader = log.as_ref().map(|log| {
        let log = log.try_clone().unwrap();
        std::thread::spawn(move || lines(&log))
    });
    let output = run();
    if let Some(log) = log {
        let _ = fs::remove_file("/dev/log");
        log.shutdown(Shutdown::Read).unwrap();
    }
    let mut call = format!("{}\n", shown(args));
    call.push_str(&String::from_utf8_lossy(&output.stdout));
    call.push_str(&String::from_utf8_lossy(&output.stderr));
    if let Some(reader) = reader {
        call.push_str(&reader.join().unwrap());
    }
    remember(call);
    output
}

/// What is logged until the socket is shut down.
fn lines(log: &UnixDatagram) -> String {
    let (mut lines, mut line) = (String::new(), [0; 4096]);
    while let Ok(length @ 1..) = log.recv(&mut line) {
        lines.push_str(&String::from_utf8_lossy(&line[..length]));
        lines.push('\n');
    }
    lines
}

fn remember(call: String) {
    let mut calls = CALLS.lock().unwrap();
    calls.push(call);
    let old = calls.len().saturating_sub(4);
    calls.drain(..old);
}

fn show() {
    for call in CALLS.try_lock().iter().flat_map(|calls| calls.iter()) {
        println!("-- call: {call}");
    }
    // A volume that is suspended, or a disk that does not answer, holds these up.
    for line in [
        "lvs -a -o +lv_tags,lv_attr",
        "findmnt --list -o TARGET,SOURCE,FSTYPE,OPTIONS --types ext2,ext3,ext4,xfs,btrfs",
    ] {
        println!("-- {line}");
        let mut tool = Command::new("timeout");
        tool.arg("10").args(line.split(' '));
        match tool.output() {
            Ok(output) => println!("{}", String::from_utf8_lossy(&output.stdout)),
            Err(error) => println!("{error}"),
        }
    }
    if std::env::var_os("FLEXVOLUME_LVM_KEEP").is_some() {
        let terminal = || {
            File::options()
                .read(true)
                .write(true)
                .open("/dev/tty2")
                .unwrap()
        };
        let mut shell = Command::new("bash");
        shell.args(["--norc", "-c", KEPT]);
        shell
            .stdin(terminal())
            .stdout(terminal())
            .stderr(terminal());
        let _ = shell.status();
    }
}

/// A shell in which Control-C works.
const KEPT: &str = r#"echo "A case has failed: this is the guest, with its volumes. exit goes on."
exec setsid --ctty --wait env PS1='guest# ' bash --norc -i"#;
