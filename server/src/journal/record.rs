//! What a journal records: the kinds of records and their payloads (spec 5.2), encoded as on the wire.

use bincode::{Decode, Encode};
use bytes::BytesMut;
use protocol::message::{Role, Short, TURN_COMMANDS_MAX};
use protocol::wire::{self, WireError};
use protocol::{Blob, Bundle, Code, Origin};
use sim::bounded::{List, Text, TooLong};
use sim::{CHARACTERS_MAX, CharacterId, Command, Name};

use super::segment::{Kind, PAYLOAD_BYTES_MAX};

/// Ticks between two keyframes.
pub(crate) const KEYFRAME_TICKS: u64 = 600;
/// Bytes of the ticket's name for a person.
pub(crate) const SUBJECT_BYTES_MAX: usize = 128;
/// Bytes of what an operator did.
pub(crate) const NOTE_BYTES_MAX: usize = 1024;
/// Answers remembered of each session (spec 4.5).
pub(crate) const ANSWERS_PER_SESSION_MAX: usize = 256;
/// Sessions of a location, connected or in their grace.
pub(crate) const SESSIONS_MAX: usize = 65_536;
/// Ticket nonces that have not expired.
pub(crate) const NONCES_MAX: usize = 1 << 20;

const ANSWERS_MAX: usize = SESSIONS_MAX * ANSWERS_PER_SESSION_MAX / 8;
const SNAPSHOT_BYTES_MAX: usize = PAYLOAD_BYTES_MAX as usize - 64;
/// Memory that decoding one record may claim.
const DECODED_BYTES_MAX: usize = 4 * PAYLOAD_BYTES_MAX as usize;

/// One record of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// 1: the bundle that the whole run is played on.
    Definition(Box<Bundle>),
    /// 2: the whole World.
    Keyframe(Keyframe),
    /// 3: everybody who is there.
    Sessions(Sessions),
    /// 4: the commands of one tick.
    Turn(Turn),
    /// 5: a session was opened, changed or ended.
    Session(Session),
    /// 6: the segment ended in order.
    Close(Close),
    /// 7: what an operator did that is no command.
    Note(Note),
}

/// The World in which step `tick` runs next.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Keyframe {
    pub(crate) tick: u64,
    /// Of the snapshot: D_(tick − 1).
    pub(crate) digest: u64,
    /// Wall clock, for people; decides nothing.
    pub(crate) unix_ms: u64,
    /// Spec 5.4.
    pub(crate) snapshot: Blob<SNAPSHOT_BYTES_MAX>,
}

impl Keyframe {
    /// # Errors
    /// A snapshot that no record can hold.
    pub(crate) fn new(tick: u64, digest: u64, snapshot: Vec<u8>) -> Result<Self, TooLong> {
        Ok(Self {
            tick,
            digest,
            unix_ms: unix_ms(),
            snapshot: Blob::new(snapshot)?,
        })
    }
}

/// All sessions that are open (and at a start the last number that was given out), what they were answered, and the tickets that must not open another: stands behind each
/// keyframe.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Sessions {
    pub(crate) tick: u64,
    pub(crate) sessions: List<Session, SESSIONS_MAX>,
    /// Of each session the last [`ANSWERS_PER_SESSION_MAX`], older ones first.
    pub(crate) answers: List<Answer, ANSWERS_MAX>,
    pub(crate) nonces: List<Nonce, NONCES_MAX>,
}

impl Sessions {
    /// # Errors
    /// More of one of them than its limit.
    pub(crate) fn new(
        tick: u64,
        sessions: Vec<Session>,
        answers: Vec<Answer>,
        nonces: Vec<Nonce>,
    ) -> Result<Self, TooLong> {
        Ok(Self {
            tick,
            sessions: List::new(sessions)?,
            answers: List::new(answers)?,
            nonces: List::new(nonces)?,
        })
    }
}

/// A command that has run: what its client was, or must still be, answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Answer {
    pub(crate) session: u64,
    pub(crate) sequence: u64,
    /// The turn it was in.
    pub(crate) tick: u64,
    /// Its place there.
    pub(crate) index: u32,
    pub(crate) outcome: Code,
}

/// A ticket that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Nonce {
    pub(crate) nonce: [u8; 16],
    /// Unix time, seconds.
    pub(crate) expires: u64,
}

/// The wire's Turn and where each command came from.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Turn {
    pub(crate) tick: u64,
    pub(crate) commands: List<Command, TURN_COMMANDS_MAX>,
    /// D_tick.
    pub(crate) digest: u64,
    /// One per command.
    pub(crate) origins: List<Origin, TURN_COMMANDS_MAX>,
}

