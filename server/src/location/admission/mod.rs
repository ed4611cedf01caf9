//! How somebody comes and goes (spec 4.5): admission, the roster's Join, resuming, the grace and the roster's Leave.

mod leave;
mod names;
mod resume;

use std::sync::Arc;

use protocol::message::{self, Hello, Need, Role, View, Welcome};
use protocol::ticket::Claims;
use protocol::{Code, FEATURE_PACKED_STATES, FEATURES, ServerMessage, VERSION};
use sim::bounded::List;
use sim::{CharacterId, Command, Kind, Name};

pub(super) use self::names::Names;
use crate::admission::Refusal;
use crate::journal::record::{Record, SessionState};
use crate::location::borrowed::Borrowed;
use crate::location::operator::SessionInfo;
use crate::location::outbox::Parcel;
use crate::location::roster::{Connection, Feed, GRACE_US, Phase, Token};
use crate::location::showing::viewer;
use crate::location::state_feed::StateFeed;
use crate::location::{ConnectionId, Location, Output, Visitor, encode};

impl Location {
    /// Somebody asks for admission.
    pub(in crate::location) fn enter(
        &mut self,
        id: ConnectionId,
        hello: &Hello,
        visitor: &Visitor,
        token: Token,
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        let needs_definition = self.needs_definition(hello.definition);
        let mut connection = Connection::new(
            id,
            token,
            feed(hello),
            hello.features & FEATURES,
            needs_definition,
        );
        connection.address = visitor.address;
        let entered = self
            .check(hello, visitor)
            .and_then(|()| self.check_view(&connection.feed, hello))
            .and_then(|()| match (&hello.resume, &visitor.claims) {
                (Some(resume), _) => self.resume(resume, hello.role, visitor, connection, now_us, out),
                (None, Some(claims)) => self.open_by_ticket(claims, visitor, connection, now_us, out),
                (None, None) => self.open(&hello.name, hello.role, None, None, connection, out),
            });
        if let Err((code, message)) = entered {
            out.push(Output::Send(id, Parcel::Reject { code, message }));
            out.push(Output::Forget(id));
        }
    }

    /// Somebody has a ticket that was verified: a new session, or the one that its subject has here.
    fn open_by_ticket(
        &mut self,
        claims: &Claims,
        visitor: &Visitor,
        connection: Connection,
        now_us: u64,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        if *claims.location != *self.definition.name() {
            return Err((Code::REJECT_TICKET_INVALID, "a ticket for another location"));
        }
        if self.bans.forbid(&claims.subject, None, visitor.unix_seconds) {
            return Err((Code::REJECT_BANNED, "banned"));
        }
        if self.roster.is_used(claims, visitor.unix_seconds) {
            return Err((Code::REJECT_TICKET_USED, "the ticket was used"));
        }
        if !self.roster.has_room_for_tickets() {
            return Err((Code::REJECT_FULL, "too many tickets to remember"));
        }
        match self.session_of(&claims.subject, claims.role)? {
            Some(number) => self.take_over(number, claims, connection, now_us, out),
            None => {
                let travels = visitor.travels;
                self.open(&claims.name, claims.role, Some(claims), travels, connection, out)
            }
        }
    }

    fn open(
        &mut self,
        name: &Name,
        role: Role,
        claims: Option<&Claims>,
        travels: Option<u64>,
        connection: Connection,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let listed = claims.map_or(&[][..], |claims| &claims.characters[..]);
        let needs_character = matches!(role, Role::Player | Role::Bot) && listed.is_empty();
        if needs_character || !name.is_empty() {
            sim::check_name(name).map_err(|_| (Code::REJECT_NAME_INVALID, "not a name"))?;
        }
        self.check_room(name, role)?;
        if travels.is_some_and(|number| self.roster.get(number).is_some()) {
            return Err((Code::REJECT_ALREADY_CONNECTED, "that session is here already"));
        }
        let borrowed = self.borrow(listed)?;
        let tick = self.world.tick();
        let number = self
            .roster
            .open(travels, name.clone(), role, claims, connection, tick);
        if needs_character {
            self.inbox
                .push_roster(number, Command::Join { name: name.clone() });
            return Ok(());
        }
        for &character in listed {
            self.make_stand(number, character);
        }
        if let Some(session) = self.roster.get_mut(number) {
            session.characters = listed.to_vec();
            session.borrowed = borrowed;
        }
        self.opened(number, out);
        Ok(())
    }

    /// The characters that a Bot takes over: each is there, and nobody commands it.
    fn borrow(&self, listed: &[CharacterId]) -> Result<Vec<Borrowed>, Refusal> {
        let mut borrowed: Vec<Borrowed> = Vec::new();
        for &id in listed {
            let taken = self.roster.is_commanded(id) || borrowed.iter().any(|other| other.character == id);
            match self.world.character(id) {
                Some(character) if character.kind != Kind::Player && !taken => {
                    borrowed.push(Borrowed::new(id, character.behaviour.clone()));
                }
                Some(_) => return Err((Code::REJECT_ALREADY_CONNECTED, "somebody commands that character")),
                None => return Err((Code::REJECT_TICKET_INVALID, "no such character")),
            }
        }
        Ok(borrowed)
    }

