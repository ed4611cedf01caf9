//! The journal for its fuzz target: bytes as a segment's file, read as verifying, a seek, a start and a repair would.
//!
//! Input: shape, then bytes. Random ones would never have a right checksum, so the shape can ask for framing:
//!
//! - bits 0 and 1: 0 the bytes are the file; 1 they are records behind a header; 2 behind a sound start (definition,
//!   keyframe, sessions); 3 the same, and ticks, digests and keyframes are made true, so that Worlds are stepped.
//! - bits 2 and 3: so many zstd frames of a packed segment, 0 for a raw one.
//! - bit 4: the last byte of the input says how many bytes the file lacks.
//! - bit 5: a segment that is whole is packed as upkeep does.
//!
//! A record is kind, length (u16), payload; of kind 0 the payload stands in the file as it is. Bit 6 of the kind: it
//! says that all before it was durable.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use protocol::Bundle;
use sim::{Definition, World};

use super::frames::Frames;
use super::reader::{Journal, JournalReader, ReadError};
use super::record::{Keyframe, Record, Sessions};
use super::recovery::OpenError;
use super::repair::repair;
use super::run::{self, RunFolder};
use super::segment::{Chain, Header, Kind, append_record, chain_of};
use super::{compress, playback, seekable};

const FRAMING: u8 = 3;
const AS_IT_IS: u8 = 0;
const BEHIND_A_HEADER: u8 = 1;
const TRUE_RECORDS: u8 = 3;
const CUT: u8 = 1 << 4;
const PACK: u8 = 1 << 5;
/// Of a record's kind.
const DURABLE: u8 = 1 << 6;
/// More are right and slow.
const TURNS_MAX: usize = 100;
const COMMANDS_MAX: usize = 64;
const KEYFRAMES_MAX: usize = 8;

const LOCATION: &str = r#"{"name": "yard", "maps": {"yard": "yard.json"}, "spawns": [{"x": 1, "z": 1}],
    "npcs": [{"id": 100, "name": "Cat", "x": 5, "z": 5,
              "behaviour": {"wander": {"x": 5, "z": 5, "radius": 3, "pauseTicks": [0, 3]}}}]}"#;
const MAP: &str = r#"{"cellSize": 1, "areas": [
    {"name": "yard", "polygon": [[0, 0], [8, 0], [8, 8], [0, 8]]},
    {"name": "shed", "available": false, "polygon": [[8, 2], [12, 2], [12, 6], [8, 6]]}]}"#;

/// See the module.
pub fn journal(input: &[u8]) {
    let Some((&shape, rest)) = input.split_first() else {
        return;
    };
    let folder = Folder::new();
    let mut path = folder.write(&file(shape, rest));
    let records = read_whole(&path);
    look_around(&path);
    if let Some(records) = records
        && shape & PACK != 0
        && !is_packed(&path)
    {
        path = compress::compress(&path).expect("a whole segment can be packed");
        assert_eq!(read_whole(&path), Some(records), "packed it is the same");
        look_around(&path);
    }
    go_on(&folder.run());
}

/// The file that an input means.
fn file(shape: u8, mut input: &[u8]) -> Vec<u8> {
    let mut missing = 0;
    if shape & CUT != 0
        && let Some((last, rest)) = input.split_last()
    {
        (missing, input) = (usize::from(*last), rest);
    }
    let mut bytes = match shape & FRAMING {
        AS_IT_IS => input.to_vec(),
        framing => Segment::of_records(framing, input),
    };
    let frames = usize::from(shape >> 2 & 3);
    if frames > 0 {
        bytes = packed(&bytes, frames);
    }
    bytes.truncate(bytes.len().saturating_sub(missing));
    bytes
}

/// A location of a yard, a shed that can be opened, and a cat.
struct Yard {
    bundle: Bundle,
    definition: Definition,
}

static YARD: LazyLock<Yard> = LazyLock::new(|| {
    let files = vec![("yard.json".to_owned(), MAP.as_bytes().to_vec())];
    let bundle = Bundle::new(LOCATION.as_bytes().to_vec(), None, None, files).expect("one file");
    let definition = playback::definition(&bundle).expect("a good location");
    Yard { bundle, definition }
});

