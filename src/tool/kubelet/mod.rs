//! kubelet as it runs on this host, and what it finds in its plugin directory.

mod settings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::{self, Kind};
use driver::config::Config;
use driver::host::holders::Search;
use driver::host::proc_file;
use driver::host::trust::require_roots;
use driver::host::{Command, Host, Kernel};
use driver::names::Shown;
use settings::{CommandLine, value_in, values_in};

/// kubelet's defaults.
pub const PLUGIN_DIR: &str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";
const ROOT_DIR: &str = "/var/lib/kubelet";
/// Limit for kubelet's `--version`.
const LIMIT: Duration = Duration::from_secs(10);

/// A kubelet that runs on this host. `None` means unknown.
#[derive(Debug, Default)]
pub struct Kubelet {
    /// Its name in a message.
    name: String,
    /// By its command line or config file, or by default.
    settings: CommandLine,
    /// Manifest of kube-controller-manager, if that is a static pod of this kubelet and makes `attach` calls.
    controller: Option<Manifest>,
    version: Option<String>,
}

#[derive(Debug)]
struct Manifest {
    file: PathBuf,
    text: String,
}

/// The kubelets that run on this host, by their command lines and config files. Any process may call
/// itself kubelet: only those of root count, see [`is_roots`].
pub fn running(host: &Host) -> Vec<Kubelet> {
    let kernel = host.kernel;
    let mut found = Vec::new();
    for pid in Search::new(kernel).processes() {
        let program = || kernel.read_of(pid, "comm").trim_end().to_owned();
        let exe_of = |pid: u32| kernel.link(&proc_file(pid, "exe")).ok();
        let is_kubelet = |program: &str| program == "kubelet" || program.starts_with("k3s");
        if !is_kubelet(&program()) || !is_roots(kernel, pid) {
            continue;
        }
        let exe = exe_of(pid);
        let line = kernel.read_of(pid, "cmdline");
        let parent = parent_in(&kernel.read_of(pid, "stat"));
        // Last of all: what kubelet starts is called kubelet too until it has its own executable.
        let program = program();
        // Another run of this program asks for the version, as below.
        let only_tells = line.split('\0').nth(1) == Some("--version");
        let is_starting = exe.is_some() && exe == parent.and_then(exe_of);
        if !is_kubelet(&program) || only_tells || is_starting {
            continue;
        }
        let mut settings = CommandLine::parse(&line);
        let file = settings.config.as_deref().map(Path::new);
        let file = file.and_then(|file| text_of(kernel, file));
        let file = file.unwrap_or_default();
        let in_file = |key: &str| value_in(&file, key).map(str::to_owned);
        // k3s hides its arguments.
        let default = |dir: &str| (program == "kubelet").then(|| dir.to_owned());
        settings.plugin_dir = settings.plugin_dir.or_else(|| in_file("volumePluginDir"));
        settings.plugin_dir = settings.plugin_dir.or_else(|| default(PLUGIN_DIR));
        settings.root_dir = settings.root_dir.or_else(|| default(ROOT_DIR));
        settings.static_pods = settings.static_pods.or_else(|| in_file("staticPodPath"));
        let attaches = value_in(&file, "enableControllerAttachDetach") != Some("false");
        let pods = settings.static_pods.as_ref().filter(|_| attaches);
        let controller = pods.and_then(|pods| {
            let file = Path::new(pods).join("kube-controller-manager.yaml");
            let text = text_of(kernel, &file)?;
            Some(Manifest { file, text })
        });
        found.push(Kubelet {
            name: format!("{} (pid {pid})", program.shown()),
            settings,
            controller,
            version: exe.and_then(|exe| version(host, exe)),
        });
    }
    found
}

/// Whether a process is of root and of this host: no pod, and no user, can have started it.
fn is_roots(kernel: &Kernel, pid: u32) -> bool {
    ["ns/mnt", "ns/pid"].iter().all(|namespace| {
        let its = kernel.link(&proc_file(pid, namespace)).ok();
        its.is_some() && its == kernel.link(&proc_file("self", namespace)).ok()
    }) && are_all_roots(&kernel.read_of(pid, "status"))
}

/// Whether all user ids in this `/proc/PID/status` are root's. A program with the set-user-ID bit has the
/// arguments, and as its first id the real one, of the user who started it.
fn are_all_roots(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.is_some_and(|ids| ids.split_whitespace().eq(["0"; 4]))
}

