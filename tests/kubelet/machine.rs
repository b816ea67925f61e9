//! The node: its disks, containerd, and kubelet, which all cases share.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::plane;
use crate::prelude::*;

/// kubelet's own directory.
pub const KUBELET: &str = "/var/lib/kubelet";
pub const MANIFESTS: &str = "/var/lib/kubelet/manifests";
/// The volume group of all cases.
pub const GROUP: &str = "pods";
const VOLUMES_DISK: &str = "/dev/vda";
pub const LOGS: &str = "/run/log";

static CHILD: Mutex<Option<Child>> = Mutex::new(None);
static USERS: Mutex<usize> = Mutex::new(0);
static ONE_LESS: Condvar = Condvar::new();

/// Whether Kubernetes is 1.`minor` or newer.
pub fn since(minor: u32) -> bool {
    let version = from_environment("FLEXVOLUME_LVM_KUBERNETES");
    let own: Option<u32> = version.split('.').nth(1).and_then(|own| own.parse().ok());
    own.unwrap_or_else(|| panic!("{version} is no version")) >= minor
}

/// While this value is held, kubelet keeps running: no case kills it.
pub struct Running(());

impl Drop for Running {
    fn drop(&mut self) {
        *users() -= 1;
        ONE_LESS.notify_all();
    }
}

fn users() -> MutexGuard<'static, usize> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn shared() -> Running {
    static READY: OnceLock<()> = OnceLock::new();
    *users() += 1;
    let running = Running(());
    READY.get_or_init(set_up);
    running
}

/// Returns once kubelet is running and no other case uses it. The caller may kill kubelet. Cases that share kubelet
/// come first, so that none of them waits for a case that itself waits for others.
pub fn alone() -> MutexGuard<'static, usize> {
    drop(shared());
    let users = ONE_LESS.wait_while(users(), |users| *users > 0);
    users.unwrap_or_else(PoisonError::into_inner)
}

fn set_up() {
    fs::create_dir_all(LOGS).unwrap();
    run("ip", &["link", "set", "lo", "up"]);
    run("mount", &["--make-rshared", "/"]);
    in_memory("/var/lib/containerd");
    in_memory("/var/log");
    in_memory(KUBELET);
    run("vgcreate", &["-q", GROUP, VOLUMES_DISK]);
    run("mount", &["--make-rshared", KUBELET]);
    for dir in ["manifests", "exec"] {
        fs::create_dir_all(Path::new(KUBELET).join(dir)).unwrap();
    }
    show_clock_speed();
    start_containerd();
    let kubelet = from_environment("KUBELET");
    fs::copy(kubelet, "/run/kubelet").unwrap();
    start_kubelet();
}

fn in_memory(dir: &str) {
    fs::create_dir_all(dir).unwrap();
    run("mount", &["-t", "tmpfs", "tmpfs", dir]);
}

/// Shows a clock speed of the processor, which kubelet asks for, and which user-mode Linux does not have.
fn show_clock_speed() {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap();
    if !processors.contains("cpu MHz") {
        let processor = format!("{}\ncpu MHz\t\t: 1000.000\n\n", processors.trim_end());
        fs::write("/run/cpuinfo", processor).unwrap();
        run("mount", &["--bind", "/run/cpuinfo", "/proc/cpuinfo"]);
    }
}

/// A file or value that tests/run.sh names.
pub fn from_environment(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("tests/run.sh kubelet sets {name}"))
}

