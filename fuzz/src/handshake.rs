//! The first bytes of a connection, on either side: the same answer however they are split, no reply longer than the request.
//!
//! Input: shape, cuts, then bytes. Bits of the shape: 0 the client's side; 1 the bytes are a payload, to be framed; 2 a
//! Hello's first six bytes are put before it.

use protocol::handshake::{Answer, ClientHandshake, Opening, ServerHandshake};
use protocol::message::Hello;
use protocol::{Code, MAGIC, VERSION};

use super::input::{Input, pieces};

const CLIENT_SIDE: u8 = 1 << 0;
const FRAMED: u8 = 1 << 1;
const HELLO: u8 = 1 << 2;

/// See the module.
pub fn handshake(input: &[u8]) {
    let mut input = Input::new(input);
    let shape = input.byte();
    let cut_bytes = input.piece(8);
    let mut bytes = input.rest().to_vec();
    if shape & HELLO != 0 {
        bytes.splice(..0, [0].into_iter().chain(MAGIC).chain([VERSION as u8]));
    }
    if shape & FRAMED != 0 {
        bytes.splice(..0, (bytes.len() as u32).to_le_bytes());
    }
    let cuts = Input::new(cut_bytes).cuts(bytes.len());
    if shape & CLIENT_SIDE == 0 {
        let whole = opening(&bytes, &[]);
        assert_eq!(opening(&bytes, &cuts), whole, "split at {cuts:?}");
        if let Opened::Hello(hello, _) = whole {
            said_again(*hello);
        }
    } else {
        assert_eq!(answer(&bytes, &cuts), answer(&bytes, &[]), "split at {cuts:?}");
    }
}

/// [`Opening`] as something that can be compared.
#[derive(Debug, PartialEq)]
enum Opened {
    NeedMore,
    /// And what came behind it.
    Hello(Box<Hello>, Vec<u8>),
    Refused(Code, Option<Vec<u8>>),
}

/// What the server makes of bytes in pieces.
fn opening(bytes: &[u8], cuts: &[usize]) -> Opened {
    let mut handshake = ServerHandshake::new();
    let mut opened = Opened::NeedMore;
    let mut pieces = pieces(bytes, cuts).into_iter();
    for piece in pieces.by_ref() {
        handshake.reader().feed(piece);
        opened = match handshake.advance() {
            Opening::NeedMore => continue,
            Opening::Hello(hello) => Opened::Hello(hello, Vec::new()),
            Opening::Refused { code, reply } => Opened::Refused(code, reply.map(|reply| reply.to_vec())),
        };
        break;
    }
    // Whatever the daemon then wants to say.
    let explained = handshake.reject(Code::REJECT_NO_ROOM, "there is no room, come again later");
    assert!(explained.is_none_or(|reply| reply.len() <= bytes.len()));
    match &mut opened {
        Opened::Hello(_, behind) => {
            let mut reader = handshake.into_reader();
            pieces.for_each(|piece| reader.feed(piece));
            *behind = reader.pending().to_vec();
        }
        Opened::Refused(_, reply) => {
            let length = reply.as_ref().map_or(0, Vec::len);
            assert!(
                length <= bytes.len(),
                "a reply of {length} bytes to {}",
                bytes.len()
            );
        }
        Opened::NeedMore => {}
    }
    opened
}

/// A Hello that was understood can be said, and is the same.
fn said_again(hello: Hello) {
    let said = ClientHandshake::hello(hello.clone()).expect("no longer than it came");
    match opening(&said, &[]) {
        Opened::Hello(again, behind) => {
            assert_eq!((*again, behind), (hello, Vec::new()));
        }
        other => panic!("{other:?}"),
    }
}

/// What the client makes of bytes in pieces, as text; and what came behind it.
fn answer(bytes: &[u8], cuts: &[usize]) -> (String, Vec<u8>) {
    let mut handshake = ClientHandshake::new();
    let mut answered = "nothing yet".to_owned();
    let mut pieces = pieces(bytes, cuts).into_iter();
    for piece in pieces.by_ref() {
        handshake.reader().feed(piece);
        answered = match handshake.advance() {
            Ok(Answer::NeedMore) => continue,
            Ok(answer) => format!("{answer:?}"),
            Err(error) => format!("{error:?}"),
        };
        break;
    }
    let mut reader = handshake.into_reader();
    pieces.for_each(|piece| reader.feed(piece));
    (answered, reader.pending().to_vec())
}
