//! LUKS2 on a logical volume, by cryptsetup(8). `volume/decide` decides what may be done.

mod anew;
mod header;
mod kernel;
mod layout;
mod mapping;
#[cfg(test)]
mod tests;
mod tools;

/// Requests to the process that reads devices: read the header, or copy the encrypted keys to a file.
pub const HEADER: &str = "luks";
pub const KEYS: &str = "luks-keys";

/// The cipher of a volume, and of its key in each slot. This is luksFormat's default in every distribution.
pub const CIPHER: &str = "aes-xts-plain64";
/// Sizes of a key for this cipher, in bytes.
pub const KEY_SIZES: [u64; 3] = [32, 48, 64];

pub use anew::{copy_keys, template};
pub use header::{HEADER_SIZE, Header, read};
pub use kernel::{modules_are_gone, require_dm_crypt};
#[cfg(test)]
pub use layout::layout_of;
pub use layout::{KeyDigest, Keyslot, Layout, Segment};
pub use mapping::{DmTable, Luks, Unlocked, all_open, luks_of, name_of, table_of, volume_below};
#[cfg(test)]
pub use tests::LAYOUT;
pub(crate) use tools::{Closed, close, format, open, resize};
pub use tools::{header_of, read_key_file, require_key_file};
