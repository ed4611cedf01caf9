//! Who is there: sessions, their names, tokens and connections, and how each comes and goes (spec 4.5).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::Code;
use protocol::message::{Resume, Role};
use protocol::ticket::Claims;
use sim::bounded::{List, Text};
use sim::{CharacterId, Name};

use super::ConnectionId;
use super::borrowed::Borrowed;
use super::inbox::Allowance;
use super::recent::Recent;
use super::sequences::{SEQUENCES_BEHIND_MAX, Sequences};
use super::state_feed::StateFeed;
use crate::journal::record::{self, Nonce, SUBJECT_BYTES_MAX, SessionState, token_hash};

/// What resumes a session.
pub(crate) type Token = [u8; 16];

/// How long a dropped session can be resumed, µs.
pub(crate) const GRACE_US: u64 = 30_000_000;
/// Sessions of a location, whatever the number of players allowed.
pub(crate) const SESSIONS_MAX: usize = 4_096;
/// Session numbers of one tick before they reach into the next: a number never means two sessions of a run, even if
/// the journal does not know the newest ones any more.
const NUMBERS_PER_TICK: u64 = 1_024;
/// Stands for the hash of a token where there is none: what has it cannot be found.
const NO_TOKEN: [u8; 32] = [0; 32];
/// So many commands refused for their rate …
const RATE_REFUSALS_MAX: usize = 100;
/// … in this time close the connection, µs.
const RATE_WINDOW_US: u64 = 10_000_000;
/// So many answers that were given before …
const REPEATS_MAX: usize = 512;
/// … in the turns of this time are all that are given again, seconds.
const REPEATS_WINDOW_SECONDS: u64 = 10;
/// A session can be resumed so often …
pub(crate) const RESUMES_MAX: usize = 20;
/// … in this time, µs.
const RESUMES_WINDOW_US: u64 = 10_000_000;
/// A queue dropped so often …
const DROPS_MAX: usize = 3;
/// … in this time is too slow, µs.
const DROPS_WINDOW_US: u64 = 60_000_000;

const _: () = assert!(SESSIONS_MAX <= record::SESSIONS_MAX);
// All that is remembered can be asked for on two connections in a row.
const _: () = assert!(REPEATS_MAX as u64 >= 2 * (SEQUENCES_BEHIND_MAX + 1));

/// Somebody with a name and a token, connected or not.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its number in the run.
    pub(crate) number: u64,
    /// Whom its ticket names; empty without one.
    pub(crate) subject: Text<SUBJECT_BYTES_MAX>,
    /// Of the ticket that it has shown last.
    nonce: Option<Nonce>,
    /// As it came.
    pub(crate) name: Name,
    /// What makes a name the same as another.
    folded: String,
    /// What it may command.
    pub(crate) role: Role,
    /// Its own characters.
    pub(crate) characters: Vec<CharacterId>,
    /// Those of them that were there before.
    pub(crate) borrowed: Vec<Borrowed>,
    token_hash: [u8; 32],
    /// Of the token before, until the client has shown that it knows the new one.
    old_token_hash: Option<[u8; 32]>,
    /// Its commands and their answers.
    pub(crate) sequences: Sequences,
    /// Whether and how somebody is connected.
    pub(crate) phase: Phase,
    /// A Welcome has been sent, on whichever connection: somebody may know a token and come back.
    pub(crate) welcomed: bool,
    /// It has said goodbye, and leaves once the commands that it sent before have run.
    pub(crate) parting: bool,
    rate_refusals: Recent,
    repeats: Recent,
    resumes: Recent,
}

/// How a session stands.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Its Join waits for its turn.
    Joining(Connection),
    /// Somebody is there.
    Connected(Connection),
    /// Nobody is there; until then its token brings it back.
    Grace {
        /// On the location's clock, µs.
        until_us: u64,
    },
    /// Nobody is there, its characters stand until the subject of its ticket comes again.
    Away,
    /// Its Leave waits for its turn; nobody can come back.
    Leaving,
}

