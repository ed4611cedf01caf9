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
mod borrowed;
pub(crate) mod clock;
mod desync;
mod downloads;
mod history;
mod inbox;
mod interface;
pub(crate) mod investigator;
pub(crate) mod operator;
pub(crate) mod outbox;
mod pace;
mod recent;
mod reports;
mod roster;
mod sequences;
pub(crate) mod shadow;
mod showing;
mod state_feed;
pub(crate) mod status;
mod storage;
pub(crate) mod task;
#[cfg(test)]
mod tests;
mod travel;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use protocol::message::Explanation;
use protocol::{Code, ServerMessage, frame};
use sim::{Command, Definition, Event, World};

use self::admission::Names;
use self::clock::TickClock;
use self::desync::Waiting;
use self::downloads::Downloads;
use self::history::History;
use self::inbox::Inbox;
use self::outbox::Parcel;
use self::pace::Pace;
use self::reports::Reports;
use self::roster::{Connection, Feed, Roster};
use self::sequences::{Answer, Arrival};
use self::storage::StorageWatch;
use self::travel::Traveller;
use crate::admission::bans::Bans;
use crate::journal::record::{self, KEYFRAME_TICKS, Record, SessionState};

pub(crate) use self::inbox::character_of;
pub(crate) use self::interface::{
    ConnectionId, Counters, FIRST_REFUSAL, Idle, Input, OnLeave, Output, Rules, Start, Visitor,
};
pub(crate) use self::roster::SessionNumbers;
pub(crate) use self::storage::Storage;

/// See the module.
pub(crate) struct Location {
    definition: Definition,
    definition_hash: [u8; 32],
    definition_frames: Arc<[Bytes]>,
    ruleset_hash: u64,
    run: [u8; 16],
    rules: Rules,
    bans: Arc<Bans>,
    world: World,
    events: Vec<Event>,
    clock: TickClock,
    inbox: Inbox,
    roster: Roster,
    names: Names,
    history: History,
    downloads: Downloads,
    /// What those with the State feed were told.
    state_groups: state_feed::Groups,
    /// Who waits for the parts' digests of a tick.
    desynced: BTreeMap<u64, Waiting>,
    reports: Reports,
    counters: Counters,
    storage: StorageWatch,
    pace: Pace,
    /// Commands of operators that wait, by their numbers.
    operators: BTreeMap<u64, operator::Waiting>,
    last_operator: u64,
    /// Sessions that leave for another place, by their numbers.
    travellers: BTreeMap<u64, Traveller>,
    /// Nobody new comes in any more, and then the daemon ends, µs.
    draining_until_us: Option<u64>,
    /// When something last happened here: while it drains, a Welcome tells how long it is to the end.
    now_us: u64,
    stopping: bool,
    /// An operator wants the next run.
    run_ends: bool,
    /// Sessions that have ended, whose borrowed characters are given back in the next turn.
    giving_back: Vec<record::Session>,
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
        let mut roster = Roster::recovered(
            start.sessions,
            start.answers,
            start.nonces,
            start.last_session,
            start.rules.on_leave == OnLeave::Stay,
            now_us,
        );
        roster.share_numbers(start.numbers);
        let mut location = Self {
            definition_hash: protocol::bundle::hash(&start.bundle),
            definition_frames: downloads::definition_frames(start.bundle),
            ruleset_hash: sim::ruleset_hash(definition.planner()),
            run: start.run,
            rules: start.rules,
            bans: start.bans,
            events: Vec::new(),
            clock: TickClock::starting(world.tick(), now_us, definition.tick_rate()),
            inbox,
            roster,
            names: Names::default(),
            history: History::starting(
                world.tick(),
                world.digest(),
                world.snapshot(),
                definition.tick_rate(),
            ),
            downloads: Downloads::default(),
            state_groups: state_feed::Groups::default(),
            desynced: BTreeMap::new(),
            reports: Reports::new(start.reports_max),
            counters: Counters::default(),
            storage: StorageWatch::default(),
            pace: Pace::default(),
            operators: BTreeMap::new(),
            last_operator: 0,
            travellers: BTreeMap::new(),
            draining_until_us: start.draining_until_us,
            now_us,
            stopping: false,
            run_ends: false,
            giving_back: Vec::new(),
            definition,
            world,
        };
        location.recover_borrowed(start.borrowed);
        location
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

