use std::fmt;

use anyhow::Result;

use super::invalid;

/// The name of an object in Kubernetes: a DNS subdomain of RFC 1123. It fits into a tag of LVM.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName(String);

impl ObjectName {
    pub fn parse(text: &str) -> Result<Self> {
        const LONGEST: usize = 253;
        let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_label = |label: &str| {
            label.starts_with(is_good)
                && label.ends_with(is_good)
                && label.chars().all(|c| is_good(c) || c == '-')
        };
        if text.len() > LONGEST || !text.split('.').all(is_label) {
            let why = format!(
                "name to Kubernetes, which takes a-z, 0-9, hyphens and dots, up to {LONGEST} characters, with \
                 a letter or digit at both ends"
            );
            return Err(invalid(text, &why));
        }
        Ok(Self(text.to_owned()))
    }

    /// A volume's name in a call-out. kubelet takes it from an object. A person's call may also have capitals, `_`
    /// and `+`, which a tag can hold: lvm(8), "TAGS".
    pub fn of_volume(text: &str) -> Result<Self> {
        let plain = text.to_ascii_lowercase().replace(['_', '+'], "0");
        Self::parse(&plain).or_else(|_| Self::parse(text))?;
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
