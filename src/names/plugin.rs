//! The driver's own name in Kubernetes.

use std::fmt;

/// The driver's name as pods say it, `<vendor>/<driver>`.
///
/// It has two readers: `<vendor>~<driver>` is a directory in which kubelet turns `~` into `/`, and
/// the result must be a qualified name to Kubernetes. Source: kubelet's
/// `pkg/volume/flexvolume/probe.go` and apimachinery's `IsQualifiedName`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    vendor: String,
    driver: String,
}

impl Plugin {
    /// A plugin of two names that have been parsed.
    #[must_use]
    pub fn new(vendor: String, driver: String) -> Self {
        Self { vendor, driver }
    }

    /// Its directory in kubelet's plugin directory.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("{}~{}", self.vendor, self.driver)
    }

    /// The first half.
    #[must_use]
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// The second half, which is also the executable's name.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.driver
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vendor, self.driver)
    }
}

/// A vendor's name.
///
/// # Errors
/// One line for the command's user.
pub fn vendor(text: &str) -> Result<String, String> {
    /// A file's name may have 255 bytes, and the driver's name comes after it.
    const LONGEST: usize = 170;
    let is_label = |label: &str| {
        let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() <= LONGEST && text.split('.').all(is_label) {
        Ok(text.to_owned())
    } else {
        Err("not a DNS name in small letters, such as kubernetes.io".to_owned())
    }
}

/// A driver's name.
///
/// # Errors
/// One line for the command's user.
pub fn driver(text: &str) -> Result<String, String> {
    const LONGEST: usize = 63;
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let at_ends = |c: char| c.is_ascii_alphanumeric();
    if text == "config.toml" {
        return Err("that is the config file's name".to_owned());
    }
    if text.len() <= LONGEST
        && text.chars().all(inside)
        && text.starts_with(at_ends)
        && text.ends_with(at_ends)
    {
        Ok(text.to_owned())
    } else {
        Err("not a name of letters, digits, '-', '_' and '.' (at most 63)".to_owned())
    }
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
}
