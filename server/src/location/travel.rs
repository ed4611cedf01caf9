//! The way to another place (spec 10): a session ends here, its character leaves, and once that is recorded its connection
//! is told where to go. So nobody is ever in two places.

use protocol::message::Short;
use protocol::{Code, ServerMessage};

use super::operator::{Destination, Reply, ReplyTo};
use super::outbox::Parcel;
use super::roster::Phase;
use super::{ConnectionId, Location, Output, encode};

/// A connection whose session has ended here, until its character has left.
#[derive(Debug)]
pub(super) struct Traveller {
    connection: ConnectionId,
    to: Destination,
    /// Told when the way has been.
    reply_to: ReplyTo,
}

impl Location {
    /// The session ends here and its character leaves, or the operator hears why not.
    pub(super) fn send_away(
        &mut self,
        number: u64,
        to: Destination,
        actor: &Short,
        reply_to: ReplyTo,
        out: &mut Vec<Output>,
    ) {
        let connection = match self.may_travel(number) {
            Ok(connection) => connection,
            Err(reason) => return out.push(Output::Reply(reply_to, Reply::Refused(reason))),
        };
        let text = format!("travel: session {number} to {} {}", &*to.location, &*to.address);
        self.note(actor, &text, out);
        let traveller = Traveller {
            connection,
            to,
            reply_to,
        };
        self.travellers.insert(number, traveller);
        // Its connection stays until it is told where to go.
        self.roster.disconnect(number, Phase::Leaving);
        self.downloads.forget(connection);
        self.leave(number, out);
        if self.roster.get_mut(number).is_none() {
            self.redirect(number, out);
        }
    }

    fn may_travel(&mut self, number: u64) -> Result<ConnectionId, &'static str> {
        if !self.runs() {
            return Err("the clock stands still, so nobody could leave");
        }
        let session = self.roster.get_mut(number).ok_or("no such session")?;
        let connection = session.connection().filter(|connection| connection.welcomed);
        let connection = connection.ok_or("nobody is connected")?.id;
        if session.borrows() {
            return Err("it commands characters of this location, which stay here");
        }
        Ok(connection)
    }

    /// The character of a session that was sent away has left, if it had one: its connection is told where to go.
    pub(super) fn redirect(&mut self, number: u64, out: &mut Vec<Output>) {
        let Some(Traveller {
            connection,
            to,
            reply_to,
        }) = self.travellers.remove(&number)
        else {
            return;
        };
        let frame = encode(&ServerMessage::Redirect {
            location: to.location,
            address: to.address,
            ticket: to.ticket,
        });
        out.push(Output::Send(connection, Parcel::Redirect(frame)));
        let (code, message) = (Code::CLOSE_MOVED, "elsewhere");
        out.push(Output::Send(connection, Parcel::Close { code, message }));
        out.push(Output::Forget(connection));
        let next_tick = self.next_tick();
        out.push(Output::Reply(reply_to, Reply::Done { next_tick }));
    }

    /// It ends before those who were sent away have left: they go nowhere.
    pub(super) fn refuse_travellers(&mut self, code: Code, message: &'static str, out: &mut Vec<Output>) {
        for (_, traveller) in std::mem::take(&mut self.travellers) {
            out.push(Output::Send(
                traveller.connection,
                Parcel::Close { code, message },
            ));
            out.push(Output::Reply(traveller.reply_to, Reply::Refused(message)));
        }
    }
}