/// A segment that is being made.
struct Segment {
    bytes: BytesMut,
    chain: Chain,
}

impl Segment {
    fn of_records(framing: u8, mut input: &[u8]) -> Vec<u8> {
        let mut world = World::new(&YARD.definition);
        let mut segment = Self::begin();
        if framing != BEHIND_A_HEADER {
            segment.push(&Record::Definition(Box::new(YARD.bundle.clone())));
            segment.push(&keyframe(&world));
            segment.push(&sessions(&world));
        }
        let mut turns = 0;
        while let Some((&[kind, low, high], rest)) = input.split_first_chunk() {
            let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
            let (payload, rest) = rest.split_at(length);
            input = rest;
            let Some(known) = Kind::from_byte(kind & 7) else {
                segment.bytes.extend_from_slice(payload);
                continue;
            };
            if framing != TRUE_RECORDS {
                segment.append(known, kind & DURABLE != 0, payload);
                continue;
            }
            turns += usize::from(known == Kind::Turn);
            if turns <= TURNS_MAX
                && let Some(record) = made_true(known, payload, &mut world)
            {
                segment.push(&record);
            }
        }
        segment.bytes.to_vec()
    }

    fn begin() -> Self {
        let header = Header {
            tick_rate: YARD.definition.tick_rate(),
            ruleset: sim::RULESET,
            run: *b"0123456789abcdef",
            segment: 0,
            first_tick: 0,
            definition: YARD.bundle.hash(),
            chain: Chain::default(),
            ruleset_hash: sim::ruleset_hash(YARD.definition.planner()),
        };
        let bytes = header.to_bytes();
        Self {
            chain: chain_of(&bytes),
            bytes: BytesMut::from(&bytes[..]),
        }
    }

    fn push(&mut self, record: &Record) {
        let mut payload = BytesMut::new();
        record.encode(&mut payload);
        self.append(record.kind(), false, &payload);
    }

    fn append(&mut self, kind: Kind, durable: bool, payload: &[u8]) {
        let durable = if durable { self.bytes.len() as u64 } else { 0 };
        let appended = append_record(&mut self.bytes, kind, durable, &self.chain, |out| {
            out.extend_from_slice(payload);
        });
        self.chain = appended.expect("an input is short");
    }
}

/// The record of this payload as it would have been written in this World.
fn made_true(kind: Kind, payload: &[u8], world: &mut World) -> Option<Record> {
    if kind == Kind::Keyframe {
        return Some(keyframe(world));
    }
    let mut record = Record::decode(kind, payload).ok()?;
    match &mut record {
        Record::Turn(turn) if turn.commands.len() > COMMANDS_MAX => return None,
        Record::Turn(turn) => {
            turn.tick = world.tick();
            sim::step(world, &turn.commands);
            turn.digest = world.digest();
        }
        Record::Sessions(sessions) => sessions.tick = world.tick(),
        Record::Close(close) => (close.tick, close.digest) = (world.tick(), world.digest()),
        Record::Definition(_) | Record::Keyframe(_) | Record::Session(_) | Record::Note(_) => {}
    }
    Some(record)
}

fn keyframe(world: &World) -> Record {
    Record::Keyframe(Keyframe {
        tick: world.tick(),
        digest: world.digest(),
        unix_ms: 0,
        snapshot: protocol::Blob::new(world.snapshot()).expect("short"),
    })
}

fn sessions(world: &World) -> Record {
    Record::Sessions(Sessions::new(world.tick(), Vec::new(), Vec::new(), Vec::new()).expect("none"))
}

/// As upkeep packs, in so many frames of one length.
fn packed(bytes: &[u8], frames: usize) -> Vec<u8> {
    let (mut out, mut table) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(bytes.len().div_ceil(frames).max(1)) {
        let frame = zstd::bulk::compress(piece, 1).expect("memory takes it");
        table.push((frame.len() as u32, piece.len() as u32));
        out.extend(frame);
    }
    out.extend(seekable::table(&table));
    out
}

