//! `flexvolume-lvm install` and `flexvolume-lvm doctor` beside a kubelet that runs on the host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::plugin_dir::{PluginDir, driver};
use crate::support::eventually;

/// A process that is called kubelet, and runs until it is dropped. It has a child that is about to become another
/// program, as kubelet has one for each call of a driver.
struct Kubelet(Child);

impl Kubelet {
    fn running(node: &PluginDir, args: &[&str]) -> Self {
        Self::run_by(&[], node, args)
    }

    /// Runs it by a program, whose words stand before its command line.
    fn run_by(words: &[&str], node: &PluginDir, args: &[&str]) -> Self {
        let program = Self::compile(node);
        let line = [words, &[program.to_str().unwrap()], args].concat();
        let running = Command::new(line[0]).args(&line[1..]).spawn().unwrap();
        // Between fork and exec it is not called kubelet yet.
        eventually("kubelet runs", || is_called_kubelet(&program));
        Self(running)
    }

    fn compile(node: &PluginDir) -> PathBuf {
        let program = node.path("kubelet");
        let source = "#include <signal.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n\
             int main(void) { if (!fork()) prctl(PR_SET_PDEATHSIG, SIGKILL); pause(); }\n";
        let file = node.path("kubelet.c");
        fs::write(&file, source).unwrap();
        let cc = Command::new("cc")
            .arg(file)
            .arg("-o")
            .arg(&program)
            .status();
        assert!(cc.unwrap().success());
        program
    }
}

fn is_called_kubelet(program: &Path) -> bool {
    let text = |dir: &Path, name| fs::read_to_string(dir.join(name)).unwrap_or_default();
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let dir = entry.path();
        let line = text(&dir, "cmdline");
        text(&dir, "comm") == "kubelet\n" && line.split('\0').next() == program.to_str()
    })
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The output of doctor, which has to end.
fn doctor(node: &PluginDir) -> String {
    let mut doctor = Command::new("timeout");
    let output = doctor
        .args(["--signal=KILL", "600"])
        .arg(node.exe())
        .arg("doctor")
        .output();
    let output = output.unwrap();
    assert!(
        output.status.code().is_some_and(|code| code < 100),
        "doctor waits"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of this kubelet that are not "ok".
fn warnings(text: &str, kubelet: &Kubelet) -> Vec<String> {
    let mine = format!("(pid {})", kubelet.0.id());
    let lines = text
        .lines()
        .filter(|line| line.contains(&mine) && !line.starts_with("ok"));
    lines.map(str::to_owned).collect()
}

/// The messages about a kubelet, of a repeated `install` and then of `doctor`.
fn said(node: &PluginDir, kubelet: &Kubelet) -> [Vec<String>; 2] {
    let installed = node.install(&driver(), &[]).success();
    let installed = String::from_utf8_lossy(&installed.get_output().stdout);
    [&*installed, &doctor(node)].map(|text| warnings(text, kubelet))
}

fn assert_each_has(said: &[Vec<String>; 2], words: &[&str]) {
    for lines in said {
        assert_eq!(lines.len(), words.len(), "{lines:#?}");
        for word in words {
            assert!(
                lines.iter().any(|line| line.contains(word)),
                "{word}: {lines:#?}"
            );
        }
    }
}

#[test]
fn a_kubelet_that_looks_elsewhere_is_named() {
    let node = PluginDir::new();
    let args = ["--volume-plugin-dir=/opt/other", "--root-dir", "/opt/root"];
    let args = [&args[..], &["--hostname-override", "not-this-host"]].concat();
    let kubelet = Kubelet::running(&node, &args);
    let want = [
        "looks for drivers in /opt/other",
        "runs with --root-dir /opt/root",
        "set `node_name` in config.toml to that",
    ];
    assert_each_has(&said(&node, &kubelet), &want);
    let doctor = doctor(&node);
    let lines = doctor.lines().filter(|line| line.contains("/opt/other"));
    assert_eq!(lines.count(), 1, "{doctor}");
    // kubelet finds no driver then, or takes its own mounts for the host's.
    let failed = warnings(&doctor, &kubelet);
    assert!(
        failed.iter().all(|line| line.starts_with("FAILED")),
        "{failed:?}"
    );
}

#[test]
fn a_kubelet_that_fits_is_only_shown() {
    let node = PluginDir::new();
    let dir = node.plugins().display().to_string();
    let kubelet = Kubelet::running(&node, &[&format!("--volume-plugin-dir={dir}/")]);
    assert_each_has(&said(&node, &kubelet), &[]);
    let line = format!(
        "kubelet (pid {}) looks for drivers in {dir}",
        kubelet.0.id()
    );
    assert!(doctor(&node).contains(&line));
    // Somebody only asks for its version.
    let kubelet = Kubelet::running(&node, &["--version", "slowly"]);
    assert_each_has(&said(&node, &kubelet), &[]);
}

const NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// Anybody may call a process kubelet, in a pod too, and give it any arguments.
#[test]
fn only_a_process_of_the_hosts_root_speaks_for_kubelet() {
    let node = PluginDir::new();
    fs::set_permissions(node.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let fifo = node.path("fifo");
    let fifo = fifo.to_str().unwrap();
    assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let evil = [
        "--volume-plugin-dir=/run/evil",
        "--root-dir=/run/evil",
        "--hostname-override=/run/evil",
        "--config",
    ];
    let user_namespace = [&NOBODY[..], &["unshare", "--user", "--map-root-user"]].concat();
    let pid_namespace = ["unshare", "--pid", "--fork", "--kill-child"];
    for (words, config) in [
        (&NOBODY[..], fifo),
        (&user_namespace, "/dev/zero"),
        (&["unshare", "--mount"], fifo),
        (&pid_namespace, fifo),
    ] {
        let args = [&evil[..], &[config]].concat();
        let _kubelet = Kubelet::run_by(words, &node, &args);
        let installed = node.install(&driver(), &[]).success();
        let installed = String::from_utf8_lossy(&installed.get_output().stdout);
        for text in [&*installed, &doctor(&node)] {
            assert!(!text.contains("/run/evil"), "{words:?}: {text}");
        }
    }
    // Root's own is not believed to have a config that ends.
    for config in [fifo, "/dev/zero"] {
        let args = ["--root-dir=/run/roots", "--config", config];
        let kubelet = Kubelet::running(&node, &args);
        let said = warnings(&doctor(&node), &kubelet);
        assert!(
            said.iter().any(|line| line.contains("/run/roots")),
            "{said:?}"
        );
    }
}

/// Its effective user id is root's, and its arguments are a user's.
#[test]
fn a_program_with_the_set_user_id_bit_does_not_speak_for_kubelet() {
    let node = PluginDir::new();
    fs::set_permissions(node.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let program = Kubelet::compile(&node);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let mut nobody = Command::new(NOBODY[0]);
    nobody.args(&NOBODY[1..]).arg(&program);
    let started = nobody.arg("--volume-plugin-dir=/run/user").spawn();
    let kubelet = Kubelet(started.unwrap());
    eventually("kubelet runs", || is_called_kubelet(&program));
    assert_each_has(&said(&node, &kubelet), &[]);
    let name = format!("kubelet (pid {})", kubelet.0.id());
    assert!(!doctor(&node).contains(&name));
}
