//! LUKS2 on a logical volume, by cryptsetup(8). What may be done is decided elsewhere.
//!
//! - [`Header`]: what the volume has where its header should be, read by the driver itself and without a key.
//! - [`mapping`]: the device inside, while it is open, from the kernel's tables.
//! - [`read_key_file`]: a passphrase of the node. Each goes to cryptsetup through a pipe.
//! - `format`, `open`, `close`, `resize`: cryptsetup.
//! - [`keyslots_of`], [`opens`]: which passphrases a volume has; `Writing` adds and removes them for a person.

mod header;
mod key;
mod keys;
mod keyslots;
mod mapping;
mod tools;

/// What the process that reads devices is asked for.
pub const HEADER: &str = "luks";
pub const KEYSLOTS: &str = "luks-keyslots";

pub use header::{CopyState, HEADER_SIZE, Header, json, read};
pub use key::read_key_file;
pub use keys::{keyslots_of, opens};
pub use keyslots::{Keyslot, MOST as MOST_KEYSLOTS, parse as keyslots};
pub use mapping::{Mapping, all_open, is_inside, mapping, name_of, path_of, volume_below};
pub use tools::header_of;
pub(crate) use tools::{close, format, mark, open, resize};
