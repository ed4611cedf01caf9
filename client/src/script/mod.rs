//! What a bot does by a script of JSON lines: commands, waiting, and what is expected to have come of them. No clock and
//! no IO in here; ticks are the only time.
//!
//! A line is one object. Lines with a tick are commands as in `simulate --commands`, their tick counted from the bot's
//! join; they are given at that tick whatever else happens. All other lines are steps, done one after the other:
//!
//! ```text
//! {"move": {"x": 3, "z": 4}}    {"stop": {}}    {"talk": {"npc": 100}}
//! {"wait": {"tick": 50}}                 counted from the join; a command that follows runs exactly in that tick
//! {"wait": {"ticks": 10}}
//! {"wait": {"arrived": true, "timeoutTicks": 300}}
//! {"wait": {"event": "Joined", "character": 7, "timeoutTicks": 300}}
//! {"expect": {"near": {"x": 3, "z": 4, "within": 0.5}, "character": 7, "withinTicks": 20}}
//! {"expect": {"exists": 100}}
//! {"expect": {"outcome": 0}}             the code with which the last command was answered
//! {"expect": {"event": "TalkStarted", "withinTicks": 20}}
//! {"tick": 3, "command": {"MoveTo": {"character": 1, "x": 1.5, "z": 2}}}
//! ```
//! Whoever acts is the bot itself. An event counts from the tick in which the last command of a step ran.

mod read;
mod run;

pub use read::Lines;
pub use run::{Action, Failure, Script};

use nav::{Fixed, Point};
use protocol::Code;
use sim::{CharacterId, Command};

/// A step and the line in which it stands.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    number: u64,
    step: Step,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Give(Command),
    /// Counted from the join.
    WaitTick(u64),
    WaitTicks(u64),
    /// Fails after so many ticks.
    Until {
        what: Condition,
        ticks: u64,
    },
}

/// What can be waited for or expected.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Event(EventKind, Option<CharacterId>),
    Near {
        character: Option<CharacterId>,
        place: Point,
        within: Fixed,
    },
    Exists(CharacterId),
    Outcome(Code),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    Arrived,
    TalkStarted,
    Joined,
    Left,
    Application,
}