fn start_containerd() {
    static CONTAINERD: OnceLock<Child> = OnceLock::new();
    let config = "/run/containerd.toml";
    fs::write(config, include_str!("containerd.toml")).unwrap();
    // Pods have the guest's own network. Without any other, the node is not ready.
    let network = r#"{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}"#;
    fs::create_dir_all("/run/networks").unwrap();
    fs::write("/run/networks/none.conflist", network).unwrap();
    CONTAINERD.get_or_init(|| in_background("containerd", &["--config", config], "containerd"));
    wait_until("containerd answers", || {
        let mut ctr = Command::new("ctr");
        ctr.arg("version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        ctr.status().unwrap().success()
    });
    let image = from_environment("FLEXVOLUME_LVM_IMAGE");
    run("ctr", &["--namespace", "k8s.io", "image", "import", &image]);
}

/// Starts a program, with its log among the node's.
pub fn in_background(program: &str, args: &[&str], log: &str) -> Child {
    let log = File::options()
        .append(true)
        .create(true)
        .open(format!("{LOGS}/{log}.log"));
    let log = log.unwrap();
    Command::new(program)
        .args(args)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn child() -> MutexGuard<'static, Option<Child>> {
    CHILD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts kubelet and waits until it answers.
pub fn start_kubelet() {
    let config = "/run/kubelet.yaml";
    let mut text = include_str!("kubelet.yaml").to_owned();
    let mut args = vec![
        "--config",
        config,
        "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
        // Events are logged from level 3 on.
        "--v=2",
        "--vmodule=event=3",
        // The statistics of containers, which cost much time here.
        "--housekeeping-interval=60s",
    ];
    if !since(27) {
        args.push("--container-runtime=remote");
    }
    let name = format!("--hostname-override={NODE}");
    if plane::api::is_there() {
        text = plane::join(&text);
        args.extend(plane::KUBELET_ARGS);
        args.push(&name);
    }
    fs::write(config, text).unwrap();
    *child() = Some(in_background("/run/kubelet", &args, "kubelet"));
    wait_until("kubelet answers", || get("/healthz").is_some());
}

/// Kills kubelet as a crash would. The containers and the driver's calls go on.
pub fn kill_kubelet() {
    let mut kubelet = child().take().expect("kubelet runs");
    kubelet.kill().unwrap();
    kubelet.wait().unwrap();
}

/// kubelet's answer, if it has one.
pub fn get(path: &str) -> Option<String> {
    let mut stream = TcpStream::connect("127.0.0.1:10255").ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.contains(" 200 ").then(|| body.to_owned())
}

/// Waits until kubelet warns about a pod with a text that holds these words, and returns it.
pub fn warning(pod: &str, words: &str) -> String {
    let of_pod = format!("object=\"default/{pod}-");
    logged(words, |line| {
        let is_it = line.contains("\"Event occurred\"") && line.contains(&of_pod);
        is_it.then(|| line.split_once(" message="))?
    })
}

/// The message of a volume that does not come up. Without attach mode, the message is from the pod's
/// event. In attach mode it is from kubelet's log, since a failed `attach` makes an event only if a control plane
/// attaches.
pub fn refusal(mode: Mode, pod: &str, words: &str) -> String {
    if mode == Mode::MountOnly {
        return warning(pod, words);
    }
    let (case, _) = pod.rsplit_once('-').unwrap();
    let of_volume = format!("{{volumeName:{case}/lvm/");
    logged(words, |line| {
        let is_it = line.contains("AttachVolume.Attach failed") && line.contains(&of_volume);
        is_it.then(|| line.split_once(" Error: "))?
    })
}

/// Waits until kubelet's log has a line whose text holds these words. `find` splits a line into its head and its text,
/// which may be quoted. Returns the text.
fn logged(words: &str, find: impl Fn(&str) -> Option<(&str, &str)>) -> String {
    let text = |line: &str| {
        let (_, text) = find(line)?;
        Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()))
    };
    wait_for(&format!("kubelet says {words:?}"), || {
        let log = fs::read_to_string(format!("{LOGS}/kubelet.log")).unwrap();
        log.lines()
            .filter_map(text)
            .find(|text| text.contains(words))
    })
}

/// The mount points of a device, or of a directory of its filesystem.
pub fn mounts_of(device: &str) -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let is_it = filesystem.split(' ').nth(1) == Some(device);
        is_it.then(|| mount.split(' ').nth(4).map(str::to_owned))?
    };
    text.lines().filter_map(point).collect()
}
