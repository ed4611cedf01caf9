//! `--recover`: going on after damage, for an operator who must (spec 5.7, 9.1). What is behind the last state that can
//! be proved is given up: saved beside the journal, never deleted, and reported.
//!
//! A state is proved by a keyframe that can be read and loaded and by turns behind it, each whole, following the one
//! before, and leading to the digest that it records. The newest segment that has such a keyframe is the one to go on
//! from. Given up are
//! - in it, everything from its first bad record on;
//! - every later segment;
//! - where a segment before it is missing or has no header, that one and all before it: their history is whole no more,
//!   as if retention had removed them.
//!
//! The run stays the same and goes back to an earlier tick. A client whose World is ahead gets a Snapshot when it
//! resumes. Numbers of sessions and tickets that were used in what is given up are not given or taken again, as far as
//! whole records there tell.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use protocol::Origin;
use serde::Serialize;
use sim::{Definition, World};

use super::aside;
use super::frames;
use super::playback;
use super::record::{Nonce, Record, unix_ms};
use super::recovery::{OpenError, at};
use super::run::{self, RunFolder, SegmentFile};
use super::seekable::Content;
use super::segment_reader::{Damage, Position, ReadError, SegmentReader};

/// What the names of given-up files end with.
const ENDING: &str = "given-up";

/// What was given up, and what it costs.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct GivenUp {
    /// The first damage found: file, offset, tick.
    pub(crate) damage: String,
    /// The run goes on with this one.
    pub(crate) next_tick: u64,
    /// Whole turns in what is given up.
    pub(crate) turns: u64,
    /// The last of their ticks.
    pub(crate) last_tick: Option<u64>,
    /// Answers to clients in them: these commands have not happened any more.
    pub(crate) answers: u64,
    /// Session records: people who came, went or resumed.
    pub(crate) sessions: u64,
    /// Where everything is now.
    pub(crate) saved: Vec<PathBuf>,
    /// This as a file.
    pub(crate) report: PathBuf,
    /// The largest number of a session in it.
    #[serde(skip)]
    pub(crate) last_session: u64,
    /// Tickets that were used in it.
    #[serde(skip)]
    pub(crate) nonces: Vec<Nonce>,
}

impl GivenUp {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "recovered: {}\n  the run goes back to tick {}; given up: {} turns",
            self.damage, self.next_tick, self.turns
        );
        if let Some(tick) = self.last_tick {
            text += &format!(" (the last of tick {tick})");
        }
        text += &format!(
            ", {} answers, {} session records, as far as they can be read",
            self.answers, self.sessions
        );
        for path in &self.saved {
            text += &format!("\n  saved: {}", path.display());
        }
        text += "\n  clients that are ahead get a snapshot when they resume";
        text
    }

    fn count(&mut self, record: &Record) {
        match record {
            Record::Turn(turn) => {
                self.turns += 1;
                self.last_tick = self.last_tick.max(Some(turn.tick));
                let of_session = |origin: &&Origin| matches!(origin, Origin::Session { .. });
                self.answers += turn.origins.iter().filter(of_session).count() as u64;
            }
            Record::Session(session) => {
                self.sessions += 1;
                self.last_session = self.last_session.max(session.session);
                self.nonces.extend(session.nonce);
            }
            Record::Sessions(sessions) => {
                let numbers = sessions.sessions.iter().map(|session| session.session);
                self.last_session = self.last_session.max(numbers.max().unwrap_or(0));
                self.nonces.extend(sessions.nonces.iter());
            }
            _ => {}
        }
    }
}

/// Takes out of a run what cannot be proved; the location's lock is held. `damage`: why it was refused.
///
/// # Errors
/// No state of the run can be proved: nothing has been changed, and only a new run can begin. Or the disk failed.
pub(crate) fn recover(run: &RunFolder, damage: &Damage) -> Result<GivenUp, OpenError> {
    let segments = run::segments(&run.path).map_err(at(&run.path))?;
    let mut proved = None;
    for (index, segment) in segments.iter().enumerate().rev() {
        if let Some(end) = prove(segment)? {
            proved = Some((index, end));
            break;
        }
    }
    let Some((index, end)) = proved else {
        return Err(OpenError::Damage(Damage {
            what: format!(
                "{}; no state of this run can be proved, --new-run begins anew",
                damage.what
            ),
            ..damage.clone()
        }));
    };
    let mut given_up = GivenUp {
        damage: damage.to_string(),
        next_tick: end.tick,
        ..GivenUp::default()
    };
    // The newest first, the oldest last: a kill in between leaves a run that can be recovered again.
    for segment in segments[index + 1..].iter().rev() {
        give_up_whole(segment, &mut given_up)?;
    }
    if !end.is_whole {
        give_up_end(&segments[index], &end, &mut given_up)?;
    }
    let broken = (0..index).rfind(|&earlier| !leads_to(&segments[earlier], &segments[earlier + 1]));
    for segment in &segments[..broken.map_or(0, |broken| broken + 1)] {
        give_up_whole(segment, &mut given_up)?;
    }
    write_report(run, &mut given_up).map_err(at(&run.path))?;
    Ok(given_up)
}

/// How far a segment can be proved.
struct Proved {
    /// Where its last good record ends.
    offset: u64,
    /// The tick that comes next there.
    tick: u64,
    is_whole: bool,
}

