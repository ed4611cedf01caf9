//! The records of one segment in the order in which they may stand, and what it means where they do not (spec 5.2, 5.7).

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::frames::{self, FrameError, Frames, Skipped};
use super::record::{CloseReason, Record};
use super::run::{SegmentFile, packed_name};
use super::segment::{Chain, Header, Kind};

/// Bytes that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: damaged at offset {offset}, tick {tick}: {what}", path.display())]
pub(crate) struct Damage {
    pub(crate) path: PathBuf,
    /// Of the record that is bad.
    pub(crate) offset: u64,
    /// The tick that would have come next there.
    pub(crate) tick: u64,
    pub(crate) what: String,
}

/// Why a record cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// No whole record that follows the one before: the end that a crash tore, or damage.
    #[error(transparent)]
    Bad(Damage),
    /// No crash leaves this.
    #[error(transparent)]
    Damage(Damage),
}

/// Where a keyframe stands, so that reading can begin there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(super) offset: u64,
    /// What the keyframe has to carry.
    pub(super) chain: Chain,
    pub(super) tick: u64,
}

/// Reads a segment.
pub(crate) struct SegmentReader {
    path: PathBuf,
    header: Header,
    frames: Frames,
    stage: Stage,
    tick: u64,
    /// D_(tick − 1), once a record has told it.
    digest: Option<u64>,
    keyframe: Option<Position>,
    /// The last keyframe behind which its Sessions record stands.
    whole_keyframe: Option<Position>,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Definition,
    FirstKeyframe,
    FirstSessions,
    Turns,
    Sessions,
    Closed(CloseReason),
}

impl SegmentReader {
    /// Opens a segment and reads its header, which must say what the name says.
    ///
    /// # Errors
    /// It cannot be read, or its header is damaged.
    pub(crate) fn open(file: &SegmentFile) -> Result<Self, ReadError> {
        let reader = Self::open_path(&file.path)?;
        let header = &reader.header;
        if (header.segment, header.first_tick) == (file.number, file.first_tick) {
            Ok(reader)
        } else {
            let (number, tick) = (header.segment, header.first_tick);
            Err(reader.damage(
                0,
                format!("by its header it is segment {number} from tick {tick} on"),
            ))
        }
    }

