//! Nothing that a peer sends makes decoding panic, hang or take memory beyond its limits; framing is the same however
//! the bytes are split (spec 9.2).

#[allow(dead_code)] // not every test needs every list
mod samples;

use bincode::{Decode, Encode};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use protocol::frame::{
    self, FRAME_BYTES_FROM_CLIENT_MAX, FRAME_BYTES_FROM_SERVER_MAX, FrameError, FrameReader, LENGTH_BYTES,
};
use protocol::handshake::{Opening, ServerHandshake};
use protocol::wire::{self, WireError};
use protocol::{Bundle, ClientMessage, ServerMessage};

/// If bytes are a value, its own bytes are the same value, and are no more than came: longer forms of an integer are
/// understood, never written.
fn check_decoding<T: Encode + Decode<()> + PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decoded: Result<T, WireError>,
) {
    let Ok(value) = decoded else { return };
    let canonical = wire::encode(&value);
    assert!(canonical.len() <= bytes.len());
    let again: T =
        wire::decode::<T, { wire::SERVER_DECODED_BYTES_MAX }>(&canonical).expect("canonical bytes");
    assert_eq!(again, value);
}

fn check_payload(bytes: &[u8]) {
    check_decoding(bytes, wire::decode_client(bytes));
    check_decoding(bytes, wire::decode_server(bytes));
    let _ = Bundle::decode(bytes);
    let mut handshake = ServerHandshake::new();
    handshake.reader().feed(bytes);
    if let Opening::Refused {
        reply: Some(reply), ..
    } = handshake.advance()
    {
        assert!(reply.len() <= bytes.len(), "a longer reply than the request");
    }
}

fn payloads() -> Vec<Vec<u8>> {
    let client = samples::client()
        .into_iter()
        .map(|(_, message)| wire::encode(&message));
    let server = samples::server()
        .into_iter()
        .map(|(_, message)| wire::encode(&message));
    client.chain(server).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_decode_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        check_payload(&bytes);
    }

    /// Small numbers are variants, lengths and options: these get much deeper than random bytes.
    #[test]
    fn bytes_that_look_like_messages(bytes in proptest::collection::vec(prop_oneof![0u8..20, 245u8..=255], 0..200)) {
        check_payload(&bytes);
    }

    #[test]
    fn damaged_messages(
        which in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let payloads = payloads();
        let mut bytes = which.get(&payloads).clone();
        for (place, byte) in edits {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len() + 1));
        }
        check_payload(&bytes);
    }

    #[test]
    fn any_stream_in_any_pieces(
        stream in proptest::collection::vec(any::<u8>(), 0..300),
        lengths in proptest::collection::vec(0u32..40, 0..8),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        // Random bytes alone hardly ever begin with a small length.
        let mut bytes = Vec::new();
        for length in lengths {
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&stream[..stream.len().min(length as usize)]);
        }
        bytes.extend_from_slice(&stream);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        prop_assert_eq!(read(&bytes, &places), read(&bytes, &[]));
    }
}

/// What a reader makes of `bytes` in pieces that end at `places`.
fn read(bytes: &[u8], places: &[usize]) -> (Vec<Bytes>, Option<FrameError>) {
    let mut reader = FrameReader::new(100);
    let mut payloads = Vec::new();
    let mut start = 0;
    for &end in places.iter().chain([&bytes.len()]) {
        reader.feed(&bytes[start..end]);
        start = end;
        loop {
            match reader.next_payload() {
                Ok(Some(payload)) => payloads.push(payload),
                Ok(None) => break,
                Err(error) => return (payloads, Some(error)),
            }
        }
    }
    (payloads, None)
}