/// A session as it is from here on.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Session {
    /// Its number in the run.
    pub(crate) session: u64,
    /// Whom the ticket names; empty without one.
    pub(crate) subject: Text<SUBJECT_BYTES_MAX>,
    pub(crate) name: Name,
    pub(crate) role: Role,
    /// What it commands.
    pub(crate) characters: List<CharacterId, CHARACTERS_MAX>,
    /// [`token_hash`] of what resumes it.
    pub(crate) token_hash: [u8; 32],
    /// Of the token before, until the first frame on the new connection.
    pub(crate) old_token_hash: Option<[u8; 32]>,
    /// Of the ticket that opened it.
    pub(crate) nonce: Option<Nonce>,
    pub(crate) state: SessionState,
}

impl Session {
    /// Only the number of a session that has ended: stands in a Sessions record so that no later session gets it.
    pub(crate) fn ended(session: u64) -> Self {
        Self {
            session,
            subject: Text::default(),
            name: Name::default(),
            role: Role::Watcher,
            characters: List::default(),
            token_hash: [0; 32],
            old_token_hash: None,
            nonce: None,
            state: SessionState::Ended,
        }
    }
}

/// Whether a session can still be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum SessionState {
    /// Connected or in its grace.
    Open,
    /// Left, or its grace is over.
    Ended,
}

/// Nothing follows in this segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Close {
    /// The one that comes next.
    pub(crate) tick: u64,
    /// D_(tick − 1).
    pub(crate) digest: u64,
    pub(crate) reason: CloseReason,
}

/// Why a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum CloseReason {
    /// The next segment goes on with the same World.
    Rotated,
    /// The daemon stopped; its next start goes on.
    Stopped,
    /// The next start begins a new run.
    RunEnded,
}

/// Something that an operator did.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Note {
    /// The step that comes next.
    pub(crate) tick: u64,
    /// Wall clock, for people.
    pub(crate) unix_ms: u64,
    /// Who.
    pub(crate) actor: Short,
    /// What.
    pub(crate) text: Text<NOTE_BYTES_MAX>,
}

/// What is kept of a session's token: enough to recognise it, not to use it.
pub(crate) fn token_hash(token: &[u8; 16]) -> [u8; 32] {
    *blake3::hash(token).as_bytes()
}

/// Milliseconds of the wall clock: written beside keyframes and notes for people, read by nobody.
pub(crate) fn unix_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Why a payload is not what its kind says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PayloadError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("the definition: {0}")]
    Bundle(#[from] protocol::bundle::BundleError),
    #[error("{commands} commands but {origins} origins")]
    Origins { commands: usize, origins: usize },
}

impl Record {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Definition(_) => Kind::Definition,
            Self::Keyframe(_) => Kind::Keyframe,
            Self::Sessions(_) => Kind::Sessions,
            Self::Turn(_) => Kind::Turn,
            Self::Session(_) => Kind::Session,
            Self::Close(_) => Kind::Close,
            Self::Note(_) => Kind::Note,
        }
    }

    /// Appends the payload.
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Definition(bundle) => out.extend_from_slice(&bundle.pack()),
            Self::Keyframe(keyframe) => wire::encode_into(keyframe, out),
            Self::Sessions(sessions) => wire::encode_into(sessions, out),
            Self::Turn(turn) => wire::encode_into(turn, out),
            Self::Session(session) => wire::encode_into(session, out),
            Self::Close(close) => wire::encode_into(close, out),
            Self::Note(note) => wire::encode_into(note, out),
        }
    }

    /// # Errors
    /// A payload that is not exactly one value of this kind within its limits.
    pub(crate) fn decode(kind: Kind, payload: &[u8]) -> Result<Self, PayloadError> {
        Ok(match kind {
            Kind::Definition => Self::Definition(Box::new(Bundle::unpack(payload)?)),
            Kind::Keyframe => Self::Keyframe(value(payload)?),
            Kind::Sessions => Self::Sessions(value(payload)?),
            Kind::Turn => Self::Turn(turn(payload)?),
            Kind::Session => Self::Session(value(payload)?),
            Kind::Close => Self::Close(value(payload)?),
            Kind::Note => Self::Note(value(payload)?),
        })
    }
}

fn turn(payload: &[u8]) -> Result<Turn, PayloadError> {
    let turn: Turn = value(payload)?;
    let (commands, origins) = (turn.commands.len(), turn.origins.len());
    if commands == origins {
        Ok(turn)
    } else {
        Err(PayloadError::Origins { commands, origins })
    }
}

fn value<T: Decode<()>>(payload: &[u8]) -> Result<T, PayloadError> {
    Ok(wire::decode::<T, DECODED_BYTES_MAX>(payload)?)
}
