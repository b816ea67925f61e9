//! What may be left on a device of the volumes that were there before.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// Which remains of removed volumes a device may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// Remains that are older than this volume, which was created at this time, in seconds since the epoch. 0: the time
    /// is not known.
    Before(u64),
    /// None: this is the device inside an encrypted volume, and each such volume has its own key.
    Nothing,
}

impl FromStr for Past {
    type Err = ParseIntError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            NOTHING => Ok(Self::Nothing),
            time => time.parse().map(Self::Before),
        }
    }
}

impl fmt::Display for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(time) => time.fmt(f),
            Self::Nothing => f.write_str(NOTHING),
        }
    }
}

const NOTHING: &str = "nothing";
