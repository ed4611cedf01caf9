//! The messages in both directions (spec 4.3, 4.4). The order of variants and of fields is the wire's: the golden
//! vectors beside the tests fail when it changes.

use bincode::{Decode, Encode};
use nav::Fixed;
use sim::bounded::{List, Text};
use sim::{CHARACTERS_MAX, CharacterId, Command, Event, NAME_BYTES_MAX};

use crate::blob::Blob;
use crate::codes::Code;
use crate::frame::{
    FRAME_BYTES_BEFORE_ADMISSION_MAX, FRAME_BYTES_FROM_CLIENT_MAX, FRAME_BYTES_FROM_SERVER_MAX,
};
use crate::packed::PackedState;
use crate::state::State;
use crate::{FEATURES, MAGIC, VERSION};

/// Bytes of a text where the table names no other maximum.
pub const TEXT_BYTES_MAX: usize = 64;
/// Bytes of a ticket.
pub const TICKET_BYTES_MAX: usize = 640;
/// Bytes of the explanation beside a code.
pub const EXPLANATION_BYTES_MAX: usize = 256;
/// Bytes of an operator's announcement.
pub const NOTICE_BYTES_MAX: usize = 512;
/// Bytes of the address of another daemon.
pub const ADDRESS_BYTES_MAX: usize = 64;
/// Bytes of one part of a snapshot or a definition.
pub const PART_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one part of a desync report.
pub const REPORT_PART_BYTES_MAX: usize = 12 * 1024;
/// Bytes of a whole desync report.
pub const REPORT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of all commands of one turn (spec 4.1).
pub const TURN_BYTES_MAX: usize = 64 * 1024;
/// Commands of one turn: the smallest has two bytes.
pub const TURN_COMMANDS_MAX: usize = TURN_BYTES_MAX / 2;

/// What a `Hello` takes beside its texts: variant, magic, version, features, enums, view, resume, need, lengths.
const HELLO_FIXED_BYTES_MAX: usize = 6 + 9 + 2 + 23 + 61 + 33 + 8;
// With a ticket the name is empty.
const _: () = assert!(
    HELLO_FIXED_BYTES_MAX + 2 * TEXT_BYTES_MAX + TICKET_BYTES_MAX <= FRAME_BYTES_BEFORE_ADMISSION_MAX
);
const _: () = assert!(NAME_BYTES_MAX <= TICKET_BYTES_MAX);
const _: () = assert!(REPORT_PART_BYTES_MAX < FRAME_BYTES_FROM_CLIENT_MAX);
const _: () = assert!(REPORT_PART_BYTES_MAX <= REPORT_BYTES_MAX);
const _: () = assert!(PART_BYTES_MAX < FRAME_BYTES_FROM_SERVER_MAX);
const _: () = assert!(TURN_BYTES_MAX < FRAME_BYTES_FROM_SERVER_MAX);

/// A short text.
pub type Short = Text<TEXT_BYTES_MAX>;
/// The explanation beside a code, for people.
pub type Explanation = Text<EXPLANATION_BYTES_MAX>;
/// One part of a snapshot or a definition.
pub type Part = Blob<PART_BYTES_MAX>;

/// Client → server.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ClientMessage {
    /// 0: asks for admission; the first message, once.
    Hello(Box<Hello>),
    /// 1: an intent; answered exactly once by `Accepted` or `Refused`.
    Command {
        /// From 1; gaps are allowed.
        sequence: u64,
        /// The turn it is for; `None`: the first with room.
        at_tick: Option<u64>,
        /// What is wanted.
        command: Command,
    },
    /// 2: the digest after `tick` as the client computed it.
    Digest {
        /// The step it belongs to.
        tick: u64,
        /// D_tick.
        digest: u64,
    },
    /// 3: asks for a snapshot; at most one in two seconds.
    Resync,
    /// 4: asks for a `Pong`.
    Ping {
        /// Comes back.
        nonce: u64,
    },
    /// 5: leaves for good, no grace.
    Goodbye,
    /// 6: what a State feed shows from now on.
    SetView {
        /// The new view.
        view: View,
    },
    /// 7: a part of the client's snapshot after a desync, only when asked.
    DesyncReport {
        /// The step after which it was taken.
        tick: u64,
        /// From 0.
        part: u32,
        /// How many there are.
        parts: u32,
        /// This part.
        bytes: Blob<REPORT_PART_BYTES_MAX>,
    },
}

/// Asks for admission (spec 4.3). Its first six encoded bytes, `00`, the magic and the version, never change (spec 4.7).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    /// [`MAGIC`].
    pub magic: [u8; 4],
    /// [`VERSION`].
    pub version: u16,
    /// Feature bits that the client understands.
    pub features: u64,
    /// Name and version of the client program.
    pub client: Short,
    /// Which location; empty: the daemon's first.
    pub location: Short,
    /// What it wants to command.
    pub role: Role,
    /// What it wants to receive.
    pub feed: Feed,
    /// What a State feed shows; `None`: all, every tick. Meaningless with another feed.
    pub view: Option<View>,
    /// The player's name; empty with a ticket.
    pub name: Text<NAME_BYTES_MAX>,
    /// A signed admission.
    pub ticket: Option<Text<TICKET_BYTES_MAX>>,
    /// Go on with a dropped session.
    pub resume: Option<Resume>,
    /// Whether the definition must be sent.
    pub definition: Need,
}