/// The text of a small regular file, if it can be read.
fn text_of(kernel: &Kernel, file: &Path) -> Option<String> {
    let bytes = kernel.read_bytes(file).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The process that started the one with this `/proc/PID/stat`: "12 (name) S 1 …".
fn parent_in(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// Asks a kubelet's executable for its version, if nobody but root can write it.
fn version(host: &Host, exe: PathBuf) -> Option<String> {
    let kernel = host.kernel;
    require_roots(kernel, &exe).ok()?;
    require_roots(kernel, exe.parent()?).ok()?;
    let output = host
        .run(&Command::driver(exe, LIMIT).args(["--version"]))
        .ok()?;
    version_in(&String::from_utf8_lossy(&output.stdout)).map(str::to_owned)
}

/// "Kubernetes v1.30.4", "k3s version v1.30.4+k3s1 (98262b5d)".
fn version_in(said: &str) -> Option<&str> {
    let mut words = said.split_whitespace();
    words.find_map(|word| word.strip_prefix('v').filter(|it| minor(it).is_some()))
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.split('.').next()?.parse().ok()
}

impl Kubelet {
    /// One line about it if nothing is wrong.
    pub fn in_short(&self) -> String {
        let version = self
            .version
            .as_deref()
            .unwrap_or("of a version that it does not tell");
        format!("{} is {version}", self.name)
    }

    /// Where its settings and this driver's differ, a line each. `plugin_dir` is where the driver is, if
    /// that is known.
    pub fn problems(
        &self,
        host_name: &str,
        plugin_dir: Option<&Path>,
        config: &Config,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        let shown = &self.name;
        if let (Some(looks_in), Some(plugin_dir)) = (&self.settings.plugin_dir, plugin_dir)
            && Path::new(looks_in) != plugin_dir
        {
            let (plugin_dir, looks_in) = (plugin_dir.shown(), looks_in.shown());
            lines.push(format!(
                "{shown} looks for drivers in {looks_in}, not in {plugin_dir}: install with \
                 --plugin-dir {looks_in}"
            ));
        }
        if let Some(root) = &self.settings.root_dir
            && !config.kubelet_dirs.iter().any(|dir| dir == Path::new(root))
        {
            lines.push(format!(
                "{shown} runs with --root-dir {}, which `kubelet_dirs` in config.toml does not \
                 name",
                root.shown()
            ));
        }
        let name = config.node_name.as_deref().unwrap_or(host_name);
        if let Some(given) = self
            .settings
            .node_name
            .as_ref()
            .filter(|given| *given != name)
        {
            lines.push(format!(
                "{shown} runs with --hostname-override {}: set `node_name` in config.toml to \
                 that, not {name}",
                given.shown()
            ));
        }
        lines
    }

    /// The faults of its version, a line each.
    pub fn faults(&self, config: &Config) -> Vec<String> {
        let Some((version, minor)) = self.version.as_deref().and_then(|v| Some((v, minor(v)?)))
        else {
            return Vec::new();
        };
        let waits = format!(
            "with attach = true, the second of two pods of this node with one inline volume waits \
             for ever (since 1.27). Give them a claim, or set attach = false in {}, which may be \
             done while pods run",
            config.file
        );
        let crashes = "it may crash when a driver is installed or removed while volumes are being \
                       mounted (1.25 to 1.32). Drain the node before you do that";
        let unmounts = "when it restarts, it may unmount FlexVolumes under running pods (1.28 to \
                        1.31). Drain the node before, or upgrade kubelet";
        let faults = [
            (config.attach && minor >= 27, &*waits),
            ((25..=32).contains(&minor), crashes),
            ((28..=31).contains(&minor), unmounts),
        ];
        let its = faults.into_iter().filter(|(has_it, _)| *has_it);
        its.map(|(_, fault)| format!("{} is {version}: {fault}", self.name))
            .collect()
    }

    /// Why kube-controller-manager on this host cannot call the driver in `plugin_dir`, if it is a
    /// static pod of this kubelet.
    pub fn fault_of_controller(&self, plugin_dir: &Path) -> Option<String> {
        let Manifest { file, text } = self.controller.as_ref()?;
        if controller_sees(text, plugin_dir) {
            return None;
        }
        let (file, dir) = (file.shown(), plugin_dir.shown());
        Some(format!(
            "{file} does not mount {dir} into kube-controller-manager, or names another \
             --flex-volume-plugin-dir: it finds no driver, and new pods wait for `attach`. kubeadm \
             has left this mount out since 1.36: add it with `controllerManager.extraVolumes`, see \
             docs/modes.md, or set attach = false on all nodes"
        ))
    }
}

fn controller_sees(manifest: &str, plugin_dir: &Path) -> bool {
    let flag = manifest.lines().find_map(|line| {
        let word = line.trim_start_matches([' ', '-', '"']);
        word.strip_prefix("flex-volume-plugin-dir=")
    });
    let looks_in = flag.map_or(PLUGIN_DIR, |dir| dir.trim_matches(['"', ' ']));
    Path::new(looks_in) == plugin_dir
        && values_in(manifest, "mountPath").any(|at| plugin_dir.starts_with(at))
}

/// Drivers that kubelet could not start, and why, a line each.
///
/// One of them is enough to keep an older kubelet from loading any driver when it starts: it throws
/// away what it found with the first error (1.20's pkg/volume/plugins.go, refreshProbedPlugins).
pub fn broken_drivers(plugin_dir: &Path) -> Vec<String> {
    let names = files::list(plugin_dir).unwrap_or_default();
    let dirs = names.iter().map(|name| plugin_dir.join(name));
    dirs.filter_map(|dir| broken_driver(&dir)).collect()
}

/// Executable of a driver in the plugin directory: `<vendor>~<driver>/<driver>`, as in kubelet's
/// pkg/volume/flexvolume/probe.go.
fn broken_driver(dir: &Path) -> Option<String> {
    let name = dir.file_name()?.to_str()?;
    if name.starts_with('.') || !matches!(files::kind(dir), Ok(Kind::Dir)) {
        return None;
    }
    let exe = dir.join(name.rsplit('~').next()?);
    // A link may lead to where only the host can look, and this may run in a container.
    let starts = matches!(files::kind(&exe), Ok(Kind::Link)) || files::is_executable(&exe);
    (!starts).then(|| {
        format!(
            "{} is not an executable file: an older kubelet (such as 1.20) then loads no driver at all \
             when it starts, and pods wait with \"no volume plugin matched\"; \
             complete that driver, or remove its directory",
            exe.shown()
        )
    })
}

#[cfg(test)]
impl Kubelet {
    /// One with this command line, version, and manifest of the controller.
    pub fn sample(line: &str, version: &str, controller: Option<&str>) -> Self {
        Self {
            name: "kubelet (pid 1)".to_owned(),
            settings: CommandLine::parse(&line.replace(' ', "\0")),
            controller: controller.map(|text| Manifest {
                file: "/etc/kubernetes/manifests/kube-controller-manager.yaml".into(),
                text: text.to_owned(),
            }),
            version: Some(version.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_faults_of_a_version() {
        // Faults with attach = true come first.
        let cases = [
            ("Kubernetes v1.20.2", [false, false, false]),
            ("Kubernetes v1.24.17", [false, false, false]),
            ("Kubernetes v1.25.0-rc.1", [false, true, false]),
            ("Kubernetes v1.27.16", [true, true, false]),
            ("Kubernetes v1.28.15-eks-4f4795d", [true, true, true]),
            ("k3s version v1.31.4+k3s1 (98262b5d)", [true, true, true]),
            ("Kubernetes v1.32.13", [true, true, false]),
            ("Kubernetes v1.36.2", [true, false, false]),
            ("GNU bash, version 5.2.15(1)-release", [false, false, false]),
            ("Kubernetes v2.0", [false, false, false]),
        ];
        let words = ["waits for ever", "may crash", "under running pods"];
        for (said, want) in cases {
            let kubelet = Kubelet {
                version: version_in(said).map(str::to_owned),
                ..Kubelet::default()
            };
            let found = |attach| {
                let lines = kubelet.faults(&Config {
                    attach,
                    ..Config::default()
                });
                words.map(|word| lines.iter().any(|line| line.contains(word)))
            };
            assert_eq!(found(true), want, "{said}");
            assert_eq!(found(false), [false, want[1], want[2]], "{said}");
        }
    }

    #[test]
    fn a_process_is_roots_if_all_its_ids_are() {
        for (status, want) in [
            ("Name:\tkubelet\nUid:\t0\t0\t0\t0\nGid:\t5\t5\t5\t5\n", true),
            ("Name:\tkubelet\nUid:\t1000\t0\t0\t0\n", false),
            ("Name:\tkubelet\nUid:\t0\t0\t0\t1000\n", false),
            ("Uid:\t0\n", false),
            ("Name:\tUid:\t0\t0\t0\t0\n", false),
            ("", false),
        ] {
            assert_eq!(are_all_roots(status), want, "{status:?}");
        }
    }

    #[test]
    fn knows_whether_the_controller_sees_the_driver() {
        let dir = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";
        let mount = "    - mountPath: /usr/libexec/kubernetes/kubelet-plugins/volume/exec\n";
        let above = "      mountPath: \"/usr/libexec/kubernetes\"\n";
        let flag = "    - --flex-volume-plugin-dir=/opt/exec\n";
        let cases = [
            ("", dir, false),
            (mount, dir, true),
            (above, dir, true),
            ("    - mountPath: /usr/libexec/kube\n", dir, false),
            (&format!("{flag}{mount}"), dir, false),
            (flag, "/opt/exec", false),
            (
                &format!("{flag}    - mountPath: /opt/exec\n"),
                "/opt/exec",
                true,
            ),
        ];
        for (manifest, dir, want) in cases {
            assert_eq!(
                controller_sees(manifest, Path::new(dir)),
                want,
                "{manifest}"
            );
        }
    }
}
