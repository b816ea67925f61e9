//! LUKS2 on a logical volume, by cryptsetup(8). What may be done is decided elsewhere.
//!
//! - [`Header`]: what the volume has where its header should be, read by the driver itself and without a key.
//! - [`mapping`]: the device inside, while it is open, from the kernel's tables.
//! - [`Key`]: where the passphrase comes from. It goes to cryptsetup through a pipe.
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

pub use header::{CopyState, Header, json, read};
pub use key::{Key, key_of};
pub(crate) use keys::{add_key, back_up, look_inside, remove_key};
pub use keys::{is_wrong_passphrase, keyslots_of, opens};
pub use keyslots::{Keyslot, MOST as MOST_KEYSLOTS, parse as keyslots};
pub use mapping::{Mapping, all_open, is_inside, mapping, name_of, path_of, volume_below};
pub use tools::header_of;
pub(crate) use tools::{Opening, close, format, open, resize};
