//! Where the keyframes of a journal stand, found without reading what is between them: to begin at any tick.
//!
//! What is found is a hint, not a proof: of a raw segment only the headers of records are looked at, of a packed one the
//! beginning of each zstd frame. Reading from a keyframe on checks everything from there on as always; only that the
//! keyframe follows what is before it (its chain) is taken from the keyframe itself. Reading from the beginning takes
//! nothing from here.

use protocol::wire;

use super::segment::Kind;
use super::segment_reader::{Position, ReadError, SegmentReader};

/// Bytes of a Keyframe's payload that hold its three numbers.
const NUMBERS_BYTES: usize = 3 * 9;

/// Where a keyframe stands in a journal, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyframePlace {
    /// Which of the journal's segments, counted from the first that is left.
    pub(crate) segment: usize,
    /// The step that comes next.
    pub(crate) tick: u64,
    /// Of its snapshot.
    pub(crate) digest: u64,
    /// Wall clock.
    pub(crate) unix_ms: u64,
    pub(super) position: Position,
}

impl KeyframePlace {
    /// Where its record begins in the unpacked segment.
    pub(crate) fn offset(&self) -> u64 {
        self.position.offset
    }
}

/// The keyframes of a segment in their order, up to the first place that has not the form of a record: reading on from
/// the last of them tells what that is.
///
/// # Errors
/// The file cannot be read.
pub(super) fn keyframes(reader: &mut SegmentReader, segment: usize) -> Result<Vec<KeyframePlace>, ReadError> {
    let mut found = Vec::new();
    let walked = match reader.packed_frames() {
        frames if frames.is_empty() => walk(reader, segment, &mut found),
        frames => leap(reader, segment, &frames, &mut found),
    };
    match walked {
        Ok(()) | Err(ReadError::Bad(_) | ReadError::Damage(_)) => Ok(found),
        Err(error) => Err(error),
    }
}

/// Steps over every record.
fn walk(reader: &mut SegmentReader, segment: usize, found: &mut Vec<KeyframePlace>) -> Result<(), ReadError> {
    while step(reader, segment, found)? {}
    Ok(())
}

/// Looks at the first record of each frame; of the first frame, which begins with header and definition, at each up to
/// its keyframe.
fn leap(
    reader: &mut SegmentReader,
    segment: usize,
    frames: &[u64],
    found: &mut Vec<KeyframePlace>,
) -> Result<(), ReadError> {
    while found.is_empty() && step(reader, segment, found)? {}
    for &frame in &frames[1..] {
        if found.last().is_some_and(|last| last.position.offset >= frame) {
            continue;
        }
        reader.look_at(frame)?;
        step(reader, segment, found)?;
    }
    Ok(())
}

/// Steps over a record and keeps it if it is a keyframe; false at the end.
fn step(
    reader: &mut SegmentReader,
    segment: usize,
    found: &mut Vec<KeyframePlace>,
) -> Result<bool, ReadError> {
    let offset = reader.offset();
    let Some(record) = reader.skip(Kind::Keyframe, NUMBERS_BYTES)? else {
        return Ok(false);
    };
    if record.kind != Kind::Keyframe {
        return Ok(true);
    }
    // A payload that does not even begin with three numbers is found when it is read.
    let numbers = wire::decode_prefix::<(u64, u64, u64), NUMBERS_BYTES>(&record.payload);
    if let Ok(((tick, digest, unix_ms), _)) = numbers {
        let position = Position {
            offset,
            chain: record.chain,
            tick,
        };
        found.push(KeyframePlace {
            segment,
            tick,
            digest,
            unix_ms,
            position,
        });
    }
    Ok(true)
}
