//! The first frames of a connection as state machines, one for each side; the shell moves the bytes and keeps the
//! deadline (spec 4.3 to 4.7, 9.1).
//!
//! ```text
//! client                         server
//! Hello ───────────────────────▶ is it this protocol, this version, readable?   else Reject, or only a close
//!                                (the server decides: name, role, feed, resume)  else Reject
//! ◀─────────────────────────────  Welcome
//! ```
//! Before admission no reply is longer than the request, so that nobody can be made to flood somebody else.

use bytes::{Bytes, BytesMut};

use crate::codes::Code;
use crate::frame::{
    self, FRAME_BYTES_BEFORE_ADMISSION_MAX, FRAME_BYTES_FROM_CLIENT_MAX, FRAME_BYTES_FROM_SERVER_MAX,
    FrameError, FrameReader, LENGTH_BYTES,
};
use crate::message::{ClientMessage, Explanation, Hello, ServerMessage, Welcome};
use crate::wire::{self, HELLO_DECODED_BYTES_MAX, WireError};
use crate::{FEATURES, MAGIC, VERSION, VERSION_MIN};

/// Bytes of a Hello's payload that never change: variant, magic, version (spec 4.7).
const HELLO_PREFIX_BYTES: usize = 6;
/// Bytes of a Reject's frame with an empty message: length, variant, code, two versions, length of the text.
const REJECT_BYTES_MIN: usize = LENGTH_BYTES + 5;

// Each is one byte as long as it is below 251.
const _: () = assert!(Code::REJECT_NO_ROOM.0 < 251 && VERSION < 251);
// A stream that is no frame of ours is judged by its first bytes, and those can be answered.
const _: () = assert!(LENGTH_BYTES + HELLO_PREFIX_BYTES >= REJECT_BYTES_MIN);

/// The server's side until the Hello has been read.
#[derive(Debug)]
pub struct ServerHandshake {
    reader: FrameReader,
    request_bytes: usize,
}

/// What the bytes so far say to the server.
#[derive(Debug)]
pub enum Opening {
    /// Nothing yet: more bytes are needed.
    NeedMore,
    /// Somebody asks in this version; whether it may come in is the server's to decide.
    Hello(Box<Hello>),
    /// Not to be let in: send the reply if there is one, then close.
    Refused {
        /// Why.
        code: Code,
        /// A whole frame; `None` where even the shortest would be longer than the request.
        reply: Option<Bytes>,
    },
}

impl Default for ServerHandshake {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerHandshake {
    /// A connection that has just been accepted.
    pub fn new() -> Self {
        Self {
            reader: FrameReader::new(FRAME_BYTES_BEFORE_ADMISSION_MAX),
            request_bytes: 0,
        }
    }

    /// The reader, to be filled from the socket.
    pub fn reader(&mut self) -> &mut FrameReader {
        &mut self.reader
    }

    /// Judges what has come. After anything but [`Opening::NeedMore`] it is not to be called again.
    pub fn advance(&mut self) -> Opening {
        match self.reader.next_payload() {
            Ok(Some(payload)) => {
                self.request_bytes = LENGTH_BYTES + payload.len();
                match read_hello(&payload) {
                    Ok(hello) => Opening::Hello(hello),
                    Err(code) => self.refuse(code),
                }
            }
            Ok(None) => Opening::NeedMore,
            Err(FrameError::Empty) => {
                self.request_bytes = LENGTH_BYTES;
                self.refuse(Code::REJECT_NOT_THIS_PROTOCOL)
            }
            Err(FrameError::TooLarge { .. }) => {
                // Waiting for the bytes that say what it is makes the answer the same however they are split.
                let pending = self.reader.pending();
                let Some(prefix) = pending.get(LENGTH_BYTES..LENGTH_BYTES + HELLO_PREFIX_BYTES) else {
                    return Opening::NeedMore;
                };
                let code = judge_prefix(prefix).err().unwrap_or(Code::REJECT_BAD_FRAME);
                self.request_bytes = LENGTH_BYTES + HELLO_PREFIX_BYTES;
                self.refuse(code)
            }
        }
    }

    /// A Reject for a Hello that was read, its text cut so that the reply is no longer than the request; `None`: only
    /// close.
    pub fn reject(&self, code: Code, message: &str) -> Option<Bytes> {
        reject(code, message, self.request_bytes)
    }

    /// Admitted: the reader with what came after the Hello, for frames of an admitted client.
    pub fn into_reader(mut self) -> FrameReader {
        self.reader.set_cap(FRAME_BYTES_FROM_CLIENT_MAX);
        self.reader
    }

