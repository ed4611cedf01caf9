//! A session without IO: messages and the time go in, messages and events come out. It outlives connections.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use protocol::Code;
use protocol::message::{
    ClientMessage, Desync, Feed, Hello, Need, Part, Resume, ServerMessage, Short, View, Welcome,
};
use protocol::ticket::Claims;
use sim::bounded::{Text, TooLong};
use sim::{CharacterId, Command, Definition};
use tokio::time::Instant;

use crate::commands::{Commands, TooManyCommands};
use crate::download::{Download, DownloadError};
use crate::event::{Answer, ClientEvent};
use crate::lockstep::{Lockstep, LockstepError, Progress, Simulation};
use crate::observer::{Observer, ObserverError, Tally};
use crate::options::Options;
use crate::parted;

/// A server takes one `Resync` in this time (spec 4.3).
const RESYNC_PERIOD: Duration = Duration::from_millis(2_100);

/// Why a session cannot go on: what the server sent cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The World cannot be kept.
    #[error(transparent)]
    Lockstep(#[from] LockstepError),
    /// What came is not the location's definition.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The table of characters cannot be kept.
    #[error(transparent)]
    Observer(#[from] ObserverError),
    /// A message that does not belong to this feed or state.
    #[error("the server sent a {0} where none belongs")]
    Unexpected(&'static str),
}

/// One session of a client.
#[derive(Debug)]
pub(crate) struct Session {
    options: Options,
    identity: Option<Identity>,
    /// Where it is to go, once the connection is closed.
    redirect: Option<Place>,
    /// Where it is, if it has been sent there; else where the options say.
    place: Option<Place>,
    /// Where its ticket is for. Who names no location begins there, and has to name it to come back.
    ticket_location: Option<Short>,
    characters: Vec<CharacterId>,
    follower: Follower,
    /// The definition of the location to which it was welcomed last.
    download: Option<Download>,
    /// What the followers of earlier connections were told.
    observed: Tally,
    commands: Commands,
    /// Commands are sent at once from Welcome on; before, they wait.
    welcomed: bool,
    resynced_at: Option<Instant>,
    ping: Option<(u64, Instant)>,
    pings: u64,
    events: VecDeque<ClientEvent>,
    outgoing: VecDeque<ClientMessage>,
}

/// What resumes a session.
#[derive(Clone, Copy, Debug)]
struct Identity {
    session: u64,
    token: [u8; 16],
    run: [u8; 16],
}

/// A place to which a client has been sent.
#[derive(Clone)]
struct Place {
    location: String,
    /// Empty: the daemon of the options.
    address: String,
    /// Until it has admitted.
    ticket: Option<String>,
}

impl std::fmt::Debug for Place {
    /// Without the ticket.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {:?}", self.location, self.address)
    }
}

/// How the feed is followed.
#[derive(Debug)]
enum Follower {
    /// Nothing is followed, or nobody was welcomed yet.
    Nothing,
    Lockstep(Box<Lockstep>),
    Observer(Box<Observer>),
}

impl Session {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            identity: None,
            redirect: None,
            place: None,
            ticket_location: None,
            characters: Vec::new(),
            follower: Follower::Nothing,
            download: None,
            observed: Tally::default(),
            commands: Commands::new(),
            welcomed: false,
            resynced_at: None,
            ping: None,
            pings: 0,
            events: VecDeque::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// What to begin a connection with.
    pub(crate) fn hello(&mut self) -> Result<Hello, TooLong> {
        // The token brings a session back; a ticket was for its beginning.
        let begins = self.identity.is_none();
        let mut hello = self.options.hello(begins && self.place.is_none())?;
        if begins {
            let claims = hello.ticket.as_deref().map(Claims::unverified);
            self.ticket_location = claims.and_then(Result::ok).map(|claims| claims.location);
        } else if hello.location.is_empty() {
            hello.location = self.ticket_location.clone().unwrap_or_default();
        }
        if let Some(place) = &self.place {
            hello.location = Text::new(&*place.location)?;
            if begins {
                // The ticket says who comes.
                hello.name = Text::default();
                hello.ticket = place.ticket.as_deref().map(Text::new).transpose()?;
            }
        }
        hello.resume = self.identity.map(|identity| {
            // Where the position or its digest is not known, one that cannot be right brings a snapshot.
            let (next_tick, digest) = match self.lockstep().and_then(Lockstep::position) {
                Some((next_tick, Some(digest))) => (next_tick, digest),
                _ => (0, 0),
            };
            Resume {
                session: identity.session,
                token: identity.token,
                run: identity.run,
                next_tick,
                digest,
            }
        });
        if let (Need::Have(_) | Need::Send, Some(hash)) = (hello.definition, self.known_definition()) {
            hello.definition = Need::Have(hash);
        }
        Ok(hello)
    }

    /// There is a session that can be resumed.
    pub(crate) fn is_known(&self) -> bool {
        self.identity.is_some()
    }

    /// Admitted, for the first time or again: commands without an answer go out again, in their order.
    /// Whether it is the session that it was.
    pub(crate) fn welcome(&mut self, welcome: &Welcome) -> Result<bool, SessionError> {
        let resumed = self
            .identity
            .is_some_and(|identity| identity.session == welcome.session && identity.run == welcome.run);
        if self.identity.is_some() && !resumed {
            self.lose(Code::REJECT_RESUME_INVALID);
        }
        self.identity = Some(Identity {
            session: welcome.session,
            token: welcome.token,
            run: welcome.run,
        });
        if let Some(place) = &mut self.place {
            place.ticket = None;
        }
        self.characters = welcome.characters.to_vec();
        self.commands.skip_to(welcome.last_sequence);
        self.outgoing.clear();
        self.welcomed = true;
        self.ping = None;
        self.resynced_at = None;
        match (&mut self.follower, self.options.feed) {
            (Follower::Lockstep(lockstep), Feed::Lockstep) => lockstep.resumed(welcome)?,
            (_, Feed::Lockstep) => {
                let lockstep = Lockstep::new(welcome, self.options.simulation, None)?;
                self.follower = Follower::Lockstep(Box::new(lockstep));
            }
            (_, Feed::State) => {
                self.observed = self.observed();
                self.follower = Follower::Observer(Box::default());
            }
            (_, Feed::Answers) => self.follower = Follower::Nothing,
        }
        self.download = Some(Download::new(welcome));
        if let Some(definition) = self.definition() {
            let bundle = self.options.definitions.bundle(&welcome.definition);
            self.define(welcome.definition, definition, bundle)?;
        }
        self.events.push_back(ClientEvent::Joined {
            resumed,
            characters: self.characters.clone(),
            next_tick: welcome.next_tick,
            tick_rate: welcome.tick_rate,
        });
        self.outgoing.extend(self.commands.messages(0));
        Ok(resumed)
    }

    /// The connection is gone.
    pub(crate) fn disconnected(&mut self) {
        self.welcomed = false;
        self.outgoing.clear();
        if let Follower::Lockstep(lockstep) = &mut self.follower {
            lockstep.disconnected();
        }
    }

    /// The session is over; the next Hello asks for a new one.
    pub(crate) fn lose(&mut self, code: Code) {
        self.identity = None;
        self.place = None;
        self.observed = self.observed();
        self.follower = Follower::Nothing;
        self.download = None;
        self.characters.clear();
        self.events.push_back(ClientEvent::SessionLost {
            code,
            unanswered: self.commands.give_up(),
        });
    }

    /// The connection is closed because the session goes on elsewhere: the next Hello asks for it there. Whether the
    /// server has said where, and the options let it go.
    pub(crate) fn travel(&mut self) -> bool {
        let Some(place) = self.redirect.take().filter(|_| self.options.follow_redirects) else {
            return false;
        };
        self.place = Some(place);
        self.identity = None;
        self.observed = self.observed();
        self.follower = Follower::Nothing;
        self.download = None;
        self.characters.clear();
        self.events.push_back(ClientEvent::Moving {
            unanswered: self.commands.give_up(),
        });
        true
    }

    /// Where to connect to; empty: where the options say.
    pub(crate) fn address(&self) -> &str {
        self.place.as_ref().map_or("", |place| &place.address)
    }

    /// It is on the way to another place and has not been let in there.
    pub(crate) fn travels(&self) -> bool {
        self.identity.is_none() && self.place.is_some()
    }

    /// Its number at the server.
    pub(crate) fn number(&self) -> Option<u64> {
        self.identity.map(|identity| identity.session)
    }

    /// A message has come.
    pub(crate) fn receive(&mut self, message: ServerMessage, now: Instant) -> Result<(), SessionError> {
        match message {
            ServerMessage::Definition { part, parts, bytes } => self.definition_part(part, parts, &bytes)?,
            ServerMessage::Snapshot {
                tick,
                part,
                parts,
                bytes,
            } => self
                .following("Snapshot")?
                .snapshot_part(tick, part, parts, &bytes)?,
            ServerMessage::Turn(turn) => self.following("Turn")?.turn(turn)?,
            ServerMessage::Desync(desync) => self.desync(&desync)?,
            ServerMessage::State(state) => {
                self.watching("State")?.apply(&state)?;
                self.events.push_back(ClientEvent::Observed { tick: state.tick });
            }
            ServerMessage::PackedState(state) => {
                self.watching("PackedState")?.apply_packed(&state)?;
                self.events.push_back(ClientEvent::Observed { tick: state.tick });
            }
            ServerMessage::Event { tick, event } => {
                self.events.push_back(ClientEvent::Happened { tick, event })
            }
            ServerMessage::Accepted {
                sequence,
                tick,
                index,
                outcome,
            } => self.answer(sequence, Answer::Accepted { tick, index, outcome }, now),
            ServerMessage::Refused {
                sequence,
                code,
                message,
            } => {
                let message = message.to_string();
                self.answer(sequence, Answer::Refused { code, message }, now);
            }
            ServerMessage::Clock {
                base_tick,
                base_us,
                state,
            } => self.events.push_back(ClientEvent::Clock {
                base_tick,
                base_us,
                state,
            }),
            ServerMessage::Pong { nonce, server_us } => {
                if let Some((_, sent)) = self.ping.take_if(|(number, _)| *number == nonce) {
                    self.events.push_back(ClientEvent::Pong {
                        round_trip: now.saturating_duration_since(sent),
                        server_us,
                    });
                }
            }
            ServerMessage::Notice { text } => self.events.push_back(ClientEvent::Notice {
                text: text.to_string(),
            }),
            ServerMessage::Draining { code, deadline_ms } => self.events.push_back(ClientEvent::Draining {
                code,
                deadline: Duration::from_millis(deadline_ms.into()),
            }),
            ServerMessage::Redirect {
                location,
                address,
                ticket,
            } => {
                self.redirect = Some(Place {
                    location: location.to_string(),
                    address: address.to_string(),
                    ticket: Some(ticket.to_string()),
                });
                self.events.push_back(ClientEvent::Redirect {
                    location: location.to_string(),
                    address: address.to_string(),
                    ticket: ticket.to_string(),
                });
            }
            ServerMessage::Welcome(_) => return Err(SessionError::Unexpected("Welcome")),
            ServerMessage::Reject { .. } => return Err(SessionError::Unexpected("Reject")),
            ServerMessage::Close { .. } => return Err(SessionError::Unexpected("Close")),
        }
        Ok(())
    }

    /// Something about the connection, after what is to be told already.
    pub(crate) fn tell(&mut self, event: ClientEvent) {
        self.events.push_back(event);
    }

    /// Something that is to be told again.
    pub(crate) fn tell_first(&mut self, event: ClientEvent) {
        self.events.push_front(event);
    }

    /// What is to be told already.
    pub(crate) fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// The next thing to tell; runs at most one step.
    pub(crate) fn poll(&mut self, now: Instant) -> Result<Option<ClientEvent>, SessionError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        let Follower::Lockstep(lockstep) = &mut self.follower else {
            return Ok(None);
        };
        let progress = lockstep.poll()?;
        let needs_resync = lockstep.needs_resync();
        // A digest that differs goes before the Resync: it tells the server at which step the Worlds parted.
        if let Some(
            Progress::Stepped { tick, digest, .. }
            | Progress::Desynced {
                tick,
                computed: digest,
                ..
            },
        ) = progress
            && self.welcomed
            && self.options.simulation == Simulation::Run
        {
            self.outgoing.push_back(ClientMessage::Digest { tick, digest });
        }
        let resync_allowed = self.resynced_at.is_none_or(|at| now >= at + RESYNC_PERIOD);
        if self.welcomed && needs_resync && resync_allowed {
            self.resynced_at = Some(now);
            self.outgoing.push_back(ClientMessage::Resync);
        }
        let Some(progress) = progress else {
            return Ok(None);
        };
        Ok(Some(match progress {
            Progress::Loaded { tick } => ClientEvent::Loaded { tick },
            Progress::Stepped {
                tick,
                digest,
                commands,
                events,
            } => ClientEvent::Stepped {
                tick,
                digest,
                commands,
                events,
            },
            Progress::Desynced {
                tick,
                expected,
                computed,
            } => ClientEvent::Desynced {
                tick,
                expected,
                computed,
            },
            Progress::OutOfOrder { expected, found } => ClientEvent::OutOfOrder { expected, found },
        }))
    }

    /// The next message to send.
    pub(crate) fn next_outgoing(&mut self) -> Option<ClientMessage> {
        self.outgoing.pop_front()
    }

    /// Gives a command its sequence; it goes out now, or with the next Welcome.
    pub(crate) fn command(
        &mut self,
        command: Command,
        at_tick: Option<u64>,
        now: Instant,
    ) -> Result<u64, TooManyCommands> {
        let sequence = self.commands.give(command, at_tick, now)?;
        if self.welcomed {
            self.outgoing.extend(self.commands.messages(sequence));
        }
        Ok(sequence)
    }

    /// Shows something else from now on.
    pub(crate) fn set_view(&mut self, view: View) {
        self.options.view = Some(view);
        if self.welcomed {
            self.outgoing.push_back(ClientMessage::SetView { view });
        }
    }

    /// Asks for a sign of life; the answer measures the way there and back.
    pub(crate) fn ping(&mut self, now: Instant) {
        self.pings += 1;
        self.ping = Some((self.pings, now));
        self.outgoing.push_back(ClientMessage::Ping { nonce: self.pings });
    }

    /// Leaves for good.
    pub(crate) fn goodbye(&mut self) {
        if self.welcomed {
            self.outgoing.push_back(ClientMessage::Goodbye);
        }
    }

    /// Out of step and waiting for its turn to ask again: when to look next.
    pub(crate) fn resync_at(&self) -> Option<Instant> {
        let waits = self.lockstep().is_some_and(Lockstep::needs_resync);
        self.resynced_at.filter(|_| waits).map(|at| at + RESYNC_PERIOD)
    }

    pub(crate) fn unanswered(&self) -> usize {
        self.commands.waiting()
    }

    /// What a State feed told, over all connections.
    pub(crate) fn observed(&self) -> Tally {
        let now = self.observer().map(Observer::tally).unwrap_or_default();
        self.observed + now
    }

    pub(crate) fn characters(&self) -> &[CharacterId] {
        &self.characters
    }

    pub(crate) fn lockstep(&self) -> Option<&Lockstep> {
        match &self.follower {
            Follower::Lockstep(lockstep) => Some(lockstep),
            _ => None,
        }
    }

    /// The definition of its location, if it is known.
    pub(crate) fn definition(&self) -> Option<Definition> {
        let download = self.download.as_ref()?;
        self.options.definitions.get(download.hash())
    }

    /// The hash of the one that need not be sent again.
    fn known_definition(&self) -> Option<[u8; 32]> {
        let held = self.lockstep().and_then(Lockstep::definition);
        let held = held.map(|(hash, _)| *hash);
        held.or_else(|| {
            let download = self.download.as_ref()?;
            self.definition().map(|_| *download.hash())
        })
    }

    pub(crate) fn observer(&self) -> Option<&Observer> {
        match &self.follower {
            Follower::Observer(observer) => Some(observer),
            _ => None,
        }
    }

    fn following(&mut self, what: &'static str) -> Result<&mut Lockstep, SessionError> {
        match &mut self.follower {
            Follower::Lockstep(lockstep) => Ok(lockstep),
            _ => Err(SessionError::Unexpected(what)),
        }
    }

    fn watching(&mut self, what: &'static str) -> Result<&mut Observer, SessionError> {
        match &mut self.follower {
            Follower::Observer(observer) => Ok(observer),
            _ => Err(SessionError::Unexpected(what)),
        }
    }

    fn definition_part(&mut self, part: u32, parts: u32, bytes: &Part) -> Result<(), SessionError> {
        let download = self
            .download
            .as_mut()
            .ok_or(SessionError::Unexpected("Definition"))?;
        let Some(whole) = download.part(part, parts, bytes)? else {
            return Ok(());
        };
        let known = &self.options.definitions;
        known.insert(whole.hash, whole.definition.clone());
        known.insert_bundle(whole.hash, whole.bundle.clone());
        self.define(whole.hash, whole.definition, Some(whole.bundle))
    }

    /// The location's definition is there: a World waits for it, if one is kept.
    fn define(
        &mut self,
        hash: [u8; 32],
        definition: Definition,
        bundle: Option<Bytes>,
    ) -> Result<(), SessionError> {
        if let Follower::Lockstep(lockstep) = &mut self.follower
            && lockstep.definition().is_none()
        {
            lockstep.define(hash, definition)?;
            if let Some(bundle) = bundle {
                lockstep.set_bundle(bundle);
            }
        }
        Ok(())
    }

    /// The server says that this World differs.
    fn desync(&mut self, desync: &Desync) -> Result<(), SessionError> {
        let tick = desync.tick;
        let lockstep = self.following("Desync")?;
        let difference = lockstep.desynced(desync);
        if desync.want_report {
            let report = lockstep.report_messages(tick);
            self.outgoing.extend(report);
        }
        match difference {
            Some(difference) => self.events.push_back(ClientEvent::Different(difference)),
            None if parted::explains(desync) => {}
            None => self.events.push_back(ClientEvent::Unexplained { tick }),
        }
        Ok(())
    }

    fn answer(&mut self, sequence: u64, answer: Answer, now: Instant) {
        let told = self.commands.answered(sequence, answer, now);
        self.events.push_back(told);
    }
}
