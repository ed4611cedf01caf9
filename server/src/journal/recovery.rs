//! From what is on the disk to a World that goes on (spec 5.7).

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::Bundle;
use sim::bounded::TooLong;
use sim::{CharacterId, Definition, World};

use super::aside;
use super::borrowed::{self, Borrowed};
use super::give_up::{self, GivenUp};
use super::reader::checked_segments;
use super::record::{Answer, CloseReason, Keyframe, Nonce, Record, Session, Sessions, unix_ms};
use super::run::{self, RunFolder, SegmentFile};
use super::segment::{Chain, Header};
use super::segment_reader::{Damage, ReadError, SegmentReader, Torn, torn_or_damaged};
use super::sessions::SessionTable;
use super::writer::{Failure, Writer};
use crate::exit::Status;

/// The file in a location's folder that whoever writes its journal holds locked.
const LOCK_NAME: &str = "lock";

/// What to open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenOptions<'a> {
    /// Holds a folder for each location.
    pub(crate) data_dir: &'a Path,
    /// The location's name.
    pub(crate) location: &'a str,
    /// What the location is played on, as bytes.
    pub(crate) bundle: &'a Bundle,
    /// The same, checked.
    pub(crate) definition: &'a Definition,
    /// Begin a new run even if the last could go on.
    pub(crate) new_run: bool,
    /// The last run is for this definition, or nothing is opened.
    pub(crate) same_definition: bool,
    /// Go on after damage from the last state that can be proved, giving up what is behind it.
    pub(crate) recover: bool,
}

/// A location as its journal knows it, and the journal to go on with.
pub(crate) struct Opened {
    /// Step `world.tick()` comes next.
    pub(crate) world: World,
    /// Random, told to clients.
    pub(crate) run: [u8; 16],
    /// From 1 on: the number in the folder's name.
    pub(crate) run_number: u64,
    /// Whether the run begins now.
    pub(crate) fresh: bool,
    /// The open sessions, in the order of their numbers. All are in their grace.
    pub(crate) sessions: Vec<Session>,
    /// Of each open session the last 256, older ones first.
    pub(crate) answers: Vec<Answer>,
    /// The largest number that a session of this run had; 0: there was none.
    pub(crate) last_session: u64,
    /// Characters that were there before the Bots that command them, and what they did.
    pub(crate) borrowed: Vec<Borrowed>,
    /// Tickets that were used and have not expired: none of them may open another session.
    pub(crate) nonces: Vec<Nonce>,
    /// Players whom no open session commands: the roster's Leave removes each in the first turn.
    pub(crate) leave: Vec<CharacterId>,
    /// What people should be told: a torn tail, a new run, a session that ended.
    pub(crate) notes: Vec<String>,
    /// The new segment: Definition, Keyframe and Sessions are in it and durable.
    pub(crate) journal: Writer,
}

/// Why a location's journal cannot be opened. Nothing has been changed then but what the notes of 5.7 say.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("the location name {0:?} cannot name a folder")]
    Name(String),
    #[error("{}: in use by another daemon", .0.display())]
    Locked(PathBuf),
    #[error(
        "{}: played on another definition (files, tick rate or bots), and journal.onChange is refuse; --new-run begins anew",
        .0.display()
    )]
    Changed(PathBuf),
    #[error(transparent)]
    Damage(#[from] Damage),
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Write(#[from] Failure),
    #[error("the keyframe: {0}")]
    TooLong(#[from] TooLong),
    #[error("{}: made by ruleset {} ({:016x}), this release plays {} ({:016x}); --new-run begins anew", path.display(), found.0, found.1, known.0, known.1)]
    Ruleset {
        path: PathBuf,
        found: (u32, u64),
        known: (u32, u64),
    },
}

impl OpenError {
    /// How the daemon ends (spec 9).
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Name(_) | Self::Locked(_) | Self::Changed(_) | Self::TooLong(_) => Status::Refused,
            Self::Damage(_) | Self::Ruleset { .. } => Status::DamagedData,
            Self::Io { .. } | Self::Write(_) => Status::Io,
        }
    }
}

impl From<ReadError> for OpenError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io { path, error } => Self::Io { path, error },
            ReadError::Bad(damage) | ReadError::Damage(damage) => Self::Damage(damage),
        }
    }
}

