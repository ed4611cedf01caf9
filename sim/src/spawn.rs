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
        let place = self
            .find_place(&inner.spawns, MOVEMENT_CONTACT_RADIUS)
            .ok_or(Outcome::NoRoom)?;
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
    pub(crate) fn find_place(&mut self, points: &[Point], radius: Fixed) -> Option<Point> {
        self.refresh_neighbours();
        let free = |place: Point| !self.neighbours.touches(self.space, place, radius, 0);
        if let Some(point) = points.iter().find(|point| free(**point)) {
            return Some(*point);
        }
        let planner = self.planner();
        for ring in 1..=SPAWN_RINGS {
            for point in points {
                if !planner.is_free_ground(*point) {
                    continue;
                }
                for place in ring_around(*point, ring) {
                    if free(place) && planner.is_free_ground(place) && planner.line_of_sight(*point, place) {
                        return Some(place);
                    }
                }
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
