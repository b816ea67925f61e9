//! The passphrase of an encrypted volume. It is never shown, and its memory is wiped.

use std::fmt;
use std::sync::Arc;

use anyhow::{Result, bail};
use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

/// The longest passphrase, in bytes: as much as a pipe holds.
pub const LONGEST: usize = 64 << 10;

/// A newline at the end belongs to the passphrase. Clones share the memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Arc<Zeroizing<Vec<u8>>>);

impl Passphrase {
    pub fn of(bytes: Zeroizing<Vec<u8>>) -> Result<Self> {
        if bytes.is_empty() {
            bail!("it is empty");
        }
        if bytes.len() > LONGEST {
            bail!("it is longer than 64 KiB");
        }
        Ok(Self(Arc::new(bytes)))
    }

    /// Decodes a value of a Secret, which kubelet writes in base64.
    pub fn from_base64(text: &str) -> Result<Self> {
        let base64 = text.trim_end();
        let mut bytes = Zeroizing::new(vec![0; base64.len()]);
        let Ok(decoded) = Base64::decode(base64, &mut bytes) else {
            bail!("it is not base64, as kubelet writes it");
        };
        let length = decoded.len();
        bytes.truncate(length);
        Self::of(bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_of_it_count_and_none_is_shown() {
        let cases: [(&str, Option<&[u8]>); 6] = [
            ("a2V5", Some(b"key")),
            ("a2V5Cg==", Some(b"key\n")),
            ("AP8=", Some(&[0, 255])),
            ("", None),
            ("a2V5Cg", None),
            ("not base64!", None),
        ];
        for (text, want) in cases {
            let found = Passphrase::from_base64(text);
            assert_eq!(found.as_ref().ok().map(Passphrase::bytes), want, "{text}");
            assert!(!format!("{found:?}").contains("key"), "{text}");
        }
        for (length, fits) in [(LONGEST, true), (LONGEST + 1, false)] {
            assert_eq!(
                Passphrase::of(Zeroizing::new(vec![7; length])).is_ok(),
                fits
            );
        }
    }
}
