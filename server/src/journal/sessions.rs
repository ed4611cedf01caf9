//! Who is there, as the records tell it: sessions, what they were answered, and the tickets that were used.

use std::collections::{BTreeMap, VecDeque};

use protocol::Origin;
use sim::{CharacterId, Kind, World};

use super::record::{ANSWERS_PER_SESSION_MAX, Answer, Nonce, Record, Session, SessionState, Sessions, Turn};

/// Follows the records from a keyframe on.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    open: BTreeMap<u64, Session>,
    answers: BTreeMap<u64, VecDeque<Answer>>,
    /// When each expires.
    nonces: BTreeMap<[u8; 16], u64>,
    last_session: u64,
    /// Those that ended after the last turn: nothing of what their end was to change has run.
    just_ended: Vec<Session>,
}

/// What a World and its sessions do not agree on: a kill between two records leaves one without the other (spec 5.7).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Strays {
    /// Players whom no open session commands.
    pub(crate) leave: Vec<CharacterId>,
    /// Sessions whose characters are gone.
    pub(crate) ended: Vec<u64>,
}

impl SessionTable {
    /// Takes in one record.
    pub(crate) fn follow(&mut self, record: &Record) {
        match record {
            Record::Sessions(sessions) => self.replace(sessions),
            Record::Session(session) => self.change(session),
            Record::Turn(turn) => {
                self.just_ended.clear();
                self.answer(turn);
            }
            _ => {}
        }
    }

    /// Open sessions in the order of their numbers, their answers (older ones first), nonces.
    pub(crate) fn into_parts(mut self) -> (Vec<Session>, Vec<Answer>, Vec<Nonce>) {
        let open = &self.open;
        self.answers.retain(|session, _| open.contains_key(session));
        let answers = self.answers.into_values().flatten().collect();
        let nonces = self.nonces.into_iter();
        let nonces = nonces.map(|(nonce, expires)| Nonce { nonce, expires }).collect();
        (self.open.into_values().collect(), answers, nonces)
    }

    /// The largest number that a session had.
    pub(crate) fn last_session(&self) -> u64 {
        self.last_session
    }

    /// Ends sessions without a character, and finds players without a session.
    pub(crate) fn settle(&mut self, world: &World) -> Strays {
        let is_there = |id: &CharacterId| world.character(*id).is_some();
        let characters = |session: &Session| session.characters.iter().any(is_there);
        let gone = |session: &&Session| !session.characters.is_empty() && !characters(session);
        let ended: Vec<u64> = self
            .open
            .values()
            .filter(gone)
            .map(|session| session.session)
            .collect();
        for session in &ended {
            self.open.remove(session);
        }
        let mut commanded: Vec<CharacterId> = Vec::new();
        for session in self.open.values() {
            commanded.extend(session.characters.iter());
        }
        commanded.sort_unstable();
        let players = world
            .characters()
            .iter()
            .filter(|character| character.kind == Kind::Player);
        let leave = players
            .map(|player| player.id)
            .filter(|id| commanded.binary_search(id).is_err())
            .collect();
        Strays { leave, ended }
    }

    /// Characters that were there before the session that commands them, or commanded them until after the last turn.
    pub(crate) fn borrowed(&self, world: &World) -> Vec<(u64, CharacterId)> {
        let borrowed = |id: &CharacterId| {
            world
                .character(*id)
                .is_some_and(|there| there.kind != Kind::Player)
        };
        let sessions = self.open.values().chain(&self.just_ended);
        sessions
            .flat_map(|session| session.characters.iter().map(|id| (session.session, *id)))
            .filter(|(_, id)| borrowed(id))
            .collect()
    }

    fn replace(&mut self, sessions: &Sessions) {
        self.open.clear();
        self.answers.clear();
        self.nonces = sessions
            .nonces
            .iter()
            .map(|nonce| (nonce.nonce, nonce.expires))
            .collect();
        for session in sessions.sessions.iter() {
            self.change(session);
        }
        for answer in sessions.answers.iter() {
            self.remember(*answer);
        }
    }

    fn change(&mut self, session: &Session) {
        self.last_session = self.last_session.max(session.session);
        if let Some(nonce) = session.nonce {
            self.nonces.insert(nonce.nonce, nonce.expires);
        }
        match session.state {
            SessionState::Open => drop(self.open.insert(session.session, session.clone())),
            SessionState::Ended => {
                self.just_ended.push(session.clone());
                self.open.remove(&session.session);
                self.answers.remove(&session.session);
            }
        }
    }

    fn answer(&mut self, turn: &Turn) {
        for (index, origin) in (0..).zip(turn.origins.iter()) {
            if let Origin::Session {
                session,
                sequence,
                outcome,
            } = *origin
            {
                self.remember(Answer {
                    session,
                    sequence,
                    tick: turn.tick,
                    index,
                    outcome,
                });
            }
        }
    }

    fn remember(&mut self, answer: Answer) {
        let answers = self.answers.entry(answer.session).or_default();
        if answers.len() == ANSWERS_PER_SESSION_MAX {
            answers.pop_front();
        }
        answers.push_back(answer);
    }
}
