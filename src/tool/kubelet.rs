//! Finds the kubelets that run on this host, and their settings.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use driver::config::Config;
use driver::host::holders::{Search, name_of, parent_of};
use driver::host::{Kernel, proc_file};
use driver::names::Shown;

/// kubelet's defaults.
pub const PLUGIN_DIR: &str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";
const ROOT_DIR: &str = "/var/lib/kubelet";

/// A kubelet that runs on this host. Its settings come from the command line, the config file or the defaults.
#[derive(Debug)]
pub struct Kubelet {
    /// The kubelet's name in a message.
    name: String,
    plugin_dir: String,
    root_dir: String,
    node_name: Option<String>,
}

/// The kubelets that run on this host, by their command lines and config files. Any process may be called kubelet, so
/// only root's processes count: see [`is_roots`].
pub fn running(kernel: &Kernel) -> Vec<Kubelet> {
    let mut found = Vec::new();
    for pid in Search::new(kernel).processes() {
        if !is_kubelet(kernel, pid) || !is_roots(kernel, pid) {
            continue;
        }
        let exe = exe_of(kernel, pid);
        let line = kernel.read_of(pid, "cmdline");
        let parent = parent_of(kernel, pid);
        // `kubelet --version` ends at once, and serves no pods.
        let only_tells = line.split('\0').nth(1) == Some("--version");
        let is_starting = exe.is_some() && exe == parent.and_then(|parent| exe_of(kernel, parent));
        // The name is checked again, last: a process that kubelet starts is called kubelet until it runs its own
        // executable.
        if only_tells || is_starting || !is_kubelet(kernel, pid) {
            continue;
        }
        found.push(Kubelet::of(pid, &line, &configs(kernel, &line)));
    }
    found
}

fn is_kubelet(kernel: &Kernel, pid: u32) -> bool {
    name_of(kernel, pid) == "kubelet"
}

fn exe_of(kernel: &Kernel, pid: u32) -> Option<PathBuf> {
    kernel.link(&proc_file(pid, "exe")).ok()
}

/// Whether a process belongs to root and to this host, so that neither a pod nor a user can have started it.
fn is_roots(kernel: &Kernel, pid: u32) -> bool {
    ["ns/mnt", "ns/pid"].iter().all(|namespace| {
        let its = kernel.link(&proc_file(pid, namespace)).ok();
        its.is_some() && its == kernel.link(&proc_file("self", namespace)).ok()
    }) && are_all_roots(&kernel.read_of(pid, "status"))
}

/// Whether all user ids in this `/proc/PID/status` are root's. A user who starts a set-user-ID program chooses its
/// arguments. The first id of such a process, the real one, is the user's.
fn are_all_roots(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.is_some_and(|ids| ids.split_whitespace().eq(["0"; 4]))
}

/// The texts of kubelet's config: the file of `--config`, then the files NAME.conf in the directory of `--config-dir`,
/// by their names. A value of a later file counts. Files in directories below that directory are left out. Source:
/// kubelet's `cmd/kubelet/app/server.go`, `mergeKubeletConfigurations`.
fn configs(kernel: &Kernel, line: &str) -> Vec<String> {
    let mut files: Vec<PathBuf> = flag(line, "--config")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    if let Some(dir) = flag(line, "--config-dir").map(Path::new) {
        let mut names = kernel.list(dir).unwrap_or_default();
        names.retain(|name| Path::new(name).extension() == Some(OsStr::new("conf")));
        names.sort_unstable();
        files.extend(names.iter().map(|name| dir.join(name)));
    }
    let texts = files.iter().filter_map(|file| text_of(kernel, file));
    texts.collect()
}

/// The text of a small regular file, if it can be read.
fn text_of(kernel: &Kernel, file: &Path) -> Option<String> {
    let bytes = kernel.read_bytes(file).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The value of a flag on a command line. If the flag is repeated, the last one counts.
fn flag<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut words = line.split('\0');
    let mut value = None;
    while let Some(word) = words.next() {
        match word.strip_prefix(name) {
            Some("") => value = words.next(),
            Some(rest) => value = rest.strip_prefix('=').or(value),
            None => {}
        }
    }
    value
}

/// The text of a key at the top of kubelet's config, which is JSON or YAML. `None`: the key is missing, or its value is
/// empty.
fn value_in(text: &str, wanted: &str) -> Option<String> {
    let value = match serde_json::from_str::<Value>(text) {
        Ok(json) => json.get(wanted)?.as_str()?.to_owned(),
        Err(_) => line_in(text, wanted)?.to_owned(),
    };
    Some(value).filter(|value| !value.is_empty())
}

/// The value of a key that has a line of its own, as it has in the YAML that kubeadm and people write.
fn line_in<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, rest) = line.split_once(':')?;
        let quotes = ['"', '\'', ',', ' ', '\t'];
        let value = rest.split(" #").next()?.trim_matches(quotes);
        (key.trim_matches(quotes) == wanted).then_some(value)
    })
}

