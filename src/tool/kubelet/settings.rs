//! Reads the configuration of kubelet: command lines, and files of YAML or JSON.

/// The arguments of a kubelet that concern this driver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) plugin_dir: Option<String>,
    pub(super) root_dir: Option<String>,
    pub(super) node_name: Option<String>,
    pub(super) config: Option<String>,
}

impl CommandLine {
    pub(super) fn parse(text: &str) -> Self {
        let mut line = Self::default();
        let mut words = text.split('\0').map(str::to_owned);
        while let Some(word) = words.next() {
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

/// The value of a key in YAML or JSON, on whatever level.
pub(super) fn value_in<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let quotes = ['"', '\'', ',', ' ', '\t'];
        let value = value.split(" #").next()?.trim_matches(quotes);
        let key = key.trim_start_matches([' ', '-']).trim_matches(quotes);
        (key == wanted && !value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip] // a row is a line
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
            ("kubelet --volume-plugin-dir=/a --root-dir=/b", line("/a", "/b", "", "")),
            ("kubelet --volume-plugin-dir /a --v=2", line("/a", "", "", "")),
            ("kubelet --config /c --hostname-override=n", line("", "", "n", "/c")),
            ("kubelet --root-dir", line("", "", "", "")),
        ];
        for (text, want) in cases {
            assert_eq!(CommandLine::parse(&text.replace(' ', "\0")), want, "{text}");
        }
    }

    #[test]
    fn finds_a_value_in_kubelets_config() {
        let cases = [
            ("kind: K\nvolumePluginDir: /a\nx: y\n", Some("/a")),
            ("volumePluginDir: \"/a\" # mine\n", Some("/a")),
            ("{\n  \"volumePluginDir\": \"/a\",\n}", Some("/a")),
            ("volumePluginDir: \"\"\n", None),
            ("#volumePluginDir: /a\n", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(value_in(text, "volumePluginDir"), want, "{text}");
        }
    }
}
