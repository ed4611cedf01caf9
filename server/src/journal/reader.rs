//! Records in the order in which they may stand: of one segment, and of a whole run from its first segment to its last.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use protocol::Bundle;

use super::record::{CloseReason, Record};
use super::run::{self, SegmentFile};
use super::segment::{self, Chain, FrameError, Frames, Header};

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
    offset: u64,
    chain: Chain,
    tick: u64,
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
        let file = File::open(path).map_err(io)?;
        let (header, frames) = Frames::open(file).map_err(io)?.map_err(|error| {
            ReadError::Damage(Damage {
                path: path.to_owned(),
                offset: 0,
                tick: 0,
                what: error.to_string(),
            })
        })?;
        Ok(Self {
            path: path.to_owned(),
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

    /// The file's length when it was opened.
    pub(crate) fn end(&self) -> u64 {
        self.frames.end()
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
        seeked.map_err(|error| self.io(error))?;
        self.tick = position.tick;
        self.digest = None;
        self.stage = Stage::Turns;
        Ok(())
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
            Err(FrameError::Io(error)) => return Err(self.io(error)),
            Err(FrameError::Bad { offset, what }) => {
                let damage = self.located(offset, what.to_string());
                return Err(if past_start {
                    ReadError::Bad(damage)
                } else {
                    ReadError::Damage(damage)
                });
            }
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

    /// Damage here.
    pub(crate) fn located(&self, offset: u64, what: String) -> Damage {
        Damage {
            path: self.path.clone(),
            offset,
            tick: self.tick,
            what,
        }
    }

    fn damage(&self, offset: u64, what: String) -> ReadError {
        ReadError::Damage(self.located(offset, what))
    }

    fn io(&self, error: io::Error) -> ReadError {
        ReadError::Io {
            path: self.path.clone(),
            error,
        }
    }
}

/// The segments of a run, their names without a gap, their headers read: not one of them is missing, empty, or of
/// another run.
///
/// # Errors
/// The folder or a file cannot be read; or one of these things.
pub(crate) fn checked_segments(folder: &Path) -> Result<Vec<(SegmentFile, Header)>, ReadError> {
    let files = run::segments(folder).map_err(|error| ReadError::Io {
        path: folder.to_owned(),
        error,
    })?;
    if files.is_empty() {
        return Err(ReadError::Damage(Damage {
            path: folder.to_owned(),
            offset: 0,
            tick: 0,
            what: "a run without segments".to_owned(),
        }));
    }
    let mut segments: Vec<(SegmentFile, Header)> = Vec::with_capacity(files.len());
    for (number, file) in (0..).zip(files) {
        let reader = SegmentReader::open(&file)?;
        if file.number != number {
            return Err(reader.damage(0, format!("segment {number} is missing before it")));
        }
        if reader.end() == segment::HEADER_BYTES as u64 {
            return Err(reader.damage(reader.end(), "nothing but a header".to_owned()));
        }
        match segments.last() {
            Some((_, before)) => check_same_run(&reader, before)?,
            None if reader.header.chain != Chain::default() || reader.header.first_tick != 0 => {
                return Err(reader.damage(0, "not the beginning of a run".to_owned()));
            }
            None => {}
        }
        segments.push((file, reader.header));
    }
    Ok(segments)
}

fn check_same_run(reader: &SegmentReader, before: &Header) -> Result<(), ReadError> {
    let after = &reader.header;
    let same = (after.run, after.definition, after.tick_rate)
        == (before.run, before.definition, before.tick_rate)
        && (after.ruleset, after.ruleset_hash) == (before.ruleset, before.ruleset_hash);
    if !same {
        return Err(reader.damage(0, "of another run than the segment before it".to_owned()));
    }
    if after.first_tick < before.first_tick {
        return Err(reader.damage(0, "begins before the segment before it".to_owned()));
    }
    Ok(())
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
    let proof = File::open(&at.path).and_then(|mut file| segment::proof_of_damage(&mut file, at.offset, end));
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

/// Finds the journals that a path names: a segment, a run's folder, a location's folder or a data directory (then of
/// each location, or the one named, the last run or the one with this number).
///
/// # Errors
/// A folder cannot be read, a run is damaged; `Ok` of none where nothing is found.
pub(crate) fn find(
    path: &Path,
    location: Option<&str>,
    number: Option<u64>,
) -> Result<Vec<Journal>, ReadError> {
    let io = |error| ReadError::Io {
        path: path.to_owned(),
        error,
    };
    if fs::metadata(path).map_err(io)?.is_file() {
        return Ok(vec![Journal::of_segment(path)]);
    }
    if run::is_run_folder(path) || !run::segments(path).map_err(io)?.is_empty() {
        return Ok(vec![Journal::of_run(path)?]);
    }
    let mut folders = vec![path.to_owned()];
    if run::runs(path).map_err(io)?.is_empty() {
        folders = run::folders(path).map_err(io)?;
        folders.retain(|folder| location.is_none_or(|name| folder.file_name() == Some(name.as_ref())));
    }
    let mut journals = Vec::new();
    for folder in folders {
        let mut runs = run::runs(&folder).map_err(io)?;
        runs.retain(|run| number.is_none_or(|number| run.number == number));
        if let Some(run) = runs.last() {
            journals.push(Journal::of_run(&run.path)?);
        }
    }
    Ok(journals)
}

/// A journal to look into: the segments of a run, or one alone.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// The folder or the file.
    pub(crate) path: PathBuf,
    files: Vec<PathBuf>,
}

impl Journal {
    /// One segment by itself.
    pub(crate) fn of_segment(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            files: vec![path.to_owned()],
        }
    }

    /// A run's folder.
    ///
    /// # Errors
    /// As [`checked_segments`].
    pub(crate) fn of_run(folder: &Path) -> Result<Self, ReadError> {
        let segments = checked_segments(folder)?;
        Ok(Self {
            path: folder.to_owned(),
            files: segments.into_iter().map(|(file, _)| file.path).collect(),
        })
    }

    /// Reads it from its beginning.
    ///
    /// # Errors
    /// The first segment cannot be opened.
    pub(crate) fn read(&self) -> Result<JournalReader, ReadError> {
        let (first, rest) = self.files.split_first().expect("a journal has a segment");
        let mut segment = SegmentReader::open_path(first)?;
        let bundle = read_definition(&mut segment)?;
        let mut rest = rest.to_vec();
        rest.reverse();
        Ok(JournalReader {
            bundle,
            segment,
            rest,
            torn: None,
        })
    }
}

/// Reads a journal's records across its segments; the Definition that each begins with is checked and left out.
pub(crate) struct JournalReader {
    bundle: Bundle,
    segment: SegmentReader,
    /// The next one last.
    rest: Vec<PathBuf>,
    torn: Option<Torn>,
}

impl JournalReader {
    /// What the run is played on.
    pub(crate) fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The header of the segment being read.
    pub(crate) fn header(&self) -> &Header {
        self.segment.header()
    }

    /// The segment being read, for saying where something is.
    pub(crate) fn segment(&self) -> &SegmentReader {
        &self.segment
    }

    /// The torn end that was found, once reading has come there.
    pub(crate) fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// The next record, or `None` at the end: behind the last record, or where the last segment is torn.
    ///
    /// # Errors
    /// A file cannot be read or is damaged; or its successor does not follow it.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, ReadError> {
        if self.torn.is_some() {
            return Ok(None);
        }
        match self.segment.next() {
            Ok(Some(record)) => Ok(Some(record)),
            Ok(None) => match self.rest.pop() {
                Some(path) => self.turn_page(&path),
                None => Ok(None),
            },
            Err(ReadError::Bad(at)) if self.rest.is_empty() => {
                self.torn = Some(torn_or_damaged(at, self.segment.end())?);
                Ok(None)
            }
            Err(ReadError::Bad(at)) => Err(ReadError::Damage(at)),
            Err(error) => Err(error),
        }
    }

    fn turn_page(&mut self, path: &Path) -> Result<Option<Record>, ReadError> {
        let mut next = SegmentReader::open_path(path)?;
        check_same_run(&next, &self.segment.header)?;
        if next.header.chain != self.segment.chain() {
            return Err(next.damage(
                0,
                "broken chain: it does not follow the segment before it".to_owned(),
            ));
        }
        if next.header.segment != self.segment.header.segment + 1
            || next.header.first_tick != self.segment.tick()
        {
            let tick = self.segment.tick();
            return Err(next.damage(0, format!("the segment before it ends at tick {tick}")));
        }
        next.digest = self.segment.digest();
        read_definition(&mut next)?;
        self.segment = next;
        self.next()
    }
}

fn read_definition(segment: &mut SegmentReader) -> Result<Bundle, ReadError> {
    let at = segment.offset();
    match segment.next()? {
        Some(Record::Definition(bundle)) => Ok(*bundle),
        _ => Err(segment.damage(at, "no definition".to_owned())),
    }
}