    /// Opens a segment whatever its name.
    ///
    /// # Errors
    /// As [`SegmentReader::open`].
    pub(crate) fn open_path(path: &Path) -> Result<Self, ReadError> {
        let io = |error| ReadError::Io {
            path: path.to_owned(),
            error,
        };
        let (path, file) = open_file(path).map_err(io)?;
        let (header, frames) = Frames::open(file).map_err(io)?.map_err(|error| {
            ReadError::Damage(Damage {
                path: path.clone(),
                offset: 0,
                tick: 0,
                what: error.to_string(),
            })
        })?;
        Ok(Self {
            path,
            tick: header.first_tick,
            header,
            frames,
            stage: Stage::Definition,
            digest: None,
            keyframe: None,
            whole_keyframe: None,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The tick that comes next.
    pub(crate) fn tick(&self) -> u64 {
        self.tick
    }

    /// D of the tick before, once a record has told it.
    pub(crate) fn digest(&self) -> Option<u64> {
        self.digest
    }

    /// The end of the last good record.
    pub(crate) fn offset(&self) -> u64 {
        self.frames.offset()
    }

    /// How long the segment was, unpacked, when it was opened.
    pub(crate) fn end(&self) -> u64 {
        self.frames.end()
    }

    /// Whether the file is a packed one: nothing in it can be a torn end.
    pub(crate) fn is_packed(&self) -> bool {
        self.frames.is_packed()
    }

    /// Takes the end of the last good record for the end of the file: what was behind it has been cut off.
    pub(crate) fn end_here(&mut self) {
        self.frames.end_here();
    }

    /// What a record behind the last one would have to carry.
    pub(crate) fn chain(&self) -> Chain {
        self.frames.chain()
    }

    /// Why the segment was closed, if its Close record has been read.
    pub(crate) fn closed(&self) -> Option<CloseReason> {
        match self.stage {
            Stage::Closed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether Definition, Keyframe and Sessions have been read: what a segment has before it gets its name.
    pub(crate) fn is_past_start(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Definition | Stage::FirstKeyframe | Stage::FirstSessions
        )
    }

    /// The last keyframe read so far behind which its Sessions record stands.
    pub(crate) fn last_keyframe(&self) -> Option<Position> {
        self.whole_keyframe
    }

    /// Goes back to a keyframe: it is the next record.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn seek(&mut self, position: Position) -> Result<(), ReadError> {
        let seeked = self.frames.seek(position.offset, position.chain);
        seeked.map_err(|error| self.frame_error(error))?;
        self.tick = position.tick;
        self.digest = None;
        self.stage = Stage::Turns;
        Ok(())
    }

    /// Where each zstd frame of a packed segment begins; nothing for another.
    pub(super) fn packed_frames(&self) -> Vec<u64> {
        self.frames.packed_frames()
    }

    /// Steps over the next record without checking more than its form; see [`Frames::skip`]. What is read by
    /// [`SegmentReader::next`] afterwards is in no order: for looking around before a [`SegmentReader::seek`].
    pub(super) fn skip(&mut self, wanted: Kind, prefix: usize) -> Result<Option<Skipped>, ReadError> {
        let skipped = self.frames.skip(wanted, prefix);
        skipped.map_err(|error| self.frame_error(error))
    }

    /// Goes to any record to [`SegmentReader::skip`] it.
    pub(super) fn look_at(&mut self, offset: u64) -> Result<(), ReadError> {
        let seeked = self.frames.seek(offset, Chain::default());
        seeked.map_err(|error| self.frame_error(error))
    }

    /// The next record, or `None` behind the last.
    ///
    /// # Errors
    /// The file cannot be read; no record stands here ([`ReadError::Bad`]; the reader stays); a whole one that may not
    /// stand here, or none where the start of the segment is not complete ([`ReadError::Damage`]).
    pub(crate) fn next(&mut self) -> Result<Option<Record>, ReadError> {
        let start = Position {
            offset: self.frames.offset(),
            chain: self.frames.chain(),
            tick: self.tick,
        };
        let past_start = self.is_past_start();
        let decoded = match self.frames.next() {
            Ok(Some(frame)) => Record::decode(frame.kind, frame.payload),
            Ok(None) if past_start => return Ok(None),
            Ok(None) => {
                return Err(self.damage(start.offset, "it ends before its first turn could be".to_owned()));
            }
            Err(error) => return Err(self.frame_error(error)),
        };
        let record = decoded.map_err(|error| self.damage(start.offset, error.to_string()))?;
        match self.follow(&record, start) {
            Ok(()) => Ok(Some(record)),
            Err(what) => Err(self.damage(start.offset, what)),
        }
    }

    /// Checks that a record may stand here and goes on behind it.
    fn follow(&mut self, record: &Record, start: Position) -> Result<(), String> {
        match (self.stage, record) {
            (Stage::Definition, Record::Definition(bundle)) => {
                if bundle.hash() != self.header.definition {
                    return Err("the definition is not the one that the header names".to_owned());
                }
                self.stage = Stage::FirstKeyframe;
            }
            (Stage::FirstKeyframe | Stage::Turns, Record::Keyframe(keyframe)) => {
                self.expect_tick(keyframe.tick)?;
                self.expect_digest(keyframe.digest)?;
                self.keyframe = Some(start);
                self.stage = if self.stage == Stage::FirstKeyframe {
                    Stage::FirstSessions
                } else {
                    Stage::Sessions
                };
            }
            (Stage::FirstSessions | Stage::Sessions, Record::Sessions(sessions)) => {
                self.expect_tick(sessions.tick)?;
                self.whole_keyframe = self.keyframe;
                self.stage = Stage::Turns;
            }
            (Stage::Turns, Record::Turn(turn)) => {
                self.expect_tick(turn.tick)?;
                self.digest = Some(turn.digest);
                self.tick = turn.tick.checked_add(1).ok_or("the last tick there is")?;
            }
            (Stage::Turns, Record::Session(_) | Record::Note(_)) => {}
            (Stage::Turns, Record::Close(close)) => {
                self.expect_tick(close.tick)?;
                self.expect_digest(close.digest)?;
                self.stage = Stage::Closed(close.reason);
            }
            (Stage::Closed(_), _) => return Err("a record behind the Close record".to_owned()),
            (stage, record) => {
                return Err(format!(
                    "a {:?} record where {stage:?} should follow",
                    record.kind()
                ));
            }
        }
        Ok(())
    }

    fn expect_tick(&self, tick: u64) -> Result<(), String> {
        if tick == self.tick {
            Ok(())
        } else {
            Err(format!("the record is for tick {tick}"))
        }
    }

    fn expect_digest(&mut self, digest: u64) -> Result<(), String> {
        match self.digest {
            Some(before) if before != digest => Err(format!(
                "digest {digest:016x} where the turn before it left {before:016x}"
            )),
            _ => {
                self.digest = Some(digest);
                Ok(())
            }
        }
    }

    /// The segment before it ended with this digest: its first keyframe must have it too.
    pub(super) fn follows_digest(&mut self, digest: Option<u64>) {
        self.digest = digest;
    }

    /// Damage here.
    pub(crate) fn located(&self, offset: u64, what: String) -> Damage {
        Damage {
            path: self.path.clone(),
            offset,
            tick: self.tick,
            what,
        }
    }

    /// The same as an error.
    pub(super) fn damage(&self, offset: u64, what: String) -> ReadError {
        ReadError::Damage(self.located(offset, what))
    }

    /// A crash can only have torn what is behind the start of a segment that was never packed.
    fn frame_error(&self, error: FrameError) -> ReadError {
        match error {
            FrameError::Io(error) => ReadError::Io {
                path: self.path.clone(),
                error,
            },
            FrameError::Bad { offset, what } => {
                let damage = self.located(offset, what.to_string());
                if self.is_past_start() && !self.is_packed() {
                    ReadError::Bad(damage)
                } else {
                    ReadError::Damage(damage)
                }
            }
        }
    }
}

/// Opens a segment's file, or the packed one that has taken its place since its folder was listed.
fn open_file(path: &Path) -> io::Result<(PathBuf, File)> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let packed = packed_name(path);
            match File::open(&packed) {
                Ok(file) => Ok((packed, file)),
                Err(_) => Err(error),
            }
        }
        opened => Ok((path.to_owned(), opened?)),
    }
}

/// An end that a crash tore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Torn {
    /// Where and what.
    pub(crate) at: Damage,
    /// From there to the end of the file.
    pub(crate) bytes: u64,
}

/// Says whether a bad place is a torn end (spec 5.7).
///
/// # Errors
/// It is damage: a record behind it was made when the place was durable. Or the file cannot be read.
pub(crate) fn torn_or_damaged(at: Damage, end: u64) -> Result<Torn, ReadError> {
    let proof = File::open(&at.path).and_then(|mut file| frames::proof_of_damage(&mut file, at.offset, end));
    match proof {
        Ok(None) => Ok(Torn {
            bytes: end - at.offset,
            at,
        }),
        Ok(Some(record)) => Err(ReadError::Damage(Damage {
            what: format!(
                "{}; it was durable when the record at {record} was written",
                at.what
            ),
            ..at
        })),
        Err(error) => Err(ReadError::Io { path: at.path, error }),
    }
}
