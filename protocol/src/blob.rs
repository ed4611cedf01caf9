//! A run of bytes with its maximum in its type: parts of snapshots and definitions, cut from one shared buffer.

use std::fmt;
use std::ops::Deref;

use bincode::de::Decoder;
use bincode::de::read::Reader;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use bytes::Bytes;
use sim::bounded::TooLong;

/// At most `MAX` bytes; cloning shares them.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Blob<const MAX: usize>(Bytes);

impl<const MAX: usize> Blob<MAX> {
    /// The bytes, if they are few enough.
    ///
    /// # Errors
    /// More than `MAX`.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, TooLong> {
        let bytes = bytes.into();
        if bytes.len() > MAX {
            Err(TooLong { limit: MAX })
        } else {
            Ok(Self(bytes))
        }
    }

    /// The bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl<const MAX: usize> Deref for Blob<MAX> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for Blob<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl<const MAX: usize> Encode for Blob<MAX> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.0[..].encode(encoder)
    }
}

/// Bytes read at once, so that memory grows with what is there and not with the length that is claimed.
const READ_BYTES: usize = 64 * 1024;

impl<const MAX: usize, Context> Decode<Context> for Blob<MAX> {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let length = usize::try_from(u64::decode(decoder)?).unwrap_or(usize::MAX);
        if length > MAX {
            return Err(DecodeError::OtherString(format!(
                "{length} bytes where at most {MAX} are allowed"
            )));
        }
        decoder.claim_bytes_read(length)?;
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let start = bytes.len();
            bytes.resize(length.min(start + READ_BYTES), 0);
            decoder.reader().read(&mut bytes[start..])?;
        }
        Ok(Self(bytes.into()))
    }
}

impl<'de, const MAX: usize, Context> bincode::BorrowDecode<'de, Context> for Blob<MAX> {
    fn borrow_decode<D: bincode::de::BorrowDecoder<'de, Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}
