//! The commands of a session, each from its sequence to its answer.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::message::ClientMessage;
use sim::Command;
use tokio::time::Instant;

use crate::event::{Answer, ClientEvent};

/// Commands without an answer that a session may have; a server takes no more (spec 4.5).
pub const COMMANDS_WAITING_MAX: usize = 128;

/// Too many commands wait for their answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{COMMANDS_WAITING_MAX} commands wait for their answer")]
pub struct TooManyCommands;

/// See the module.
#[derive(Debug)]
pub(crate) struct Commands {
    next_sequence: u64,
    unanswered: BTreeMap<u64, Unanswered>,
}

/// A command that waits for its answer.
#[derive(Clone, Debug)]
struct Unanswered {
    at_tick: Option<u64>,
    command: Command,
    given: Instant,
}

impl Commands {
    /// None has been given yet.
    pub(crate) fn new() -> Self {
        Self {
            next_sequence: 1,
            unanswered: BTreeMap::new(),
        }
    }

    /// Gives a command its sequence.
    pub(crate) fn give(
        &mut self,
        command: Command,
        at_tick: Option<u64>,
        now: Instant,
    ) -> Result<u64, TooManyCommands> {
        if self.unanswered.len() >= COMMANDS_WAITING_MAX {
            return Err(TooManyCommands);
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let waiting = Unanswered {
            at_tick,
            command,
            given: now,
        };
        self.unanswered.insert(sequence, waiting);
        Ok(sequence)
    }

    /// What the server has seen before is not given again.
    pub(crate) fn skip_to(&mut self, last_sequence: u64) {
        self.next_sequence = self.next_sequence.max(last_sequence.saturating_add(1));
    }

    /// As messages, from this sequence on, in order.
    pub(crate) fn messages(&self, from: u64) -> impl Iterator<Item = ClientMessage> {
        let waiting = self.unanswered.range(from..);
        waiting.map(|(sequence, waiting)| ClientMessage::Command {
            sequence: *sequence,
            at_tick: waiting.at_tick,
            command: waiting.command.clone(),
        })
    }

    /// An answer has come.
    pub(crate) fn answered(&mut self, sequence: u64, answer: Answer, now: Instant) -> ClientEvent {
        let waiting = self.unanswered.remove(&sequence);
        ClientEvent::Answered {
            sequence,
            answer,
            waited: waiting.as_ref().map_or(Duration::ZERO, |waiting| {
                now.saturating_duration_since(waiting.given)
            }),
            again: waiting.is_none(),
        }
    }

    /// Those that wait will get no answer: their sequences.
    pub(crate) fn give_up(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unanswered).into_keys().collect()
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.unanswered.len()
    }
}
