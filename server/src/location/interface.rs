//! What a location is told and what it has done for it: inputs and outputs as data.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use nav::Fixed;
use protocol::Code;
use protocol::message::{Hello, Role, Short, View};
use protocol::ticket::Claims;
use sim::bounded::Text;
use sim::{CharacterId, Command, Sections, World};

use super::investigator::Question;
use super::operator::{Asked, Reply, ReplyTo};
use super::outbox::Parcel;
use super::roster::{SessionNumbers, Token};
use crate::admission::bans::Bans;
use crate::journal::borrowed::Borrowed;
use crate::journal::record::{self, Record};

/// A connection of this process; newer ones have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// What can happen to a location, beside that a turn is due.
#[derive(Debug)]
pub(crate) enum Input {
    /// Somebody asks for admission.
    Enter {
        /// A new connection.
        connection: ConnectionId,
        /// What it asks for.
        hello: Box<Hello>,
        /// What was found out about it before.
        visitor: Visitor,
        /// Random: what its session is resumed by from now on.
        token: Token,
    },
    /// From now on these may not be here; whoever is and may not is sent away.
    Bans {
        /// All there are.
        bans: Arc<Bans>,
        /// The wall clock.
        unix_seconds: u64,
    },
    /// The first frame on a connection after its Welcome has come.
    Confirmed(ConnectionId),
    /// A command, or why the session refuses it.
    Command {
        /// Whose.
        connection: ConnectionId,
        /// The client's number for it.
        sequence: u64,
        /// The turn it is for.
        at_tick: Option<u64>,
        /// What is wanted.
        command: Result<Command, Code>,
    },
    /// A client has computed this digest.
    Digest {
        /// Whose.
        connection: ConnectionId,
        /// The step.
        tick: u64,
        /// After it.
        digest: u64,
    },
    /// Somebody wants a snapshot.
    Resync(ConnectionId),
    /// Somebody wants to see something else.
    View {
        /// Who.
        connection: ConnectionId,
        /// A valid one.
        view: View,
    },
    /// Somebody leaves for good.
    Goodbye(ConnectionId),
    /// A connection has ended.
    Gone(ConnectionId),
    /// What waited for this connection was dropped; now it takes bytes again.
    Dropped(ConnectionId),
    /// The last part of the definition is on its way.
    Defined(ConnectionId),
    /// The last part of the snapshot of this tick is on its way.
    Downloaded {
        /// Whose.
        connection: ConnectionId,
        /// The snapshot's.
        tick: u64,
    },
    /// A part of a client's World after a step after which its digest differed.
    Report {
        /// Whose.
        connection: ConnectionId,
        /// The step.
        tick: u64,
        /// Which part, and of how many.
        part: (u32, u32),
        /// It.
        bytes: Bytes,
    },
    /// The answer to [`Question::Sections`].
    Sections {
        /// The step.
        tick: u64,
        /// After it; `None` if they could not be computed.
        sections: Option<Box<Sections>>,
    },
    /// The answer to [`Question::Keep`].
    ReportKept,
    /// Its operator decides otherwise; those who are there stay.
    Rules(Box<Rules>),
    /// An operator asks for something.
    Operator(Box<Asked>),
    /// The daemon will end: everybody is told when, nobody new comes in.
    Drain {
        /// When, µs.
        until_us: u64,
    },
    /// The daemon ends: everybody is told, nothing runs any more.
    Stop,
}

/// What the shell has to do, in order; nothing that tells of a turn or a session is sent before the records that stand
/// before it are kept.
#[derive(Debug)]
pub(crate) enum Output {
    /// Into the journal.
    Record(Record),
    /// A keyframe and the sessions, into the journal.
    Keyframe {
        /// The step that comes next.
        tick: u64,
        /// Of the snapshot.
        digest: u64,
        /// The World.
        snapshot: Vec<u8>,
        /// Everybody who is there.
        sessions: record::Sessions,
    },
    /// What an operator did, into the journal.
    Note {
        /// The step that comes next.
        tick: u64,
        /// Who.
        actor: Short,
        /// What.
        text: Text<{ record::NOTE_BYTES_MAX }>,
    },
    /// To an operator, once what is before it is kept.
    Reply(ReplyTo, Reply),
    /// From the next broadcast on this connection gets the turns.
    Follow(ConnectionId),
    /// The turn that has just run, to all who follow.
    Broadcast {
        /// Its tick.
        tick: u64,
        /// One buffer for all.
        frame: Bytes,
    },
    /// This connection has shown the token of a session: it is nobody unknown any more.
    Recognise(ConnectionId),
    /// To one connection.
    Send(ConnectionId, Parcel),
    /// The clock has changed: to all who are there, and to whoever is silent for a second.
    Clock(Bytes),
    /// Nothing more will be sent to this connection.
    Forget(ConnectionId),
    /// Find something out, or keep it, elsewhere, and answer with [`Input::Sections`] or [`Input::ReportKept`].
    Investigate(Question),
}

