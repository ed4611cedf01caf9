//! What a client tells the program that uses it.

use std::sync::Arc;
use std::time::Duration;

use protocol::Code;
use protocol::message::ClockState;
use sim::{CharacterId, Command, Event};

use crate::lockstep::Difference;
use crate::session::SessionError;

/// Something that happened to a client, in the order in which it happened.
#[derive(Clone, Debug)]
pub enum ClientEvent {
    /// The server has welcomed this client.
    Joined {
        /// As the session that was there before a lost connection.
        resumed: bool,
        /// What it commands.
        characters: Vec<CharacterId>,
        /// The tick from which it is told what happens.
        next_tick: u64,
        /// Ticks per second.
        tick_rate: u16,
    },
    /// Lockstep: a snapshot is in place; the World is there and step `tick` comes next.
    Loaded {
        /// The step that comes next.
        tick: u64,
    },
    /// Lockstep: a turn has been run.
    Stepped {
        /// The step.
        tick: u64,
        /// D_tick.
        digest: u64,
        /// What the turn commanded.
        commands: Vec<Command>,
        /// What the step reported; empty where no World is kept.
        events: Vec<Event>,
    },
    /// Lockstep: the World differs from the server's after step `tick`. A snapshot is asked for.
    Desynced {
        /// The step.
        tick: u64,
        /// The server's digest.
        expected: u64,
        /// The World's.
        computed: u64,
    },
    /// Lockstep: where the Worlds differ, as far as both sides can tell.
    Different(Difference),
    /// Lockstep: the server cannot say any more in what the Worlds differ after step `tick`.
    Unexplained {
        /// The step.
        tick: u64,
    },
    /// Lockstep: another turn than the next one came. If turns are missing a snapshot is asked for.
    OutOfOrder {
        /// The turn that was next.
        expected: u64,
        /// The turn that came.
        found: u64,
    },
    /// State feed: the table of characters is as after step `tick`.
    Observed {
        /// The step.
        tick: u64,
    },
    /// State feed: a step reported this.
    Happened {
        /// The step.
        tick: u64,
        /// What.
        event: Event,
    },
    /// The answer to a command.
    Answered {
        /// The command's.
        sequence: u64,
        /// What it says.
        answer: Answer,
        /// From when the command was given; zero with `again`.
        waited: Duration,
        /// The command had an answer before, or none with this sequence was sent.
        again: bool,
    },
    /// How ticks relate to the server's clock.
    Clock {
        /// Turn `base_tick` is due at `base_us`.
        base_tick: u64,
        /// Microseconds on the clock of `Pong`.
        base_us: u64,
        /// Whether it runs.
        state: ClockState,
    },
    /// The server answered a ping; the client pings when it has been silent for a while.
    Pong {
        /// There and back.
        round_trip: Duration,
        /// Microseconds since the daemon started, when it answered.
        server_us: u64,
    },
    /// An operator's announcement.
    Notice {
        /// For people; not escaped.
        text: String,
    },
    /// The daemon is about to end.
    Draining {
        /// Why.
        code: Code,
        /// When at the latest, from now.
        deadline: Duration,
    },
    /// The server wants this client elsewhere. [`ClientEvent::Moving`] comes next if its options let it go there; else it
    /// ends.
    Redirect {
        /// Which location.
        location: String,
        /// Which daemon; empty: the same.
        address: String,
        /// Admits there.
        ticket: String,
    },
    /// The client goes where the redirect said; [`ClientEvent::Joined`] tells when it is there. Name and number of the
    /// session stay, characters and clock are those of the other place.
    Moving {
        /// Sequences of commands without an answer: they will get none.
        unanswered: Vec<u64>,
    },
    /// The connection is lost; the client tries again.
    Disconnected {
        /// Why, for people.
        reason: String,
        /// When it tries again, from now.
        retry_in: Duration,
    },
    /// The session is over; the client joins anew, as somebody new. Its commands without an answer will get none.
    SessionLost {
        /// Why.
        code: Code,
        /// Sequences of commands without an answer.
        unanswered: Vec<u64>,
    },
    /// The last event.
    Ended(Ending),
}

/// What the server says to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was recorded and has run.
    Accepted {
        /// In this turn.
        tick: u64,
        /// At this place in it.
        index: u32,
        /// [`Code::APPLIED`], or why it changed nothing.
        outcome: Code,
    },
    /// It will not run.
    Refused {
        /// Why.
        code: Code,
        /// For people.
        message: String,
    },
}

/// Why a client ended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Ending {
    /// It said Goodbye.
    #[error("left")]
    Left,
    /// The server did not let it in.
    #[error("not let in: {code}{}{message}", separator(.message))]
    Rejected {
        /// Why.
        code: Code,
        /// The oldest version that the server speaks.
        min_version: u16,
        /// The newest.
        max_version: u16,
        /// For people.
        message: String,
    },
    /// The server closed the connection and does not want it back.
    #[error("closed by the server: {code}{}{message}", separator(.message))]
    Closed {
        /// Why.
        code: Code,
        /// For people.
        message: String,
    },
    /// No connection for longer than the options allow.
    #[error("no connection: {0}")]
    GaveUp(String),
    /// The server said what this client cannot follow.
    #[error("{0}")]
    Failed(Arc<SessionError>),
    /// A name or ticket in the options is over its limit.
    #[error("an option is {0}")]
    Options(#[from] sim::bounded::TooLong),
    /// The options make a larger Hello than a server reads.
    #[error("the options make a hello that is too large: {0}")]
    Hello(#[from] protocol::FrameError),
}

fn separator(message: &str) -> &'static str {
    if message.is_empty() { "" } else { ": " }
}
