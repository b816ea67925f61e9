//! The UUID of a logical volume, which LVM writes with hyphens and device-mapper without.

use std::fmt;

/// The UUID of a filesystem or a LUKS2 header as it is written. `plain`: 32 hexadecimal digits.
pub fn with_hyphens(mut plain: String) -> String {
    for hyphen in [20, 16, 12, 8] {
        plain.insert(hyphen, '-');
    }
    plain
}

/// The UUID of a logical volume, which keeps it when its name changes. Source: lvm2 lib/uuid/uuid.c: 32
/// characters, for people in groups of 6, 4, 4, 4, 4, 4 and 6.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LvUuid(String);

impl LvUuid {
    /// Takes either form.
    pub fn of(text: &str) -> Self {
        Self(text.replace('-', ""))
    }

    /// The UUID without hyphens, as device-mapper writes it.
    pub fn plain(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LvUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ENDS: [usize; 6] = [6, 10, 14, 18, 22, 26];
        for (at, character) in self.0.chars().enumerate() {
            if ENDS.contains(&at) {
                f.write_str("-")?;
            }
            write!(f, "{character}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_one_uuid() {
        let shown = "xtUTfc-ic3C-0AzY-Yrmh-qYaR-Eh8t-XmOJUh";
        let uuid = LvUuid::of(shown);
        assert_eq!(uuid.to_string(), shown);
        assert_eq!(LvUuid::of(uuid.plain()), uuid);
    }
}