    /// What holds for newcomers and for those who come back.
    fn check(&self, hello: &Hello, visitor: &Visitor) -> Result<(), Refusal> {
        if self.stopping {
            return Err((Code::REJECT_DRAINING, "the daemon ends"));
        }
        if self.draining_until_us.is_some() && hello.resume.is_none() {
            return Err((Code::REJECT_DRAINING, "the daemon ends soon"));
        }
        if self.storage.is_failing() {
            return Err((Code::REJECT_STORAGE, "it could not be recorded"));
        }
        if !hello.location.is_empty() && *hello.location != *self.definition.name() {
            return Err((Code::REJECT_UNKNOWN_LOCATION, "no such location"));
        }
        if self.bans.forbid("", visitor.address, visitor.unix_seconds) {
            return Err((Code::REJECT_BANNED, "banned"));
        }
        if hello.role == Role::Admin && hello.resume.is_none() && visitor.claims.is_none() {
            return Err((Code::REJECT_ROLE_NOT_ALLOWED, "not without a ticket"));
        }
        if hello.feed == message::Feed::Lockstep && !self.rules.lockstep_roles.contains(&hello.role) {
            return Err((
                Code::REJECT_FEED_NOT_ALLOWED,
                "the Lockstep feed is not for this role here",
            ));
        }
        Ok(())
    }

    /// The session that the subject of a ticket takes over, if there is one.
    fn session_of(&self, subject: &str, role: Role) -> Result<Option<u64>, Refusal> {
        let is_full = self.roster.is_full(role, self.rules.players_max);
        match self.roster.of_subject(subject, role) {
            Some(session) if session.connection().is_some() || session.parting => {
                Err((Code::REJECT_ALREADY_CONNECTED, "connected already"))
            }
            // Others may have come meanwhile.
            Some(session) if matches!(session.phase, Phase::Away) && is_full => {
                Err((Code::REJECT_FULL, "no place is free"))
            }
            session => Ok(session.map(|session| session.number)),
        }
    }

    /// Whether somebody who is elsewhere could come here.
    pub(in crate::location) fn check_traveller(&mut self, traveller: &SessionInfo) -> Result<(), Refusal> {
        match self.session_of(&traveller.subject, traveller.role)? {
            Some(_) => Ok(()),
            None => self.check_room(&traveller.name, traveller.role),
        }
    }

    /// Whether there is a place for somebody of this name and role.
    fn check_room(&mut self, name: &str, role: Role) -> Result<(), Refusal> {
        let check = self.roster.check_new(name, role, self.rules.players_max);
        check.map_err(|code| match code {
            Code::REJECT_FULL => (code, "nobody more has a place there"),
            code => (code, "somebody is there already"),
        })?;
        if self.names.contain(name, &self.world) {
            return Err((Code::REJECT_NAME_TAKEN, "a character has this name"));
        }
        Ok(())
    }

    /// Whoever watches states needs room for what they show.
    fn check_view(&self, feed: &Feed, hello: &Hello) -> Result<(), Refusal> {
        let resumed = hello.resume.as_ref();
        let resumed = resumed.and_then(|resume| self.roster.get(resume.session));
        let own = resumed.and_then(|session| session.characters.first().copied());
        let viewer = viewer(own, hello.role, &self.rules);
        match feed {
            Feed::State(feed) if !self.state_groups.has_room(feed, viewer, &self.world) => {
                Err((Code::REJECT_BUSY, "too many different views"))
            }
            _ => Ok(()),
        }
    }

    /// The roster's Join of this session has run.
    pub(in crate::location) fn joined(
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
        self.roster.ticket_recorded(number);
        let session = self.roster.get_mut(number);
        let Some(connection) = session.and_then(|session| session.connection()) else {
            return;
        };
        match connection.feed {
            Feed::Lockstep => self.downloads.want(connection.id),
            Feed::State(_) | Feed::Answers => {
                self.welcome(number, self.world.tick(), out);
            }
        }
    }

    /// Sends the Welcome, and the definition if it is needed.
    pub(in crate::location) fn welcome(&mut self, number: u64, next_tick: u64, out: &mut Vec<Output>) {
        let Some(session) = self.roster.get_mut(number) else {
            return;
        };
        let characters = session.characters.clone();
        let last_sequence = session.sequences.highest();
        session.welcomed = true;
        let Some(connection) = session.connection_mut() else {
            return;
        };
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
        let session = number;
        let welcome = Parcel::Welcome {
            frame,
            session,
            characters,
        };
        out.push(Output::Send(id, welcome));
        out.push(Output::Send(id, Parcel::Control(self.clock_frame())));
        if let Some(draining) = self.draining() {
            out.push(Output::Send(id, Parcel::Control(encode(&draining))));
        }
        if answers_alone {
            // No turn will ever stand before its answers.
            out.push(Output::Send(id, Parcel::Follow { missed: Vec::new() }));
        }
        if needs_definition {
            self.downloads.define(id);
            let definition = Parcel::Definition(Arc::clone(&self.definition_frames));
            out.push(Output::Send(id, definition));
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
