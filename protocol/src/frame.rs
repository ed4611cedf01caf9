//! Frames: `length: u32 little endian`, then that many bytes of payload (spec 4). Bytes may come in any pieces.

use bincode::Encode;
use bytes::{Buf, Bytes, BytesMut};

use crate::wire;

/// Bytes of the length field.
pub const LENGTH_BYTES: usize = 4;
/// Largest payload from a client that has not been admitted, bytes.
pub const FRAME_BYTES_BEFORE_ADMISSION_MAX: usize = 1024;
/// Largest payload from an admitted client, bytes.
pub const FRAME_BYTES_FROM_CLIENT_MAX: usize = 16 * 1024;
/// Largest payload from a server, bytes.
pub const FRAME_BYTES_FROM_SERVER_MAX: usize = 1024 * 1024;

const _: () = assert!(FRAME_BYTES_BEFORE_ADMISSION_MAX <= FRAME_BYTES_FROM_CLIENT_MAX);
const _: () = assert!(FRAME_BYTES_FROM_CLIENT_MAX <= FRAME_BYTES_FROM_SERVER_MAX);
const _: () = assert!(FRAME_BYTES_FROM_SERVER_MAX < u32::MAX as usize);

/// Room made at once for bytes that are about to be read.
const READ_BYTES: usize = 4 * 1024;

/// Why a stream of bytes cannot go on: always the sender's fault, and the stream is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A payload has at least its variant number.
    #[error("a frame without a payload")]
    Empty,
    /// Over the cap of this phase.
    #[error("a frame of {length} bytes where at most {cap} are allowed")]
    TooLarge {
        /// What the length field says.
        length: u32,
        /// What is allowed now.
        cap: usize,
    },
}

/// Cuts a stream of bytes into payloads. Memory grows with the bytes that arrive, never from a length field.
#[derive(Debug)]
pub struct FrameReader {
    buffer: BytesMut,
    cap: usize,
}

impl FrameReader {
    /// A reader for payloads of at most `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            cap,
        }
    }

    /// From now on payloads may have up to `cap` bytes.
    pub fn set_cap(&mut self, cap: usize) {
        self.cap = cap;
    }

    /// Takes bytes as they came.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The buffer with room at its end, to be read into from a socket (append only). To keep memory within one frame and
    /// one read, take all payloads by [`FrameReader::next_payload`] before reading again.
    pub fn space(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_BYTES);
        &mut self.buffer
    }

    /// The next whole payload; `None`: more bytes are needed.
    ///
    /// # Errors
    /// A length of 0 or over the cap, as soon as the length field is there.
    pub fn next_payload(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(length) = self.length() else {
            return Ok(None);
        };
        if length == 0 {
            return Err(FrameError::Empty);
        }
        if length as usize > self.cap {
            return Err(FrameError::TooLarge {
                length,
                cap: self.cap,
            });
        }
        let end = LENGTH_BYTES + length as usize;
        if self.buffer.len() < end {
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(end);
        frame.advance(LENGTH_BYTES);
        Ok(Some(frame.freeze()))
    }

    /// A frame has begun and is not whole: its deadline runs (spec 9.2).
    pub fn is_inside_frame(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// What has come and was not taken yet.
    pub fn pending(&self) -> &[u8] {
        &self.buffer
    }

    fn length(&self) -> Option<u32> {
        self.buffer.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// One message as a frame of its own buffer; clones of it share the bytes, so a broadcast is encoded once.
///
/// # Errors
/// The payload is over `cap`, which the peer would refuse.
pub fn encode<T: Encode>(message: &T, cap: usize) -> Result<Bytes, FrameError> {
    let mut buffer = BytesMut::new();
    encode_into(message, cap, &mut buffer)?;
    Ok(buffer.freeze())
}

/// Appends one message as a frame; after an error `buffer` is as it was.
///
/// # Errors
/// The payload is over `cap`, which the peer would refuse.
pub fn encode_into<T: Encode>(message: &T, cap: usize, buffer: &mut BytesMut) -> Result<(), FrameError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; LENGTH_BYTES]);
    wire::encode_into(message, buffer);
    let length = buffer.len() - start - LENGTH_BYTES;
    if length > cap {
        buffer.truncate(start);
        return Err(FrameError::TooLarge {
            length: u32::try_from(length).unwrap_or(u32::MAX),
            cap,
        });
    }
    buffer[start..start + LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// A message from a client as a frame.
///
/// # Errors
/// It is too large.
pub fn encode_client(message: &crate::ClientMessage) -> Result<Bytes, FrameError> {
    encode(message, FRAME_BYTES_FROM_CLIENT_MAX)
}

/// A message from a server as a frame.
///
/// # Errors
/// It is too large.
pub fn encode_server(message: &crate::ServerMessage) -> Result<Bytes, FrameError> {
    encode(message, FRAME_BYTES_FROM_SERVER_MAX)
}