#[test]
fn frames_split_at_every_byte() {
    let mut stream = BytesMut::new();
    let messages: Vec<ServerMessage> = samples::server()
        .into_iter()
        .map(|(_, message)| message)
        .collect();
    for message in &messages {
        frame::encode_into(message, FRAME_BYTES_FROM_SERVER_MAX, &mut stream).expect("a sample is small");
    }
    for split in 0..=stream.len() {
        let mut reader = FrameReader::new(FRAME_BYTES_FROM_SERVER_MAX);
        let mut read = Vec::new();
        for piece in [&stream[..split], &stream[split..]] {
            reader.feed(piece);
            while let Some(payload) = reader.next_payload().expect("whole frames") {
                read.push(wire::decode_server(&payload).expect("a message"));
            }
        }
        assert!(!reader.is_inside_frame());
        assert_eq!(read, messages, "split at {split}");
    }
}

#[test]
fn bad_lengths_are_refused_and_claim_no_memory() {
    let cap = FRAME_BYTES_FROM_CLIENT_MAX;
    let too_large = |length: u32| FrameError::TooLarge { length, cap };
    let table: [(&[u8], Result<bool, FrameError>); 8] = [
        (&[0, 0, 0, 0], Err(FrameError::Empty)),
        (&[1, 0, 0], Ok(false)),
        (&[1, 0, 0, 0], Ok(false)),
        (&[1, 0, 0, 0, 3], Ok(true)),
        (&[0, 0x40, 0, 0], Ok(false)),
        (&[1, 0x40, 0, 0], Err(too_large(16_385))),
        (&[0xff; 4], Err(too_large(u32::MAX))),
        (b"GET / HTTP/1.1\r\n\r\n", Err(too_large(0x2054_4547))),
    ];
    for (bytes, expected) in table {
        let mut reader = FrameReader::new(cap);
        reader.feed(bytes);
        let read = reader.next_payload().map(|payload| payload.is_some());
        assert_eq!(read, expected, "{bytes:02x?}");
        assert!(reader.space().capacity() <= 8 * 1024, "{bytes:02x?}");
    }
}

#[test]
fn a_message_over_the_cap_leaves_the_buffer_as_it_was() {
    let mut buffer = BytesMut::from(&b"before"[..]);
    let message = ClientMessage::Ping { nonce: u64::MAX };
    let result = frame::encode_into(&message, 9, &mut buffer);
    assert_eq!(result, Err(FrameError::TooLarge { length: 10, cap: 9 }));
    assert_eq!(&buffer[..], b"before");
    frame::encode_into(&message, 10, &mut buffer).expect("it fits");
    assert_eq!(buffer.len(), b"before".len() + LENGTH_BYTES + 10);
}

#[test]
fn trailing_bytes_and_false_lengths_are_refused() {
    for (name, message) in samples::client() {
        let longer = [wire::encode(&message), vec![0]].concat();
        assert!(
            matches!(wire::decode_client(&longer), Err(WireError::Trailing(1))),
            "{name}"
        );
    }
    for (name, message) in samples::server() {
        let longer = [wire::encode(&message), vec![0]].concat();
        assert!(
            matches!(wire::decode_server(&longer), Err(WireError::Trailing(1))),
            "{name}"
        );
    }
    // Lengths that promise far more than there is: a list of commands, a snapshot's part, a name.
    let table: [&[u8]; 4] = [
        b"\x04\x00\xfc\xff\xff\xff\xff",
        b"\x03\x00\x00\x01\xfd\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x0c\xfb\x00\x02",
        b"\x05\x00\x00\x00\xfb\x00\x40",
    ];
    for payload in table {
        assert!(wire::decode_server(payload).is_err(), "{payload:02x?}");
    }
}

#[test]
fn longer_forms_of_integers_are_understood_and_never_written() {
    // Ping with nonce 1 in nine bytes.
    let payload = [4, 253, 1, 0, 0, 0, 0, 0, 0, 0];
    let message = wire::decode_client(&payload).expect("understood");
    assert_eq!(message, ClientMessage::Ping { nonce: 1 });
    assert_eq!(wire::encode(&message), [4, 1]);
}
