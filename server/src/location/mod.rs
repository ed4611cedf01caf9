//! A location: a World, its roster and its clock (spec 4.1, 4.2, 4.5).
//!
//! [`Location`] does no IO and has no clock: inputs come with the time at which they came, outputs are data that
//! [`task`] performs. Between two inputs it waits for nobody.
//!
//! ```text
//! Input ──▶ take ──▶ inbox (which tick? which order?), roster (who is there?)
//!           close_turn: turn ─▶ step ─▶ digest ─▶ Record, Broadcast, answers, snapshots, states
//! ```

mod admission;
pub(crate) mod clock;
mod downloads;
mod history;
mod inbox;
pub(crate) mod outbox;
mod roster;
mod sequences;
mod state_feed;
pub(crate) mod task;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use protocol::message::{ClockState, Explanation, Hello, View};
use protocol::{Code, Origin, ServerMessage, Turn, frame};
use sim::bounded::List;
use sim::{CharacterId, Command, Definition, Event, Outcome, Sections, World};

pub(crate) use self::inbox::character_of;

use self::clock::TickClock;
use self::downloads::Downloads;
use self::history::{History, Recomputation};
use self::inbox::{Entry, Inbox, Source};
use self::outbox::{Download, Parcel};
use self::roster::{Connection, Feed, Phase, Roster, Token};
use self::sequences::{Answer, Arrival};
use self::state_feed::Scene;
use crate::journal::record::{self, KEYFRAME_TICKS, Record, SessionState};

/// Time between two snapshots that a client asks for, µs.
const RESYNC_US: u64 = 2_000_000;
/// Ticks of which the parts' digests are being computed; beyond that a client is told without them.
const RECOMPUTATIONS_MAX: usize = 16;

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
        /// Random: what its session is resumed by from now on.
        token: Token,
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
    /// The last part of the snapshot of this tick is on its way.
    Downloaded {
        /// Whose.
        connection: ConnectionId,
        /// The snapshot's.
        tick: u64,
    },
    /// The answer to [`Output::Recompute`].
    Sections {
        /// The step.
        tick: u64,
        /// After it; `None` if they could not be computed.
        sections: Option<Box<Sections>>,
    },
    /// The daemon ends: everybody is told, nothing runs any more.
    Stop,
}

/// What the shell has to do, in order; nothing is sent before the records that stand before it are written.
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
    /// From the next broadcast on this connection gets the turns.
    Follow(ConnectionId),
    /// The turn that has just run, to all who follow.
    Broadcast {
        /// Its tick.
        tick: u64,
        /// One buffer for all.
        frame: Bytes,
    },
    /// To one connection.
    Send(ConnectionId, Parcel),
    /// The clock has changed: to all who are there, and to whoever is silent for a second.
    Clock(Bytes),
    /// Nothing more will be sent to this connection.
    Forget(ConnectionId),
    /// Compute the parts' digests, elsewhere, and answer with [`Input::Sections`].
    Recompute(Recomputation),
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
    /// Players and bots that may be there at once.
    pub(crate) players_max: usize,
}

/// What has been counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Turns run.
    pub(crate) ticks: u64,
    /// Ticks given up.
    pub(crate) slips: u64,
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
}

/// See the module.
pub(crate) struct Location {
    definition: Definition,
    definition_hash: [u8; 32],
    definition_frames: Arc<[Bytes]>,
    ruleset_hash: u64,
    run: [u8; 16],
    players_max: usize,
    world: World,
    events: Vec<Event>,
    clock: TickClock,
    inbox: Inbox,
    roster: Roster,
    history: History,
    downloads: Downloads,
    /// Who waits for the parts' digests of a tick.
    desynced: BTreeMap<u64, Vec<ConnectionId>>,
    counters: Counters,
    stopping: bool,
}

