//! The state as bytes after every step, and its digests (spec 3.4 and 5.4).
//!
//! The bytes are those that bincode gives for [`Character`], [`crate::snapshot::Clock`] and so on (a test compares them); they are written by
//! hand because every tick writes all of them, into one buffer that is kept, where XXH3 then reads them in one go.

use nav::{Fixed, Point};
use xxhash_rust::xxh3::xxh3_64;

use crate::character::{Character, CharacterId, OnArrived};
use crate::command::{Behaviour, Step};
use crate::snapshot::{MapsState, NO_PLANNER_STATE, Sections};
use crate::world::{RULESET, World};

/// The bytes of a World, where their parts end, and the digest of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoded {
    /// Longer than what is written; the rest is room.
    buffer: Vec<u8>,
    written: usize,
    clock_end: usize,
    map_end: usize,
    planner_end: usize,
    /// Where each character starts.
    starts: Vec<usize>,
    digest: u64,
    /// The map section, which changes with few commands only; empty: to be encoded again.
    maps: Vec<u8>,
}

impl World {
    /// Encodes the state and takes its digest (spec 3.3, step 7).
    pub(crate) fn take_digest(&mut self) {
        if self.encoded.maps.is_empty() {
            self.encoded.maps = MapsState::of(self).to_bytes();
        }
        self.encoded.encode(
            [
                RULESET.into(),
                self.definition.tick_rate().into(),
                self.tick,
                self.next_player_id.into(),
                self.application_hash,
            ],
            &self.characters,
        );
    }
}

impl Encoded {
    /// The next encoding reads the maps again.
    pub(crate) fn maps_changed(&mut self) {
        self.maps.clear();
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.written]
    }

    /// Digests of the sections; `characters` are those that were encoded.
    pub(crate) fn sections(&self, characters: &[Character]) -> Sections {
        let digest = |start: usize, end: usize| xxh3_64(&self.buffer[start..end]);
        let ends = self.starts.iter().skip(1).copied().chain([self.written]);
        let parts = self.starts.iter().copied().zip(ends);
        Sections {
            clock: digest(0, self.clock_end),
            map: digest(self.clock_end, self.map_end),
            planner: digest(self.map_end, self.planner_end),
            characters: characters
                .iter()
                .zip(parts)
                .map(|(character, (start, end))| (character.id.0, digest(start, end)))
                .collect(),
        }
    }

    fn encode(&mut self, clock: [u64; 5], characters: &[Character]) {
        make_room(&mut self.buffer, self.maps.len() + FIXED_PART_MAX);
        let mut writer = Writer::at(&mut self.buffer, 0);
        for part in clock {
            writer.unsigned(part);
        }
        self.clock_end = writer.at;
        writer.raw(&self.maps);
        self.map_end = writer.at;
        writer.raw(&NO_PLANNER_STATE);
        self.planner_end = writer.at;
        writer.unsigned(characters.len() as u64);
        let mut at = writer.at;
        self.starts.clear();
        for character in characters {
            self.starts.push(at);
            make_room(&mut self.buffer, at + bytes_max(character));
            let mut writer = Writer::at(&mut self.buffer, at);
            writer.character(character);
            at += writer.at;
        }
        self.written = at;
        self.digest = xxh3_64(&self.buffer[..at]);
    }
}

/// Bytes of a number at most.
const NUMBER_MAX: usize = 9;
/// Bytes that a character takes at most without its lists: under 60 numbers.
const FIXED_PART_MAX: usize = 60 * NUMBER_MAX;

/// Bytes that a character takes at most.
fn bytes_max(character: &Character) -> usize {
    let numbers = 2 * character.path_waypoints.len()
        + character.navigation_retry_cooldown_ticks.len()
        + behaviour_numbers(&character.behaviour);
    FIXED_PART_MAX + character.name.len() + numbers * NUMBER_MAX
}

/// Makes the buffer longer than `end`, so that a number can be written with room to spare.
fn make_room(buffer: &mut Vec<u8>, end: usize) {
    if buffer.len() < end + NUMBER_MAX {
        buffer.resize((end + NUMBER_MAX).next_power_of_two(), 0);
    }
}

/// Bytes written one after the other into a slice that is longer than needed.
// PERF: `benches/tick.rs`, digest: a slice of its own and numbers without branches; through bincode's derives it takes
// three times as long.
struct Writer<'b> {
    bytes: &'b mut [u8],
    at: usize,
}

impl<'b> Writer<'b> {
    fn at(buffer: &'b mut [u8], start: usize) -> Self {
        Self {
            bytes: &mut buffer[start..],
            at: 0,
        }
    }

