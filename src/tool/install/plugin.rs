//! The driver's own name in Kubernetes.

use std::fmt;
use std::path::Path;

use driver::mount::KubeletPath;
use driver::names::ObjectName;

// Pods name the driver `<vendor>/<driver>`, which is a qualified name in Kubernetes. The default is the bash script's
// name. Sources: kubelet's `pkg/volume/flexvolume/probe.go` and apimachinery's `IsQualifiedName`.
#[derive(Debug, Clone, clap::Args)]
pub struct Plugin {
    /// First half of the name that pods use
    #[arg(long, value_name = "V", value_parser = vendor, default_value = "kubernetes.io")]
    pub vendor: String,
    /// Second half of the name that pods use
    #[arg(long, value_name = "D", value_parser = driver, default_value = "lvm")]
    pub driver: String,
}

impl Plugin {
    /// The name of the driver's directory in kubelet's plugin directory.
    pub fn directory(&self) -> String {
        format!("{}~{}", self.vendor, self.driver)
    }

    /// Whether a mount at this path is a volume of this driver, for a pod or for the whole node.
    pub fn is_mounted_at(&self, path: &Path) -> bool {
        let ends_with = |dir: Option<&Path>, name| dir.is_some_and(|dir| dir.ends_with(name));
        let dir = path.parent();
        match KubeletPath::of(path) {
            KubeletPath::Global => ends_with(dir.and_then(Path::parent), self.to_string()),
            KubeletPath::Pod { .. } => ends_with(dir, self.directory()),
            KubeletPath::Other => false,
        }
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vendor, self.driver)
    }
}

/// Parses a vendor's name. An error is one line for the command's user.
pub fn vendor(text: &str) -> Result<String, String> {
    /// A file name has at most 255 bytes. The name of the driver's directory, or of the kept config, also holds the
    /// driver's name.
    const LONGEST: usize = 170;
    if text.len() > LONGEST || ObjectName::parse(text).is_err() {
        return Err("not a DNS name in small letters, such as kubernetes.io".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses a driver's name. An error is one line for the command's user.
pub fn driver(text: &str) -> Result<String, String> {
    const LONGEST: usize = 63;
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text == "config.toml" {
        return Err("that is the config file's name".to_owned());
    }
    let at_end = |c: char| c.is_ascii_alphanumeric();
    let is_word = text.starts_with(at_end) && text.ends_with(at_end) && text.chars().all(inside);
    if text.len() > LONGEST || !is_word {
        return Err("not a name of letters, digits, '-', '_' and '.' (at most 63)".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_kubernetes_takes() {
        let long = "a".repeat(64);
        let cases = [
            ("kubernetes.io", "lvm", true, true),
            ("a-b.c", "Disk_1.x", true, true),
            ("", "", false, false),
            ("a~b", "a~b", false, false),
            ("a/b", "../lvm", false, false),
            (".a", ".lvm", false, false),
            ("a..b", "a\nb", false, false),
            ("Example.com", "-x", false, false),
            ("a-", &long, false, false),
            ("a", "config.toml", true, false),
        ];
        for (one, other, is_vendor, is_driver) in cases {
            assert_eq!(vendor(one).is_ok(), is_vendor, "{one:?}");
            assert_eq!(driver(other).is_ok(), is_driver, "{other:?}");
        }
    }

    #[test]
    fn knows_its_own_volumes() {
        let (vendor, driver) = ("example.com".to_owned(), "lvm".to_owned());
        let plugin = Plugin { vendor, driver };
        let global = "/k/plugins/kubernetes.io/flexvolume/example.com";
        let cases = [
            (format!("{global}/lvm/mounts/data"), true),
            (format!("{global}/lvm2/mounts/data"), false),
            ("/k/pods/1-2/volumes/example.com~lvm/data".to_owned(), true),
            (
                "/k/pods/1-2/volumes/kubernetes.io~lvm/data".to_owned(),
                false,
            ),
            (
                "/k/pods/1-2/volume-subpaths/example.com~lvm/c/0".to_owned(),
                false,
            ),
        ];
        for (path, want) in cases {
            assert_eq!(plugin.is_mounted_at(Path::new(&path)), want, "{path}");
        }
    }
}