impl Location {
    /// A location whose next turn is due at `now_us`.
    pub(crate) fn new(start: Start, now_us: u64) -> Self {
        let definition = start.world.definition().clone();
        let world = start.world;
        let mut inbox = Inbox::default();
        for character in start.leave {
            inbox.push_roster(0, Command::Leave { character });
        }
        Self {
            definition_hash: protocol::bundle::hash(&start.bundle),
            definition_frames: downloads::definition_frames(start.bundle),
            ruleset_hash: sim::ruleset_hash(definition.planner()),
            run: start.run,
            players_max: start.players_max,
            events: Vec::new(),
            clock: TickClock::starting(world.tick(), now_us, definition.tick_rate()),
            inbox,
            roster: Roster::recovered(start.sessions, start.answers, start.last_session, now_us),
            history: History::starting(
                world.tick(),
                world.digest(),
                world.snapshot(),
                definition.tick_rate(),
            ),
            downloads: Downloads::default(),
            desynced: BTreeMap::new(),
            counters: Counters::default(),
            stopping: false,
            definition,
            world,
        }
    }

    /// The turn that is closed next.
    pub(crate) fn next_tick(&self) -> u64 {
        self.world.tick()
    }

    /// The digest after the last turn.
    pub(crate) fn digest(&self) -> u64 {
        self.world.digest()
    }

    /// When the next turn is due, µs.
    pub(crate) fn due_us(&self) -> u64 {
        self.clock.due_us(self.world.tick())
    }

    /// What has been counted.
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// The Clock message as it is now.
    pub(crate) fn clock_frame(&self) -> Bytes {
        encode(&ServerMessage::Clock {
            base_tick: self.clock.base_tick(),
            base_us: self.clock.base_us(),
            state: ClockState::Running,
        })
    }

    /// Takes something that has happened at `now_us`.
    pub(crate) fn take(&mut self, input: Input, now_us: u64, out: &mut Vec<Output>) {
        match input {
            Input::Enter {
                connection,
                hello,
                token,
            } => self.enter(connection, &hello, token, out),
            Input::Confirmed(connection) => {
                if let Some(session) = self.roster.of(connection)
                    && session.confirm()
                {
                    out.push(Output::Record(Record::Session(
                        session.record(SessionState::Open),
                    )));
                }
            }
            Input::Command {
                connection,
                sequence,
                at_tick,
                command,
            } => self.command(connection, sequence, at_tick, command, now_us, out),
            Input::Digest {
                connection,
                tick,
                digest,
            } => self.compare(connection, tick, digest, out),
            Input::Resync(connection) => {
                if let Some(connection) = self
                    .roster
                    .of(connection)
                    .and_then(roster::Session::connection_mut)
                {
                    connection.wants_resync = true;
                }
                self.resync(now_us);
            }
            Input::View { connection, view } => {
                let connection = self
                    .roster
                    .of(connection)
                    .and_then(roster::Session::connection_mut);
                if let Some(Connection {
                    feed: Feed::State(feed),
                    ..
                }) = connection
                {
                    feed.set_view(view);
                }
            }
            Input::Goodbye(connection) => self.goodbye(connection, out),
            Input::Gone(connection) => self.gone(connection, now_us, out),
            Input::Dropped(connection) => self.dropped(connection, now_us, out),
            Input::Downloaded { connection, tick } => self.downloads.finished(connection, tick),
            Input::Sections { tick, sections } => {
                self.tell_desync(tick, sections.map(|sections| *sections), out)
            }
            Input::Stop => self.stop(out),
        }
        self.give_snapshots(now_us, out);
    }