    fn character(&mut self, character: &Character) {
        self.id(character.id);
        self.byte(character.kind as u8);
        self.text(&character.name);
        self.point(character.position);
        self.byte(character.level);
        self.fixed(character.yaw);
        self.fixed(character.walk_speed);
        self.fixed(character.rotation_speed);
        self.fixed(character.collision_radius);
        self.fixed(character.movement_contact_radius);
        self.byte(character.alive.into());
        self.byte(character.enabled.into());
        self.byte(character.animation as u8);
        self.points(&character.path_waypoints);
        self.unsigned(character.current_waypoint_index.into());
        self.point(character.walk_target);
        self.point(character.requested_walk_target);
        match character.on_arrived {
            OnArrived::None => self.byte(0),
            OnArrived::Talk(npc) => {
                self.byte(1);
                self.id(npc);
            }
            OnArrived::NextStep => self.byte(2),
        }
        self.byte(character.moved_last_tick.into());
        self.unsigned(character.movement_blocked_ticks.into());
        match character.blocked_by {
            None => self.byte(0),
            Some(id) => {
                self.byte(1);
                self.id(id);
            }
        }
        self.unsigned(character.navigation_retry_cooldown_ticks.len() as u64);
        for ticks in character.navigation_retry_cooldown_ticks.iter() {
            self.unsigned((*ticks).into());
        }
        self.unsigned(character.navigation_retry_cursor.into());
        self.unsigned(character.navigation_retry_remaining.into());
        self.byte(character.search_ran_out.into());
        self.behaviour(&character.behaviour);
        self.unsigned(character.progress.next.into());
        self.unsigned(character.progress.wait.into());
        self.unsigned(character.progress.set_at);
        self.unsigned(character.rng.state);
        self.unsigned(character.rng.increment);
    }

    fn behaviour(&mut self, behaviour: &Behaviour) {
        match behaviour {
            Behaviour::Idle => self.byte(0),
            Behaviour::Patrol {
                points,
                wait_ticks,
                looped,
            } => {
                self.byte(1);
                self.points(points);
                self.unsigned((*wait_ticks).into());
                self.byte((*looped).into());
            }
            Behaviour::Wander {
                x,
                z,
                radius,
                pause_min,
                pause_max,
            } => {
                self.byte(2);
                self.point(Point::new(*x, *z));
                self.fixed(*radius);
                self.unsigned((*pause_min).into());
                self.unsigned((*pause_max).into());
            }
            Behaviour::Follow { character, distance } => {
                self.byte(3);
                self.id(*character);
                self.fixed(*distance);
            }
            Behaviour::Script { steps } => {
                self.byte(4);
                self.unsigned(steps.len() as u64);
                for step in steps.iter() {
                    self.unsigned(step.after_ticks.into());
                    match &step.step {
                        Step::MoveTo { x, z } => {
                            self.byte(0);
                            self.point(Point::new(*x, *z));
                        }
                        Step::Stop => self.byte(1),
                        Step::Talk { npc } => {
                            self.byte(2);
                            self.id(*npc);
                        }
                    }
                }
            }
        }
    }

    fn id(&mut self, id: CharacterId) {
        self.unsigned(id.0.into());
    }

    fn points(&mut self, points: &[Point]) {
        self.unsigned(points.len() as u64);
        for point in points {
            self.point(*point);
        }
    }

    fn point(&mut self, point: Point) {
        self.fixed(point.x);
        self.fixed(point.z);
    }

    /// Zigzag: small magnitudes of both signs are short.
    fn fixed(&mut self, value: Fixed) {
        let raw = value.raw();
        self.unsigned(u64::from((raw << 1 ^ raw >> 31) as u32));
    }

    /// A byte, or a mark and 2, 4 or 8 bytes, little endian.
    #[inline]
    fn unsigned(&mut self, value: u64) {
        let size = usize::from(value > 250) + usize::from(value > 0xffff) + usize::from(value > 0xffff_ffff);
        let mark = if size == 0 { value as u8 } else { 250 + size as u8 };
        let place = &mut self.bytes[self.at..self.at + NUMBER_MAX];
        // All nine are written; what the number does not need is overwritten by what follows.
        place[0] = mark;
        place[1..].copy_from_slice(&value.to_le_bytes());
        self.at += (1 << size) + usize::from(size > 0);
    }

    #[inline]
    fn byte(&mut self, value: u8) {
        self.bytes[self.at] = value;
        self.at += 1;
    }

    fn text(&mut self, text: &str) {
        self.unsigned(text.len() as u64);
        self.raw(text.as_bytes());
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

/// Numbers of a behaviour's lists.
fn behaviour_numbers(behaviour: &Behaviour) -> usize {
    match behaviour {
        Behaviour::Patrol { points, .. } => 2 * points.len(),
        Behaviour::Script { steps } => 4 * steps.len(),
        Behaviour::Idle | Behaviour::Wander { .. } | Behaviour::Follow { .. } => 0,
    }
}