    fn refuse(&self, code: Code) -> Opening {
        Opening::Refused {
            code,
            reply: self.reject(code, ""),
        }
    }
}

/// A Reject of at most `request_bytes` bytes, frame included; `None` if there is none so short.
pub fn reject(code: Code, message: &str, request_bytes: usize) -> Option<Bytes> {
    let room = request_bytes.checked_sub(REJECT_BYTES_MIN)?;
    // A text of more than 250 bytes has a longer length field.
    let mut text = Explanation::cut(message);
    if text.len() > room.min(250) {
        text = Explanation::cut(cut(&text, room.min(250)));
    }
    let reply = ServerMessage::Reject {
        code,
        min_version: VERSION_MIN,
        max_version: VERSION,
        message: text,
    };
    let reply = frame::encode_server(&reply).ok()?;
    (reply.len() <= request_bytes).then_some(reply)
}

/// The Hello in the first payload of a connection, or why it is none.
fn read_hello(payload: &[u8]) -> Result<Box<Hello>, Code> {
    judge_prefix(payload)?;
    match wire::decode::<ClientMessage, HELLO_DECODED_BYTES_MAX>(payload) {
        Ok(ClientMessage::Hello(hello)) if hello.view.is_none_or(|view| view.is_valid()) => Ok(hello),
        _ => Err(Code::REJECT_BAD_FRAME),
    }
}

/// What the first six bytes of a payload say: they are the same in every version, the rest need not be.
fn judge_prefix(payload: &[u8]) -> Result<(), Code> {
    match payload {
        [0, a, b, c, d, version, ..] if [*a, *b, *c, *d] == MAGIC => judge_version(*version),
        _ => Err(Code::REJECT_NOT_THIS_PROTOCOL),
    }
}

fn judge_version(version: u8) -> Result<(), Code> {
    if (VERSION_MIN..=VERSION).contains(&u16::from(version)) {
        Ok(())
    } else {
        Err(Code::REJECT_VERSION)
    }
}

/// The longest prefix of whole characters with at most `bytes` bytes.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The client's side from its Hello to the answer.
#[derive(Debug)]
pub struct ClientHandshake {
    reader: FrameReader,
}

/// The server's answer to a Hello.
#[derive(Debug)]
pub enum Answer {
    /// Nothing yet: more bytes are needed.
    NeedMore,
    /// Admitted.
    Welcome(Box<Welcome>),
    /// Not admitted; the server closes.
    Reject {
        /// Why.
        code: Code,
        /// The oldest version that the server speaks.
        min_version: u16,
        /// The newest.
        max_version: u16,
        /// For people.
        message: Explanation,
    },
}

/// Why an answer cannot be understood: the server's fault.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Not a frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Not a message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A message that is no answer to a Hello.
    #[error("the server began with something else than a Welcome or a Reject")]
    Unexpected,
    /// A Welcome in a version or with features that were not offered, or with a tick rate outside 1 to 128.
    #[error("the server's Welcome does not fit what was asked for")]
    Misfit,
}

/// Ticks per second that a location may have (spec 3).
pub const TICK_RATE_MAX: u16 = 128;

impl Default for ClientHandshake {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientHandshake {
    /// A connection that has just been made.
    pub fn new() -> Self {
        Self {
            reader: FrameReader::new(FRAME_BYTES_FROM_SERVER_MAX),
        }
    }

    /// The frame to send first.
    ///
    /// # Errors
    /// Over what a server reads from an unknown peer.
    pub fn hello(hello: Hello) -> Result<Bytes, FrameError> {
        frame::encode(
            &ClientMessage::Hello(Box::new(hello)),
            FRAME_BYTES_BEFORE_ADMISSION_MAX,
        )
    }

    /// The reader, to be filled from the socket.
    pub fn reader(&mut self) -> &mut FrameReader {
        &mut self.reader
    }

    /// Judges what has come.
    ///
    /// # Errors
    /// Anything but the beginning of a Welcome or a Reject.
    pub fn advance(&mut self) -> Result<Answer, AnswerError> {
        let Some(payload) = self.reader.next_payload()? else {
            return Ok(Answer::NeedMore);
        };
        match wire::decode_server(&payload)? {
            ServerMessage::Welcome(welcome) => {
                let fits = (VERSION_MIN..=VERSION).contains(&welcome.version)
                    && welcome.features & !FEATURES == 0
                    && (1..=TICK_RATE_MAX).contains(&welcome.tick_rate);
                if fits {
                    Ok(Answer::Welcome(welcome))
                } else {
                    Err(AnswerError::Misfit)
                }
            }
            ServerMessage::Reject {
                code,
                min_version,
                max_version,
                message,
            } => Ok(Answer::Reject {
                code,
                min_version,
                max_version,
                message,
            }),
            _ => Err(AnswerError::Unexpected),
        }
    }

