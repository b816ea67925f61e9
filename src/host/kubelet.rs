//! kubelet as it runs on this host, and what it finds in its plugin directory.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Kernel;
use super::files::{self, Kind};
use crate::config::Config;

/// kubelet's defaults.
pub const PLUGIN_DIR: &str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";
const ROOT_DIR: &str = "/var/lib/kubelet";

/// What the command line of a kubelet says that concerns this driver.
#[derive(Debug, Default, PartialEq, Eq)]
struct CommandLine {
    plugin_dir: Option<String>,
    root_dir: Option<String>,
    node_name: Option<String>,
    config: Option<String>,
}

impl CommandLine {
    /// k3s runs kubelet within itself, and hands on what `--kubelet-arg` says.
    fn parse(text: &str) -> Self {
        let mut line = Self::default();
        let mut words = text.split('\0').map(str::to_owned);
        while let Some(word) = words.next() {
            let word = match word.strip_prefix("--kubelet-arg") {
                Some("") => format!("--{}", words.next().unwrap_or_default()),
                Some(rest) => format!("--{}", rest.trim_start_matches('=')),
                None => word,
            };
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (&*word, None),
            };
            let place = match name {
                "--volume-plugin-dir" => &mut line.plugin_dir,
                "--root-dir" => &mut line.root_dir,
                "--hostname-override" => &mut line.node_name,
                "--config" => &mut line.config,
                _ => continue,
            };
            *place = value.or_else(|| words.next());
        }
        line
    }
}

/// `volumePluginDir` of kubelet's config file, which is YAML or JSON.
fn plugin_dir_in(config: &str) -> Option<&str> {
    config.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let quotes = ['"', '\'', ',', ' ', '\t'];
        let value = value.split(" #").next()?.trim_matches(quotes);
        (key.trim_matches(quotes) == "volumePluginDir" && !value.is_empty()).then_some(value)
    })
}

/// Where a kubelet that runs on this host is told otherwise than this driver, a line each.
/// `plugin_dir` is where the driver is, if that is known.
pub fn mismatches(kernel: &Kernel, plugin_dir: Option<&Path>, config: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    for pid in kernel.list(Path::new("/proc")).unwrap_or_default() {
        let read = |name: &str| kernel.read(&Path::new("/proc").join(&pid).join(name));
        let program = read("comm").unwrap_or_default();
        let program = program.trim_end();
        if program != "kubelet" && !program.starts_with("k3s") {
            continue;
        }
        let told = CommandLine::parse(&read("cmdline").unwrap_or_default());
        let file = told.config.map(|file| kernel.read(Path::new(&file)));
        let file = file.and_then(Result::ok).unwrap_or_default();
        // k3s hides its arguments.
        let or_default = |told: Option<String>, default: &str| {
            told.or_else(|| (program == "kubelet").then(|| default.to_owned()))
        };
        let looks_in = told
            .plugin_dir
            .or_else(|| plugin_dir_in(&file).map(str::to_owned));
        if let Some(looks_in) = or_default(looks_in, PLUGIN_DIR)
            && let Some(plugin_dir) = plugin_dir.filter(|dir| *dir != Path::new(&looks_in))
        {
            let plugin_dir = plugin_dir.display();
            lines.push(format!(
                "{program} (pid {pid}) looks for drivers in {looks_in}, not in {plugin_dir}: \
                 install with --plugin-dir {looks_in}"
            ));
        }
        if let Some(root) = or_default(told.root_dir, ROOT_DIR)
            && !config.kubelet_dirs.contains(&PathBuf::from(&root))
        {
            lines.push(format!(
                "{program} (pid {pid}) runs with --root-dir {root}, which `kubelet_dirs` in \
                 config.toml does not name"
            ));
        }
        let name = config.node_name.clone();
        let name = name.unwrap_or_else(|| kernel.host_name());
        if let Some(told) = told.node_name.filter(|told| *told != name) {
            lines.push(format!(
                "{program} (pid {pid}) runs with --hostname-override {told}: set `node_name` in \
                 config.toml to that, not {name}"
            ));
        }
    }
    lines
}

/// What is wrong with drivers that kubelet could not start, a line each.
///
/// One of them is enough to keep an older kubelet from loading any driver when it starts: it throws
/// away what it found with the first error (1.20's pkg/volume/plugins.go, refreshProbedPlugins).
pub fn broken_drivers(plugin_dir: &Path) -> Vec<String> {
    let names = files::list(plugin_dir).unwrap_or_default();
    let dirs = names.iter().map(|name| plugin_dir.join(name));
    dirs.filter_map(|dir| broken_driver(&dir)).collect()
}

/// As kubelet's pkg/volume/flexvolume/probe.go takes the names: `<vendor>~<driver>/<driver>`.
fn broken_driver(dir: &Path) -> Option<String> {
    let name = dir.file_name()?.to_string_lossy();
    if name.starts_with('.') || !matches!(files::kind(dir), Ok(Kind::Dir)) {
        return None;
    }
    let exe = dir.join(name.rsplit('~').next()?);
    let starts = match exe.symlink_metadata() {
        // It may lead to where only the host can look, and this may run in a container.
        Ok(it) if it.is_symlink() => true,
        Ok(it) => it.is_file() && it.permissions().mode() & 0o111 != 0,
        Err(_) => false,
    };
    (!starts).then(|| {
        format!(
            "{} is not an executable file: an older kubelet (1.20, for one) that starts loads no \
             driver then, this one neither, and pods wait with \"no volume plugin matched\"; \
             complete that driver, or remove its directory",
            exe.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_command_lines() {
        let line = |plugin_dir: &str, root_dir: &str, node_name: &str, config: &str| {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            CommandLine {
                plugin_dir: some(plugin_dir),
                root_dir: some(root_dir),
                node_name: some(node_name),
                config: some(config),
            }
        };
        let cases = [
            ("kubelet", line("", "", "", "")),
            (
                "kubelet --volume-plugin-dir=/a --root-dir=/b",
                line("/a", "/b", "", ""),
            ),
            (
                "kubelet --volume-plugin-dir /a --v=2",
                line("/a", "", "", ""),
            ),
            (
                "kubelet --config /c --hostname-override=n",
                line("", "", "n", "/c"),
            ),
            (
                "k3s server --kubelet-arg=root-dir=/b",
                line("", "/b", "", ""),
            ),
            (
                "k3s server --kubelet-arg volume-plugin-dir=/a",
                line("/a", "", "", ""),
            ),
            ("kubelet --root-dir", line("", "", "", "")),
        ];
        for (text, want) in cases {
            assert_eq!(CommandLine::parse(&text.replace(' ', "\0")), want, "{text}");
        }
    }

    #[test]
    fn finds_the_plugin_directory_in_kubelets_config() {
        let cases = [
            ("kind: K\nvolumePluginDir: /a\nx: y\n", Some("/a")),
            ("volumePluginDir: \"/a\" # mine\n", Some("/a")),
            ("{\n  \"volumePluginDir\": \"/a\",\n}", Some("/a")),
            ("volumePluginDir: \"\"\n", None),
            ("#volumePluginDir: /a\n", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(plugin_dir_in(text), want, "{text}");
        }
    }
}
