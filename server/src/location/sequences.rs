//! A session's sequence numbers and the answers it has had (spec 4.5): every command is answered exactly once, and
//! whoever asks again is given the same answer.

use std::collections::{BTreeMap, BTreeSet};

use protocol::Code;

use crate::journal::record;

/// How far below the highest sequence a command may lie; so this many answers and one are kept.
pub(crate) const SEQUENCES_BEHIND_MAX: u64 = 255;

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It ran: in this tick, at this place of its turn, with this outcome.
    Accepted {
        /// The tick it ran in.
        tick: u64,
        /// Its place in the turn.
        index: u32,
        /// What became of it.
        outcome: Code,
    },
    /// It never will run.
    Refused(Code),
}

/// What a sequence number that arrives is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Not seen yet.
    New,
    /// Its command waits for its turn; it will be answered then.
    Waiting,
    /// Answered before.
    Answered(Answer),
    /// Too far below the highest to be remembered.
    Stale,
}

/// The sequence numbers of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequences {
    highest: u64,
    waiting: BTreeSet<u64>,
    answers: BTreeMap<u64, Answer>,
}

impl Sequences {
    /// The highest sequence seen, 0 if none.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Looks a sequence up and, if it is new, counts it as waiting.
    pub(crate) fn arrive(&mut self, sequence: u64) -> Arrival {
        if let Some(answer) = self.answers.get(&sequence) {
            return Arrival::Answered(*answer);
        }
        if self.waiting.contains(&sequence) {
            return Arrival::Waiting;
        }
        if sequence.saturating_add(SEQUENCES_BEHIND_MAX) < self.highest {
            return Arrival::Stale;
        }
        self.raise(sequence);
        self.waiting.insert(sequence);
        Arrival::New
    }

    /// Keeps the answer of a sequence; those that have become stale are forgotten.
    pub(crate) fn answer(&mut self, sequence: u64, answer: Answer) {
        self.waiting.remove(&sequence);
        self.answers.insert(sequence, answer);
        self.raise(sequence);
    }

    /// What waits will not run: whoever sends it again sends something new.
    pub(crate) fn forget_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Puts an answer back that the journal remembers.
    pub(crate) fn recover(&mut self, answer: &record::Answer) {
        let accepted = Answer::Accepted {
            tick: answer.tick,
            index: answer.index,
            outcome: answer.outcome,
        };
        self.answer(answer.sequence, accepted);
    }

    /// The answers of commands that ran, by sequence, for the journal.
    pub(crate) fn accepted(&self, session: u64) -> impl Iterator<Item = record::Answer> + '_ {
        self.answers
            .iter()
            .filter_map(move |(&sequence, answer)| match *answer {
                Answer::Accepted { tick, index, outcome } => Some(record::Answer {
                    session,
                    sequence,
                    tick,
                    index,
                    outcome,
                }),
                Answer::Refused(_) => None,
            })
    }

    fn raise(&mut self, sequence: u64) {
        self.highest = self.highest.max(sequence);
        let oldest = self.highest.saturating_sub(SEQUENCES_BEHIND_MAX);
        self.answers = self.answers.split_off(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Arrival, Code, Sequences};

    fn accepted(tick: u64) -> Answer {
        Answer::Accepted {
            tick,
            index: 0,
            outcome: Code::APPLIED,
        }
    }

    #[test]
    fn a_sequence_is_new_once() {
        let mut sequences = Sequences::default();
        sequences.arrive(1);
        sequences.answer(1, accepted(9));
        sequences.arrive(300);
        sequences.answer(300, Answer::Refused(Code::REFUSED_RATE));
        sequences.arrive(44);
        let mut check = |sequence: u64, expected: Arrival| {
            assert_eq!(sequences.arrive(sequence), expected, "sequence {sequence}");
        };
        check(300, Arrival::Answered(Answer::Refused(Code::REFUSED_RATE)));
        check(44, Arrival::Stale); // 256 below the highest: not even taken when it came
        check(45, Arrival::New); // 255 below
        check(45, Arrival::Waiting);
        check(1, Arrival::Stale); // its answer is forgotten
        check(301, Arrival::New);
        check(u64::MAX, Arrival::New);
        check(301, Arrival::Waiting); // it still has an answer to get
        check(300, Arrival::Stale);
    }

    #[test]
    fn the_last_256_answers_are_kept() {
        let mut sequences = Sequences::default();
        for sequence in 1..=1_000 {
            assert_eq!(sequences.arrive(sequence), Arrival::New);
            sequences.answer(sequence, accepted(sequence));
        }
        assert_eq!(sequences.accepted(1).count(), 256);
        assert_eq!(sequences.arrive(745), Arrival::Answered(accepted(745)));
        assert_eq!(sequences.arrive(744), Arrival::Stale);
    }
}