    /// Closes the turn that is due and runs it.
    pub(crate) fn close_turn(&mut self, now_us: u64, out: &mut Vec<Output>) {
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
        self.world.step_into(&commands, &mut self.events);
        self.counters.ticks += 1;
        let outcomes = outcomes(&self.events, commands.len());
        let turn = self.publish(tick, commands, &sources, &outcomes, out);
        self.settle(tick, &turn, &sources, &outcomes, out);
        self.show_states(tick, out);
        if self.world.tick().is_multiple_of(KEYFRAME_TICKS) {
            self.keyframe(out);
        }
        for connection in self.downloads.expire(now_us) {
            self.close(
                connection,
                Code::CLOSE_SLOW,
                "a snapshot took too long",
                now_us,
                out,
            );
        }
        self.resync(now_us);
        self.give_snapshots(now_us, out);
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
            .map(|(source, outcome)| origin(*source, *outcome));
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

    /// Answers those whose commands ran, and does what the roster's own commands were for.
    fn settle(
        &mut self,
        tick: u64,
        commands: &[Command],
        sources: &[Source],
        outcomes: &[Code],
        out: &mut Vec<Output>,
    ) {
        let joined = |event: &Event| match event {
            Event::Joined { character } => Some(*character),
            _ => None,
        };
        let mut joined: VecDeque<CharacterId> = self.events.iter().filter_map(joined).collect();
        for (index, ((command, source), &outcome)) in commands.iter().zip(sources).zip(outcomes).enumerate() {
            match *source {
                Source::Session { session, sequence } => {
                    let answer = Answer::Accepted {
                        tick,
                        index: index as u32,
                        outcome,
                    };
                    self.counters.accepted += 1;
                    self.answer(session, sequence, answer, out);
                }
                Source::Roster { session } => match command {
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
                },
            }
        }
    }

    /// Keeps an answer and sends it to whoever is there.
    fn answer(&mut self, session: u64, sequence: u64, answer: Answer, out: &mut Vec<Output>) {
        let Some(session) = self.roster.get_mut(session) else {
            return;
        };
        session.sequences.answer(sequence, answer);
        if let Some(connection) = session.connection() {
            out.push(Output::Send(connection.id, parcel(sequence, answer)));
        }
    }

    fn command(
        &mut self,
        connection: ConnectionId,
        sequence: u64,
        at_tick: Option<u64>,
        command: Result<Command, Code>,
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.roster.of(connection) else {
            return;
        };
        let (number, allowance) = (session.number, session.allowance());
        let arrival = if sequence == 0 {
            // Counting starts at 1: not a number that could be remembered.
            Arrival::Answered(Answer::Refused(Code::REFUSED_OUT_OF_RANGE))
        } else {
            session.sequences.arrive(sequence)
        };
        match arrival {
            Arrival::Waiting => return,
            Arrival::Answered(answer) => {
                out.push(Output::Send(connection, parcel(sequence, answer)));
                return;
            }
            Arrival::Stale => {
                self.counters.refused += 1;
                out.push(Output::Send(connection, refusal(sequence, Code::REFUSED_STALE)));
                return;
            }
            Arrival::New => {}
        }
        let scheduled = command.and_then(|command| {
            if self.stopping {
                return Err(Code::REFUSED_DRAINING);
            }
            let arrived = inbox::Arrived {
                session: number,
                sequence,
                allowance,
                at_tick,
                command,
            };
            self.inbox
                .push(arrived, self.world.tick(), self.definition.tick_rate())
        });
        if let Err(code) = scheduled {
            self.counters.refused += 1;
            self.answer(number, sequence, Answer::Refused(code), out);
            let too_often = code == Code::REFUSED_RATE
                && self.roster.of(connection).is_some_and(|s| s.rate_refused(now_us));
            if too_often {
                self.close(connection, Code::CLOSE_RATE, "far too many commands", now_us, out);
            }
        }
    }

    fn compare(&mut self, connection: ConnectionId, tick: u64, digest: u64, out: &mut Vec<Output>) {
        let Some(session) = self.roster.of(connection) else {
            return;
        };
        let number = session.number;
        let Some(connection) = session.connection_mut() else {
            return;
        };
        let expected = self.history.digest_to_compare(tick);
        let Some(expected) = expected.filter(|_| tick >= connection.snapshot_tick) else {
            self.counters.digests_ignored += 1;
            return;
        };
        self.counters.digests += 1;
        if expected == digest || connection.told_desync {
            return;
        }
        connection.told_desync = true;
        let id = connection.id;
        self.counters.desyncs += 1;
        tracing::warn!(session = number, tick, "a client's digest differs");
        let known = self.desynced.contains_key(&tick);
        let room = self.desynced.len() < RECOMPUTATIONS_MAX;
        self.desynced.entry(tick).or_default().push(id);
        if known {
            return;
        }
        match self.history.recomputation(tick).filter(|_| room) {
            Some(recomputation) => out.push(Output::Recompute(recomputation)),
            None => self.tell_desync(tick, None, out),
        }
    }

    /// Tells those who wait for it where their World differs after `tick`.
    fn tell_desync(&mut self, tick: u64, sections: Option<Sections>, out: &mut Vec<Output>) {
        let sections = sections.unwrap_or_default();
        let characters = sections
            .characters
            .into_iter()
            .map(|(id, digest)| (CharacterId(id), digest));
        let message = ServerMessage::Desync(Box::new(protocol::message::Desync {
            tick,
            expected: self.history.digest_to_compare(tick).unwrap_or_default(),
            clock: sections.clock,
            map: sections.map,
            planner: sections.planner,
            characters: List::new(characters.collect()).expect("no more than a World can have"),
            want_report: false,
        }));
        let frame = encode(&message);
        for connection in self.desynced.remove(&tick).unwrap_or_default() {
            out.push(Output::Send(connection, Parcel::Control(frame.clone())));
        }
    }

    /// Those who asked for a snapshot and may have one now wait for the next.
    fn resync(&mut self, now_us: u64) {
        for session in self.roster.iter_mut() {
            let Some(connection) = session.connection_mut() else {
                continue;
            };
            let may = connection
                .resynced_us
                .is_none_or(|at_us| at_us + RESYNC_US <= now_us);
            if !connection.wants_resync || !connection.welcomed || !may {
                continue;
            }
            connection.wants_resync = false;
            connection.resynced_us = Some(now_us);
            self.counters.resyncs += 1;
            match &mut connection.feed {
                Feed::Lockstep => self.downloads.want(connection.id),
                Feed::State(feed) => feed.forget(),
                Feed::Answers => {}
            }
        }
    }

    /// Sends the snapshot of now to those who wait for one, together with the Welcome that waited for it.
    fn give_snapshots(&mut self, now_us: u64, out: &mut Vec<Output>) {
        let tick = self.world.tick();
        let Some((frames, takers)) = self.downloads.give(tick, now_us, || self.world.snapshot()) else {
            return;
        };
        for taker in takers {
            let Some(session) = self.roster.of(taker) else {
                self.downloads.forget(taker);
                continue;
            };
            let number = session.number;
            let welcomed = session.connection().is_some_and(|connection| connection.welcomed);
            let definition = if welcomed {
                None
            } else {
                self.welcome(number, tick, out)
            };
            let Some(connection) = self.roster.of(taker).and_then(roster::Session::connection_mut) else {
                continue;
            };
            connection.snapshot_tick = tick;
            connection.told_desync = false;
            if !connection.following {
                connection.following = true;
                out.push(Output::Follow(taker));
            }
            let download = Download {
                snapshot_tick: Some(tick),
                definition,
                snapshot: Arc::clone(&frames),
            };
            out.push(Output::Send(taker, Parcel::Download(download)));
        }
    }

    fn dropped(&mut self, connection: ConnectionId, now_us: u64, out: &mut Vec<Output>) {
        let Some(there) = self
            .roster
            .of(connection)
            .and_then(roster::Session::connection_mut)
        else {
            return;
        };
        self.counters.drops += 1;
        if there.dropped(now_us) {
            self.close(
                connection,
                Code::CLOSE_SLOW,
                "what it is sent is not read",
                now_us,
                out,
            );
            return;
        }
        match &mut there.feed {
            Feed::Lockstep => self.downloads.want(connection),
            Feed::State(feed) => feed.forget(),
            Feed::Answers => {}
        }
    }

    fn show_states(&mut self, tick: u64, out: &mut Vec<Output>) {
        let observed = |session: &roster::Session| {
            matches!(
                session.connection(),
                Some(Connection {
                    feed: Feed::State(_),
                    welcomed: true,
                    ..
                })
            )
        };
        if !self.roster.iter().any(observed) {
            return;
        }
        let map = self.world.map_state();
        let scene = Scene {
            tick,
            world: &self.world,
            map: &map,
            events: &self.events,
        };
        for session in self.roster.iter_mut() {
            let own = session.characters.first().copied();
            let Some(Connection {
                id,
                feed: Feed::State(feed),
                welcomed: true,
                ..
            }) = session.connection_mut()
            else {
                continue;
            };
            match feed.frames(&scene, own) {
                Ok(Some((frames, whole))) => {
                    out.push(Output::Send(*id, Parcel::State { tick, whole, frames }));
                }
                Ok(None) => {}
                Err(error) => {
                    // A view of more than a frame holds: nothing can be shown until another is asked for.
                    tracing::warn!(connection = id.0, %error, "a state is too large to be sent");
                    feed.forget();
                }
            }
        }
    }

    fn keyframe(&self, out: &mut Vec<Output>) {
        let tick = self.world.tick();
        let open = |session: &&roster::Session| !matches!(session.phase, Phase::Joining(_));
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
        let sessions = record::Sessions::new(tick, sessions, answers, Vec::new())
            .expect("the roster's limits are below the journal's");
        out.push(Output::Keyframe {
            tick,
            digest: self.world.digest(),
            snapshot: self.world.snapshot(),
            sessions,
        });
    }

    fn stop(&mut self, out: &mut Vec<Output>) {
        self.stopping = true;
        for (session, sequence) in self.inbox.drain_sessions() {
            self.counters.refused += 1;
            self.answer(session, sequence, Answer::Refused(Code::REFUSED_DRAINING), out);
        }
        let draining = encode(&ServerMessage::Draining {
            code: Code::CLOSE_STOPPING,
            deadline_ms: 0,
        });
        for session in self.roster.iter() {
            let Some(connection) = session.connection() else {
                continue;
            };
            if connection.welcomed {
                out.push(Output::Send(connection.id, Parcel::Control(draining.clone())));
                let (code, message) = (Code::CLOSE_STOPPING, "the daemon ends");
                out.push(Output::Send(connection.id, Parcel::Close { code, message }));
            } else {
                let (code, message) = (Code::REJECT_DRAINING, "the daemon ends");
                out.push(Output::Send(connection.id, Parcel::Reject { code, message }));
            }
        }
    }
}

/// The parts' digests that a [`Recomputation`] asks for; `None` if its turns do not lead to its tick.
pub(crate) fn recompute(definition: &Definition, recomputation: &Recomputation) -> Option<Sections> {
    let mut world = World::load(definition, &recomputation.snapshot).ok()?;
    let mut events = Vec::new();
    for frame in &recomputation.turns {
        let payload = frame.get(protocol::frame::LENGTH_BYTES..)?;
        let Ok(ServerMessage::Turn(turn)) = protocol::wire::decode_server(payload) else {
            return None;
        };
        events.clear();
        world.step_into(&turn.commands, &mut events);
    }
    (world.tick() == recomputation.tick + 1).then(|| world.sections())
}

fn encode(message: &ServerMessage) -> Bytes {
    frame::encode_server(message).expect("every message made here is far below the limit of a frame")
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

fn origin(source: Source, outcome: Code) -> Origin {
    match source {
        Source::Session { session, sequence } => Origin::Session {
            session,
            sequence,
            outcome,
        },
        Source::Roster { session } => Origin::Roster { session, outcome },
    }
}

fn parcel(sequence: u64, answer: Answer) -> Parcel {
    match answer {
        Answer::Accepted { tick, index, outcome } => Parcel::Answer {
            tick,
            frame: encode(&ServerMessage::Accepted {
                sequence,
                tick,
                index,
                outcome,
            }),
        },
        Answer::Refused(code) => refusal(sequence, code),
    }
}

/// A refusal belongs to no turn, so it may leave at once.
fn refusal(sequence: u64, code: Code) -> Parcel {
    let message = match code {
        Code::REFUSED_NOT_YOURS => "somebody else's character",
        Code::REFUSED_ROLE_NOT_ALLOWED => "not for this role",
        Code::REFUSED_RATE => "too many commands wait",
        Code::REFUSED_TOO_LATE => "that tick is over",
        Code::REFUSED_TOO_FAR => "that tick is more than ten seconds away",
        Code::REFUSED_STALE => "a sequence too far below the highest",
        Code::REFUSED_OUT_OF_RANGE => "a number outside its limits",
        Code::REFUSED_DRAINING => "the daemon ends",
        _ => "",
    };
    Parcel::Control(encode(&ServerMessage::Refused {
        sequence,
        code,
        message: Explanation::cut(message),
    }))
}