/// Opens the journal of a location: goes on with its last run, or begins one.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn open(options: &OpenOptions<'_>) -> Result<Opened, OpenError> {
    let folder = location_folder(options)?;
    let lock = lock(&folder)?;
    let opening = Opening {
        options,
        folder: &folder,
        lock,
    };
    let runs = run::runs(&folder).map_err(at(&folder))?;
    let Some(last) = runs.last() else {
        return opening.begin(None, "no run yet");
    };
    if options.new_run {
        return opening.begin(Some(last), "a new run was asked for");
    }
    match opening.go_on_if_it_can(last, &GivenUp::default()) {
        Err(OpenError::Damage(damage)) if options.recover => {
            let given_up = give_up::recover(last, &damage)?;
            let mut opened = opening.go_on_if_it_can(last, &given_up)?;
            opened.notes.insert(0, given_up.text());
            Ok(opened)
        }
        opened => opened,
    }
}

/// What all of an opening needs.
struct Opening<'a> {
    options: &'a OpenOptions<'a>,
    folder: &'a Path,
    lock: Arc<File>,
}

impl Opening<'_> {
    /// Begins a run, behind the last one if there is one: its folder appears with its first segment whole.
    fn begin(&self, last: Option<&RunFolder>, why: &str) -> Result<Opened, OpenError> {
        let world = World::new(self.options.definition);
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| at(self.folder)(io::Error::other(error)))?;
        let number = last.map_or(1, |last| last.number + 1);
        let path = self.folder.join(run::run_name(number));
        let temporary = self.folder.join(format!(".{}.tmp", run::run_name(number)));
        if temporary.exists() {
            fs::remove_dir_all(&temporary).map_err(at(&temporary))?;
        }
        let mut notes = vec![format!("{}: a new run begins: {why}", path.display())];
        let (mut nonces, problem) = last.map(used_tickets).unwrap_or_default();
        nonces.retain(|nonce| nonce.expires > unix_ms() / 1_000);
        notes.extend(problem);
        fs::create_dir(&temporary).map_err(at(&temporary))?;
        let start = Start {
            segment: 0,
            chain: Chain::default(),
            run: id,
            sessions: Sessions::new(world.tick(), Vec::new(), Vec::new(), nonces.clone())?,
        };
        let mut journal = self.begin_segment(&temporary, start, &world)?;
        fs::rename(&temporary, &path).map_err(at(&path))?;
        run::sync_folder(self.folder).map_err(at(self.folder))?;
        let name = journal.path().file_name().map(|name| path.join(name));
        journal.renamed(name.unwrap_or_else(|| path.clone()));
        Ok(Opened {
            world,
            run: id,
            run_number: number,
            fresh: true,
            sessions: Vec::new(),
            answers: Vec::new(),
            last_session: 0,
            borrowed: Vec::new(),
            nonces,
            leave: Vec::new(),
            notes,
            journal,
        })
    }

    /// Goes on in the last run, or begins another where that must be. `given_up`: what a recovery took out of it.
    fn go_on_if_it_can(&self, last: &RunFolder, given_up: &GivenUp) -> Result<Opened, OpenError> {
        let segments = checked_segments(&last.path)?;
        let (segment, header) = segments.last().expect("a checked run has a segment");
        if header.definition != self.options.bundle.hash() {
            if self.options.same_definition {
                return Err(OpenError::Changed(last.path.clone()));
            }
            return self.begin(Some(last), "the definition is another than the last run's");
        }
        check_ruleset(segment, header, self.options.definition)?;
        let files: Vec<SegmentFile> = segments.iter().map(|(file, _)| file.clone()).collect();
        self.go_on(last, &files, given_up)
    }

    /// Goes on in a run that has these segments.
    fn go_on(
        &self,
        run: &RunFolder,
        segments: &[SegmentFile],
        given_up: &GivenUp,
    ) -> Result<Opened, OpenError> {
        let segment = segments.last().expect("a checked run has a segment");
        let mut notes = Vec::new();
        let mut reader = SegmentReader::open(segment)?;
        let mut everybody = SessionTable::default();
        if let Some(torn) = read_to_end(&mut reader, &mut everybody)? {
            notes.push(cut_torn(&torn, &mut reader)?);
        }
        if reader.closed() == Some(CloseReason::RunEnded) {
            return self.begin(Some(run), "the last run was ended");
        }
        let chain = reader.chain();
        let keyframe = reader.last_keyframe().expect("a segment begins with a keyframe");
        reader.seek(keyframe)?;
        let (world, mut table) = replay(&mut reader, self.options.definition)?;
        let strays = table.settle(&world);
        for session in &strays.ended {
            notes.push(format!("session {session} ends: its character is gone"));
        }
        for character in &strays.leave {
            notes.push(format!("player {} leaves: no session commands it", character.0));
        }
        let lent = table.borrowed(&world);
        let borrowed = borrowed::find(segments, self.options.definition, lent);
        let last_session = everybody.last_session().max(given_up.last_session);
        let (sessions, answers, mut nonces) = table.into_parts();
        for nonce in &given_up.nonces {
            if !nonces.iter().any(|known| known.nonce == nonce.nonce) {
                nonces.push(*nonce);
            }
        }
        nonces.retain(|nonce| nonce.expires > unix_ms() / 1_000);
        sync_what_was_read(segment, run, self.folder)?;
        remove_temporaries(&run.path).map_err(at(&run.path))?;
        let id = reader.header().run;
        let mut recorded = sessions.clone();
        if recorded.last().map_or(0, |session| session.session) < last_session {
            recorded.push(Session::ended(last_session));
        }
        let start = Start {
            segment: segment.number + 1,
            chain,
            run: id,
            sessions: Sessions::new(world.tick(), recorded, answers.clone(), nonces.clone())?,
        };
        let journal = self.begin_segment(&run.path, start, &world)?;
        let tick = world.tick();
        notes.push(format!("{}: going on at tick {tick}", run.path.display()));
        Ok(Opened {
            world,
            run: id,
            run_number: run.number,
            fresh: false,
            sessions,
            answers,
            last_session,
            borrowed,
            nonces,
            leave: strays.leave,
            notes,
            journal,
        })
    }

    fn begin_segment(&self, folder: &Path, start: Start, world: &World) -> Result<Writer, OpenError> {
        let Opening { options, lock, .. } = self;
        begin_segment(folder, start, world, options.bundle, Some(Arc::clone(lock)))
    }
}

