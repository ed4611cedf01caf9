//! Who is near: the circles that guard their places, in a uniform grid of buckets (spec 3.3, step 4: "reservations").
//!
//! Derived from the characters, rebuilt when somebody comes, goes or is put somewhere, moved along with every step.

use nav::{Fixed, Point};

use crate::character::Character;
use crate::space::{Delta, Space};

/// A place that somebody takes up.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    position: Point,
    radius: Fixed,
    level: u8,
    /// In the grid at all: alive and enabled.
    active: bool,
    cell: Cell,
    /// Neighbours in the list of its bucket, or [`NOBODY`].
    next: u32,
    previous: u32,
}

/// A square of 4 m, by its indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    x: i32,
    z: i32,
}

/// Circles by character index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    reservations: Vec<Reservation>,
    /// First of each bucket's list; a power of two of them.
    buckets: Vec<u32>,
    /// A bit per bucket: somebody is in it. Small enough to stay in the nearest cache.
    occupied: Vec<u64>,
    /// Largest radius of those in the grid.
    radius_max: i64,
}

/// End of a list.
const NOBODY: u32 = u32::MAX;

/// A cell's side is 2^18 raws = 4 m: a usual step with both usual radii reaches over 1.4 m, so it touches 1.8 cells on
/// average, and even a jam has under 40 people in one.
const CELL_BITS: u32 = 18;

/// From so many cells on, going through everybody is cheaper (somebody is huge or very fast).
const CELLS_MAX: i64 = 64;

impl Neighbours {
    /// The circles of these characters.
    pub(crate) fn rebuild(&mut self, characters: &[Character]) {
        self.buckets.clear();
        self.buckets
            .resize((2 * characters.len()).next_power_of_two().max(64), NOBODY);
        self.occupied.clear();
        self.occupied.resize(self.buckets.len() / 64, 0);
        self.reservations.clear();
        self.radius_max = 0;
        for (index, character) in characters.iter().enumerate() {
            let active = character.is_active();
            self.reservations.push(Reservation {
                position: character.position,
                radius: character.movement_contact_radius,
                level: character.level,
                active,
                cell: Cell::of(character.position),
                next: NOBODY,
                previous: NOBODY,
            });
            if active {
                self.radius_max = self.radius_max.max(character.movement_contact_radius.wide());
                self.link(index as u32);
            }
        }
    }

    /// The first character (smallest index, hence id) that rejects a step of `index` from where it is now (spec 3.3, step 4c).
    pub(crate) fn first_rejecting(&self, space: Space, index: usize, step: Delta) -> Option<usize> {
        let own = self.reservations[index];
        let length = step.squared();
        let mut first = NOBODY;
        let alone_in = own.is_alone().then_some(own.cell);
        let reach = own.radius.wide() + self.radius_max;
        self.visit(own.position, step, reach, alone_in, |other| {
            if other >= first || other as usize == index {
                return;
            }
            let reservation = &self.reservations[other as usize];
            if !space.share_level(own.level, reservation.level) {
                return;
            }
            let away = space.delta(own.position, reservation.position);
            let approach = step.dot(away);
            let reach = own.radius.wide() + reservation.radius.wide();
            if approach > 0 && passes_within(step, length, away, approach, reach) {
                let (reach, start) = (reach * reach, away.squared());
                let overlap = start < reach;
                if !overlap || away.minus(step).squared() <= start {
                    first = other;
                }
            }
        });
        (first != NOBODY).then_some(first as usize)
    }

    /// Whether a circle at `position` touches anybody: is nearer than both radii.
    pub(crate) fn touches(&self, space: Space, position: Point, radius: Fixed, level: u8) -> bool {
        let mut touched = false;
        let nowhere = Delta { x: 0, z: 0 };
        let reach = radius.wide() + self.radius_max;
        self.visit(position, nowhere, reach, None, |other| {
            let reservation = &self.reservations[other as usize];
            let reach = radius.wide() + reservation.radius.wide();
            let distance = space.delta(position, reservation.position).squared();
            touched |= space.share_level(level, reservation.level) && distance < reach * reach;
        });
        touched
    }

    /// The character with this index now stands there.
    pub(crate) fn place(&mut self, index: usize, position: Point) {
        let cell = Cell::of(position);
        let reservation = &mut self.reservations[index];
        reservation.position = position;
        if reservation.active && reservation.cell != cell {
            self.unlink(index as u32);
            self.reservations[index].cell = cell;
            self.link(index as u32);
        }
    }

