//! `flexvolume-lvm install` and `flexvolume-lvm doctor` beside a kubelet that runs on the host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use crate::plugin_dir::{PluginDir, driver};
use crate::support::{eventually, needs_root, run};

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
        let mut kubelet = Self(Command::new(line[0]).args(&line[1..]).spawn().unwrap());
        // Between fork and exec it is not called kubelet yet.
        eventually("kubelet runs", || {
            let ended = kubelet.0.try_wait().unwrap();
            assert_eq!(
                ended, None,
                "{line:?} has ended: is there a namespace that a user may not make here?"
            );
            is_called_kubelet(&program)
        });
        kubelet
    }

    fn compile(node: &PluginDir) -> PathBuf {
        let program = node.path("kubelet");
        let source = "#include <signal.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n\
             int main(void) { if (!fork()) prctl(PR_SET_PDEATHSIG, SIGKILL); pause(); }\n";
        let file = node.path("kubelet.c");
        fs::write(&file, source).unwrap();
        let [file, out] = [&file, &program].map(|path| path.to_str().unwrap());
        run("cc", &[file, "-o", out]);
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

/// The output of a repeated `install`, and then of `doctor`, which has to end.
fn said(node: &PluginDir) -> [String; 2] {
    let installed = node.install(&driver(), &[]).success();
    let mut doctor = assert_cmd::Command::new(node.exe());
    let doctor = doctor.arg("doctor").timeout(Duration::from_secs(600));
    let doctor = doctor.output().unwrap();
    assert!(doctor.status.code().is_some(), "doctor waits");
    [&installed.get_output().stdout, &doctor.stdout]
        .map(|bytes| String::from_utf8(bytes.clone()).unwrap())
}

/// Checks that each output has one line for each of these words about this kubelet, and no other line about it that is
/// not "ok".
fn assert_each_has(said: &[String; 2], kubelet: &Kubelet, words: &[&str]) {
    let mine = format!("(pid {})", kubelet.0.id());
    let is_warning = |line: &&str| line.contains(&mine) && !line.starts_with("ok");
    for text in said {
        let lines: Vec<&str> = text.lines().filter(is_warning).collect();
        assert_eq!(lines.len(), words.len(), "{lines:#?}");
        for word in words {
            let has_it = lines.iter().any(|line| line.contains(word));
            assert!(has_it, "{word}: {lines:#?}");
        }
    }
}

#[test]
fn a_kubelet_that_looks_elsewhere_is_named() {
    let args = ["--volume-plugin-dir=/opt/other", "--root-dir", "/opt/root"];
    let args = [&args[..], &["--hostname-override", "not-this-host"]].concat();
    let all = [
        "looks for drivers in /opt/other",
        "runs with --root-dir /opt/root",
        // Only in this mode does kubelet make calls that name a node.
        "set `node_name` in config.toml to that",
    ];
    for (attach, want) in [("false", &all[..2]), ("true", &all)] {
        let node = PluginDir::new();
        let kubelet = Kubelet::running(&node, &args);
        node.install(&driver(), &["--attach", attach]).success();
        let said = said(&node);
        assert_each_has(&said, &kubelet, want);
        // kubelet finds no driver then, or takes its own mounts for the host's.
        let lines = said[1].lines().filter(|line| line.starts_with("FAILED"));
        let lines: Vec<&str> = lines
            .filter(|line| all.iter().any(|words| line.contains(words)))
            .collect();
        assert_eq!(lines.len(), want.len(), "{lines:?}");
    }
}

#[test]
fn a_kubelets_config_is_read_as_kubelet_reads_it() {
    let node = PluginDir::new();
    let dir = node.plugins().display().to_string();
    let (file, more) = (node.path("kubelet.json"), node.path("more"));
    let json =
        |dir: &str| format!(r#"{{"kind":"KubeletConfiguration","volumePluginDir":"{dir}"}}"#);
    fs::write(&file, json("/opt/first")).unwrap();
    let config = format!("--config={}", file.display());
    let config_dir = format!("--config-dir={}", more.display());
    {
        let kubelet = Kubelet::running(&node, &[&config]);
        assert_each_has(&said(&node), &kubelet, &["looks for drivers in /opt/first"]);
    }
    fs::create_dir(&more).unwrap();
    fs::write(more.join("10.conf"), "volumePluginDir: /opt/ten\n").unwrap();
    fs::write(more.join("20.conf"), json(&dir)).unwrap();
    fs::write(more.join("30.yaml"), json("/opt/never")).unwrap();
    let kubelet = Kubelet::running(&node, &[&config, &config_dir]);
    assert_each_has(&said(&node), &kubelet, &[]);
}

#[test]
fn a_kubelet_that_fits_is_only_shown() {
    let node = PluginDir::new();
    let dir = node.plugins().display().to_string();
    let kubelet = Kubelet::running(&node, &[&format!("--volume-plugin-dir={dir}/")]);
    let shown = said(&node);
    assert_each_has(&shown, &kubelet, &[]);
    let pid = kubelet.0.id();
    let line = format!("kubelet (pid {pid}) looks for drivers in {dir}");
    assert!(shown[1].contains(&line), "{shown:?}");
    // Somebody only asks for its version.
    let kubelet = Kubelet::running(&node, &["--version", "slowly"]);
    assert_each_has(&said(&node), &kubelet, &[]);
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
    needs_root!();
    let node = PluginDir::new();
    fs::set_permissions(node.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let fifo = node.path("fifo");
    let fifo = fifo.to_str().unwrap();
    run("mkfifo", &[fifo]);
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
        let said = said(&node).concat();
        assert!(!said.contains("/run/evil"), "{words:?}: {said}");
    }
    // Root's own is not believed to have a config that ends.
    for config in [fifo, "/dev/zero"] {
        let args = ["--root-dir=/run/roots", "--config", config];
        let _kubelet = Kubelet::running(&node, &args);
        let [_, doctor] = said(&node);
        assert!(doctor.contains("/run/roots"), "{doctor}");
    }
}

/// Its effective user id is root's, and its arguments are a user's.
#[test]
fn a_program_with_the_set_user_id_bit_does_not_speak_for_kubelet() {
    needs_root!();
    let node = PluginDir::new();
    fs::set_permissions(node.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let program = Kubelet::compile(&node);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let mut nobody = Command::new(NOBODY[0]);
    nobody.args(&NOBODY[1..]).arg(&program);
    let started = nobody.arg("--volume-plugin-dir=/run/user").spawn();
    let kubelet = Kubelet(started.unwrap());
    eventually("kubelet runs", || is_called_kubelet(&program));
    let said = said(&node);
    assert_each_has(&said, &kubelet, &[]);
    let name = format!("kubelet (pid {})", kubelet.0.id());
    assert!(!said[1].contains(&name), "{said:?}");
}
