//! Characters that were there before the Bot that commands them: they stand while it is there, and do again what they did when
//! it leaves (spec 4.3). Whoever else changes their behaviour meanwhile has the last word.

use protocol::Code;
use sim::{Behaviour, CharacterId, Command, World};

use super::Location;
use super::inbox::Source;
use super::roster::Session;
use crate::journal::borrowed::Borrowed as Recovered;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// Whom.
    pub(crate) character: CharacterId,
    /// What it is to do again; `None`: somebody has decided since.
    behaviour: Option<Behaviour>,
    /// It has been made to stand for this session.
    stands: bool,
}

impl Borrowed {
    /// From now on; until then it did this.
    pub(crate) fn new(character: CharacterId, behaviour: Behaviour) -> Self {
        Self {
            character,
            behaviour: Some(behaviour),
            stands: false,
        }
    }

    /// With what it does again what it did.
    pub(crate) fn give_back(self) -> Option<Command> {
        let Self {
            character, behaviour, ..
        } = self;
        behaviour.map(|behaviour| Command::SetBehaviour { character, behaviour })
    }
}

impl Location {
    /// After a start: what the journal knows of those that were commanded at its end.
    pub(super) fn recover_borrowed(&mut self, recovered: Vec<Recovered>) {
        let mut first: Option<World> = None;
        for Recovered {
            session: number,
            character,
            behaviour,
        } in recovered
        {
            let Some(there) = self.world.character(character) else {
                continue;
            };
            let stands = there.behaviour == Behaviour::Idle;
            // Killed before it was made to stand, or so long ago that the journal does not say any more.
            let begins = behaviour.is_none() && !stands;
            let behaviour = match behaviour {
                Some(_) if !stands => None,
                None if !stands => Some(there.behaviour.clone()),
                None => {
                    let first = first.get_or_insert_with(|| World::new(self.world.definition()));
                    let defined = first.character(character);
                    Some(
                        defined
                            .map(|defined| defined.behaviour.clone())
                            .unwrap_or_default(),
                    )
                }
                known => known,
            };
            let borrowed = Borrowed {
                character,
                behaviour,
                stands: !begins,
            };
            match self.roster.get_mut(number) {
                Some(session) => {
                    session.borrowed.push(borrowed);
                    if begins {
                        self.make_stand(number, character);
                    }
                }
                // It left in the last moment.
                None if stands => {
                    let commands = borrowed.give_back();
                    commands
                        .into_iter()
                        .for_each(|command| self.inbox.push_roster(0, command));
                }
                None => {}
            }
        }
    }

    /// A character stands from the next turn on.
    pub(super) fn make_stand(&mut self, session: u64, character: CharacterId) {
        let behaviour = Behaviour::Idle;
        let command = Command::SetBehaviour { character, behaviour };
        self.inbox.push_roster(session, command);
    }

    /// A turn has run: those who were made to stand do, and what others decided holds.
    pub(super) fn follow_borrowed(&mut self, commands: &[Command], sources: &[Source], outcomes: &[Code]) {
        self.giving_back.clear();
        for ((command, source), &outcome) in commands.iter().zip(sources).zip(outcomes) {
            let (whose, set) = match command {
                Command::SetBehaviour { character, behaviour } => (*character, Some(behaviour)),
                Command::Despawn { character } => (*character, None),
                _ => continue,
            };
            if outcome != Code::APPLIED {
                continue;
            }
            for session in self.roster.iter_mut() {
                let own = *source
                    == Source::Roster {
                        session: session.number,
                    };
                for borrowed in session.borrowed.iter_mut().filter(|one| one.character == whose) {
                    if own {
                        borrowed.stands = true;
                    } else {
                        // Before it stood, so it stands now, and that is what it did.
                        borrowed.behaviour = set.filter(|_| !borrowed.stands).cloned();
                    }
                }
            }
        }
    }
}

impl Session {
    /// Whether its characters were there before it, and stay.
    pub(crate) fn borrows(&self) -> bool {
        !self.borrowed.is_empty()
    }
}