    /// For tests: who is in which bucket with which circle, however the lists are linked.
    pub(crate) fn contents(&self) -> Vec<(usize, u32, Point, Fixed)> {
        let mut contents = Vec::new();
        for (bucket, first) in self.buckets.iter().enumerate() {
            let occupied = self.occupied[bucket / 64] >> (bucket % 64) & 1 == 1;
            assert_eq!(occupied, *first != NOBODY, "the bit of bucket {bucket}");
            let mut next = *first;
            while let Some(reservation) = self.reservations.get(next as usize) {
                contents.push((bucket, next, reservation.position, reservation.radius));
                next = reservation.next;
            }
        }
        contents.sort_unstable();
        contents
    }

    /// Calls `visit` with the index of everybody whose centre lies within `reach` of the box around a step, and of some others;
    /// `empty` is a cell in which nobody needs to be visited.
    // PERF: `benches/tick.rs`, movement: most steps have nobody near. They are spared the two reads that miss the caches, of a
    // bucket and of a reservation.
    fn visit(&self, from: Point, step: Delta, reach: i64, empty: Option<Cell>, mut visit: impl FnMut(u32)) {
        let cells = |start: i64, step: i64| {
            let low = (start + step.min(0) - reach) >> CELL_BITS;
            let high = (start + step.max(0) + reach) >> CELL_BITS;
            (low, high)
        };
        let (x_low, x_high) = cells(from.x.wide(), step.x);
        let (z_low, z_high) = cells(from.z.wide(), step.z);
        if (x_high - x_low + 1) * (z_high - z_low + 1) > CELLS_MAX {
            let everybody = (0u32..).zip(&self.reservations);
            everybody
                .filter(|(_, reservation)| reservation.active)
                .for_each(|(index, _)| visit(index));
            return;
        }
        for z in z_low..=z_high {
            for x in x_low..=x_high {
                let cell = Cell {
                    x: x as i32,
                    z: z as i32,
                };
                let bucket = cell.bucket(self.buckets.len());
                if empty == Some(cell) || self.occupied[bucket / 64] >> (bucket % 64) & 1 == 0 {
                    continue;
                }
                let mut next = self.buckets[bucket];
                while next != NOBODY {
                    let reservation = &self.reservations[next as usize];
                    if reservation.cell == cell {
                        visit(next);
                    }
                    next = reservation.next;
                }
            }
        }
    }

    fn link(&mut self, index: u32) {
        let bucket = self.reservations[index as usize].cell.bucket(self.buckets.len());
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
        let next = std::mem::replace(&mut self.buckets[bucket], index);
        if next != NOBODY {
            self.reservations[next as usize].previous = index;
        }
        let reservation = &mut self.reservations[index as usize];
        reservation.next = next;
        reservation.previous = NOBODY;
    }

    fn unlink(&mut self, index: u32) {
        let Reservation {
            cell, next, previous, ..
        } = self.reservations[index as usize];
        if next != NOBODY {
            self.reservations[next as usize].previous = previous;
        }
        if previous != NOBODY {
            self.reservations[previous as usize].next = next;
            return;
        }
        let bucket = cell.bucket(self.buckets.len());
        self.buckets[bucket] = next;
        if next == NOBODY {
            self.occupied[bucket / 64] &= !(1 << (bucket % 64));
        }
    }
}

impl Reservation {
    /// The only one in its bucket, hence in its cell.
    fn is_alone(&self) -> bool {
        self.next == NOBODY && self.previous == NOBODY
    }
}

impl Cell {
    fn of(point: Point) -> Self {
        Self {
            x: point.x.raw() >> CELL_BITS,
            z: point.z.raw() >> CELL_BITS,
        }
    }

    /// Cells that hash alike share a bucket; they are told apart by the cell in the reservation.
    fn bucket(self, buckets: usize) -> usize {
        let mixed = (self.x as u32).wrapping_mul(0x9E37_79B1) ^ (self.z as u32).wrapping_mul(0x85EB_CA77);
        ((mixed ^ (mixed >> 15)) as usize) & (buckets - 1)
    }
}

