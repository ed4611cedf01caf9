//! How somebody goes: by a word, by a lost connection and the end of its grace, sent away, or to another location.

use std::sync::Arc;

use protocol::Code;
use protocol::message::Role;
use sim::{CharacterId, Command};

use crate::admission::bans::Bans;
use crate::journal::record::{Record, SessionState};
use crate::location::borrowed::Borrowed;
use crate::location::outbox::Parcel;
use crate::location::roster::{GRACE_US, Phase, Session};
use crate::location::{ConnectionId, Location, OnLeave, Output};

impl Location {
    /// A client leaves for good: at once, or when the commands that it sent before have run. What it has scheduled for a
    /// later turn is dropped.
    pub(in crate::location) fn goodbye(&mut self, connection: ConnectionId, out: &mut Vec<Output>) {
        let Some(session) = self.roster.of(connection) else {
            return;
        };
        session.parting = true;
        let number = session.number;
        self.inbox.forget_scheduled(number);
        self.part(out);
    }

    /// Those who have said goodbye leave if nothing of theirs waits any more.
    pub(in crate::location) fn part(&mut self, out: &mut Vec<Output>) {
        let parting = self.roster.iter().filter(|session| session.parting);
        let ready = parting.map(|session| session.number);
        let ready: Vec<u64> = ready.filter(|number| !self.inbox.waits(*number)).collect();
        for number in ready {
            let Some(session) = self.roster.get_mut(number) else {
                continue;
            };
            session.parting = false;
            if let Some(connection) = session.connection() {
                let (code, message) = (Code::CLOSE_GOODBYE, "goodbye");
                out.push(Output::Send(connection.id, Parcel::Close { code, message }));
            }
            if !matches!(session.phase, Phase::Leaving) {
                self.depart(number, out);
            }
        }
    }

    /// A connection has ended without a word: the grace begins.
    pub(in crate::location) fn gone(&mut self, connection: ConnectionId, now_us: u64, out: &mut Vec<Output>) {
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
            Phase::Connected(_) | Phase::Grace { .. } | Phase::Away | Phase::Leaving => {
                let until_us = now_us + GRACE_US;
                self.disconnect(number, Phase::Grace { until_us }, out);
                tracing::info!(session = number, "connection lost");
            }
        }
    }

    /// Closes a connection by the location's will; its session may come back within the grace.
    pub(in crate::location) fn close(
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
    pub(in crate::location) fn end_graces(&mut self, now_us: u64, out: &mut Vec<Output>) {
        for number in self.roster.overdue(now_us) {
            self.depart(number, out);
        }
    }

    /// Somebody leaves, or has not come back: the characters leave too, or stand until the subject of the ticket returns.
    fn depart(&mut self, number: u64, out: &mut Vec<Output>) {
        let stays = self.rules.on_leave == OnLeave::Stay;
        let of_ticket = |session: &Session| {
            session.role == Role::Player && !session.subject.is_empty() && session.welcomed
        };
        let Some(session) = self
            .roster
            .get_mut(number)
            .filter(|session| stays && of_ticket(session))
        else {
            self.disconnect(number, Phase::Leaving, out);
            return self.leave(number, out);
        };
        let characters = session.characters.clone();
        tracing::info!(session = number, name = ?session.name, "away");
        session.parting = false;
        session.end_tokens();
        session.sequences.forget_waiting();
        out.push(Output::Record(Record::Session(
            session.record(SessionState::Open),
        )));
        self.inbox.forget(number);
        self.disconnect(number, Phase::Away, out);
        for character in characters {
            self.inbox.push_roster(number, Command::Stop { character });
        }
    }

    /// The roster's Leave of this character has run.
    pub(in crate::location) fn left(&mut self, number: u64, character: CharacterId, out: &mut Vec<Output>) {
        let Some(session) = self.roster.get_mut(number) else {
            return;
        };
        if session.characters.iter().all(|own| *own == character) {
            self.roster.remove(number);
            self.redirect(number, out);
        } else {
            session.characters.retain(|own| *own != character);
        }
    }

    /// A session that is in [`Phase::Leaving`] ends, and its characters leave. The end is in the journal at once, so that
    /// after a kill nobody comes back who was told that it is gone; a restart lets its characters leave.
    pub(in crate::location) fn leave(&mut self, number: u64, out: &mut Vec<Output>) {
        self.inbox.forget(number);
        let Some(session) = self.roster.get_mut(number) else {
            return;
        };
        tracing::info!(session = number, name = ?session.name, "left");
        out.push(Output::Record(Record::Session(
            session.record(SessionState::Ended),
        )));
        if session.borrows() || session.characters.is_empty() {
            // What was there before stays, and does what it did.
            if session.borrows() {
                self.giving_back.push(session.record(SessionState::Ended));
            }
            let borrowed = std::mem::take(&mut session.borrowed);
            for command in borrowed.into_iter().filter_map(Borrowed::give_back) {
                self.inbox.push_roster(number, command);
            }
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

    /// From now on these may not be here; those who are go at once, without grace.
    pub(in crate::location) fn ban(&mut self, bans: Arc<Bans>, unix_seconds: u64, out: &mut Vec<Output>) {
        self.bans = bans;
        let forbidden = |session: &&Session| {
            let address = session.connection().and_then(|connection| connection.address);
            self.bans.forbid(&session.subject, address, unix_seconds)
        };
        let numbers: Vec<u64> = self
            .roster
            .iter()
            .filter(forbidden)
            .map(|session| session.number)
            .collect();
        for number in numbers {
            self.expel(number, Code::CLOSE_BANNED, Code::REJECT_BANNED, "banned", out);
        }
    }

    /// Sends a session away for good.
    pub(in crate::location) fn expel(
        &mut self,
        number: u64,
        close: Code,
        reject: Code,
        message: &'static str,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.roster.get_mut(number) else {
            return;
        };
        let joining = matches!(session.phase, Phase::Joining(_));
        let leaving = matches!(session.phase, Phase::Leaving);
        if let Some(connection) = session.connection() {
            let parcel = match connection.welcomed {
                true => Parcel::Close { code: close, message },
                false => Parcel::Reject {
                    code: reject,
                    message,
                },
            };
            out.push(Output::Send(connection.id, parcel));
        }
        self.disconnect(number, Phase::Leaving, out);
        if joining {
            self.inbox.forget(number);
            self.roster.remove(number);
        } else if !leaving {
            self.leave(number, out);
        }
    }
}
