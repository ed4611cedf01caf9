//! How somebody comes and goes (spec 4.5): admission, the roster's Join, resuming, the grace and the roster's Leave.

use std::sync::Arc;

use bytes::Bytes;
use protocol::message::{self, Hello, Need, Role, View, Welcome};
use protocol::{Code, FEATURE_PACKED_STATES, FEATURES, ServerMessage, VERSION};
use sim::bounded::List;
use sim::{CharacterId, Command, Kind};

use super::outbox::{Download, Parcel};
use super::roster::{Connection, Feed, GRACE_US, Phase, Token, folded};
use super::state_feed::StateFeed;
use super::{ConnectionId, Location, Output, encode};
use crate::journal::record::{Record, SessionState};

impl Location {
    /// Somebody asks for admission.
    pub(super) fn enter(&mut self, id: ConnectionId, hello: &Hello, token: Token, out: &mut Vec<Output>) {
        let needs_definition = self.needs_definition(hello.definition);
        let connection = Connection::new(
            id,
            token,
            feed(hello),
            hello.features & FEATURES,
            needs_definition,
        );
        let entered = self.check(hello).and_then(|()| match &hello.resume {
            Some(resume) => self.resume(resume, hello.role, connection, out),
            None => self.open(hello, connection, out),
        });
        if let Err((code, message)) = entered {
            out.push(Output::Send(id, Parcel::Reject { code, message }));
            out.push(Output::Forget(id));
        }
    }

    fn open(&mut self, hello: &Hello, connection: Connection, out: &mut Vec<Output>) -> Result<(), Refusal> {
        let needs_character = matches!(hello.role, Role::Player | Role::Bot);
        if needs_character || !hello.name.is_empty() {
            sim::check_name(&hello.name).map_err(|_| (Code::REJECT_NAME_INVALID, "not a name"))?;
        }
        self.roster
            .check_new(&hello.name, hello.role, self.players_max)
            .map_err(|code| (code, "somebody is there already"))?;
        if self.is_name_of_character(&hello.name) {
            return Err((Code::REJECT_NAME_TAKEN, "a character has this name"));
        }
        let name = hello.name.clone();
        let number = self
            .roster
            .open(name.clone(), hello.role, connection, self.world.tick());
        if needs_character {
            self.inbox.push_roster(number, Command::Join { name });
        } else {
            self.opened(number, out);
        }
        Ok(())
    }

    /// What holds for newcomers and for those who come back.
    fn check(&self, hello: &Hello) -> Result<(), Refusal> {
        if self.stopping {
            return Err((Code::REJECT_DRAINING, "the daemon ends"));
        }
        if self.storage.is_failing() {
            return Err((Code::REJECT_STORAGE, "it could not be recorded"));
        }
        if !hello.location.is_empty() && *hello.location != *self.definition.name() {
            return Err((Code::REJECT_UNKNOWN_LOCATION, "no such location"));
        }
        if hello.ticket.is_some() {
            // No key is known that could have signed it.
            return Err((Code::REJECT_TICKET_INVALID, "not a ticket for this daemon"));
        }
        if hello.role == Role::Admin {
            return Err((Code::REJECT_ROLE_NOT_ALLOWED, "not without a ticket"));
        }
        Ok(())
    }

    /// NPCs and bots of the location have names too; players' are the sessions'.
    fn is_name_of_character(&self, name: &str) -> bool {
        let folded_name = folded(name);
        let mut others = self
            .world
            .characters()
            .iter()
            .filter(|character| character.kind != Kind::Player);
        !name.is_empty() && others.any(|character| folded(&character.name) == folded_name)
    }

    /// The roster's Join of this session has run.
    pub(super) fn joined(
        &mut self,
        number: u64,
        character: Option<CharacterId>,
        outcome: Code,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.roster.get_mut(number) else {
            return;
        };
        match character {
            Some(character) => {
                session.characters = vec![character];
                self.opened(number, out);
            }
            None => {
                let (code, message) = match outcome {
                    Code::NAME_IN_USE => (Code::REJECT_NAME_TAKEN, "a character has this name"),
                    _ => (Code::REJECT_NO_ROOM, "no room for another character"),
                };
                if let Some(connection) = session.connection() {
                    out.push(Output::Send(connection.id, Parcel::Reject { code, message }));
                    out.push(Output::Forget(connection.id));
                }
                self.roster.remove(number);
            }
        }
    }