/// Reads a segment to its end; how many records there are, if it is whole.
fn read_whole(path: &Path) -> Option<usize> {
    let mut reader = Journal::of_segment(path).read().map_err(expect_damage).ok()?;
    read_on(&mut reader)
        .map_err(expect_damage)
        .ok()
        .filter(|_| reader.torn().is_none())
}

/// Reads all that is left. What was read can be written and is then the same.
fn read_on(reader: &mut JournalReader) -> Result<usize, ReadError> {
    let (mut records, mut offset) = (0, reader.segment().offset());
    while let Some(record) = reader.next()? {
        let mut payload = BytesMut::new();
        record.encode(&mut payload);
        let again = Record::decode(record.kind(), &payload).expect("its own payload");
        assert_eq!(again, record);
        let end = reader.segment().offset();
        assert!(offset < end && end <= reader.segment().end());
        (records, offset) = (records + 1, end);
    }
    Ok(records)
}

/// Reading can begin at every keyframe that a look around has found.
fn look_around(path: &Path) {
    let journal = Journal::of_segment(path);
    let keyframes = journal.keyframes().map_err(expect_damage).unwrap_or_default();
    for place in keyframes.iter().take(KEYFRAMES_MAX) {
        let Ok(mut reader) = journal.read_from(place).map_err(expect_damage) else {
            continue;
        };
        match reader.next().map_err(expect_damage) {
            Ok(Some(Record::Keyframe(keyframe))) => {
                assert_eq!((keyframe.tick, keyframe.digest), (place.tick, place.digest));
                let _ = read_on(&mut reader).map_err(expect_damage);
            }
            Ok(Some(record)) => panic!("a {:?} record where a keyframe was found", record.kind()),
            Ok(None) | Err(()) => {}
        }
    }
}

/// What a start does: afterwards the run is sound, and doing it again changes nothing.
fn go_on(run: &RunFolder) {
    let repaired = match repair(run, false) {
        Err(OpenError::Damage(_)) => repair(run, true),
        repaired => repaired,
    };
    let repaired = match repaired {
        Ok(repaired) => repaired,
        Err(OpenError::Damage(_) | OpenError::Ruleset { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let again = repair(run, false).expect("what was repaired is sound");
    assert_eq!(again.next_tick, repaired.next_tick);
    assert!(again.torn.is_none() && again.given_up.is_none());
    let mut reader = Journal::of_run(&run.path)
        .and_then(|journal| journal.read())
        .expect("it begins");
    read_on(&mut reader).expect("it is whole");
    assert!(reader.torn().is_none());
}

/// The disk works here: whatever cannot be read is damage.
fn expect_damage(error: ReadError) {
    assert!(!matches!(error, ReadError::Io { .. }), "{error}");
}

fn is_packed(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == run::PACKED_EXTENSION)
}

/// A location's folder with a run, in memory where the system has such a place; removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let memory = PathBuf::from("/dev/shm");
        let above = if memory.is_dir() {
            memory
        } else {
            std::env::temp_dir()
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Self(above.join(format!("lockstepd-fuzz-{}-{number}", std::process::id())));
        fs::create_dir_all(folder.run().path).expect("a folder can be made");
        folder
    }

    fn run(&self) -> RunFolder {
        RunFolder {
            number: 1,
            path: self.0.join(run::run_name(1)),
        }
    }

    /// The only segment of the run, under the name that its header says.
    fn write(&self, bytes: &[u8]) -> PathBuf {
        let unnamed = self.0.join("segment");
        fs::write(&unnamed, bytes).expect("memory takes it");
        let opened = Frames::open(File::open(&unnamed).expect("it is there"));
        let (number, tick, packed) = match opened.expect("readable") {
            Ok((header, frames)) => (header.segment, header.first_tick, frames.is_packed()),
            Err(_) => (0, 0, false),
        };
        let mut path = self.run().path.join(run::segment_name(number, tick));
        if packed {
            path = run::packed_name(&path);
        }
        fs::rename(unnamed, &path).expect("within the folder");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