/// The connection of a session.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Which.
    pub(crate) id: ConnectionId,
    /// The token that its Welcome brings.
    pub(crate) token: Token,
    /// The definition must be sent.
    pub(crate) needs_definition: bool,
    /// What it receives.
    pub(crate) feed: Feed,
    /// Where it comes from; goes into no journal.
    pub(crate) address: Option<IpAddr>,
    /// The feature bits that both sides know.
    pub(crate) features: u64,
    /// Its Welcome is on its way.
    pub(crate) welcomed: bool,
    /// Turns are on their way to it.
    pub(crate) following: bool,
    /// The tick of its last snapshot; digests for earlier ones say nothing.
    pub(crate) snapshot_tick: u64,
    /// It has been told that its digest differs, since its last snapshot.
    pub(crate) told_desync: bool,
    /// It has asked for a snapshot.
    pub(crate) wants_resync: bool,
    /// When it got one last, because it asked.
    pub(crate) resynced_us: Option<u64>,
    drops: Recent,
}

/// What a connection receives.
#[derive(Debug)]
pub(crate) enum Feed {
    /// Turns.
    Lockstep,
    /// States.
    State(Box<StateFeed>),
    /// Answers alone.
    Answers,
}

impl Connection {
    /// A new one that has received nothing yet.
    pub(crate) fn new(
        id: ConnectionId,
        token: Token,
        feed: Feed,
        features: u64,
        needs_definition: bool,
    ) -> Self {
        Self {
            id,
            token,
            needs_definition,
            feed,
            address: None,
            features,
            welcomed: false,
            following: false,
            snapshot_tick: 0,
            told_desync: false,
            wants_resync: false,
            resynced_us: None,
            drops: Recent::default(),
        }
    }

    /// Its queue was dropped; whether that was once too often.
    pub(crate) fn dropped(&mut self, now_us: u64) -> bool {
        self.drops.add(now_us, DROPS_WINDOW_US) >= DROPS_MAX
    }
}

impl Session {
    /// The connection, if somebody is there.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        match &self.phase {
            Phase::Joining(connection) | Phase::Connected(connection) => Some(connection),
            Phase::Grace { .. } | Phase::Away | Phase::Leaving => None,
        }
    }

    /// The connection, if somebody is there.
    pub(crate) fn connection_mut(&mut self) -> Option<&mut Connection> {
        match &mut self.phase {
            Phase::Joining(connection) | Phase::Connected(connection) => Some(connection),
            Phase::Grace { .. } | Phase::Away | Phase::Leaving => None,
        }
    }

    /// What it may have waiting and get into a turn.
    pub(crate) fn allowance(&self) -> Allowance {
        match self.role {
            Role::Admin => Allowance::Admin,
            Role::Player | Role::Bot | Role::Watcher => Allowance::Characters(self.characters.len()),
        }
    }

    /// A command was refused for its rate; whether that was once too often.
    pub(crate) fn rate_refused(&mut self, now_us: u64) -> bool {
        self.rate_refusals.add(now_us, RATE_WINDOW_US) >= RATE_REFUSALS_MAX
    }

    /// An answer is given again in front of turn `next_tick`; whether that is once too often. Turns are counted, not time:
    /// while the clock holds because of the disk, an answer may wait for it as long as it holds.
    pub(crate) fn repeats_too_often(&mut self, next_tick: u64, tick_rate: u16) -> bool {
        let window_ticks = REPEATS_WINDOW_SECONDS * u64::from(tick_rate);
        !self.repeats.add_below(REPEATS_MAX, next_tick, window_ticks)
    }

    /// Somebody comes back to it; whether that is not too often.
    pub(crate) fn may_resume(&mut self, now_us: u64) -> bool {
        self.resumes.add_below(RESUMES_MAX, now_us, RESUMES_WINDOW_US)
    }

    /// A new token; the one that was shown stays valid until [`Session::confirm`], so that a lost Welcome locks
    /// nobody out.
    pub(crate) fn rotate(&mut self, shown: &Token, token: &Token) {
        self.old_token_hash = Some(token_hash(shown));
        self.token_hash = token_hash(token);
    }

    /// The subject of its ticket has come with another one: a new token. The one before stays valid until
    /// [`Session::confirm`]; of two of which nobody has shown the newer one, the older.
    pub(crate) fn renew(&mut self, claims: &Claims, token: &Token) {
        self.nonce = Some(nonce(claims));
        self.old_token_hash.get_or_insert(self.token_hash);
        self.token_hash = token_hash(token);
    }

    /// From now on no token resumes it.
    pub(crate) fn end_tokens(&mut self) {
        self.old_token_hash = None;
        self.token_hash = NO_TOKEN;
    }

    /// The client speaks on its new connection, so it knows its new token. Returns whether that changed anything.
    pub(crate) fn confirm(&mut self) -> bool {
        self.old_token_hash.take().is_some()
    }

    /// For the journal.
    pub(crate) fn record(&self, state: SessionState) -> record::Session {
        record::Session {
            session: self.number,
            subject: self.subject.clone(),
            name: self.name.clone(),
            role: self.role,
            characters: List::new(self.characters.clone()).expect("a session has no more than a World"),
            token_hash: self.token_hash,
            old_token_hash: self.old_token_hash,
            nonce: self.nonce,
            state,
        }
    }

    fn knows(&self, token: &Token) -> bool {
        let shown = token_hash(token);
        let current = same(&shown, &self.token_hash);
        let old = self.old_token_hash.is_some_and(|hash| same(&shown, &hash));
        current | old
    }
}

