//! The definition of a location as one value with one hash (spec 5.3): the only identity that a map has.

use std::io::{self, ErrorKind, Read};

use bincode::de::Decoder;
use bincode::error::DecodeError;
use bincode::{Decode, Encode, impl_borrow_decode};
use nav::Problems;
use sim::bounded::Text;
use sim::{Definition, Sources};

use crate::blob::Blob;
use crate::wire::{self, WireError};

/// Bytes of an encoded bundle.
pub const BUNDLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Map files of a location.
pub const FILES_MAX: usize = 4_096;
/// Bytes of a map file's path.
pub const PATH_BYTES_MAX: usize = 4_096;

const COMPRESSION_LEVEL: i32 = 3;
/// Memory that unpacking may want for looking back, as a power of two: 8 MiB, more than packing uses.
const WINDOW_LOG_MAX: u32 = 23;

/// Decoded, a bundle has the bytes of its files and a little for each name.
const BUNDLE_DECODED_BYTES_MAX: usize = 2 * BUNDLE_BYTES_MAX;

/// A location file, the maps that it names, and what flags overrode.
#[derive(Clone, Debug, PartialEq, Eq, Encode)]
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

/// Why something is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Over [`BUNDLE_BYTES_MAX`].
    #[error("a definition of {0} bytes where at most {BUNDLE_BYTES_MAX} are allowed")]
    TooLarge(usize),
    /// Over [`FILES_MAX`] or [`PATH_BYTES_MAX`].
    #[error("more than {FILES_MAX} map files, or a path of more than {PATH_BYTES_MAX} bytes")]
    Files,
    /// Two definitions with the same files would have two hashes.
    #[error("the files of a definition are not sorted by their paths, or one is there twice")]
    Order,
    /// Not a bundle.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A definition with another hash than it should have.
    #[error("not the definition that is named")]
    Other,
    /// Not compressed bytes of the length that is named.
    #[error("cannot be unpacked: {0}")]
    Unpack(io::Error),
}

impl Bundle {
    /// A bundle of these files, put in their order.
    ///
    /// # Errors
    /// What [`Bundle::decode`] would refuse: too many or too large, a path twice.
    pub fn new(
        location: Vec<u8>,
        tick_rate: Option<u16>,
        bots: Option<u32>,
        mut files: Vec<(String, Vec<u8>)>,
    ) -> Result<Self, BundleError> {
        if files.len() > FILES_MAX || files.iter().any(|(path, _)| path.len() > PATH_BYTES_MAX) {
            return Err(BundleError::Files);
        }
        files.sort();
        let bundle = Self {
            location,
            tick_rate,
            bots,
            files,
        };
        let length = bundle.encode().len();
        if length > BUNDLE_BYTES_MAX {
            return Err(BundleError::TooLarge(length));
        }
        bundle.checked()
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
        wire::decode::<Self, BUNDLE_DECODED_BYTES_MAX>(bytes)?.checked()
    }

    /// The canonical bytes compressed: their length as a `u64` as on the wire, then one zstd frame. So the journal's
    /// Definition record and a [`Report`](crate::Report) hold it.
    pub fn pack(&self) -> Vec<u8> {
        pack(&self.encode())
    }

    /// From what [`Bundle::pack`] gave.
    ///
    /// # Errors
    /// Not exactly that, or more than a definition may be.
    pub fn unpack(packed: &[u8]) -> Result<Self, BundleError> {
        let (length, frame) = wire::decode_prefix::<u64, 9>(packed)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > BUNDLE_BYTES_MAX {
            return Err(BundleError::TooLarge(length));
        }
        let bytes = decompress(frame, length).map_err(BundleError::Unpack)?;
        if bytes.len() != length {
            return Err(BundleError::TooLarge(bytes.len()));
        }
        Self::decode(&bytes)
    }

    /// BLAKE3 of the canonical bytes.
    pub fn hash(&self) -> [u8; 32] {
        hash(&self.encode())
    }

    /// Reads the location and its maps by the same parsers as the server; no path is opened.
    ///
    /// # Errors
    /// Every problem in every file, each with its place; the location file is called `location_file` there.
    pub fn definition(&self, location_file: &str) -> Result<Definition, Problems> {
        Definition::load(&Sources {
            location_file,
            location: &self.location,
            tick_rate: self.tick_rate,
            bots: self.bots,
            files: &self.files,
        })
    }