impl Hello {
    /// A player in lockstep who has nothing yet; change what differs.
    pub fn new(client: Short, name: Text<NAME_BYTES_MAX>) -> Self {
        Self {
            magic: MAGIC,
            version: VERSION,
            features: FEATURES,
            client,
            location: Short::default(),
            role: Role::Player,
            feed: Feed::Lockstep,
            view: None,
            name,
            ticket: None,
            resume: None,
            definition: Need::Send,
        }
    }
}

/// What a session may command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum Role {
    /// Its own character.
    Player,
    /// The characters its ticket lists, or one of its own.
    Bot,
    /// Nothing.
    Watcher,
    /// All but Join and Leave.
    Admin,
}

impl Role {
    /// The number that the wire and the journal use.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// What a session receives; independent of its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum Feed {
    /// A snapshot, then every turn.
    Lockstep,
    /// Deltas of what is in the view.
    State,
    /// Answers to its commands alone.
    Answers,
}

/// What a State feed shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct View {
    /// Every so many ticks; at least 1.
    pub every: u8,
    /// Where.
    pub area: Area,
}

impl View {
    /// All, every tick.
    pub const ALL: Self = Self {
        every: 1,
        area: Area::All,
    };

    /// Whether it can be shown at all: `every` at least 1, radius not negative, corners within the world in their order.
    pub fn is_valid(&self) -> bool {
        let area = match self.area {
            Area::All => true,
            Area::Around { radius } => Fixed::ZERO <= radius && radius <= nav::WORLD_LIMIT,
            Area::Rectangle {
                min_x,
                min_z,
                max_x,
                max_z,
            } => {
                let inside =
                    nav::Point::new(min_x, min_z).in_world() && nav::Point::new(max_x, max_z).in_world();
                inside && min_x <= max_x && min_z <= max_z
            }
        };
        self.every >= 1 && area
    }
}

/// The part of the World that a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Area {
    /// Everything.
    All,
    /// What is near the session's own character.
    Around {
        /// Metres.
        radius: Fixed,
    },
    /// What is in a rectangle, borders included; metres.
    Rectangle {
        /// Western border.
        min_x: Fixed,
        /// Southern border.
        min_z: Fixed,
        /// Eastern border.
        max_x: Fixed,
        /// Northern border.
        max_z: Fixed,
    },
}

/// Goes on with a session that lost its connection.
#[derive(Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Resume {
    /// From the last Welcome.
    pub session: u64,
    /// From the last Welcome; a secret.
    pub token: [u8; 16],
    /// From the last Welcome.
    pub run: [u8; 16],
    /// Tick of the client's World: the step that comes next.
    pub next_tick: u64,
    /// Digest of the client's World, D_(next_tick − 1).
    pub digest: u64,
}

impl std::fmt::Debug for Resume {
    /// Without the token: what is logged must not open a session.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resume")
            .field("session", &self.session)
            .field("next_tick", &self.next_tick)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// Whether the client needs the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Need {
    /// It has none.
    Send,
    /// It has the one with this hash; send it if the location's is another.
    Have([u8; 32]),
    /// It wants none.
    No,
}

