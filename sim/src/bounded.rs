//! Strings and lists whose maximum is part of their type: what decodes is within its limit (spec 4.3, 9.2).

use std::fmt;
use std::ops::Deref;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use serde::{Serialize, Serializer};

/// More bytes or elements than the limit named by the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("longer than {limit}")]
pub struct TooLong {
    /// Bytes of a string or elements of a list.
    pub limit: usize,
}

/// UTF-8 text of at most `MAX` bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Text<const MAX: usize>(String);

impl<const MAX: usize> Text<MAX> {
    /// The text, if it is short enough.
    ///
    /// # Errors
    /// More than `MAX` bytes.
    pub fn new(text: impl Into<String>) -> Result<Self, TooLong> {
        let text = text.into();
        if text.len() > MAX {
            Err(TooLong { limit: MAX })
        } else {
            Ok(Self(text))
        }
    }

    /// The longest prefix of whole characters that fits: for texts that only people read.
    pub fn cut(text: &str) -> Self {
        let mut end = text.len().min(MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Self(text[..end].to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> Deref for Text<MAX> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> fmt::Debug for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<const MAX: usize> Serialize for Text<MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<const MAX: usize> Encode for Text<MAX> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.0.encode(encoder)
    }
}

impl<const MAX: usize, Context> Decode<Context> for Text<MAX> {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let bytes = List::<u8, MAX>::decode(decoder)?.0;
        String::from_utf8(bytes)
            .map(Self)
            .map_err(|error| DecodeError::Utf8 {
                inner: error.utf8_error(),
            })
    }
}

impl<'de, const MAX: usize, Context> bincode::BorrowDecode<'de, Context> for Text<MAX> {
    fn borrow_decode<D: bincode::de::BorrowDecoder<'de, Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

/// At most `MAX` elements.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct List<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> List<T, MAX> {
    /// The list, if it is short enough.
    ///
    /// # Errors
    /// More than `MAX` elements.
    pub fn new(items: Vec<T>) -> Result<Self, TooLong> {
        if items.len() > MAX {
            Err(TooLong { limit: MAX })
        } else {
            Ok(Self(items))
        }
    }

    /// The elements.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }

    /// Removes all elements, keeping their memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T: Copy, const MAX: usize> List<T, MAX> {
    /// Becomes the first `MAX` of `items`, reusing its memory; whether some were cut off.
    pub fn fill_cut(&mut self, items: &[T]) -> bool {
        self.0.clear();
        self.0.extend_from_slice(&items[..items.len().min(MAX)]);
        items.len() > MAX
    }
}

impl<T, const MAX: usize> Deref for List<T, MAX> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: fmt::Debug, const MAX: usize> fmt::Debug for List<T, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<T: Serialize, const MAX: usize> Serialize for List<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: Encode + 'static, const MAX: usize> Encode for List<T, MAX> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.0.encode(encoder)
    }
}

/// Elements for which memory is set aside before the first has been read; the rest grows as they arrive.
const RESERVED_ELEMENTS_MAX: usize = 64;

impl<T: Decode<Context>, const MAX: usize, Context> Decode<Context> for List<T, MAX> {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let length = usize::try_from(u64::decode(decoder)?).unwrap_or(usize::MAX);
        if length > MAX {
            return Err(DecodeError::OtherString(format!(
                "{length} elements where at most {MAX} are allowed"
            )));
        }
        decoder.claim_container_read::<T>(length)?;
        let mut items = Vec::with_capacity(length.min(RESERVED_ELEMENTS_MAX));
        for _ in 0..length {
            decoder.unclaim_bytes_read(size_of::<T>());
            items.push(T::decode(decoder)?);
        }
        Ok(Self(items))
    }
}

impl<'de, T: Decode<Context>, const MAX: usize, Context> bincode::BorrowDecode<'de, Context>
    for List<T, MAX>
{
    fn borrow_decode<D: bincode::de::BorrowDecoder<'de, Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}
