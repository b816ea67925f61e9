//! LUKS2 on a logical volume, by cryptsetup(8). What may be done is decided elsewhere.
//!
//! - [`Header`]: what the volume has where its header should be, read by the driver itself and without a key.
//! - [`mapping`]: the device inside, while it is open, from the kernel's tables.
//! - [`read_key_file`]: a passphrase of the node. Each goes to cryptsetup through a pipe.
//! - `format`, `open`, `close`, `resize`: cryptsetup.
//! - [`Layout`], [`table_of`]: how it is encrypted, by its header and by the kernel.

mod header;
mod key;
mod layout;
mod mapping;
mod table;
mod tools;

/// What the process that reads devices is asked for.
pub const HEADER: &str = "luks";

/// The cipher of a volume, and of its key in each slot: luksFormat's default everywhere.
pub const CIPHER: &str = "aes-xts-plain64";
/// Sizes of a key for this cipher, in bytes.
pub const KEY_SIZES: [u64; 2] = [32, 64];

pub use header::{HEADER_SIZE, Header, read};
pub use key::read_key_file;
pub use layout::{Keyslot, Layout, Segment};
pub use mapping::{Mapping, all_open, is_inside, mapping, mapping_of, name_of, volume_below};
pub use table::{DmTable, table_of};
pub use tools::header_of;
pub(crate) use tools::{close, format, open, resize};