/// All sessions of a location.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    sessions: BTreeMap<u64, Session>,
    connections: BTreeMap<ConnectionId, u64>,
    last_number: u64,
    numbers: SessionNumbers,
    /// Tickets that have opened a session, and when they expire; in the journal, too.
    nonces: BTreeMap<[u8; 16], u64>,
    /// The wall clock when somebody came with a ticket last.
    unix_seconds: u64,
}

impl Roster {
    /// The roster as a journal knows it: everybody is in the grace; if characters stay, but those who were away.
    pub(crate) fn recovered(
        sessions: Vec<record::Session>,
        answers: Vec<record::Answer>,
        nonces: Vec<Nonce>,
        last_number: u64,
        stays: bool,
        now_us: u64,
    ) -> Self {
        let mut roster = Self {
            last_number,
            nonces: nonces
                .into_iter()
                .map(|used| (used.nonce, used.expires))
                .collect(),
            ..Self::default()
        };
        for session in sessions {
            roster.last_number = roster.last_number.max(session.session);
            let session = Session {
                number: session.session,
                subject: session.subject,
                nonce: session.nonce,
                folded: folded(&session.name),
                name: session.name,
                role: session.role,
                characters: session.characters.into_vec(),
                borrowed: Vec::new(),
                token_hash: session.token_hash,
                old_token_hash: session.old_token_hash,
                sequences: Sequences::default(),
                phase: if session.token_hash == NO_TOKEN && stays {
                    Phase::Away
                } else {
                    Phase::Grace {
                        until_us: now_us + GRACE_US,
                    }
                },
                welcomed: true,
                parting: false,
                rate_refusals: Recent::default(),
                repeats: Recent::default(),
                resumes: Recent::default(),
            };
            roster.sessions.insert(session.number, session);
        }
        for answer in answers {
            if let Some(session) = roster.sessions.get_mut(&answer.session) {
                session.sequences.recover(&answer);
            }
        }
        roster
    }

    /// Whether nobody more of this role may be there. Those who are away have no place: their character stands, but they
    /// may never come back.
    pub(crate) fn is_full(&self, role: Role, players_max: usize) -> bool {
        let plays = |role: Role| matches!(role, Role::Player | Role::Bot);
        let there = |session: &&Session| {
            let gone = matches!(session.phase, Phase::Leaving | Phase::Away);
            plays(session.role) && !gone
        };
        plays(role) && self.sessions.values().filter(there).count() >= players_max
    }

