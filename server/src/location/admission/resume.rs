//! How somebody comes back: by the session's token within the grace, or by another ticket of the same subject.

use bytes::Bytes;
use protocol::Code;
use protocol::message::{self, Role};
use protocol::ticket::Claims;

use crate::admission::Refusal;
use crate::journal::record::{Record, SessionState};
use crate::location::outbox::Parcel;
use crate::location::roster::{Connection, Feed, Session};
use crate::location::{ConnectionId, Location, Output, Visitor};

impl Location {
    pub(super) fn resume(
        &mut self,
        resume: &message::Resume,
        role: Role,
        visitor: &Visitor,
        connection: Connection,
        now_us: u64,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let number = self
            .roster
            .resumable(resume, role)
            .ok_or((Code::REJECT_RESUME_INVALID, "no such session"))?;
        let subject = self.roster.get_mut(number).map(|session| session.subject.clone());
        if subject.is_some_and(|subject| self.bans.forbid(&subject, None, visitor.unix_seconds)) {
            return Err((Code::REJECT_BANNED, "banned"));
        }
        self.check_resumes(number, now_us)?;
        let (id, token) = (connection.id, connection.token);
        out.push(Output::Recognise(id));
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
                self.welcome(number, resume.next_tick, out);
                self.follow(id, missed, out);
            }
            None if lockstep => self.downloads.want(id),
            None => self.welcome(number, self.world.tick(), out),
        }
        Ok(())
    }

    /// Each time is written to the disk, and may take a snapshot.
    fn check_resumes(&mut self, number: u64, now_us: u64) -> Result<(), Refusal> {
        let session = self.roster.get_mut(number);
        match session.is_none_or(|session| session.may_resume(now_us)) {
            true => Ok(()),
            false => Err((Code::REJECT_BUSY, "resumed too often")),
        }
    }

    fn follow(&mut self, id: ConnectionId, missed: Vec<(u64, Bytes)>, out: &mut Vec<Output>) {
        if let Some(connection) = self.roster.of(id).and_then(Session::connection_mut) {
            connection.following = true;
            out.push(Output::Follow(id));
            out.push(Output::Send(id, Parcel::Follow { missed }));
        }
    }

    /// The subject of a session's ticket comes with another ticket while nobody is connected.
    pub(super) fn take_over(
        &mut self,
        number: u64,
        claims: &Claims,
        connection: Connection,
        now_us: u64,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        self.check_resumes(number, now_us)?;
        let (id, token) = (connection.id, connection.token);
        let lockstep = matches!(connection.feed, Feed::Lockstep);
        self.roster.connect(number, connection);
        let Some(session) = self.roster.get_mut(number) else {
            return Ok(());
        };
        session.renew(claims, &token);
        self.counters.resumes += 1;
        tracing::info!(session = number, name = ?session.name, "taken over by its subject");
        out.push(Output::Record(Record::Session(
            session.record(SessionState::Open),
        )));
        self.roster.ticket_recorded(number);
        if lockstep {
            self.downloads.want(id);
        } else {
            self.welcome(number, self.world.tick(), out);
        }
        Ok(())
    }
}
