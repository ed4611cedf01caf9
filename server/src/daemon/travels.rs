//! Who is on the way from one location of this daemon to another (spec 10): tickets that need no signature, since only this
//! process knows them, and that die with it. A character whose ticket has died is where its player left it: nowhere.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::message::Hello;
use protocol::ticket::{Claims, KeyId};
use sim::bounded::{List, Text};

use crate::location::operator::SessionInfo;

/// How long a ticket is good for once its traveller has been told, seconds.
const SECONDS: u64 = 60;
/// Tickets that may be out at once.
const TICKETS_MAX: usize = 4_096;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Travels(Mutex<BTreeMap<String, Traveller>>);

/// Somebody on the way.
#[derive(Clone, Debug)]
pub(crate) struct Traveller {
    /// What a signed ticket would say; its nonce makes it good for one session.
    pub(crate) claims: Claims,
    /// The number that the session keeps.
    pub(crate) session: u64,
    /// Until when the ticket is good, Unix seconds; none while the traveller may not have been told.
    until: Option<u64>,
}

impl Travels {
    /// A ticket for a session to another location, at `now` (Unix seconds); [`Travels::told`] or [`Travels::forget`] follows.
    ///
    /// # Errors
    /// No random numbers are to be had, or too many are on their way.
    pub(crate) fn issue(
        &self,
        session: &SessionInfo,
        location: &str,
        now: u64,
    ) -> Result<String, &'static str> {
        let (mut secret, mut nonce) = ([0; 16], [0; 16]);
        getrandom::fill(&mut secret).map_err(|_| "no random numbers")?;
        getrandom::fill(&mut nonce).map_err(|_| "no random numbers")?;
        let claims = Claims {
            key: KeyId([0; 8]),
            audience: Text::default(),
            location: Text::cut(location),
            subject: Text::cut(&session.subject),
            name: Text::cut(&session.name),
            role: session.role,
            characters: List::default(),
            not_before: now,
            expires: now,
            nonce,
        };
        let mut tickets = self.lock();
        tickets.retain(|_, traveller| traveller.is_good(now));
        if tickets.len() >= TICKETS_MAX {
            return Err("too many are on their way");
        }
        let ticket = format!("travel-{:032x}", u128::from_be_bytes(secret));
        let traveller = Traveller {
            claims,
            session: session.session,
            until: None,
        };
        tickets.insert(ticket.clone(), traveller);
        Ok(ticket)
    }

    /// The traveller has been told: the ticket is good for so long from now on.
    pub(crate) fn told(&self, ticket: &str, now: u64) {
        if let Some(traveller) = self.lock().get_mut(ticket) {
            traveller.until = Some(now + SECONDS);
        }
    }

    /// Nobody travels with it.
    pub(crate) fn forget(&self, ticket: &str) {
        self.lock().remove(ticket);
    }

    /// Whose ticket this is, if it is one of these and good at `now`.
    pub(crate) fn find(&self, hello: &Hello, now: u64) -> Option<Traveller> {
        let ticket = hello.ticket.as_ref().filter(|_| hello.resume.is_none())?;
        let mut traveller = self.lock().get(ticket.as_str())?.clone();
        let fits = traveller.claims.role == hello.role && traveller.is_good(now);
        // That it was used is remembered for longer than it can be good, even if it comes before its time is counted.
        traveller.claims.expires = now + 2 * SECONDS;
        fits.then_some(traveller)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Traveller>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Traveller {
    fn is_good(&self, now: u64) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use protocol::message::Role;

    use super::*;

    #[test]
    fn the_time_of_a_ticket_begins_when_its_traveller_is_told() {
        let session = SessionInfo {
            session: 7,
            subject: String::new(),
            name: "Ann".to_owned(),
            role: Role::Player,
            feed: None,
            state: "connected",
            characters: Vec::new(),
        };
        let travels = Travels::default();
        let ticket = travels
            .issue(&session, "cellar", 1_000)
            .expect("nobody travels yet");
        let mut hello = Hello::new(Text::default(), Text::default());
        hello.ticket = Some(Text::cut(&ticket));
        let found = |now| travels.find(&hello, now).map(|traveller| traveller.session);
        assert_eq!(found(1_070), Some(7), "the clock stood still for 70 s");
        travels.told(&ticket, 1_070);
        assert_eq!(found(1_129), Some(7));
        let remembered = travels
            .find(&hello, 1_129)
            .map(|traveller| traveller.claims.expires);
        assert_eq!(remembered, Some(1_249), "it cannot be used twice");
        assert_eq!(found(1_130), None);

        let ticket = travels.issue(&session, "cellar", 1_130).expect("few travel");
        hello.ticket = Some(Text::cut(&ticket));
        travels.forget(&ticket);
        assert!(travels.find(&hello, 1_130).is_none());
    }
}
