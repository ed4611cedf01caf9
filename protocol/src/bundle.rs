//! The definition of a location as one value with one hash (spec 5.3): the only identity that a map has.

use bincode::{Decode, Encode};

use crate::wire::{self, WireError};

/// Bytes of an encoded bundle, and what decoding one may claim beside.
pub const BUNDLE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Decoded, a bundle has the bytes of its files and a little for each name.
const BUNDLE_DECODED_BYTES_MAX: usize = 2 * BUNDLE_BYTES_MAX;

/// A location file, the maps that it names, and what flags overrode.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Bundle {
    /// The location file as read.
    pub location: Vec<u8>,
    /// Overrides the file's tick rate.
    pub tick_rate: Option<u16>,
    /// Overrides how many of the file's bots there are.
    pub bots: Option<u32>,
    /// The map files as read, under the paths that the location file uses, sorted by the paths' bytes.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Why bytes are no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Over [`BUNDLE_BYTES_MAX`].
    #[error("a definition of {0} bytes where at most {BUNDLE_BYTES_MAX} are allowed")]
    TooLarge(usize),
    /// Not a bundle.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Two definitions with the same files would have two hashes.
    #[error("the files of a definition are not sorted by their paths, or one is there twice")]
    Order,
}

impl Bundle {
    /// A bundle of these files, put in their order.
    pub fn new(
        location: Vec<u8>,
        tick_rate: Option<u16>,
        bots: Option<u32>,
        mut files: Vec<(String, Vec<u8>)>,
    ) -> Self {
        files.sort();
        Self {
            location,
            tick_rate,
            bots,
            files,
        }
    }

    /// The canonical bytes.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// From the canonical bytes.
    ///
    /// # Errors
    /// Too many bytes, not a bundle, files out of order.
    pub fn decode(bytes: &[u8]) -> Result<Self, BundleError> {
        if bytes.len() > BUNDLE_BYTES_MAX {
            return Err(BundleError::TooLarge(bytes.len()));
        }
        let bundle: Self = wire::decode::<_, BUNDLE_DECODED_BYTES_MAX>(bytes)?;
        if bundle.files.is_sorted_by(|a, b| a.0 < b.0) {
            Ok(bundle)
        } else {
            Err(BundleError::Order)
        }
    }

    /// BLAKE3 of the canonical bytes.
    pub fn hash(&self) -> [u8; 32] {
        hash(&self.encode())
    }
}

/// The hash of a bundle of which the canonical bytes are at hand.
pub fn hash(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}
