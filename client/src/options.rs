//! What a client is to be: where, who, what it wants to receive, how patient it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use protocol::message::{Feed, Hello, Need, Role, View};
use sim::Definition;
use sim::bounded::{Text, TooLong};

use crate::lockstep::Simulation;
use crate::stream::Target;

/// Definitions kept by a [`Definitions`].
const DEFINITIONS_MAX: usize = 8;

/// How a client connects and what it wants.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host and port.
    pub address: String,
    /// Name and version of the program, at most 64 bytes.
    pub program: String,
    /// Which location; empty: the daemon's first.
    pub location: String,
    /// The player's name; empty with a ticket and for watchers.
    pub name: String,
    /// Speak TLS from the first byte; `None`: plain TCP.
    #[cfg(feature = "tls")]
    pub tls: Option<crate::Tls>,
    /// Where signed admissions come from, if the server wants one.
    pub ticket: Option<Tickets>,
    /// What it wants to command.
    pub role: Role,
    /// What it wants to receive.
    pub feed: Feed,
    /// What a State feed shows; `None`: all, every tick.
    pub view: Option<View>,
    /// Offer packed states, which take a third of the bytes of plain ones.
    pub packed_states: bool,
    /// Whether a lockstep client keeps a World.
    pub simulation: Simulation,
    /// Download the definition even where no World is kept.
    pub want_definition: bool,
    /// Definitions that are known already; clients that share this download each one once.
    pub definitions: Definitions,
    /// What happens when the connection is lost.
    pub reconnect: Reconnect,
    /// Go where a [`Redirect`](crate::ClientEvent::Redirect) says; else that is the end.
    pub follow_redirects: bool,
    /// Makes the waiting times of many clients differ.
    pub seed: u64,
}

impl Options {
    /// A player in lockstep who comes back when the connection is lost.
    pub fn new(address: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            program: concat!("lockstepd-client ", env!("CARGO_PKG_VERSION")).to_owned(),
            location: String::new(),
            name: name.into(),
            #[cfg(feature = "tls")]
            tls: None,
            ticket: None,
            role: Role::Player,
            feed: Feed::Lockstep,
            view: None,
            packed_states: true,
            simulation: Simulation::Run,
            want_definition: false,
            definitions: Definitions::default(),
            reconnect: Reconnect::default(),
            follow_redirects: true,
            seed: 0,
        }
    }

    /// The way to the daemon at `address`; empty: to the one that is named here.
    pub(crate) fn target(&self, address: &str) -> Target {
        let address = if address.is_empty() {
            &self.address
        } else {
            address
        };
        Target {
            address: address.to_owned(),
            #[cfg(feature = "tls")]
            tls: self.tls.clone(),
        }
    }

    /// The Hello without anything to resume, with a ticket if a session is to begin and there is one.
    pub(crate) fn hello(&self, begins: bool) -> Result<Hello, TooLong> {
        let mut hello = Hello::new(Text::new(&*self.program)?, Text::new(&*self.name)?);
        hello.location = Text::new(&*self.location)?;
        hello.ticket = self
            .ticket
            .as_ref()
            .filter(|_| begins)
            .map(Tickets::next)
            .map(Text::new)
            .transpose()?;
        hello.role = self.role;
        hello.feed = self.feed;
        hello.view = self.view;
        if !self.packed_states {
            hello.features &= !protocol::FEATURE_PACKED_STATES;
        }
        let needed =
            self.want_definition || (self.feed == Feed::Lockstep && self.simulation == Simulation::Run);
        hello.definition = match self.definitions.newest() {
            _ if !needed => Need::No,
            Some((hash, _)) => Need::Have(hash),
            None => Need::Send,
        };
        Ok(hello)
    }
}

/// Gives a ticket for each session that is asked for; one that was used admits nobody again.
#[derive(Clone)]
pub struct Tickets(Arc<dyn Fn() -> String + Send + Sync>);

impl Tickets {
    /// Asks for a new one each time.
    pub fn from_fn(next: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }

    /// There is only this one: enough for one session, however often it is resumed.
    pub fn one(ticket: impl Into<String>) -> Self {
        let ticket = ticket.into();
        Self::from_fn(move || ticket.clone())
    }

    /// The next one.
    pub fn next(&self) -> String {
        (self.0)()
    }
}

impl std::fmt::Debug for Tickets {
    /// Nothing of them: what is logged must not admit anybody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tickets")
    }
}

/// How to come back after the connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The first wait; each further one is twice as long, and up to half of it is added by chance.
    pub delay_min: Duration,
    /// The longest wait before chance.
    pub delay_max: Duration,
    /// Without a server that listens for so long: the end. `Duration::ZERO`: no second try. One that keeps the connection
    /// and says nothing has taken the Hello and listens.
    pub give_up_after: Duration,
    /// If the session cannot be resumed any more: join anew, as somebody new.
    pub rejoin: bool,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            delay_min: Duration::from_millis(100),
            delay_max: Duration::from_secs(2),
            give_up_after: Duration::from_secs(60),
            rejoin: false,
        }
    }
}

/// Definitions by their hash, shared by the clients of a program.
#[derive(Clone, Debug, Default)]
pub struct Definitions(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// With the number of its insertion.
    definitions: BTreeMap<[u8; 32], (u64, Definition)>,
    /// The bytes of some of them, for reports.
    bundles: BTreeMap<[u8; 32], Bytes>,
    inserted: u64,
}

impl Definitions {
    /// Keeps a definition; the oldest of too many is forgotten.
    pub fn insert(&self, hash: [u8; 32], definition: Definition) {
        let mut known = self.lock();
        known.inserted += 1;
        let number = known.inserted;
        known.definitions.insert(hash, (number, definition));
        if known.definitions.len() > DEFINITIONS_MAX {
            let oldest = known.definitions.iter().min_by_key(|(_, (number, _))| *number);
            if let Some(hash) = oldest.map(|(hash, _)| *hash) {
                known.definitions.remove(&hash);
                known.bundles.remove(&hash);
            }
        }
    }

    /// Keeps the bytes of a definition's bundle as well, if the definition is known: a desync report then holds them.
    pub fn insert_bundle(&self, hash: [u8; 32], bundle: Bytes) {
        let mut known = self.lock();
        if known.definitions.contains_key(&hash) {
            known.bundles.insert(hash, bundle);
        }
    }

    /// The bytes of the bundle with this hash.
    pub fn bundle(&self, hash: &[u8; 32]) -> Option<Bytes> {
        self.lock().bundles.get(hash).cloned()
    }

    /// The definition with this hash.
    pub fn get(&self, hash: &[u8; 32]) -> Option<Definition> {
        self.lock()
            .definitions
            .get(hash)
            .map(|(_, definition)| definition.clone())
    }

    /// The definition that was inserted last, and its hash.
    pub fn newest(&self) -> Option<([u8; 32], Definition)> {
        let known = self.lock();
        let newest = known.definitions.iter().max_by_key(|(_, (number, _))| *number);
        newest.map(|(hash, (_, definition))| (*hash, definition.clone()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        // Nothing that holds it can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