    fn checked(self) -> Result<Self, BundleError> {
        if self.files.is_sorted_by(|a, b| a.0 < b.0) {
            Ok(self)
        } else {
            Err(BundleError::Order)
        }
    }
}

/// As [`Bundle::pack`], of the canonical bytes.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = wire::encode(&(bytes.len() as u64));
    packed.extend(zstd::bulk::compress(bytes, COMPRESSION_LEVEL).expect("memory takes the compressed bytes"));
    packed
}

/// The content of exactly one zstd frame, or a byte more than `bytes_max`. Memory grows as it comes, whatever the frame says
/// of its length.
fn decompress(frame: &[u8], bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(frame)?.single_frame();
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut decoder)
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)?;
    if decoder.finish().is_empty() {
        Ok(bytes)
    } else {
        Err(io::Error::new(ErrorKind::InvalidData, "bytes behind the end"))
    }
}

/// The hash of a bundle of which the canonical bytes are at hand.
pub fn hash(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

impl<Context> Decode<Context> for Bundle {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let location = file(decoder)?;
        let tick_rate = Option::<u16>::decode(decoder)?;
        let bots = Option::<u32>::decode(decoder)?;
        let count = u64::decode(decoder)?;
        if count > FILES_MAX as u64 {
            return Err(DecodeError::Other("more map files than a location may have"));
        }
        let mut files = Vec::new();
        for _ in 0..count {
            let path = Text::<PATH_BYTES_MAX>::decode(decoder)?;
            files.push((path.to_string(), file(decoder)?));
        }
        Ok(Self {
            location,
            tick_rate,
            bots,
            files,
        })
    }
}

impl_borrow_decode!(Bundle);

/// The bytes of one file; memory grows as they are read.
fn file<D: Decoder>(decoder: &mut D) -> Result<Vec<u8>, DecodeError> {
    Ok(Blob::<BUNDLE_BYTES_MAX>::decode(decoder)?.into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(paths: &[&str]) -> Result<Bundle, BundleError> {
        let files = paths
            .iter()
            .map(|path| (path.to_string(), path.as_bytes().to_vec()));
        Bundle::new(b"{}".to_vec(), Some(30), None, files.collect())
    }

    #[test]
    fn files_are_sorted_and_the_hash_is_of_the_bytes() {
        let sorted = bundle(&["a", "b"]).expect("fits");
        assert_eq!(sorted, bundle(&["b", "a"]).expect("fits"));
        assert_eq!(Bundle::decode(&sorted.encode()).expect("a bundle"), sorted);
        assert_eq!(sorted.hash(), hash(&sorted.encode()));
        assert!(matches!(bundle(&["a", "a"]), Err(BundleError::Order)));
    }

    #[test]
    fn what_was_packed_is_unpacked_and_nothing_else() {
        let sound = bundle(&["a", "b"]).expect("fits");
        let packed = sound.pack();
        assert_eq!(Bundle::unpack(&packed).expect("what was packed"), sound);
        let refused = |packed: &[u8]| assert!(Bundle::unpack(packed).is_err(), "{packed:02x?}");
        refused(&[&packed[..], b"\0"].concat());
        (0..packed.len()).for_each(|length| refused(&packed[..length]));
        // A byte more and a byte less than it says.
        for length in [packed[0] + 1, packed[0] - 1] {
            refused(&[&[length], &packed[1..]].concat());
        }
        // It says that it has 64 MiB, and has nothing.
        refused(b"\xfc\0\0\0\x04\x28\xb5\x2f\xfd\xa0\0\0\0\x04");
    }

    #[test]
    fn unsorted_files_and_false_lengths_are_refused() {
        let mut unsorted = bundle(&["a", "b"]).expect("fits");
        unsorted.files.swap(0, 1);
        assert!(matches!(
            Bundle::decode(&unsorted.encode()),
            Err(BundleError::Order)
        ));
        // A file that says it has 2^32 bytes, one that says it has 60 MiB.
        for length in [1u64 << 32, 60 << 20] {
            assert!(matches!(
                Bundle::decode(&wire::encode(&length)),
                Err(BundleError::Wire(_))
            ));
        }
    }
}
