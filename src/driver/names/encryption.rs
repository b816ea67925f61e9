use anyhow::Result;
use serde::Deserialize;
use strum::{Display, EnumString};

use super::invalid;

/// How a volume is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Encryption {
    Luks2,
}

impl Encryption {
    pub fn parse(name: &str) -> Result<Self> {
        name.parse()
            .map_err(|_| invalid(name, "kind of encryption of this driver; it knows luks2"))
    }
}
