//! What a State feed shows, put together from its deltas (spec 4.4).

use std::collections::BTreeMap;

use nav::{Fixed, Point};
use protocol::packed::{Motion, PackedChange, PackedState, expected_retry};
use protocol::state::{Blockage, Change, Flags, Newcomer, Path, Retry, State, Targets};
use sim::{Animation, CharacterId, MapState};

/// The characters in view after the last State, and the map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observer {
    tick: Option<u64>,
    map: Option<MapState>,
    characters: BTreeMap<CharacterId, Known>,
    tally: Tally,
}

/// Somebody in view, and what is expected of it if states are packed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    seen: Observed,
    motion: Motion,
}

/// What an observer was told so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// States that were differences to the one before.
    pub differences: u64,
    /// States that were whole.
    pub wholes: u64,
    /// Moves that differences told of: characters that got elsewhere, each times the ticks it took.
    pub moves: u64,
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            differences: self.differences + other.differences,
            wholes: self.wholes + other.wholes,
            moves: self.moves + other.moves,
        }
    }
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
        self.begin(state.base, state.map.as_ref(), &state.gone)?;
        let mut moved = 0;
        for change in state.changed.iter() {
            moved += u64::from(change.new_here.is_none() && change.position.is_some());
            self.change(change)?;
        }
        self.finish(state.tick, state.base, moved);
        Ok(())
    }

    /// Applies a packed State.
    ///
    /// # Errors
    /// It does not fit.
    pub fn apply_packed(&mut self, state: &PackedState) -> Result<(), ObserverError> {
        // A span that reaches before tick 0 names no State that anybody was told.
        let base = (state.span > 0).then(|| state.tick.saturating_sub(state.span));
        self.begin(base, state.map.as_ref(), &state.gone)?;
        for known in self.characters.values_mut() {
            known.go_on(state.span);
        }
        let (arrivals, corrections): (Vec<_>, Vec<_>) =
            state.changed.iter().partition(|change| change.new_here.is_some());
        for change in corrections {
            let known = self.characters.get_mut(&change.id);
            known.ok_or(ObserverError::Unknown(change.id))?.correct(change);
        }
        let moves = |known: &&Known| known.motion.step != Point::default();
        let moved = self.characters.values().filter(moves).count() as u64;
        for change in arrivals {
            let known = Known::arrived(change).ok_or(ObserverError::NotWhole(change.id))?;
            self.characters.insert(change.id, known);
        }
        self.finish(state.tick, base, moved);
        Ok(())
    }

    /// What it was told so far.
    pub fn tally(&self) -> Tally {
        self.tally
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
        self.characters.get(&id).map(|known| &known.seen)
    }

    /// All in view, in id order.
    pub fn characters(&self) -> impl ExactSizeIterator<Item = (CharacterId, &Observed)> {
        self.characters.iter().map(|(id, known)| (*id, &known.seen))
    }

    /// What every State begins with: what it builds on, the map, who is gone.
    fn begin(
        &mut self,
        base: Option<u64>,
        map: Option<&MapState>,
        gone: &[CharacterId],
    ) -> Result<(), ObserverError> {
        match base {
            None => self.characters.clear(),
            Some(base) if self.tick == Some(base) => {}
            Some(base) => {
                return Err(ObserverError::Base {
                    base,
                    known: self.tick,
                });
            }
        }
        if let Some(map) = map {
            self.map = Some(map.clone());
        }
        for id in gone {
            self.characters.remove(id).ok_or(ObserverError::Unknown(*id))?;
        }
        Ok(())
    }

    fn finish(&mut self, tick: u64, base: Option<u64>, moved: u64) {
        match base {
            None => self.tally.wholes += 1,
            Some(base) => {
                self.tally.differences += 1;
                self.tally.moves += moved * tick.saturating_sub(base);
            }
        }
        self.tick = Some(tick);
    }

    fn change(&mut self, change: &Change) -> Result<(), ObserverError> {
        if change.new_here.is_some() {
            let observed = Observed::whole(change).ok_or(ObserverError::NotWhole(change.id))?;
            let motion = Motion::default();
            self.characters.insert(
                change.id,
                Known {
                    seen: observed,
                    motion,
                },
            );
            return Ok(());
        }
        let known = self.characters.get_mut(&change.id);
        known.ok_or(ObserverError::Unknown(change.id))?.seen.apply(change);
        Ok(())
    }
}

impl Known {
    fn arrived(change: &PackedChange) -> Option<Self> {
        let arrival = change.new_here.clone()?;
        let (position, posture, route) = (change.position?, change.posture?, change.route.as_ref()?);
        let (walk_target, requested_walk_target) = route.targets(position);
        Some(Self {
            seen: Observed {
                who: arrival.who,
                position,
                yaw: change.yaw?,
                animation: posture.animation,
                path: Path {
                    waypoints: route.waypoints.clone(),
                    index: change.index?,
                },
                targets: Targets {
                    walk_target,
                    requested_walk_target,
                },
                blockage: change.blockage?,
                retry: change.retry?,
                flags: posture.flags,
                level: arrival.level,
            },
            motion: arrival.motion,
        })
    }

    /// As is expected, `span` ticks later.
    fn go_on(&mut self, span: u64) {
        let seen = &mut self.seen;
        (seen.position, seen.yaw) = self.motion.applied(seen.position, seen.yaw);
        seen.retry = expected_retry(seen.retry, span);
    }

    /// Not quite as expected.
    fn correct(&mut self, change: &PackedChange) {
        let seen = &mut self.seen;
        let correction = Motion::default().corrected(change.position, change.yaw);
        (seen.position, seen.yaw) = correction.applied(seen.position, seen.yaw);
        self.motion = self.motion.corrected(change.position, change.yaw);
        if let Some(posture) = change.posture {
            (seen.flags, seen.animation) = (posture.flags, posture.animation);
        }
        if let Some(route) = &change.route {
            let (walk_target, requested_walk_target) = route.targets(seen.position);
            seen.path.waypoints.clone_from(&route.waypoints);
            seen.targets = Targets {
                walk_target,
                requested_walk_target,
            };
        }
        replace(&mut seen.path.index, &change.index);
        replace(&mut seen.blockage, &change.blockage);
        replace(&mut seen.retry, &change.retry);
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
