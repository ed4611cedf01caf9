//! A stream of bytes gives the same payloads and the same error however it is split, and claims no memory by a length.
//!
//! Input: cap, cuts, then the stream; bit 7 of the cap: pieces with their true lengths instead, the rest as it is.

use bytes::Bytes;
use protocol::frame::{FrameError, FrameReader, LENGTH_BYTES};

use super::input::{Input, pieces};

/// See the module.
pub fn frame(input: &[u8]) {
    let mut input = Input::new(input);
    let shape = input.byte();
    let cap = 1 << (shape & 15);
    let cut_bytes = input.piece(8);
    let stream = if shape & 0x80 != 0 {
        framed(input)
    } else {
        input.rest().to_vec()
    };
    let cuts = Input::new(cut_bytes).cuts(stream.len());
    let whole = read(&stream, &[], cap);
    let split = read(&stream, &cuts, cap);
    assert_eq!(split, whole, "split at {cuts:?}");
    let (payloads, error, pending) = whole;
    let again: Vec<u8> = payloads.iter().flat_map(|payload| frame_of(payload)).collect();
    assert_eq!(
        [&again[..], &pending].concat(),
        stream,
        "what was read and what is left are the stream"
    );
    assert!(payloads.iter().all(|payload| (1..=cap).contains(&payload.len())));
    if error.is_none() && pending.len() >= LENGTH_BYTES {
        let length = u32::from_le_bytes([pending[0], pending[1], pending[2], pending[3]]) as usize;
        assert!(
            length <= cap && length + LENGTH_BYTES > pending.len(),
            "a whole frame is left over"
        );
    }
}

type Outcome = (Vec<Bytes>, Option<FrameError>, Vec<u8>);

/// What a reader makes of a stream in pieces.
fn read(stream: &[u8], cuts: &[usize], cap: usize) -> Outcome {
    let mut reader = FrameReader::new(cap);
    let (mut payloads, mut error) = (Vec::new(), None);
    for piece in pieces(stream, cuts) {
        reader.feed(piece);
        while error.is_none() {
            match reader.next_payload() {
                Ok(Some(payload)) => payloads.push(payload),
                Ok(None) => break,
                Err(found) => error = Some(found),
            }
        }
    }
    let pending = reader.pending().to_vec();
    assert_eq!(reader.is_inside_frame(), !pending.is_empty());
    let room = reader.space().capacity();
    assert!(
        room <= 2 * stream.len() + 16 * 1024,
        "{room} bytes kept for {}",
        stream.len()
    );
    (payloads, error, pending)
}

fn framed(mut input: Input<'_>) -> Vec<u8> {
    let mut stream = Vec::new();
    while !input.is_empty() {
        match input.byte() {
            0 => {
                stream.extend_from_slice(input.rest());
                break;
            }
            length => stream.extend(frame_of(input.piece(length.into()))),
        }
    }
    stream
}

fn frame_of(payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes(), payload].concat()
}
