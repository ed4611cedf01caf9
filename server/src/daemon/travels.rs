//! Who is on the way from one location of this daemon to another (spec 10): tickets that need no signature, since only this
//! process knows them, and that die with it. A character whose ticket has died is where its player left it: nowhere.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::message::Hello;
use protocol::ticket::{Claims, KeyId};
use sim::bounded::{List, Text};

use crate::admission::unix_seconds;
use crate::location::operator::SessionInfo;

/// How long a ticket is good for, seconds.
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
}

impl Travels {
    /// A ticket for a session to another location.
    ///
    /// # Errors
    /// No random numbers are to be had, or too many are on their way.
    pub(crate) fn issue(&self, session: &SessionInfo, location: &str) -> Result<String, &'static str> {
        let (mut secret, mut nonce) = ([0; 16], [0; 16]);
        getrandom::fill(&mut secret).map_err(|_| "no random numbers")?;
        getrandom::fill(&mut nonce).map_err(|_| "no random numbers")?;
        let now = unix_seconds();
        let claims = Claims {
            key: KeyId([0; 8]),
            audience: Text::default(),
            location: Text::cut(location),
            subject: Text::cut(&session.subject),
            name: Text::cut(&session.name),
            role: session.role,
            characters: List::default(),
            not_before: now,
            expires: now + SECONDS,
            nonce,
        };
        let mut tickets = self.lock();
        tickets.retain(|_, traveller| now < traveller.claims.expires);
        if tickets.len() >= TICKETS_MAX {
            return Err("too many are on their way");
        }
        let ticket = format!("travel-{:032x}", u128::from_be_bytes(secret));
        let session = session.session;
        tickets.insert(ticket.clone(), Traveller { claims, session });
        Ok(ticket)
    }

    /// Whose ticket this is, if it is one of these.
    pub(crate) fn find(&self, hello: &Hello) -> Option<Traveller> {
        let ticket = hello.ticket.as_ref().filter(|_| hello.resume.is_none())?;
        let traveller = self.lock().get(ticket.as_str())?.clone();
        let fits = traveller.claims.role == hello.role && unix_seconds() < traveller.claims.expires;
        fits.then_some(traveller)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Traveller>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