    /// A session is complete: into the journal, and its Welcome follows.
    fn opened(&mut self, number: u64, out: &mut Vec<Output>) {
        let Some(session) = self.roster.get_mut(number) else {
            return;
        };
        session.phase = match std::mem::replace(&mut session.phase, Phase::Leaving) {
            Phase::Joining(connection) => Phase::Connected(connection),
            other => other,
        };
        self.counters.sessions += 1;
        tracing::info!(session = number, name = ?session.name, role = ?session.role, "joined");
        out.push(Output::Record(Record::Session(
            session.record(SessionState::Open),
        )));
        let Some(connection) = session.connection() else {
            return;
        };
        match connection.feed {
            Feed::Lockstep => self.downloads.want(connection.id),
            Feed::State(_) | Feed::Answers => {
                let id = connection.id;
                let definition = self.welcome(number, self.world.tick(), out);
                send_definition(id, definition, out);
            }
        }
    }

    fn resume(
        &mut self,
        resume: &message::Resume,
        role: Role,
        connection: Connection,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let number = self
            .roster
            .resumable(resume, role)
            .ok_or((Code::REJECT_RESUME_INVALID, "no such session"))?;
        let (id, token) = (connection.id, connection.token);
        let lockstep = matches!(connection.feed, Feed::Lockstep);
        if let Some(replaced) = self.roster.connect(number, connection) {
            let message = "resumed on a newer connection";
            let parcel = if replaced.welcomed {
                let code = Code::CLOSE_REPLACED;
                Parcel::Close { code, message }
            } else {
                let code = Code::REJECT_ALREADY_CONNECTED;
                Parcel::Reject { code, message }
            };
            self.downloads.forget(replaced.id);
            out.push(Output::Send(replaced.id, parcel));
            out.push(Output::Forget(replaced.id));
        }
        let Some(session) = self.roster.get_mut(number) else {
            return Ok(());
        };
        session.rotate(&resume.token, &token);
        self.counters.resumes += 1;
        tracing::info!(session = number, name = ?session.name, "resumed");
        out.push(Output::Record(Record::Session(
            session.record(SessionState::Open),
        )));
        let missed = if resume.run == self.run && lockstep {
            self.history.missed(resume.next_tick, resume.digest)
        } else {
            None
        };
        match missed {
            Some(missed) => {
                let definition = self.welcome(number, resume.next_tick, out);
                send_definition(id, definition, out);
                self.follow(id, missed, out);
            }
            None if lockstep => self.downloads.want(id),
            None => {
                let definition = self.welcome(number, self.world.tick(), out);
                send_definition(id, definition, out);
            }
        }
        Ok(())
    }

    fn follow(&mut self, id: ConnectionId, missed: Vec<(u64, Bytes)>, out: &mut Vec<Output>) {
        if let Some(connection) = self
            .roster
            .of(id)
            .and_then(super::roster::Session::connection_mut)
        {
            connection.following = true;
            out.push(Output::Follow(id));
            out.push(Output::Send(id, Parcel::Follow { missed }));
        }
    }

    /// Sends the Welcome; returns the definition's frames if they have to follow.
    pub(super) fn welcome(
        &mut self,
        number: u64,
        next_tick: u64,
        out: &mut Vec<Output>,
    ) -> Option<Arc<[Bytes]>> {
        let session = self.roster.get_mut(number)?;
        let characters = session.characters.clone();
        let last_sequence = session.sequences.highest();
        session.welcomed = true;
        let connection = session.connection_mut()?;
        connection.welcomed = true;
        let (id, needs_definition) = (connection.id, connection.needs_definition);
        let answers_alone = matches!(connection.feed, Feed::Answers);
        let frame = encode(&ServerMessage::Welcome(Box::new(Welcome {
            version: VERSION,
            features: connection.features,
            run: self.run,
            session: number,
            token: connection.token,
            characters: List::new(characters.clone()).expect("a session has no more than a World"),
            next_tick,
            tick_rate: self.definition.tick_rate(),
            ruleset: sim::RULESET,
            ruleset_hash: self.ruleset_hash,
            definition: self.definition_hash,
            grace_ms: (GRACE_US / 1_000) as u32,
            last_sequence,
        })));
        out.push(Output::Send(id, Parcel::Welcome { frame, characters }));
        out.push(Output::Send(id, Parcel::Control(self.clock_frame())));
        if answers_alone {
            // No turn will ever stand before its answers.
            out.push(Output::Send(id, Parcel::Follow { missed: Vec::new() }));
        }
        needs_definition.then(|| Arc::clone(&self.definition_frames))
    }