impl Kubelet {
    fn of(pid: u32, line: &str, configs: &[String]) -> Self {
        let given = flag(line, "--volume-plugin-dir").map(str::to_owned);
        let mut in_files = configs
            .iter()
            .rev()
            .filter_map(|text| value_in(text, "volumePluginDir"));
        Self {
            name: format!("kubelet (pid {pid})"),
            plugin_dir: given
                .or_else(|| in_files.next())
                .unwrap_or_else(|| PLUGIN_DIR.to_owned()),
            root_dir: flag(line, "--root-dir").unwrap_or(ROOT_DIR).to_owned(),
            node_name: flag(line, "--hostname-override").map(str::to_owned),
        }
    }

    /// The line about a kubelet without a problem.
    pub fn in_short(&self) -> String {
        let dir = self.plugin_dir.shown();
        format!("{} looks for drivers in {dir}", self.name)
    }

    /// The differences between the kubelet's settings and this driver's, one in each line. `plugin_dir`: the driver's
    /// plugin directory, if known.
    pub fn problems(
        &self,
        host_name: &str,
        plugin_dir: Option<&Path>,
        config: &Config,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        let shown = &self.name;
        let looks_in = Path::new(&self.plugin_dir);
        if let Some(plugin_dir) = plugin_dir.filter(|dir| *dir != looks_in) {
            let (plugin_dir, looks_in) = (plugin_dir.shown(), looks_in.shown());
            lines.push(format!(
                "{shown} looks for drivers in {looks_in}, not in {plugin_dir}: install with \
                 --plugin-dir {looks_in}"
            ));
        }
        let root = Path::new(&self.root_dir);
        if !config.kubelet_dirs.iter().any(|dir| dir == root) {
            lines.push(format!(
                "{shown} runs with --root-dir {}, which `kubelet_dirs` in config.toml does not \
                 name",
                root.shown()
            ));
        }
        // With `attach = false`, kubelet makes no call that names a node.
        let name = config.node_name.as_deref().unwrap_or(host_name);
        if config.attach
            && let Some(given) = self.node_name.as_ref().filter(|given| *given != name)
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
    /// A kubelet with this command line.
    pub fn sample(line: &str) -> Self {
        Self::of(1, &line.replace(' ', "\0"), &[])
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

    #[test]
    fn reads_command_lines() {
        let cases = [
            ("kubelet", None),
            ("kubelet --root-dir=/b --v=2", Some("/b")),
            ("kubelet --v 2 --root-dir /b", Some("/b")),
            ("kubelet --root-dir=/a --root-dir /b", Some("/b")),
            ("kubelet --root-dirs=/b --root", None),
            ("kubelet --root-dir", None),
        ];
        for (text, want) in cases {
            assert_eq!(flag(&text.replace(' ', "\0"), "--root-dir"), want, "{text}");
        }
    }

    #[test]
    fn the_last_config_counts_and_a_flag_counts_more() {
        let configs = [
            "volumePluginDir: /a",
            "x: y",
            r#"{"volumePluginDir":"/b"}"#,
            "z: /c",
        ];
        let configs = configs.map(str::to_owned);
        for (line, want) in [("kubelet", "/b"), ("kubelet\0--volume-plugin-dir=/d", "/d")] {
            assert_eq!(Kubelet::of(1, line, &configs).plugin_dir, want);
        }
    }

    #[test]
    fn what_a_command_line_holds_is_shown_on_one_line() {
        let line = "kubelet --root-dir=/a\x1b[2J\nforged --hostname-override=n\nforged --volume-plugin-dir=/p\nforged";
        let kubelet = Kubelet::sample(line);
        let attaches = Config {
            attach: true,
            ..Config::default()
        };
        let mut said = kubelet.problems("node", Some(Path::new("/exec")), &attaches);
        said.push(kubelet.in_short());
        assert_eq!(said.len(), 4, "{said:?}");
        for line in said {
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }

    #[test]
    fn finds_a_value_in_kubelets_config() {
        let cases = [
            (
                r#"{"kind":"K","volumePluginDir":"/a","x":{"volumePluginDir":"/b"}}"#,
                Some("/a"),
            ),
            (r#"{"x":{"volumePluginDir":"/b"}}"#, None),
            (r#"{"volumePluginDir":""}"#, None),
            (r#"{"volumePluginDir":1}"#, None),
            ("kind: K\nvolumePluginDir: /a\nx: y\n", Some("/a")),
            ("volumePluginDir: \"/a\" # mine\n", Some("/a")),
            ("{\n  \"volumePluginDir\": \"/a\",\n}", Some("/a")),
            ("volumePluginDir: \"\"\n", None),
            ("#volumePluginDir: /a\n", None),
            ("", None),
        ];
        for (text, want) in cases {
            let value = value_in(text, "volumePluginDir");
            assert_eq!(value.as_deref(), want, "{text}");
        }
    }
}
