//! What a State feed shows, put together from its deltas (spec 4.4).

use std::collections::BTreeMap;

use nav::{Fixed, Point};
use protocol::state::{Blockage, Change, Flags, Newcomer, Path, Retry, State, Targets};
use sim::{Animation, CharacterId, MapState};

/// The characters in view after the last State, and the map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observer {
    tick: Option<u64>,
    map: Option<MapState>,
    characters: BTreeMap<CharacterId, Observed>,
}

/// A character as an observer knows it: the true state after the step of [`Observer::tick`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// What does not change.
    pub who: Newcomer,
    /// Metres.
    pub position: Point,
    /// Radians.
    pub yaw: Fixed,
    /// Stands or walks.
    pub animation: Animation,
    /// What it follows.
    pub path: Path,
    /// Where it walks to.
    pub targets: Targets,
    /// What keeps it from moving.
    pub blockage: Blockage,
    /// An NPC's pending retry.
    pub retry: Retry,
    /// Alive, enabled, moved, cut short.
    pub flags: Flags,
    /// 0 on flat maps.
    pub level: u8,
}

/// Why a State does not fit what was there before: the server's fault, or states of two connections mixed. The table
/// is then of no use until a whole State comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObserverError {
    /// It is a difference to another State.
    #[error("a difference to tick {base} where tick {known:?} is known")]
    Base {
        /// What it is a difference to.
        base: u64,
        /// What is known.
        known: Option<u64>,
    },
    /// A difference of, or a farewell to, somebody who is not known.
    #[error("character {} is not known", .0.0)]
    Unknown(CharacterId),
    /// A whole State with a character that is not whole.
    #[error("character {} is not whole", .0.0)]
    NotWhole(CharacterId),
}

impl Observer {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies a State.
    ///
    /// # Errors
    /// It does not fit.
    pub fn apply(&mut self, state: &State) -> Result<(), ObserverError> {
        match state.base {
            None => self.characters.clear(),
            Some(base) if self.tick == Some(base) => {}
            Some(base) => {
                return Err(ObserverError::Base {
                    base,
                    known: self.tick,
                });
            }
        }
        if let Some(map) = &state.map {
            self.map = Some(map.clone());
        }
        for id in state.gone.iter() {
            self.characters.remove(id).ok_or(ObserverError::Unknown(*id))?;
        }
        for change in state.changed.iter() {
            self.change(change)?;
        }
        self.tick = Some(state.tick);
        Ok(())
    }

    /// The step after which this is the state; `None` before the first.
    pub fn tick(&self) -> Option<u64> {
        self.tick
    }

    /// The map in use, once one was shown.
    pub fn map(&self) -> Option<&MapState> {
        self.map.as_ref()
    }

    /// A character in view.
    pub fn character(&self, id: CharacterId) -> Option<&Observed> {
        self.characters.get(&id)
    }

    /// All in view, in id order.
    pub fn characters(&self) -> impl ExactSizeIterator<Item = (CharacterId, &Observed)> {
        self.characters.iter().map(|(id, character)| (*id, character))
    }

    fn change(&mut self, change: &Change) -> Result<(), ObserverError> {
        if change.new_here.is_some() {
            let observed = Observed::whole(change).ok_or(ObserverError::NotWhole(change.id))?;
            self.characters.insert(change.id, observed);
            return Ok(());
        }
        let character = self
            .characters
            .get_mut(&change.id)
            .ok_or(ObserverError::Unknown(change.id))?;
        character.apply(change);
        Ok(())
    }
}

impl Observed {
    fn whole(change: &Change) -> Option<Self> {
        Some(Self {
            who: change.new_here.clone()?,
            position: change.position?,
            yaw: change.yaw?,
            animation: change.animation?,
            path: change.path.clone()?,
            targets: change.targets?,
            blockage: change.blockage?,
            retry: change.retry?,
            flags: change.flags?,
            level: change.level?,
        })
    }

    fn apply(&mut self, change: &Change) {
        if let Some(difference) = change.position {
            self.position.x = add(self.position.x, difference.x);
            self.position.z = add(self.position.z, difference.z);
        }
        if let Some(difference) = change.yaw {
            self.yaw = add(self.yaw, difference);
        }
        replace(&mut self.animation, &change.animation);
        replace(&mut self.path, &change.path);
        replace(&mut self.targets, &change.targets);
        replace(&mut self.blockage, &change.blockage);
        replace(&mut self.retry, &change.retry);
        replace(&mut self.flags, &change.flags);
        replace(&mut self.level, &change.level);
    }
}

/// Differences are taken and applied modulo 2³², so that every pair of values has one.
fn add(value: Fixed, difference: Fixed) -> Fixed {
    Fixed::from_raw(value.raw().wrapping_add(difference.raw()))
}

fn replace<T: Clone>(value: &mut T, changed: &Option<T>) {
    if let Some(changed) = changed {
        value.clone_from(changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::state::Changes;
    use sim::Kind;
    use sim::bounded::{List, Text};

    fn newcomer(id: u32) -> Change {
        Change {
            id: CharacterId(id),
            position: Some(Point::from_raw(10, -10)),
            yaw: Some(Fixed::ONE),
            animation: Some(Animation::Stand),
            path: Some(Path::default()),
            targets: Some(Targets::default()),
            blockage: Some(Blockage::default()),
            retry: Some(Retry::default()),
            new_here: Some(Newcomer {
                kind: Kind::Player,
                name: Text::cut("Ann"),
                collision_radius: Fixed::ONE,
                movement_contact_radius: Fixed::ONE,
                speed_per_tick: Fixed::ONE,
            }),
            flags: Some(Flags::default()),
            level: Some(0),
        }
    }

    fn state(tick: u64, base: Option<u64>, changed: Vec<Change>, gone: &[u32]) -> State {
        State {
            tick,
            base,
            map: None,
            changed: Changes::new(changed).expect("ascending"),
            gone: List::new(gone.iter().map(|&id| CharacterId(id)).collect()).expect("few"),
        }
    }

    #[test]
    fn differences_add_up() {
        let mut observer = Observer::new();
        observer
            .apply(&state(5, None, vec![newcomer(1), newcomer(2)], &[]))
            .expect("whole");
        let moved = Change {
            id: CharacterId(2),
            position: Some(Point::from_raw(5, -5)),
            yaw: Some(Fixed::from_raw(-1)),
            animation: Some(Animation::Walk),
            ..Change::default()
        };
        observer
            .apply(&state(7, Some(5), vec![moved, newcomer(3)], &[1]))
            .expect("it fits");
        let seen: Vec<_> = observer
            .characters()
            .map(|(id, character)| (id.0, character.position.x.raw()))
            .collect();
        assert_eq!(seen, [(2, 15), (3, 10)]);
        let second = observer.character(CharacterId(2)).expect("in view");
        assert_eq!((second.yaw.raw(), second.animation), (65_535, Animation::Walk));
        assert_eq!(observer.tick(), Some(7));
        observer.apply(&state(8, None, vec![], &[])).expect("whole");
        assert_eq!(observer.characters().len(), 0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut observer = Observer::new();
        let unknown = |id| ObserverError::Unknown(CharacterId(id));
        let change = Change {
            id: CharacterId(9),
            ..Change::default()
        };
        let table = [
            (
                state(6, Some(5), vec![], &[]),
                ObserverError::Base { base: 5, known: None },
            ),
            (state(6, None, vec![], &[4]), unknown(4)),
            (state(6, None, vec![change], &[]), unknown(9)),
        ];
        for (state, expected) in table {
            assert_eq!(observer.apply(&state), Err(expected));
        }
    }
}