/// What a location needs to know beside its World.
pub(crate) struct Start {
    /// Step `world.tick()` comes next; due at once.
    pub(crate) world: World,
    /// The run's id.
    pub(crate) run: [u8; 16],
    /// The bundle's bytes, for clients that ask for it, and their hash.
    pub(crate) bundle: Vec<u8>,
    /// Sessions that the journal remembers.
    pub(crate) sessions: Vec<record::Session>,
    /// And what they were answered.
    pub(crate) answers: Vec<record::Answer>,
    /// The highest number of a session that the journal remembers.
    pub(crate) last_session: u64,
    /// Players without a session.
    pub(crate) leave: Vec<CharacterId>,
    /// Characters that were there before the Bots that command them.
    pub(crate) borrowed: Vec<Borrowed>,
    /// Tickets that were used and have not expired.
    pub(crate) nonces: Vec<record::Nonce>,
    /// Who may not come in.
    pub(crate) bans: Arc<Bans>,
    /// What its operator decided.
    pub(crate) rules: Rules,
    /// When the daemon will end, µs, if that is near.
    pub(crate) draining_until_us: Option<u64>,
    /// Clients that may be asked for their World when their digest differs.
    pub(crate) reports_max: u32,
    /// Numbers for sessions that no other location of the daemon gives.
    pub(crate) numbers: SessionNumbers,
}

/// What an operator decides about a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Players and bots that may be there at once, those in their grace included.
    pub(crate) players_max: usize,
    /// Who may have the Lockstep feed, and with it the whole World.
    pub(crate) lockstep_roles: Vec<Role>,
    /// How far around their own character players and bots with the State feed see at most, metres; `None`: as far as they
    /// ask.
    pub(crate) player_view_radius: Option<Fixed>,
    /// What becomes of a player's character.
    pub(crate) on_leave: OnLeave,
    /// What it does while nobody is there.
    pub(crate) idle: Idle,
}

/// What a location without sessions does (spec 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// It goes on.
    Run,
    /// Its clock holds until somebody comes.
    Hold {
        /// Once nobody has been there for so long, µs.
        after_us: u64,
    },
}

/// What becomes of the character of a player who leaves, or whose grace is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnLeave {
    /// It leaves too.
    Leave,
    /// It stands where it is until the subject of its ticket comes again; without a ticket it leaves.
    Stay,
}

/// What is known of somebody who asks for admission, beside the Hello.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visitor {
    /// Of a ticket that was verified.
    pub(crate) claims: Option<Box<Claims>>,
    /// Where it connects from; goes into no journal.
    pub(crate) address: Option<IpAddr>,
    /// The wall clock: when the tickets that were used expire.
    pub(crate) unix_seconds: u64,
    /// The number of the session that travels here with the ticket.
    pub(crate) travels: Option<u64>,
}

/// What has been counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Turns run.
    pub(crate) ticks: u64,
    /// Ticks given up.
    pub(crate) slips: u64,
    /// How often the clock held because of the journal.
    pub(crate) holds: u64,
    /// Sessions opened.
    pub(crate) sessions: u64,
    /// Sessions resumed.
    pub(crate) resumes: u64,
    /// Commands of clients that ran.
    pub(crate) accepted: u64,
    /// Commands of clients that will not run.
    pub(crate) refused: u64,
    /// Digests compared.
    pub(crate) digests: u64,
    /// Digests too old to be compared, or from the future.
    pub(crate) digests_ignored: u64,
    /// Clients told that their digest differs.
    pub(crate) desyncs: u64,
    /// Snapshots sent because somebody asked.
    pub(crate) resyncs: u64,
    /// Queues dropped.
    pub(crate) drops: u64,
    /// Commands that ran, by their outcome: its number.
    pub(crate) outcomes: [u64; OUTCOMES],
    /// Commands that will not run, by the code of the refusal, from [`FIRST_REFUSAL`].
    pub(crate) refusals: [u64; REFUSALS],
    /// Paths that were asked for.
    pub(crate) plans: u64,
    /// Nodes that the searches for them expanded.
    pub(crate) expanded: u64,
}

/// Outcomes there are (spec 4.6).
pub(crate) const OUTCOMES: usize = Code::NO_ROOM.0 as usize + 1;
/// The first code of a refusal.
pub(crate) const FIRST_REFUSAL: u16 = Code::REFUSED_NOT_YOURS.0;
/// Codes of refusals there are.
pub(crate) const REFUSALS: usize = (Code::REFUSED_DRAINING.0 - FIRST_REFUSAL) as usize + 1;

impl Counters {
    /// Adds another location's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.ticks += other.ticks;
        self.slips += other.slips;
        self.holds += other.holds;
        self.sessions += other.sessions;
        self.resumes += other.resumes;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.digests += other.digests;
        self.digests_ignored += other.digests_ignored;
        self.desyncs += other.desyncs;
        self.resyncs += other.resyncs;
        self.drops += other.drops;
        for (own, other) in self.outcomes.iter_mut().zip(other.outcomes) {
            *own += other;
        }
        for (own, other) in self.refusals.iter_mut().zip(other.refusals) {
            *own += other;
        }
        self.plans += other.plans;
        self.expanded += other.expanded;
    }

    /// A command of a client ran.
    pub(super) fn accept(&mut self, outcome: Code) {
        self.accepted += 1;
        if let Some(count) = self.outcomes.get_mut(usize::from(outcome.0)) {
            *count += 1;
        }
    }

    /// A command of a client will not run.
    pub(super) fn refuse(&mut self, code: Code) {
        self.refused += 1;
        let place = code.0.checked_sub(FIRST_REFUSAL).map(usize::from);
        if let Some(count) = place.and_then(|place| self.refusals.get_mut(place)) {
            *count += 1;
        }
    }
}
