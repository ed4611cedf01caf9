//! The encoding of payloads: bincode 2's standard configuration (little endian, variable-length integers), always with
//! a limit. The library lives behind this module; the bytes are specified by docs/PROTOCOL.md (spec 9.2).
//!
//! Longer forms of an integer than needed are understood but never written: whatever is kept or passed on is encoded
//! again from the checked value, never copied from a peer's bytes.

use bincode::config::{Configuration, LittleEndian, NoLimit, Varint};
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use bincode::{Decode, Encode};
use bytes::{BufMut, BytesMut};

use crate::frame::{
    FRAME_BYTES_BEFORE_ADMISSION_MAX, FRAME_BYTES_FROM_CLIENT_MAX, FRAME_BYTES_FROM_SERVER_MAX,
};
use crate::message::{ClientMessage, ServerMessage};

/// A decoded value may take this many times the bytes of the largest frame: a command of two bytes is a large enum.
const DECODED_BYTES_PER_BYTE_MAX: usize = 32;
/// Memory that decoding a `Hello` may claim, bytes.
pub const HELLO_DECODED_BYTES_MAX: usize = DECODED_BYTES_PER_BYTE_MAX * FRAME_BYTES_BEFORE_ADMISSION_MAX;
/// Memory that decoding a client's message may claim, bytes.
pub const CLIENT_DECODED_BYTES_MAX: usize = DECODED_BYTES_PER_BYTE_MAX * FRAME_BYTES_FROM_CLIENT_MAX;
/// Memory that decoding a server's message may claim, bytes.
pub const SERVER_DECODED_BYTES_MAX: usize = DECODED_BYTES_PER_BYTE_MAX * FRAME_BYTES_FROM_SERVER_MAX;

/// Why a payload is no message: always the sender's fault.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// It ends too early, a limit is passed, a number names nothing, a text is no UTF-8.
    #[error("not a valid payload: {0}")]
    Undecodable(#[from] bincode::error::DecodeError),
    /// More bytes than the value has.
    #[error("{0} bytes after the end of the payload")]
    Trailing(usize),
}

/// The value that `bytes` hold, all of them; decoding claims at most `LIMIT` bytes of memory.
///
/// # Errors
/// Anything that is not exactly one value within the limit.
pub fn decode<T: Decode<()>, const LIMIT: usize>(bytes: &[u8]) -> Result<T, WireError> {
    let (value, rest) = decode_prefix::<T, LIMIT>(bytes)?;
    match rest.len() {
        0 => Ok(value),
        rest => Err(WireError::Trailing(rest)),
    }
}

/// The value that `bytes` begin with, and the bytes behind it; decoding claims at most `LIMIT` bytes of memory.
///
/// # Errors
/// Bytes that begin with no value within the limit.
pub fn decode_prefix<T: Decode<()>, const LIMIT: usize>(bytes: &[u8]) -> Result<(T, &[u8]), WireError> {
    let configuration = bincode::config::standard().with_limit::<LIMIT>();
    let (value, consumed) = bincode::decode_from_slice(bytes, configuration)?;
    Ok((value, &bytes[consumed..]))
}

/// A message from a client whose `Hello` has been accepted.
///
/// # Errors
/// As [`decode`].
pub fn decode_client(payload: &[u8]) -> Result<ClientMessage, WireError> {
    decode::<_, CLIENT_DECODED_BYTES_MAX>(payload)
}

/// A message from a server.
///
/// # Errors
/// As [`decode`].
pub fn decode_server(payload: &[u8]) -> Result<ServerMessage, WireError> {
    decode::<_, SERVER_DECODED_BYTES_MAX>(payload)
}

/// Appends the bytes of a value.
pub fn encode_into<T: Encode>(value: &T, bytes: &mut BytesMut) {
    bincode::encode_into_writer(value, Appender(bytes), ENCODING).expect("memory takes every value");
}

/// The bytes of a value.
pub fn encode<T: Encode>(value: &T) -> Vec<u8> {
    bincode::encode_to_vec(value, ENCODING).expect("memory takes every value")
}

const ENCODING: Configuration<LittleEndian, Varint, NoLimit> = bincode::config::standard();

struct Appender<'a>(&'a mut BytesMut);

impl Writer for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.put_slice(bytes);
        Ok(())
    }
}