/// Server → client.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ServerMessage {
    /// 0: no admission; the last frame. Its four fields never change (spec 4.7).
    Reject {
        /// Why.
        code: Code,
        /// Oldest version spoken.
        min_version: u16,
        /// Newest version spoken.
        max_version: u16,
        /// For people.
        message: Explanation,
    },
    /// 1: admitted.
    Welcome(Box<Welcome>),
    /// 2: a part of the definition bundle.
    Definition {
        /// From 0.
        part: u32,
        /// How many there are.
        parts: u32,
        /// This part.
        bytes: Part,
    },
    /// 3: a part of the World in which step `tick` runs next.
    Snapshot {
        /// The step that comes next.
        tick: u64,
        /// From 0.
        part: u32,
        /// How many there are.
        parts: u32,
        /// This part.
        bytes: Part,
    },
    /// 4: the commands of one tick; every tick, also when empty.
    Turn(Turn),
    /// 5: what a State feed shows after a step.
    State(Box<State>),
    /// 6: the command was recorded and has run.
    Accepted {
        /// The command's.
        sequence: u64,
        /// The turn it was in.
        tick: u64,
        /// Its place in the turn.
        index: u32,
        /// Applied, or why it changed nothing.
        outcome: Code,
    },
    /// 7: the command will not run.
    Refused {
        /// The command's.
        sequence: u64,
        /// Why.
        code: Code,
        /// For people.
        message: Explanation,
    },
    /// 8: the client's digest differs; once until the next snapshot.
    Desync(Box<Desync>),
    /// 9: State feed only; lockstep clients compute events.
    Event {
        /// The step that reported it.
        tick: u64,
        /// What happened.
        event: Event,
    },
    /// 10: how ticks relate to the server's clock.
    Clock {
        /// Turn `base_tick` is due at `base_us`.
        base_tick: u64,
        /// Microseconds on the clock of `Pong`.
        base_us: u64,
        /// Whether it runs.
        state: ClockState,
    },
    /// 11: answers a Ping.
    Pong {
        /// The Ping's.
        nonce: u64,
        /// Microseconds since the daemon started.
        server_us: u64,
    },
    /// 12: an operator's announcement.
    Notice {
        /// For people.
        text: Text<NOTICE_BYTES_MAX>,
    },
    /// 13: the daemon is about to end.
    Draining {
        /// Why.
        code: Code,
        /// When at the latest, from now.
        deadline_ms: u32,
    },
    /// 14: go on elsewhere; a Close follows.
    Redirect {
        /// Which location there.
        location: Short,
        /// Which daemon; empty: this one.
        address: Text<ADDRESS_BYTES_MAX>,
        /// Admits there.
        ticket: Text<TICKET_BYTES_MAX>,
    },
    /// 15: the last frame.
    Close {
        /// Why.
        code: Code,
        /// For people.
        message: Explanation,
    },
    /// 16: instead of a State, where [`crate::FEATURE_PACKED_STATES`] is in force.
    PackedState(Box<PackedState>),
}

/// Admitted: who one is and what follows.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Welcome {
    /// The version that is spoken.
    pub version: u16,
    /// The feature bits in force.
    pub features: u64,
    /// The run's id.
    pub run: [u8; 16],
    /// The session's number in the run.
    pub session: u64,
    /// What resumes the session; a secret.
    pub token: [u8; 16],
    /// The characters that the session commands.
    pub characters: List<CharacterId, CHARACTERS_MAX>,
    /// The tick of the snapshot or of the first turn that follows.
    pub next_tick: u64,
    /// Ticks per second.
    pub tick_rate: u16,
    /// The ruleset (spec 5.5).
    pub ruleset: u32,
    /// The ruleset's hash for the location's planner.
    pub ruleset_hash: u64,
    /// The definition's hash.
    pub definition: [u8; 32],
    /// How long a dropped session can be resumed, milliseconds.
    pub grace_ms: u32,
    /// The highest sequence seen from this session; 0: none.
    pub last_sequence: u64,
}

impl std::fmt::Debug for Welcome {
    /// Without the token: what is logged must not open a session.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Welcome")
            .field("session", &self.session)
            .field("characters", &self.characters)
            .field("next_tick", &self.next_tick)
            .field("tick_rate", &self.tick_rate)
            .field("ruleset", &self.ruleset)
            .field("last_sequence", &self.last_sequence)
            .finish_non_exhaustive()
    }
}

/// The commands of one tick and the digest after it; the journal's Turn record begins with the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Turn {
    /// The step that they are for.
    pub tick: u64,
    /// In the order in which they run.
    pub commands: List<Command, TURN_COMMANDS_MAX>,
    /// D_tick.
    pub digest: u64,
}

/// Where two Worlds differ: the server's digest of each section after `tick` (spec 5.4).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Desync {
    /// The step after which they differ.
    pub tick: u64,
    /// The server's digest.
    pub expected: u64,
    /// Of the clock section.
    pub clock: u64,
    /// Of the map section.
    pub map: u64,
    /// Of the planner section.
    pub planner: u64,
    /// Of each character, in id order.
    pub characters: List<(CharacterId, u64), CHARACTERS_MAX>,
    /// The server would like a `DesyncReport`.
    pub want_report: bool,
}

/// Whether the location's clock runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ClockState {
    /// It does.
    Running,
    /// An operator stopped it.
    Paused,
    /// The journal cannot be written.
    Storage,
    /// Nobody is there.
    Idle,
}

/// Who sent a command of a turn, and what became of it: kept in the journal, never sent (spec 5.2).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Origin {
    /// A client.
    Session {
        /// Its session.
        session: u64,
        /// Its sequence.
        sequence: u64,
        /// A code of the outcomes.
        outcome: Code,
    },
    /// The server itself: Join and Leave.
    Roster {
        /// The session on whose behalf.
        session: u64,
        /// A code of the outcomes.
        outcome: Code,
    },
    /// An operator.
    Admin {
        /// Who.
        actor: Short,
        /// A code of the outcomes.
        outcome: Code,
    },
}

impl Origin {
    /// What became of the command.
    pub fn outcome(&self) -> Code {
        match self {
            Self::Session { outcome, .. } | Self::Roster { outcome, .. } | Self::Admin { outcome, .. } => {
                *outcome
            }
        }
    }
}
