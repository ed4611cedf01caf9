//! A turn is due: it is closed, run, recorded, broadcast and answered (spec 4.1, 4.2).

use std::collections::VecDeque;

use protocol::{Code, Origin, ServerMessage, Turn};
use sim::bounded::List;
use sim::{CharacterId, Command, Event, Outcome, Phase};

use super::inbox::{Entry, Source};
use super::operator::Reply;
use super::roster;
use super::sequences::Answer;
use super::{Location, Output, encode};
use crate::journal::record::{self, KEYFRAME_TICKS, Record, SessionState};

impl Location {
    /// Closes the turn that is due and runs it.
    #[cfg(test)]
    pub(crate) fn close_turn(&mut self, now_us: u64, out: &mut Vec<Output>) {
        self.close_turn_watched(now_us, out, |_| {});
    }

    /// Closes the turn that is due and runs it; `watch` is called at the end of each phase of the step.
    pub(crate) fn close_turn_watched(
        &mut self,
        now_us: u64,
        out: &mut Vec<Output>,
        mut watch: impl FnMut(Phase),
    ) {
        self.now_us = now_us;
        let slipped = self.clock.slip(self.world.tick(), now_us);
        if slipped > 0 {
            self.counters.slips += slipped;
            tracing::warn!(ticks = slipped, "too late to catch up: ticks given up");
            out.push(Output::Clock(self.clock_frame()));
        }
        self.end_graces(now_us, out);
        let tick = self.world.tick();
        let (sources, commands) = split(self.inbox.close(tick));
        self.events.clear();
        self.world.step_watched(&commands, &mut self.events, &mut watch);
        self.counters.ticks += 1;
        let planned = self.world.counters();
        self.counters.plans += u64::from(planned.plans);
        self.counters.expanded += planned.expanded;
        let outcomes = outcomes(&self.events, commands.len());
        let turn = self.publish(tick, commands, &sources, &outcomes, out);
        self.settle_roster(&turn, &sources, &outcomes, out);
        self.show_step(now_us, out);
        self.answer_all(tick, &sources, &outcomes, out);
        self.part(out);
        if self.world.tick().is_multiple_of(KEYFRAME_TICKS) {
            self.keyframe(out);
        }
        self.end_snapshots(now_us, out);
        self.resync(now_us);
        self.give_snapshots(now_us, out);
        self.turn_ran(now_us, out);
    }

    /// Records the turn and sends it to all who follow; gives the commands back.
    fn publish(
        &mut self,
        tick: u64,
        commands: Vec<Command>,
        sources: &[Source],
        outcomes: &[Code],
        out: &mut Vec<Output>,
    ) -> Vec<Command> {
        let digest = self.world.digest();
        let message = ServerMessage::Turn(Turn {
            tick,
            commands: List::new(commands).expect("a turn's bytes are limited, so its commands are"),
            digest,
        });
        let frame = encode(&message);
        let ServerMessage::Turn(turn) = message else {
            unreachable!("it was made above")
        };
        let origins = sources
            .iter()
            .zip(outcomes)
            .map(|(source, outcome)| self.origin(*source, *outcome));
        let commands = turn.commands.to_vec();
        out.push(Output::Record(Record::Turn(record::Turn {
            tick,
            commands: turn.commands,
            digest,
            origins: List::new(origins.collect()).expect("as many as commands"),
        })));
        self.history.push(frame.clone(), digest);
        if self.history.wants_snapshot() {
            self.history.push_snapshot(self.world.snapshot());
        }
        out.push(Output::Broadcast { tick, frame });
        commands
    }

    /// Does what the roster's own commands were for.
    fn settle_roster(
        &mut self,
        commands: &[Command],
        sources: &[Source],
        outcomes: &[Code],
        out: &mut Vec<Output>,
    ) {
        self.names.turn_ran(commands);
        self.follow_borrowed(commands, sources, outcomes);
        let joined = |event: &Event| match event {
            Event::Joined { character } => Some(*character),
            _ => None,
        };
        let mut joined: VecDeque<CharacterId> = self.events.iter().filter_map(joined).collect();
        for ((command, source), &outcome) in commands.iter().zip(sources).zip(outcomes) {
            let Source::Roster { session } = *source else {
                continue;
            };
            match command {
                Command::Join { .. } => {
                    let character = if outcome == Code::APPLIED {
                        joined.pop_front()
                    } else {
                        None
                    };
                    self.joined(session, character, outcome, out);
                }
                Command::Leave { character } => self.left(session, *character, out),
                _ => {}
            }
        }
    }

    /// Answers those whose commands ran, after the turn or state that they are in.
    fn answer_all(&mut self, tick: u64, sources: &[Source], outcomes: &[Code], out: &mut Vec<Output>) {
        for (index, (source, &outcome)) in (0..).zip(sources.iter().zip(outcomes)) {
            if let Source::Session { session, sequence } = *source {
                self.counters.accept(outcome);
                self.answer(session, sequence, Answer::Accepted { tick, index, outcome }, out);
            }
            if let Source::Operator { request } = *source {
                self.operator_answered(request, Reply::Ran { tick, index, outcome }, out);
            }
        }
    }

    /// The World and everybody who is there, for the journal.
    pub(super) fn keyframe(&mut self, out: &mut Vec<Output>) {
        let tick = self.world.tick();
        let open = |session: &&roster::Session| {
            matches!(
                session.phase,
                roster::Phase::Connected(_) | roster::Phase::Grace { .. } | roster::Phase::Away
            )
        };
        let sessions = self
            .roster
            .iter()
            .filter(open)
            .map(|session| session.record(SessionState::Open))
            .collect();
        let answers = self
            .roster
            .iter()
            .filter(open)
            .flat_map(|session| session.sequences.accepted(session.number))
            .collect();
        let sessions = record::Sessions::new(tick, sessions, answers, self.roster.nonces())
            .expect("the roster's limits are below the journal's");
        out.push(Output::Keyframe {
            tick,
            digest: self.world.digest(),
            snapshot: self.world.snapshot(),
            sessions,
        });
        // Behind the keyframe again, so that a start knows what it has to give back.
        let giving_back = self.giving_back.iter().cloned();
        out.extend(giving_back.map(|session| Output::Record(Record::Session(session))));
    }

    fn origin(&self, source: Source, outcome: Code) -> Origin {
        match source {
            Source::Session { session, sequence } => Origin::Session {
                session,
                sequence,
                outcome,
            },
            Source::Roster { session } => Origin::Roster { session, outcome },
            Source::Operator { request } => Origin::Admin {
                actor: self
                    .operators
                    .get(&request)
                    .map(|waiting| waiting.actor.clone())
                    .unwrap_or_default(),
                outcome,
            },
        }
    }
}

fn split(entries: Vec<Entry>) -> (Vec<Source>, Vec<Command>) {
    entries
        .into_iter()
        .map(|entry| (entry.source, entry.command))
        .unzip()
}

/// What became of each of `count` commands.
fn outcomes(events: &[Event], count: usize) -> Vec<Code> {
    let mut outcomes = vec![Code::from(Outcome::Applied); count];
    for event in events {
        if let Event::CommandRejected { index, code } = event
            && let Some(outcome) = outcomes.get_mut(*index as usize)
        {
            *outcome = Code(*code);
        }
    }
    outcomes
}