/// `None`: it has no state that can be proved.
fn prove(segment: &SegmentFile) -> Result<Option<Proved>, OpenError> {
    let mut reader = match SegmentReader::open(segment) {
        Ok(reader) => reader,
        Err(error) => return unless_io(error),
    };
    let definition = match reader.next() {
        Ok(Some(Record::Definition(bundle))) => playback::definition(&bundle),
        Ok(_) => return Ok(None),
        Err(error) => return unless_io(error),
    };
    let Ok(definition) = definition else {
        return Ok(None);
    };
    // Every step that fails makes the limit lower, so this ends.
    let mut limit = u64::MAX;
    loop {
        let Some((keyframe, end)) = scan(segment, limit)? else {
            return Ok(None);
        };
        match step(segment, keyframe, end, &definition)? {
            Ok(tick) => {
                return Ok(Some(Proved {
                    offset: end,
                    tick,
                    is_whole: end == reader.end(),
                }));
            }
            Err(bad) => limit = bad,
        }
    }
}

/// The last whole keyframe before `limit`, and where the good records up to there end.
fn scan(segment: &SegmentFile, limit: u64) -> Result<Option<(Position, u64)>, OpenError> {
    let mut reader = SegmentReader::open(segment)?;
    while reader.offset() < limit {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) | Err(ReadError::Bad(_) | ReadError::Damage(_)) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let end = reader.offset();
    Ok(reader.last_keyframe().map(|keyframe| (keyframe, end)))
}

/// Runs the turns from a keyframe to an offset. The tick that comes next, or where the first record stands that leads
/// to another state than it says.
fn step(
    segment: &SegmentFile,
    keyframe: Position,
    end: u64,
    definition: &Definition,
) -> Result<Result<u64, u64>, OpenError> {
    let mut reader = SegmentReader::open(segment)?;
    reader.seek(keyframe)?;
    let Some(Record::Keyframe(recorded)) = reader.next()? else {
        return Ok(Err(keyframe.offset));
    };
    let world = World::load(definition, &recorded.snapshot);
    let Some(mut world) = world.ok().filter(|world| world.digest() == recorded.digest) else {
        return Ok(Err(keyframe.offset));
    };
    let mut events = Vec::new();
    while reader.offset() < end {
        let offset = reader.offset();
        if let Some(Record::Turn(turn)) = reader.next()? {
            events.clear();
            world.step_into(&turn.commands, &mut events);
            if world.digest() != turn.digest {
                return Ok(Err(offset));
            }
        }
    }
    Ok(Ok(world.tick()))
}

/// Whether two segments can be those of one history: by their names and headers.
fn leads_to(before: &SegmentFile, after: &SegmentFile) -> bool {
    let (Ok(first), Ok(second)) = (SegmentReader::open(before), SegmentReader::open(after)) else {
        return false;
    };
    let (first, second) = (first.header(), second.header());
    first.segment + 1 == second.segment
        && first.run == second.run
        && first.definition == second.definition
        && first.first_tick <= second.first_tick
}

fn give_up_whole(segment: &SegmentFile, given_up: &mut GivenUp) -> Result<(), OpenError> {
    count_in_order(&segment.path, given_up)?;
    let saved = aside::rename(&segment.path, ENDING).map_err(at(&segment.path))?;
    given_up.saved.push(saved);
    Ok(())
}

/// Gives up all behind the last good record. Of a packed segment the good part is unpacked: the raw file counts from the
/// moment it has its name.
fn give_up_end(segment: &SegmentFile, end: &Proved, given_up: &mut GivenUp) -> Result<(), OpenError> {
    let path = &segment.path;
    let (content, _) = Content::open(File::open(path).map_err(at(path))?).map_err(at(path))?;
    let saved = match content {
        Content::Raw(mut file) => {
            count_anywhere(&mut file, end.offset, given_up).map_err(at(path))?;
            aside::cut(path, end.offset, ENDING)
        }
        Content::Packed(_) => {
            let raw = path.with_extension("");
            unpack(content, end.offset, &raw).and_then(|()| aside::rename(path, ENDING))
        }
    };
    given_up.saved.push(saved.map_err(at(path))?);
    Ok(())
}

fn unpack(content: Content, bytes: u64, raw: &Path) -> io::Result<()> {
    let temporary = aside::temporary_name(raw, "unpacked");
    let mut file = File::create(&temporary)?;
    io::copy(&mut content.take(bytes), &mut file)?;
    file.sync_all()?;
    fs::rename(&temporary, raw)?;
    run::sync_folder(aside::folder_of(raw))
}

/// Counts what a file holds up to its first bad record.
fn count_in_order(path: &Path, given_up: &mut GivenUp) -> Result<(), OpenError> {
    let Ok(mut reader) = SegmentReader::open_path(path) else {
        return Ok(());
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => given_up.count(&record),
            Ok(None) | Err(ReadError::Bad(_) | ReadError::Damage(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Counts the whole records from an offset on, whatever is between them.
fn count_anywhere(file: &mut File, offset: u64, given_up: &mut GivenUp) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.read_to_end(&mut bytes)?;
    for (kind, payload) in frames::whole_records(&bytes, offset) {
        if let Ok(record) = Record::decode(kind, payload) {
            given_up.count(&record);
        }
    }
    Ok(())
}

fn write_report(run: &RunFolder, given_up: &mut GivenUp) -> io::Result<()> {
    let names = (1_u64..).map(|number| run.path.join(format!("recovered-{number:06}.txt")));
    let mut names = names.skip_while(|name| name.exists());
    given_up.report = names.next().expect("there are more numbers than files");
    let mut file = File::create(&given_up.report)?;
    writeln!(
        file,
        "{}\n  at {} ms of the wall clock",
        given_up.text(),
        unix_ms()
    )?;
    file.sync_all()?;
    run::sync_folder(&run.path)
}

fn unless_io<T>(error: ReadError) -> Result<Option<T>, OpenError> {
    match error {
        ReadError::Io { .. } => Err(error.into()),
        ReadError::Bad(_) | ReadError::Damage(_) => Ok(None),
    }
}