    /// Whether a player or bot of this name may come.
    ///
    /// # Errors
    /// The code of the Reject.
    pub(crate) fn check_new(&self, name: &str, role: Role, players_max: usize) -> Result<(), Code> {
        let there = self
            .sessions
            .values()
            .filter(|session| !matches!(session.phase, Phase::Leaving));
        if self.is_full(role, players_max) || self.sessions.len() >= SESSIONS_MAX {
            return Err(Code::REJECT_FULL);
        }
        let folded = folded(name);
        if !name.is_empty() && there.into_iter().any(|session| session.folded == folded) {
            return Err(Code::REJECT_NAME_TAKEN);
        }
        Ok(())
    }

    /// Whether a ticket has opened a session and has not expired since, or is about to open one.
    pub(crate) fn is_used(&mut self, claims: &Claims, unix_seconds: u64) -> bool {
        self.unix_seconds = unix_seconds;
        let lasts = |expires: &u64| unix_seconds < *expires;
        let shown = |session: &Session| session.nonce.is_some_and(|used| used.nonce == claims.nonce);
        self.nonces.get(&claims.nonce).is_some_and(lasts) || self.sessions.values().any(shown)
    }

    /// Whether another ticket can be remembered.
    pub(crate) fn has_room_for_tickets(&self) -> bool {
        self.nonces.len() + SESSIONS_MAX < record::NONCES_MAX
    }

    /// A session with a ticket is in the journal now, and its ticket with it.
    pub(crate) fn ticket_recorded(&mut self, number: u64) {
        if let Some(used) = self.sessions.get(&number).and_then(|session| session.nonce) {
            self.nonces.insert(used.nonce, used.expires);
        }
    }

    /// The tickets that were used, for the journal; those that have expired are forgotten.
    pub(crate) fn nonces(&mut self) -> Vec<Nonce> {
        self.nonces.retain(|_, expires| self.unix_seconds < *expires);
        let nonces = self.nonces.iter();
        nonces
            .map(|(&nonce, &expires)| Nonce { nonce, expires })
            .collect()
    }

    /// The session of a ticket's subject in this role that has not been sent away.
    pub(crate) fn of_subject(&self, subject: &str, role: Role) -> Option<&Session> {
        self.sessions.values().find(|session| {
            let there = !matches!(session.phase, Phase::Leaving);
            there && session.role == role && *session.subject == *subject && !subject.is_empty()
        })
    }

    /// Whether some session commands this character.
    pub(crate) fn is_commanded(&self, character: CharacterId) -> bool {
        let mut sessions = self.sessions.values();
        sessions.any(|session| session.characters.contains(&character))
    }

    /// From now on new sessions get numbers that no other location gives; those that are there have theirs.
    pub(crate) fn share_numbers(&mut self, numbers: SessionNumbers) {
        numbers.used(self.last_number);
        self.numbers = numbers;
    }

    /// Whether nobody is there, nobody's grace runs and nobody is leaving.
    pub(crate) fn is_empty(&self) -> bool {
        let mut sessions = self.sessions.values();
        sessions.all(|session| matches!(session.phase, Phase::Away))
    }

    /// Adds a session, with the number that it brings or a new one; returns its number.
    pub(crate) fn open(
        &mut self,
        travels: Option<u64>,
        name: Name,
        role: Role,
        claims: Option<&Claims>,
        connection: Connection,
        next_tick: u64,
    ) -> u64 {
        let floor = (self.last_number + 1).max(next_tick * NUMBERS_PER_TICK + 1);
        let number = travels.unwrap_or_else(|| self.numbers.next(floor));
        self.last_number = self.last_number.max(number);
        self.connections.insert(connection.id, number);
        let session = Session {
            number,
            subject: claims.map_or_else(Text::default, |claims| Text::cut(&claims.subject)),
            nonce: claims.map(nonce),
            folded: folded(&name),
            name,
            role,
            characters: Vec::new(),
            borrowed: Vec::new(),
            token_hash: token_hash(&connection.token),
            old_token_hash: None,
            sequences: Sequences::default(),
            phase: Phase::Joining(connection),
            welcomed: false,
            parting: false,
            rate_refusals: Recent::default(),
            repeats: Recent::default(),
            resumes: Recent::default(),
        };
        self.sessions.insert(number, session);
        number
    }