/// The segment `step` passes nearer than `reach` to the point `away` from its start; `approach` = step · away > 0.
fn passes_within(step: Delta, length: i64, away: Delta, approach: i64, reach: i64) -> bool {
    if approach >= length {
        // The end of the segment is its nearest point.
        return away.minus(step).squared() < reach * reach;
    }
    // The nearest point lies inside: its distance is |cross| / |step|.
    let cross = i128::from(step.cross(away));
    cross * cross < i128::from(reach * reach) * i128::from(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::character::{CharacterId, Kind};
    use crate::command::{Behaviour, CharacterSpec, Name};
    use crate::rng::Pcg32;

    fn metres(x: f64, z: f64) -> Delta {
        let raw = |value: f64| Fixed::from_f64(value).expect("in the world").wide();
        Delta { x: raw(x), z: raw(z) }
    }

    #[test]
    fn segments_pass_points() {
        let check = |step: (f64, f64), away: (f64, f64), reach: f64, expected: bool| {
            let (step, away) = (metres(step.0, step.1), metres(away.0, away.1));
            let reach = metres(reach, 0.0).x;
            let found = passes_within(step, step.squared(), away, step.dot(away), reach);
            assert_eq!(found, expected, "{step:?} past {away:?} within {reach}");
        };
        check((1.0, 0.0), (0.5, 0.5), 0.5, false);
        check((1.0, 0.0), (0.5, 0.5), 0.5001, true);
        check((1.0, 0.0), (2.0, 0.0), 1.0, false);
        check((1.0, 0.0), (2.0, 0.0), 1.0001, true);
        check((0.1, 0.0), (1.0, 0.0), 0.64, false);
        check((32.0, 32.0), (16.0, 16.0), 0.0001, true);
    }

    /// Step 4c word for word: everybody in id order.
    fn first_rejecting_literally(characters: &[Character], index: usize, step: Delta) -> Option<usize> {
        let own = &characters[index];
        let rejects = |other: &Character| {
            let away = Space.delta(own.position, other.position);
            let reach = own.movement_contact_radius.wide() + other.movement_contact_radius.wide();
            let (length, approach) = (i128::from(step.squared()), i128::from(step.dot(away)));
            let (start, end) = (away.squared(), away.minus(step).squared());
            // distance² from the segment × |step|², by the foot of the perpendicular where it lies on the segment.
            let nearer = if approach <= 0 || length == 0 {
                start < reach * reach
            } else if approach >= length {
                end < reach * reach
            } else {
                let scaled = i128::from(start) * length - approach * approach;
                scaled < i128::from(reach * reach) * length
            };
            nearer && approach > 0 && (start >= reach * reach || end <= start)
        };
        let others = characters.iter().enumerate();
        let mut active = others.filter(|(other, character)| *other != index && character.is_active());
        active.find(|(_, other)| rejects(other)).map(|(other, _)| other)
    }

    fn crowd(rng: &mut Pcg32, count: u32, width: u32) -> Vec<Character> {
        let mut raw = |low: i32, width: u32| Fixed::from_raw(low + rng.below(width << 16) as i32);
        let mut character = |id: u32| CharacterSpec {
            id: CharacterId(id),
            name: Name::cut("Somebody"),
            x: raw(-(width as i32) << 15, width),
            z: raw(-(width as i32) << 15, width),
            speed_per_tick: Fixed::ONE,
            rotation_per_tick: Fixed::ONE,
            collision_radius: Fixed::ONE,
            movement_contact_radius: if id.is_multiple_of(50) {
                Fixed::from_int(3)
            } else {
                raw(0, 1)
            },
            cooldown_ticks: None,
            enabled: !id.is_multiple_of(7),
            alive: true,
            behaviour: Behaviour::Idle,
        };
        (1..=count)
            .map(|id| Character::new(Kind::Npc, &character(id), 0))
            .collect()
    }

    #[test]
    fn the_first_of_the_neighbours_is_the_first_of_all() {
        let mut rng = Pcg32::of_character(3);
        for (count, width) in [(2, 2), (60, 8), (200, 12), (300, 40), (400, 2_000)] {
            let mut characters = crowd(&mut rng, count, width);
            let mut neighbours = Neighbours::default();
            neighbours.rebuild(&characters);
            let mut rejected = 0;
            for turn in 0..20 * count {
                let index = (turn % count) as usize;
                if !characters[index].is_active() {
                    continue;
                }
                let reach = if turn.is_multiple_of(11) { 1 << 22 } else { 1 << 16 };
                let mut part = || i64::from(rng.below(reach)) - i64::from(reach / 2);
                let step = Delta { x: part(), z: part() };
                let found = neighbours.first_rejecting(Space, index, step);
                assert_eq!(
                    found,
                    first_rejecting_literally(&characters, index, step),
                    "{count} in {width} m, turn {turn}: {index} by {step:?}"
                );
                if found.is_none() {
                    characters[index].position = Space.moved(characters[index].position, step);
                    neighbours.place(index, characters[index].position);
                }
                rejected += u32::from(found.is_some());
            }
            assert!(
                rejected > 0 || count < 3,
                "{count} in {width} m: a test of nothing"
            );
            let mut fresh = Neighbours::default();
            fresh.rebuild(&characters);
            assert_eq!(neighbours.contents(), fresh.contents());
        }
    }
}
