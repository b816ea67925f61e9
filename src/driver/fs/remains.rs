//! What removed volumes may have left on a device.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// Which remains of removed volumes a device may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// Remains that are older than the device's volume. The number is the time when that volume was created, in seconds
    /// since the epoch. 0: the time is not known.
    OlderThan(u64),
    /// No remains: this is the device inside an encrypted volume. Each such volume has its own key, so remains of
    /// another volume cannot be read.
    None,
}

impl FromStr for Remains {
    type Err = ParseIntError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            NOTHING => Ok(Self::None),
            time => time.parse().map(Self::OlderThan),
        }
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OlderThan(time) => time.fmt(f),
            Self::None => f.write_str(NOTHING),
        }
    }
}

const NOTHING: &str = "nothing";
