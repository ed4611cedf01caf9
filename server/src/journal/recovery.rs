//! From what is on the disk to a World that goes on (spec 5.7).

use std::io;
use std::path::{Path, PathBuf};

use protocol::Bundle;
use sim::bounded::TooLong;
use sim::{CharacterId, Definition, SnapshotError, World};

use super::record::{Answer, Nonce, Session};
use super::writer::{Failure, Writer};
use crate::exit::Status;

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
    /// Tickets that must not open another session.
    pub(crate) nonces: Vec<Nonce>,
    /// The largest session number that the journal named since the keyframe it began with; 0: none.
    pub(crate) last_session: u64,
    /// Players whom no open session commands: the roster's Leave removes each in the first turn.
    pub(crate) leave: Vec<CharacterId>,
    /// What people should be told: a torn tail, a new run, a session that ended.
    pub(crate) notes: Vec<String>,
    /// The new segment: Definition, Keyframe and Sessions are in it and durable.
    pub(crate) journal: Writer,
}

/// Bytes that were durable and are no longer what was written.
#[derive(Debug, thiserror::Error)]
#[error("{}: damaged at offset {offset}, tick {tick}: {what}", path.display())]
pub(crate) struct Damage {
    pub(crate) path: PathBuf,
    /// Of the record that is bad.
    pub(crate) offset: u64,
    /// The tick that would have come next there.
    pub(crate) tick: u64,
    pub(crate) what: String,
}

/// Why a location's journal cannot be opened. Nothing has been changed then but what the notes of 5.7 say.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("the location name {0:?} cannot name a folder")]
    Name(String),
    #[error("{}: in use by another daemon", .0.display())]
    Locked(PathBuf),
    #[error(transparent)]
    Damage(#[from] Damage),
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Write(#[from] Failure),
    #[error("the keyframe: {0}")]
    TooLong(#[from] TooLong),
    #[error("{}: ruleset {found:?}, this release plays {known:?}", path.display())]
    Ruleset {
        path: PathBuf,
        found: (u32, u64),
        known: (u32, u64),
    },
    #[error("{}: the keyframe cannot be loaded: {error}", path.display())]
    Snapshot { path: PathBuf, error: SnapshotError },
}

impl OpenError {
    /// How the daemon ends (spec 9).
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Name(_) | Self::Locked(_) | Self::TooLong(_) => Status::Refused,
            Self::Damage(_) | Self::Ruleset { .. } | Self::Snapshot { .. } => Status::DamagedData,
            Self::Io { .. } | Self::Write(_) => Status::Io,
        }
    }
}

/// Opens the journal of a location: goes on with its last run, or begins one.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn open(options: &OpenOptions<'_>) -> Result<Opened, OpenError> {
    Err(OpenError::Name(options.location.to_owned()))
}
