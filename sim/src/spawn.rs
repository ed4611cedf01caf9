//! Where somebody appears (spec 6, last paragraph), and players' ids.

use nav::{Fixed, Point};

use crate::character::{Character, CharacterId, Kind};
use crate::command::{Behaviour, CharacterSpec, Name, Outcome};
use crate::event::Event;
use crate::world::{CHARACTERS_MAX, World};

/// Rings of 1 m around the spawn points that are tried when all of these are taken.
pub const SPAWN_RINGS: i32 = 16;

/// Default planning radius: 0.45 m.
pub const COLLISION_RADIUS: Fixed = Fixed::from_raw(29_491);

/// Default guard radius: 0.32 m.
pub const MOVEMENT_CONTACT_RADIUS: Fixed = Fixed::from_raw(20_972);

impl World {
    /// A player comes, at the first spawn point where it touches nobody, or near one.
    pub(crate) fn join(&mut self, name: &Name, events: &mut Vec<Event>) -> Result<(), Outcome> {
        if self.characters.len() >= CHARACTERS_MAX {
            return Err(Outcome::NoRoom);
        }
        let id = self.free_player_id().ok_or(Outcome::NoRoom)?;
        let definition = self.definition.clone();
        let inner = definition.inner();
        let mut tried = self.places_tried;
        let place = self.find_place(&inner.spawns, MOVEMENT_CONTACT_RADIUS, &mut tried);
        self.places_tried = tried;
        let place = place.ok_or(Outcome::NoRoom)?;
        let spec = CharacterSpec {
            id,
            name: name.clone(),
            x: place.x,
            z: place.z,
            speed_per_tick: inner.walk_speed,
            rotation_per_tick: inner.rotation_speed,
            collision_radius: COLLISION_RADIUS,
            movement_contact_radius: MOVEMENT_CONTACT_RADIUS,
            cooldown_ticks: None,
            enabled: true,
            alive: true,
            behaviour: Behaviour::Idle,
        };
        self.next_player_id = id.0.saturating_add(1);
        self.insert(Character::new(Kind::Player, &spec, self.tick));
        events.push(Event::Joined { character: id });
        Ok(())
    }

    /// The smallest id from `next_player_id` on that nobody has: no id ever means two players.
    fn free_player_id(&self) -> Option<CharacterId> {
        let mut id = self.next_player_id;
        let first = self
            .characters
            .partition_point(|character| character.id.0 < self.next_player_id);
        for character in &self.characters[first..] {
            if character.id.0 != id {
                break;
            }
            id = id.checked_add(1)?;
        }
        // The last id cannot be followed by a next one.
        (id < u32::MAX).then_some(CharacterId(id))
    }

    /// The first of `points` where a circle of `radius` touches nobody; if all are taken, the first place in the rings
    /// around them that is free ground in sight of its point.
    ///
    /// `tried` counts the places that need not be tried: 0, or what the search before has left in it if since then nothing
    /// has happened but that somebody with a radius above 0 was put where it said. So a crowd that comes at once is one search.
    pub(crate) fn find_place(&mut self, points: &[Point], radius: Fixed, tried: &mut usize) -> Option<Point> {
        self.refresh_neighbours();
        let planner = self.planner();
        let rings = (1..=SPAWN_RINGS).flat_map(|ring| {
            let open = points.iter().filter(|point| planner.is_free_ground(**point));
            open.flat_map(move |point| ring_around(*point, ring).map(move |place| (*point, place)))
        });
        let places = points.iter().map(|point| (*point, *point)).chain(rings);
        for (point, place) in places.skip(*tried) {
            *tried += 1;
            let free = !self.neighbours.touches(self.space, place, radius, 0);
            let reachable = || planner.is_free_ground(place) && planner.line_of_sight(point, place);
            if free && (place == point || reachable()) {
                return Some(place);
            }
        }
        None
    }
}

/// The places of a ring in the order of spec 6: for j = −k to k, for i = −k to k with max(|i|, |j|) = k.
fn ring_around(point: Point, ring: i32) -> impl Iterator<Item = Point> {
    let metre = i64::from(Fixed::ONE.raw());
    let rows = (-ring..=ring).flat_map(move |j| (-ring..=ring).map(move |i| (i, j)));
    rows.filter(move |(i, j)| i.abs().max(j.abs()) == ring)
        .filter_map(move |(i, j)| {
            let x = i32::try_from(point.x.wide() + i64::from(i) * metre).ok()?;
            let z = i32::try_from(point.z.wide() + i64::from(j) * metre).ok()?;
            Some(Point::from_raw(x, z)).filter(|place| place.in_world())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlannerKind;
    use crate::command::Command;
    use crate::ruleset::scenario;

    #[test]
    fn a_crowd_finds_the_places_that_each_would_find_alone() {
        let join = |number: i32| Command::Join {
            name: Name::cut(&format!("Player {number}")),
        };
        // Changes nothing, but no search goes on after it.
        let nothing = Command::Stop {
            character: CharacterId(0),
        };
        let definition = scenario(PlannerKind::Grid).expect("the scenario loads");
        let (mut together, mut alone) = (World::new(&definition), World::new(&definition));
        let crowd: Vec<Command> = (0..300).map(join).collect();
        let apart: Vec<Command> = (0..300).flat_map(|n| [nothing.clone(), join(n)]).collect();
        for _ in 0..2 {
            // The second time there is less room than people.
            together.step_into(&crowd, &mut Vec::new());
            alone.step_into(&apart, &mut Vec::new());
            assert_eq!(together.digest(), alone.digest());
        }
    }

    #[test]
    fn rings_go_row_by_row() {
        let places: Vec<(i32, i32)> = ring_around(Point::default(), 1)
            .map(|place| (place.x.raw() >> 16, place.z.raw() >> 16))
            .collect();
        let expected = [
            (-1, -1),
            (0, -1),
            (1, -1),
            (-1, 0),
            (1, 0),
            (-1, 1),
            (0, 1),
            (1, 1),
        ];
        assert_eq!(places, expected);
        let corner = Point::new(nav::WORLD_LIMIT, nav::WORLD_LIMIT);
        assert_eq!(ring_around(corner, 1).count(), 3);
        assert_eq!(ring_around(Point::default(), 16).count(), 128);
    }
}