/// What a new segment begins with, beside the World.
pub(crate) struct Start {
    pub(crate) segment: u64,
    /// Of the last record of the segment before.
    pub(crate) chain: Chain,
    pub(crate) run: [u8; 16],
    pub(crate) sessions: Sessions,
}

/// Makes a segment that holds Definition, Keyframe and Sessions: under another name until all of that is durable.
pub(crate) fn begin_segment(
    folder: &Path,
    start: Start,
    world: &World,
    bundle: &Bundle,
    lock: Option<Arc<File>>,
) -> Result<Writer, OpenError> {
    let name = run::segment_name(start.segment, world.tick());
    begin_segment_file(&folder.join(name), start, world, bundle, lock)
}

/// As [`begin_segment`], in a file of any name.
pub(crate) fn begin_segment_file(
    path: &Path,
    start: Start,
    world: &World,
    bundle: &Bundle,
    lock: Option<Arc<File>>,
) -> Result<Writer, OpenError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.tmp"));
    let (ruleset, ruleset_hash) = ruleset(world.definition());
    let header = Header {
        tick_rate: world.definition().tick_rate(),
        ruleset,
        run: start.run,
        segment: start.segment,
        first_tick: world.tick(),
        definition: bundle.hash(),
        chain: start.chain,
        ruleset_hash,
    };
    let file = File::create(&temporary).map_err(at(&temporary))?;
    let mut writer = Writer::begin(file, temporary.clone(), &header, lock);
    writer.push(&Record::Definition(Box::new(bundle.clone())))?;
    writer.push(&Record::Keyframe(Keyframe::new(
        world.tick(),
        world.digest(),
        world.snapshot(),
    )?))?;
    writer.push(&Record::Sessions(start.sessions))?;
    writer.write()?;
    writer.sync()?;
    fs::rename(&temporary, path).map_err(at(path))?;
    run::sync_folder(folder).map_err(at(folder))?;
    writer.renamed(path.to_owned());
    Ok(writer)
}

/// Whether this release steps the Worlds of a segment as they were stepped.
///
/// # Errors
/// It does not.
pub(super) fn check_ruleset(
    segment: &SegmentFile,
    header: &Header,
    definition: &Definition,
) -> Result<(), OpenError> {
    let (found, known) = ((header.ruleset, header.ruleset_hash), ruleset(definition));
    if found == known {
        return Ok(());
    }
    let path = segment.path.clone();
    Err(OpenError::Ruleset { path, found, known })
}

/// The rules by which this release steps a World of this definition.
fn ruleset(definition: &Definition) -> (u32, u64) {
    (sim::RULESET, sim::ruleset_hash(definition.planner()))
}

