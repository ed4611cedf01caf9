//! Bots: what a client without a person commands. No clock and no IO in here; the time is an argument.

use std::sync::Arc;
use std::time::Duration;

use nav::{Fixed, Planner, Point, WORLD_LIMIT};
use sim::{CharacterId, Command, Definition, World};

use crate::random::Random;

/// Places that a bot walks to, each known to be reachable from a spawn point on the open map.
#[derive(Clone, Debug)]
pub struct Places(Arc<[Point]>);

/// As many places are enough to look like strolling.
const PLACES_MAX: usize = 512;
/// A map of walls finds few: then the search ends here.
const TRIES_MAX: usize = 20_000;
/// Farthest coordinate difference from a known place to the next, raw.
const REACH_RAW: u64 = 12 << 16;

impl Places {
    /// Draws places on the start map of a location: from a place that is reachable, whatever is free ground and in line
    /// of sight is reachable too. Empty if no spawn point is free ground.
    pub fn find(definition: &Definition, random: &mut Random) -> Self {
        let world = World::new(definition);
        Self(find(world.planner(), definition.spawns(), random).into())
    }

    /// One of them; `None` if there are none.
    pub fn draw(&self, random: &mut Random) -> Option<Point> {
        self.0.get(random.below(self.0.len() as u64) as usize).copied()
    }

    /// All of them.
    pub fn as_slice(&self) -> &[Point] {
        &self.0
    }
}

fn find(planner: &dyn Planner, spawns: &[Point], random: &mut Random) -> Vec<Point> {
    let mut places: Vec<Point> = spawns
        .iter()
        .copied()
        .filter(|spawn| planner.is_free_ground(*spawn))
        .collect();
    places.truncate(PLACES_MAX);
    if places.is_empty() {
        return places;
    }
    for _ in 0..TRIES_MAX {
        if places.len() == PLACES_MAX {
            break;
        }
        let from = places[random.below(places.len() as u64) as usize];
        let place = Point::new(shift(from.x, random), shift(from.z, random));
        if planner.is_free_ground(place) && planner.line_of_sight(from, place) {
            places.push(place);
        }
    }
    places
}

/// A coordinate at most the reach away, within the world.
fn shift(coordinate: Fixed, random: &mut Random) -> Fixed {
    let difference = random.below(2 * REACH_RAW + 1) as i64 - REACH_RAW as i64;
    let limit = WORLD_LIMIT.wide();
    let raw = (coordinate.wide() + difference).clamp(-limit, limit);
    Fixed::from_raw(raw as i32)
}

/// Walks to random places, one after the other, whether it has arrived or not.
#[derive(Clone, Debug)]
pub struct Walker {
    places: Places,
    random: Random,
    period: Option<Duration>,
    next_at: Duration,
}

impl Walker {
    /// A walker that gives one command each `period` (`None`: never), the first at a random time within the first one
    /// after `start`. Equal seeds walk to equal places.
    pub fn new(places: Places, period: Option<Duration>, seed: u64, start: Duration) -> Self {
        let mut random = Random::new(seed);
        let micros = period.map_or(0, |period| period.as_micros().min(u64::MAX.into()) as u64);
        let next_at = start + Duration::from_micros(random.below(micros));
        Self {
            places,
            random,
            period,
            next_at,
        }
    }

    /// When it wants to give its next command, on the clock of `start`.
    pub fn next_at(&self) -> Option<Duration> {
        self.period.map(|_| self.next_at)
    }

    /// The command that is due at `now`, if one is; those missed by a pause are left out.
    pub fn poll(&mut self, now: Duration, character: CharacterId) -> Option<Command> {
        let period = self.period?;
        if now < self.next_at {
            return None;
        }
        self.next_at += period;
        if self.next_at <= now {
            self.next_at = now + period;
        }
        let Point { x, z } = self.places.draw(&mut self.random)?;
        Some(Command::MoveTo { character, x, z })
    }
}

/// The command with `character` in place of whoever it names as the one who acts.
pub fn meant_for(mut command: Command, own: CharacterId) -> Command {
    match &mut command {
        Command::MoveTo { character, .. }
        | Command::Stop { character }
        | Command::Talk { character, .. }
        | Command::Leave { character }
        | Command::Despawn { character }
        | Command::SetEnabled { character, .. }
        | Command::SetAlive { character, .. }
        | Command::Teleport { character, .. }
        | Command::SetBehaviour { character, .. }
        | Command::Application { character, .. } => *character = own,
        Command::Join { .. }
        | Command::SpawnBot(_)
        | Command::SpawnNpc(_)
        | Command::SetAreaAvailable { .. }
        | Command::AddObstacle { .. }
        | Command::RemoveObstacle { .. }
        | Command::SwitchMap { .. } => {}
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places(Arc::from([Point::from_raw(1, 2), Point::from_raw(3, 4)]))
    }

    #[test]
    fn a_walker_keeps_its_pace_and_skips_what_it_missed() {
        let second = Duration::from_secs(1);
        let mut walker = Walker::new(places(), Some(second), 7, Duration::ZERO);
        let first = walker.next_at().expect("it walks");
        assert!(first < second);
        let own = CharacterId(5);
        assert_eq!(walker.poll(first - Duration::from_nanos(1000), own), None);
        assert!(
            matches!(walker.poll(first, own), Some(Command::MoveTo { character, .. }) if character == own)
        );
        assert_eq!(walker.poll(first, own), None);
        assert!(walker.poll(first + 10 * second, own).is_some());
        assert_eq!(walker.poll(first + 10 * second, own), None);
        assert_eq!(walker.next_at(), Some(first + 11 * second));
        assert_eq!(
            Walker::new(places(), None, 7, Duration::ZERO).poll(second, own),
            None
        );
    }
}