    /// Whether the next turn is to be closed now.
    pub(crate) fn is_due(&self, now_us: u64) -> bool {
        self.runs() && self.due_us() <= now_us
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
            state: self.clock_state(),
        })
    }

    /// Takes something that has happened at `now_us`.
    pub(crate) fn take(&mut self, input: Input, now_us: u64, out: &mut Vec<Output>) {
        self.now_us = now_us;
        match input {
            Input::Enter {
                connection,
                hello,
                visitor,
                token,
            } => {
                self.wake(now_us, out);
                self.enter(connection, &hello, &visitor, token, now_us, out);
            }
            Input::Rules(rules) => {
                self.rules = *rules;
                if self.rules.idle == Idle::Run {
                    self.wake(now_us, out);
                }
            }
            Input::Operator(asked) => self.operate(*asked, now_us, out),
            Input::Drain { until_us } => self.drain(until_us, out),
            Input::Bans { bans, unix_seconds } => self.ban(bans, unix_seconds, out),
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
            } => self.compare(connection, tick, digest, now_us, out),
            Input::Resync(connection) => {
                if let Some(connection) = self
                    .roster
                    .of(connection)
                    .and_then(roster::Session::connection_mut)
                {
                    // Looked at once a turn, however often it is asked.
                    connection.wants_resync = true;
                }
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
                    feed.want_view(view);
                }
            }
            Input::Goodbye(connection) => self.goodbye(connection, out),
            Input::Report {
                connection,
                tick,
                part,
                bytes,
            } => self.report_part(connection, tick, part, &bytes, now_us, out),
            Input::ReportKept => self.reports.written(),
            Input::Gone(connection) => {
                self.reports.gone(connection);
                self.gone(connection, now_us, out);
            }
            Input::Dropped(connection) => self.dropped(connection, now_us, out),
            Input::Defined(connection) => self.downloads.defined(connection),
            Input::Downloaded { connection, tick } => self.downloads.finished(connection, tick),
            Input::Sections { tick, sections } => self.tell_desync(tick, sections.map(Arc::from), out),
            Input::Stop => self.stop(out),
        }
        self.give_snapshots(now_us, out);
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
        // After a goodbye nothing is heard any more.
        let Some(session) = self.roster.of(connection).filter(|session| !session.parting) else {
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
                return self.repeat(connection, parcel(sequence, answer), now_us, out);
            }
            Arrival::Stale => {
                self.counters.refuse(Code::REFUSED_STALE);
                return self.repeat(connection, refusal(sequence, Code::REFUSED_STALE), now_us, out);
            }
            Arrival::New => {}
        }
        let scheduled = command.and_then(|command| {
            if self.stopping {
                return Err(Code::REFUSED_DRAINING);
            }
            if self.storage.is_failing() {
                return Err(Code::REFUSED_STORAGE);
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
            self.counters.refuse(code);
            self.answer(number, sequence, Answer::Refused(code), out);
            let too_often = code == Code::REFUSED_RATE
                && self.roster.of(connection).is_some_and(|s| s.rate_refused(now_us));
            if too_often {
                self.close(connection, Code::CLOSE_RATE, "far too many commands", now_us, out);
            }
        }
    }

    /// Answers what was answered before. That waits for the disk like the first time, where nothing but this limits it.
    fn repeat(&mut self, connection: ConnectionId, answer: Parcel, now_us: u64, out: &mut Vec<Output>) {
        let (next_tick, tick_rate) = (self.world.tick(), self.definition.tick_rate());
        let session = self.roster.of(connection);
        if session.is_some_and(|session| session.repeats_too_often(next_tick, tick_rate)) {
            let message = "the same commands over and over";
            return self.close(connection, Code::CLOSE_RATE, message, now_us, out);
        }
        out.push(Output::Send(connection, answer));
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
        // Whoever is busy with the definition reads as well as it can.
        if !self.downloads.is_defining(connection) && there.dropped(now_us) {
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

    /// The end is near: everybody is told, nobody new comes in.
    fn drain(&mut self, until_us: u64, out: &mut Vec<Output>) {
        self.draining_until_us = Some(until_us);
        if let Some(draining) = self.draining() {
            self.tell_everybody(&draining, out);
        }
    }

    /// How long it is to the end, if that is near.
    fn draining(&self) -> Option<ServerMessage> {
        let left_us = self.draining_until_us?.saturating_sub(self.now_us);
        Some(ServerMessage::Draining {
            code: Code::CLOSE_STOPPING,
            deadline_ms: u32::try_from(left_us / 1_000).unwrap_or(u32::MAX),
        })
    }

    /// Whether the run ends here, by an operator's word.
    pub(crate) fn run_ends(&self) -> bool {
        self.run_ends
    }

    fn stop(&mut self, out: &mut Vec<Output>) {
        self.stopping = true;
        let (close, reject, message) = match self.run_ends {
            true => (Code::CLOSE_RUN_ENDED, Code::REJECT_BUSY, "a new run begins"),
            false => (Code::CLOSE_STOPPING, Code::REJECT_DRAINING, "the daemon ends"),
        };
        self.refuse_operators(message, out);
        self.refuse_steps(out);
        self.refuse_travellers(close, message, out);
        for (session, sequence) in self.inbox.drain_sessions() {
            self.counters.refuse(Code::REFUSED_DRAINING);
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
                if !self.run_ends {
                    out.push(Output::Send(connection.id, Parcel::Control(draining.clone())));
                }
                let code = close;
                out.push(Output::Send(connection.id, Parcel::Close { code, message }));
            } else {
                let code = reject;
                out.push(Output::Send(connection.id, Parcel::Reject { code, message }));
            }
        }
        // What the next start goes on from.
        if self.storage() == Storage::Kept && !self.world.tick().is_multiple_of(KEYFRAME_TICKS) {
            self.keyframe(out);
        }
    }
}

fn encode(message: &ServerMessage) -> Bytes {
    frame::encode_server(message).expect("every message made here is far below the limit of a frame")
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
        Code::REFUSED_STORAGE => "it could not be recorded",
        Code::REFUSED_DRAINING => "the daemon ends",
        _ => "",
    };
    Parcel::Control(encode(&ServerMessage::Refused {
        sequence,
        code,
        message: Explanation::cut(message),
    }))
}