fn location_folder(options: &OpenOptions<'_>) -> Result<PathBuf, OpenError> {
    if !run::is_folder_name(options.location) {
        return Err(OpenError::Name(options.location.to_owned()));
    }
    let folder = options.data_dir.join(options.location);
    run::create_folders(&folder).map_err(at(&folder))?;
    Ok(folder)
}

/// Held until the journal is closed or the process ends, however it ends.
pub(super) fn lock(folder: &Path) -> Result<Arc<File>, OpenError> {
    let path = folder.join(LOCK_NAME);
    let mut options = File::options();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(Arc::new(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(at(&path)(error)),
    }
}

/// Saves a torn tail and cuts it off; returns what people should be told. The reader then ends before it.
pub(super) fn cut_torn(torn: &Torn, reader: &mut SegmentReader) -> Result<String, OpenError> {
    let path = &torn.at.path;
    let saved = aside::cut(path, torn.at.offset, "torn").map_err(at(path))?;
    reader.end_here();
    Ok(format!(
        "{}: torn tail of {} bytes at offset {}, tick {} ({}): saved as {}, cut off",
        path.display(),
        torn.bytes,
        torn.at.offset,
        torn.at.tick,
        torn.at.what,
        saved.display()
    ))
}

/// Reads all records; the reader then stands behind the last good one.
pub(super) fn read_to_end(
    reader: &mut SegmentReader,
    everybody: &mut SessionTable,
) -> Result<Option<Torn>, OpenError> {
    loop {
        match reader.next() {
            Ok(Some(record)) => everybody.follow(&record),
            Ok(None) => return Ok(None),
            Err(ReadError::Bad(damage)) => return Ok(Some(torn_or_damaged(damage, reader.end())?)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The tickets that were used in a run, and what people should be told where its last segment does not tell all.
fn used_tickets(run: &RunFolder) -> (Vec<Nonce>, Option<String>) {
    let mut table = SessionTable::default();
    let read = run::segments(&run.path)
        .map_err(at(&run.path))
        .and_then(|segments| match segments.last() {
            Some(last) => read_to_end(&mut SegmentReader::open(last)?, &mut table),
            None => Ok(None),
        });
    let problem = read.err().map(|error| {
        format!("not all tickets that were used in the last run are known, they may be used again: {error}")
    });
    (table.into_parts().2, problem)
}

/// Loads the keyframe at which the reader stands and runs the turns behind it.
pub(super) fn replay(
    reader: &mut SegmentReader,
    definition: &Definition,
) -> Result<(World, SessionTable), OpenError> {
    let mut table = SessionTable::default();
    let mut events = Vec::new();
    let offset = reader.offset();
    let Some(Record::Keyframe(keyframe)) = reader.next()? else {
        unreachable!("the first pass found a keyframe here");
    };
    let world = World::load(definition, &keyframe.snapshot);
    let mut world =
        world.map_err(|error| reader.located(offset, format!("the keyframe cannot be loaded: {error}")))?;
    check_digest(reader, offset, keyframe.digest, world.digest())?;
    loop {
        let offset = reader.offset();
        let Some(record) = reader.next()? else {
            return Ok((world, table));
        };
        if let Record::Turn(turn) = &record {
            events.clear();
            world.step_into(&turn.commands, &mut events);
            check_digest(reader, offset, turn.digest, world.digest())?;
        }
        table.follow(&record);
    }
}

fn check_digest(reader: &SegmentReader, offset: u64, recorded: u64, computed: u64) -> Result<(), Damage> {
    if recorded == computed {
        return Ok(());
    }
    Err(reader.located(
        offset,
        format!(
            "digest {recorded:016x} recorded, {computed:016x} computed: other rules than this release's, or damaged memory"
        ),
    ))
}

/// After a kill it may be in the system's memory only, and what it answers may be asked for (spec 5.7).
pub(super) fn sync_what_was_read(
    segment: &SegmentFile,
    run: &RunFolder,
    location: &Path,
) -> Result<(), OpenError> {
    let file = File::open(&segment.path).map_err(at(&segment.path))?;
    file.sync_all().map_err(at(&segment.path))?;
    run::sync_folder(&run.path).map_err(at(&run.path))?;
    run::sync_folder(location).map_err(at(location))
}

/// What an earlier start did not get to name.
pub(super) fn remove_temporaries(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> OpenError {
    move |error| OpenError::Io {
        path: path.to_owned(),
        error,
    }
}
