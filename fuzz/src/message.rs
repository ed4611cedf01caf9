//! Whatever decodes encodes to its one form, and that decodes to the same; states lead an observer somewhere or are refused.
//!
//! Input: which kind, then its payload; of an observer's, payloads of server messages, each with its length.

use std::fmt::Debug;

use bincode::{Decode, Encode};
use client::Observer;
use protocol::frame::{
    self, FRAME_BYTES_FROM_CLIENT_MAX, FRAME_BYTES_FROM_SERVER_MAX, FrameError, FrameReader,
};
use protocol::wire::{self, CLIENT_DECODED_BYTES_MAX, SERVER_DECODED_BYTES_MAX};
use protocol::{Bundle, ClientMessage, Origin, Report, ServerMessage};

use super::input::Input;

/// See the module.
pub fn message(input: &[u8]) {
    let mut input = Input::new(input);
    match input.byte() {
        b'c' => {
            if let Some(message) = canonical::<ClientMessage, CLIENT_DECODED_BYTES_MAX>(input.rest()) {
                frames_again(&message, FRAME_BYTES_FROM_CLIENT_MAX);
            }
        }
        b's' => {
            if let Some(message) = canonical::<ServerMessage, SERVER_DECODED_BYTES_MAX>(input.rest()) {
                frames_again(&message, FRAME_BYTES_FROM_SERVER_MAX);
            }
        }
        b'o' => drop(canonical::<Origin, SERVER_DECODED_BYTES_MAX>(input.rest())),
        b'b' => bundle(input.rest()),
        b'p' => drop(Bundle::unpack(input.rest())),
        b'r' => report(input.rest()),
        _ => observe(input),
    }
}

/// The value of these bytes. Its own bytes are no more than they are, and are the same value.
fn canonical<T: Encode + Decode<()> + PartialEq + Debug, const LIMIT: usize>(bytes: &[u8]) -> Option<T> {
    let value = wire::decode::<T, LIMIT>(bytes).ok()?;
    let canonical = wire::encode(&value);
    assert!(canonical.len() <= bytes.len(), "{value:?} became longer");
    let again = wire::decode::<T, LIMIT>(&canonical).expect("canonical bytes");
    assert_eq!(again, value);
    assert_eq!(wire::encode(&again), canonical);
    Some(value)
}

/// A frame holds a message up to its cap, and gives it back.
fn frames_again<T: Encode>(message: &T, cap: usize) {
    let payload = wire::encode(message);
    match frame::encode(message, cap) {
        Ok(bytes) => {
            let mut reader = FrameReader::new(cap);
            reader.feed(&bytes);
            let read = reader.next_payload().expect("a frame").expect("a whole one");
            assert_eq!(read, payload);
        }
        Err(FrameError::TooLarge { .. }) => assert!(payload.len() > cap),
        Err(error) => panic!("{error}"),
    }
}

fn bundle(bytes: &[u8]) {
    let Ok(bundle) = Bundle::decode(bytes) else { return };
    let canonical = bundle.encode();
    assert!(canonical.len() <= bytes.len());
    assert_eq!(Bundle::decode(&canonical).expect("canonical bytes"), bundle);
    assert_eq!(Bundle::unpack(&bundle.pack()).expect("what was packed"), bundle);
}

/// As a file, or the fields of one that then gets its checksum.
fn report(bytes: &[u8]) {
    let report = Report::decode(bytes).ok();
    let report = report.or_else(|| wire::decode::<Report, SERVER_DECODED_BYTES_MAX>(bytes).ok());
    let Some(report) = report else { return };
    assert_eq!(Report::decode(&report.encode()).expect("its own bytes"), report);
    let _ = report.bundle();
    assert!(!report.file_name().contains(['/', '\0']));
}

/// What an observer knows comes from whole states and what follows them.
fn observe(mut input: Input<'_>) {
    let mut observer = Observer::new();
    while !input.is_empty() {
        let (applied, tick) = match wire::decode_server(input.sized_piece()) {
            Ok(ServerMessage::State(state)) => (observer.apply(&state), state.tick),
            Ok(ServerMessage::PackedState(state)) => (observer.apply_packed(&state), state.tick),
            _ => continue,
        };
        if applied.is_ok() {
            assert_eq!(observer.tick(), Some(tick));
        }
    }
}
