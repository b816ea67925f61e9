//! kubelet as it runs on this host.

mod settings;

use std::path::Path;

use driver::config::Config;
use driver::host::holders::Search;
use driver::host::{Kernel, proc_file};
use driver::names::Shown;
use settings::{CommandLine, value_in};

/// kubelet's defaults.
pub const PLUGIN_DIR: &str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";
const ROOT_DIR: &str = "/var/lib/kubelet";

/// A kubelet that runs on this host. `None` means unknown.
#[derive(Debug, Default)]
pub struct Kubelet {
    /// Its name in a message.
    name: String,
    /// By its command line or config file, or by default.
    settings: CommandLine,
}

/// The kubelets that run on this host, by their command lines and config files. Any process may call
/// itself kubelet: only those of root count, see [`is_roots`].
pub fn running(kernel: &Kernel) -> Vec<Kubelet> {
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
        // Somebody asks for the version.
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
        found.push(Kubelet {
            name: format!("{} (pid {pid})", program.shown()),
            settings,
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

impl Kubelet {
    /// One line about it if nothing is wrong.
    pub fn in_short(&self) -> String {
        match &self.settings.plugin_dir {
            Some(dir) => format!("{} looks for drivers in {}", self.name, dir.shown()),
            None => format!("{} does not tell where it looks for drivers", self.name),
        }
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
}

#[cfg(test)]
impl Kubelet {
    /// One with this command line.
    pub fn sample(line: &str) -> Self {
        Self {
            name: "kubelet (pid 1)".to_owned(),
            settings: CommandLine::parse(&line.replace(' ', "\0")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