    /// The session that a client wants back, if its token says that it is its own and nobody sent it away.
    pub(crate) fn resumable(&self, resume: &Resume, role: Role) -> Option<u64> {
        let session = self.sessions.get(&resume.session)?;
        let there = matches!(session.phase, Phase::Connected(_) | Phase::Grace { .. }) && !session.parting;
        (session.knows(&resume.token) && there && session.role == role).then_some(session.number)
    }

    /// Gives a session a new connection; returns the one that it had.
    pub(crate) fn connect(&mut self, number: u64, connection: Connection) -> Option<Connection> {
        let session = self.sessions.get_mut(&number)?;
        self.connections.insert(connection.id, number);
        match std::mem::replace(&mut session.phase, Phase::Connected(connection)) {
            Phase::Joining(replaced) | Phase::Connected(replaced) => {
                self.connections.remove(&replaced.id);
                Some(replaced)
            }
            Phase::Grace { .. } | Phase::Away | Phase::Leaving => None,
        }
    }

    /// A session's connection is no more: from now on it is in this phase.
    pub(crate) fn disconnect(&mut self, number: u64, phase: Phase) -> Option<ConnectionId> {
        let session = self.sessions.get_mut(&number)?;
        let connection = session.connection().map(|connection| connection.id);
        session.phase = phase;
        if let Some(connection) = connection {
            self.connections.remove(&connection);
        }
        connection
    }

    /// Removes a session.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Session> {
        let session = self.sessions.remove(&number)?;
        if let Some(connection) = session.connection() {
            self.connections.remove(&connection.id);
        }
        Some(session)
    }

    /// The session of a connection; none if a newer connection has replaced it, or if it has ended.
    pub(crate) fn of(&mut self, connection: ConnectionId) -> Option<&mut Session> {
        let number = self.connections.get(&connection)?;
        self.sessions.get_mut(number)
    }

    /// The session of this number.
    pub(crate) fn get(&self, number: u64) -> Option<&Session> {
        self.sessions.get(&number)
    }

    /// The session of this number.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Session> {
        self.sessions.get_mut(&number)
    }

    /// All sessions, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values()
    }

    /// All sessions, in the order of their numbers.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.sessions.values_mut()
    }

    /// Nobody could come back for so long, so every grace is longer by that.
    pub(crate) fn extend_graces(&mut self, by_us: u64) {
        for session in self.sessions.values_mut() {
            if let Phase::Grace { until_us } = &mut session.phase {
                *until_us += by_us;
            }
        }
    }

    /// Those whose grace is over.
    pub(crate) fn overdue(&self, now_us: u64) -> Vec<u64> {
        let overdue =
            |session: &&Session| matches!(session.phase, Phase::Grace { until_us } if until_us <= now_us);
        self.sessions
            .values()
            .filter(overdue)
            .map(|session| session.number)
            .collect()
    }
}

/// Numbers of sessions that the locations of a daemon share: whoever travels keeps their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionNumbers(Arc<AtomicU64>);

impl SessionNumbers {
    /// A number that nobody has, not below `floor`.
    fn next(&self, floor: u64) -> u64 {
        let next = |last: u64| (last + 1).max(floor);
        let before = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        before.map_or(floor, next)
    }

    /// All up to this one may be somebody's.
    fn used(&self, number: u64) {
        self.0.fetch_max(number, Ordering::Relaxed);
    }
}

fn nonce(claims: &Claims) -> Nonce {
    Nonce {
        nonce: claims.nonce,
        expires: claims.expires,
    }
}

/// Two names are the same person's if this is equal.
pub(crate) fn folded(name: &str) -> String {
    caseless::default_case_fold_str(name)
}

/// Compares two hashes in a time that does not depend on where they differ.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    // BLAKE3's own comparison is a constant-time one.
    blake3::Hash::from_bytes(*a) == blake3::Hash::from_bytes(*b)
}