    /// A client leaves for good.
    pub(super) fn goodbye(&mut self, connection: ConnectionId, out: &mut Vec<Output>) {
        let Some(session) = self.roster.of(connection) else {
            return;
        };
        let number = session.number;
        let (code, message) = (Code::CLOSE_GOODBYE, "goodbye");
        out.push(Output::Send(connection, Parcel::Close { code, message }));
        self.disconnect(number, Phase::Leaving, out);
        self.leave(number, out);
    }

    /// A connection has ended without a word: the grace begins.
    pub(super) fn gone(&mut self, connection: ConnectionId, now_us: u64, out: &mut Vec<Output>) {
        let Some(session) = self.roster.of(connection) else {
            // Never admitted, replaced, or closed by the location itself.
            self.downloads.forget(connection);
            out.push(Output::Forget(connection));
            return;
        };
        let number = session.number;
        match &session.phase {
            Phase::Joining(_) => {
                // Its Join has not run, and nobody would ever come for the character.
                self.inbox.forget(number);
                self.roster.remove(number);
                out.push(Output::Forget(connection));
            }
            Phase::Connected(_) if !session.welcomed => {
                // Nobody can know its token.
                self.disconnect(number, Phase::Leaving, out);
                self.leave(number, out);
            }
            Phase::Connected(_) | Phase::Grace { .. } | Phase::Leaving => {
                let until_us = now_us + GRACE_US;
                self.disconnect(number, Phase::Grace { until_us }, out);
                tracing::info!(session = number, "connection lost");
            }
        }
    }

    /// Closes a connection by the location's will; its session may come back within the grace.
    pub(super) fn close(
        &mut self,
        connection: ConnectionId,
        code: Code,
        message: &'static str,
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        if self.roster.of(connection).is_some() {
            tracing::info!(connection = connection.0, %code, "closed");
            out.push(Output::Send(connection, Parcel::Close { code, message }));
            self.gone(connection, now_us, out);
        }
    }

    /// Those whose grace is over leave.
    pub(super) fn end_graces(&mut self, now_us: u64, out: &mut Vec<Output>) {
        for number in self.roster.overdue(now_us) {
            self.disconnect(number, Phase::Leaving, out);
            self.leave(number, out);
        }
    }

    /// The roster's Leave of this character has run.
    pub(super) fn left(&mut self, number: u64, character: CharacterId) {
        let Some(session) = self.roster.get_mut(number) else {
            return;
        };
        if session.characters.iter().all(|own| *own == character) {
            self.roster.remove(number);
        } else {
            session.characters.retain(|own| *own != character);
        }
    }

    /// A session that is in [`Phase::Leaving`] ends, and its characters leave. The end is in the journal at once, so that
    /// after a kill nobody comes back who was told that it is gone; a restart lets its characters leave.
    fn leave(&mut self, number: u64, out: &mut Vec<Output>) {
        self.inbox.forget(number);
        let Some(session) = self.roster.get_mut(number) else {
            return;
        };
        tracing::info!(session = number, name = ?session.name, "left");
        out.push(Output::Record(Record::Session(
            session.record(SessionState::Ended),
        )));
        if session.characters.is_empty() {
            self.roster.remove(number);
            return;
        }
        for &character in &session.characters {
            self.inbox.push_roster(number, Command::Leave { character });
        }
    }

    fn disconnect(&mut self, number: u64, phase: Phase, out: &mut Vec<Output>) {
        if let Some(connection) = self.roster.disconnect(number, phase) {
            self.downloads.forget(connection);
            out.push(Output::Forget(connection));
        }
    }

    fn needs_definition(&self, need: Need) -> bool {
        match need {
            Need::Send => true,
            Need::Have(hash) => hash != self.definition_hash,
            Need::No => false,
        }
    }
}

/// Why somebody is not admitted: the code, and a word for people.
type Refusal = (Code, &'static str);

fn feed(hello: &Hello) -> Feed {
    match hello.feed {
        message::Feed::Lockstep => Feed::Lockstep,
        message::Feed::State => {
            let packed = hello.features & FEATURES & FEATURE_PACKED_STATES != 0;
            Feed::State(Box::new(StateFeed::new(hello.view.unwrap_or(View::ALL), packed)))
        }
        message::Feed::Answers => Feed::Answers,
    }
}

/// Sends a definition that no snapshot goes with.
fn send_definition(id: ConnectionId, definition: Option<Arc<[Bytes]>>, out: &mut Vec<Output>) {
    if let Some(definition) = definition {
        let download = Download {
            snapshot_tick: None,
            definition: Some(definition),
            snapshot: Arc::new([]),
        };
        out.push(Output::Send(id, Parcel::Download(download)));
    }
}
