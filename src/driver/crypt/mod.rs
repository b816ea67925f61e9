//! LUKS2 on a logical volume, by cryptsetup(8). What may be done is decided elsewhere.

mod header;
mod mapping;
#[cfg(test)]
mod tests;
mod tools;

/// What the process that reads devices is asked for.
pub const HEADER: &str = "luks";

/// The cipher of a volume, and of its key in each slot: luksFormat's default everywhere.
pub const CIPHER: &str = "aes-xts-plain64";
/// Sizes of a key for this cipher, in bytes.
pub const KEY_SIZES: [u64; 2] = [32, 64];

#[cfg(test)]
pub use header::layout_of;
pub use header::{HEADER_SIZE, Header, Keyslot, Layout, Segment, read};
pub use mapping::{DmTable, all_open, luks_of, name_of, table_of, volume_below};
pub(crate) use tools::{close, format, open, resize};
pub use tools::{header_of, read_key_file};
