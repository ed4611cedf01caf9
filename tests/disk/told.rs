//! What clients were told: as they heard it, or as the daemon's system calls have it.

use std::collections::BTreeMap;

use protocol::frame::{FRAME_BYTES_FROM_SERVER_MAX, FrameReader};
use protocol::{ServerMessage, Welcome, wire};

use super::journal::Journal;
use super::trace::Call;

/// What one client, or all of them, were told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) welcomes: Vec<Welcome>,
    /// Digest by tick.
    pub(crate) turns: BTreeMap<u64, u64>,
    /// Session and sequence → tick, index, outcome.
    pub(crate) accepted: BTreeMap<(u64, u64), (u64, u32, u16)>,
    /// Of those accepted: whose.
    session: u64,
}

/// What must not be lost of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// All of it: every setting after a kill, `tick` after a power loss.
    All,
    /// Admissions and accepted commands: `interval` after a power loss.
    Accepted,
    /// Nothing: `os` after a power loss.
    Nothing,
}

impl Told {
    /// Takes in a message to one client.
    pub(crate) fn hear(&mut self, message: &ServerMessage) {
        match message {
            ServerMessage::Welcome(welcome) => {
                self.session = welcome.session;
                self.welcomes.push((**welcome).clone());
            }
            ServerMessage::Turn(turn) => {
                self.turns.insert(turn.tick, turn.digest);
            }
            ServerMessage::Accepted {
                sequence,
                tick,
                index,
                outcome,
            } => {
                let known = self
                    .accepted
                    .insert((self.session, *sequence), (*tick, *index, outcome.0));
                assert_eq!(known, None, "sequence {sequence} was answered twice");
            }
            _ => {}
        }
    }

    /// What several clients were told.
    pub(crate) fn together(all: &[Self]) -> Self {
        let mut together = Self::default();
        for told in all {
            together.welcomes.extend(told.welcomes.iter().cloned());
            together.turns.extend(&told.turns);
            together.accepted.extend(&told.accepted);
        }
        together
    }

    /// What had begun to leave the daemon at this line of its log.
    pub(crate) fn until(sent: &[Sent], line: usize) -> Self {
        let mut clients: BTreeMap<&str, Self> = BTreeMap::new();
        for sent in sent.iter().filter(|sent| sent.start <= line) {
            clients.entry(&sent.connection).or_default().hear(&sent.message);
        }
        Self::together(&clients.into_values().collect::<Vec<_>>())
    }

    /// Asserts that the journal of a daemon that was started again has all that was promised.
    pub(crate) fn check(&self, journal: &Journal, promise: Promise) {
        if promise == Promise::Nothing {
            return;
        }
        for welcome in &self.welcomes {
            assert_eq!(welcome.run, journal.run, "another run than the clients'");
            let session = journal.sessions.get(&welcome.session);
            let session = session.unwrap_or_else(|| panic!("session {} is lost", welcome.session));
            assert_eq!(
                session.characters,
                welcome.characters.iter().map(|id| id.0).collect::<Vec<_>>()
            );
        }
        for ((session, sequence), answer) in &self.accepted {
            let recorded = journal.accepted.get(&(*session, *sequence));
            assert_eq!(
                recorded,
                Some(&vec![*answer]),
                "session {session}, sequence {sequence}"
            );
        }
        if promise == Promise::All {
            for (tick, digest) in &self.turns {
                let recorded = journal.turns.get(usize::try_from(*tick).expect("few ticks"));
                assert_eq!(recorded.map(|turn| turn.digest), Some(*digest), "tick {tick}");
            }
        }
    }
}

/// A message that left the daemon.
pub(crate) struct Sent {
    /// The line at which the call with its first byte was entered.
    pub(crate) start: usize,
    /// To whom.
    pub(crate) connection: String,
    pub(crate) message: ServerMessage,
}

/// All messages that left the daemon, in the order in which they did.
pub(crate) fn sent(calls: &[Call]) -> Vec<Sent> {
    let mut connections: BTreeMap<String, (FrameReader, usize)> = BTreeMap::new();
    let mut sent = Vec::new();
    for call in calls {
        let connection = call.described(0);
        // A call that a kill interrupted has sent what nobody can count; what came of it, the client has seen.
        if !connection.starts_with("TCP:") || !call.is_finished() {
            continue;
        }
        let (reader, begun) = connections
            .entry(connection.clone())
            .or_insert_with(|| (FrameReader::new(FRAME_BYTES_FROM_SERVER_MAX), 0));
        if !reader.is_inside_frame() {
            *begun = call.start;
        }
        reader.feed(&call.bytes());
        while let Some(payload) = reader.next_payload().expect("the daemon sends frames") {
            sent.push(Sent {
                start: *begun,
                connection: connection.clone(),
                message: wire::decode_server(&payload).expect("the daemon sends messages"),
            });
            *begun = call.start;
        }
    }
    sent.sort_by_key(|sent| sent.start);
    sent
}