    /// Admitted: the reader with what came after the Welcome.
    pub fn into_reader(self) -> FrameReader {
        self.reader
    }
}

/// A frame with this message for a peer that has been admitted and is closed now.
pub fn close(code: Code, message: &str) -> Bytes {
    let close = ServerMessage::Close {
        code,
        message: Explanation::cut(message),
    };
    let mut buffer = BytesMut::new();
    frame::encode_into(&close, FRAME_BYTES_FROM_SERVER_MAX, &mut buffer)
        .expect("a code and a short text fit");
    buffer.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::bounded::Text;

    fn hello_frame() -> Vec<u8> {
        let hello = Hello::new(Text::cut("test"), Text::cut("Ann"));
        ClientHandshake::hello(hello).expect("small").to_vec()
    }

    /// Feeds `bytes` in two pieces split at every place; the outcome must be the same each time.
    fn check(bytes: &[u8], expected: Result<(), (Code, bool)>) {
        for split in 0..=bytes.len() {
            let mut handshake = ServerHandshake::new();
            let mut outcome = Opening::NeedMore;
            for piece in [&bytes[..split], &bytes[split..]] {
                handshake.reader().feed(piece);
                if let Opening::NeedMore = outcome {
                    outcome = handshake.advance();
                }
            }
            match (outcome, expected) {
                (Opening::Hello(_), Ok(())) => {}
                (Opening::Refused { code, reply }, Err((expected, replied))) => {
                    assert_eq!((code, reply.is_some()), (expected, replied), "split at {split}");
                    let length = reply.map_or(0, |reply| reply.len());
                    assert!(
                        length <= bytes.len(),
                        "a reply of {length} bytes to {}",
                        bytes.len()
                    );
                }
                (outcome, _) => panic!("{outcome:?} for {bytes:02x?} split at {split}"),
            }
        }
    }

    #[test]
    fn every_opening_has_one_answer() {
        let hello = hello_frame();
        check(&hello, Ok(()));

        let framed = |payload: &[u8]| [&(payload.len() as u32).to_le_bytes(), payload].concat();
        let other_version =
            |version: u8| framed(&[b"\0LSTP".as_slice(), &[version], b"anything at all"].concat());
        check(&other_version(0), Err((Code::REJECT_VERSION, true)));
        check(&other_version(2), Err((Code::REJECT_VERSION, true)));
        check(&other_version(251), Err((Code::REJECT_VERSION, true)));
        check(&other_version(1), Err((Code::REJECT_BAD_FRAME, true)));

        let mut trailing = hello.clone();
        trailing.push(0);
        trailing[0] += 1;
        check(&trailing, Err((Code::REJECT_BAD_FRAME, true)));

        let not_ours = Code::REJECT_NOT_THIS_PROTOCOL;
        check(&[0, 0, 0, 0], Err((not_ours, false)));
        check(&framed(&[4]), Err((not_ours, false)));
        check(&framed(b"\0LST"), Err((not_ours, false)));
        check(&framed(b"\0LSTX\x01"), Err((not_ours, true)));
        check(&framed(b"\x01\x01\x00\x01\x01"), Err((not_ours, true)));
        check(
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            Err((not_ours, true)),
        );
        check(
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            Err((not_ours, true)),
        );
        check(b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0", Err((not_ours, true)));
        check(
            b"\xff\xff\xff\xff\0LSTP\x01\0\0\0\0",
            Err((Code::REJECT_BAD_FRAME, true)),
        );
        check(
            b"\xff\xff\xff\xff\0LSTP\x02\0\0\0\0",
            Err((Code::REJECT_VERSION, true)),
        );
    }

    #[test]
    fn a_rejection_is_cut_to_the_request() {
        for request_bytes in 0..400 {
            let Some(reply) = reject(Code::REJECT_FULL, &"é".repeat(200), request_bytes) else {
                assert!(request_bytes < REJECT_BYTES_MIN);
                continue;
            };
            assert!(reply.len() <= request_bytes);
        }
    }

    #[test]
    fn the_client_understands_the_rejection() {
        let mut handshake = ClientHandshake::new();
        handshake
            .reader()
            .feed(&reject(Code::REJECT_VERSION, "", 9).expect("it fits"));
        let answer = handshake.advance().expect("an answer");
        assert!(matches!(
            answer,
            Answer::Reject {
                code: Code::REJECT_VERSION,
                min_version: 1,
                max_version: 1,
                ..
            }
        ));
    }
}
