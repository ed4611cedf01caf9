//! The World as canonical bytes (spec 5.4): their types, and loading them.
//!
//! The state is written after every step by `digest`; what is derived (standing circles, neighbours, the planners' own
//! indexes) is rebuilt from it here. Loading believes nothing: every limit, order and relation that the steps rely on is
//! checked, and the loaded World must encode to the same bytes.

use bincode::config::{self, Config};
use bincode::{Decode, Encode};
use nav::{EditError, Fixed, MapEdits, Point};
use serde::Serialize;

use crate::bounded::List;
use crate::character::{Animation, Character, Kind};
use crate::command::{Behaviour, Label, POLYGON_POINTS_MAX};
use crate::definition::Definition;
use crate::name::NAME_CHARACTERS_MAX;
use crate::range::{RADIUS_MAX, ROTATION_PER_TICK_MAX, SPEED_PER_TICK_MAX};
use crate::world::{CHARACTERS_MAX, RULESET, World};
use crate::yaw::PI;

/// Areas of one map.
pub const AREAS_MAX: usize = 65_536;
/// Obstacles in a location (spec 3.4).
pub const OBSTACLES_MAX: usize = 4_096;
/// Maps of a location.
pub const MAPS_MAX: usize = 64;

/// Largest tick of a snapshot: what no run reaches, and from which no run overflows.
pub const TICK_MAX: u64 = 1 << 62;

/// Decoded size at most; lists grow as their elements arrive, so hostile bytes cost memory in proportion to their number.
const DECODED_BYTES_MAX: usize = 1 << 30;

/// Section 3 while no planner keeps anything of its own: no planning budget, no pending searches.
pub(crate) const NO_PLANNER_STATE: [u8; 2] = [0, 0];

/// What has been changed on a map since it was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
pub struct MapState {
    /// Name of the map in the location.
    pub name: Label,
    /// Per area, in file order: open.
    pub available: List<bool, AREAS_MAX>,
    /// Obstacles of the file that were removed, in name order.
    pub removed: List<Label, OBSTACLES_MAX>,
    /// Obstacles added since, in name order.
    pub added: List<(Label, List<Point, POLYGON_POINTS_MAX>), OBSTACLES_MAX>,
}

/// Digests of the parts of a snapshot, so that a mismatch can be named.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
pub struct Sections {
    /// Ruleset, tick rate, tick, next player id, application hash.
    pub clock: u64,
    /// Map in use and what has been changed on each.
    pub map: u64,
    /// What belongs to one planner alone.
    pub planner: u64,
    /// Each character, in id order.
    pub characters: Vec<(u32, u64)>,
}

/// Why bytes are no snapshot of this definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Not the encoding of 5.4, or over a limit of its types.
    #[error("not a snapshot: {0}")]
    Undecodable(String),
    /// Made by another ruleset.
    #[error("ruleset {found}, this is {expected}")]
    Ruleset {
        /// In the snapshot.
        found: u32,
        /// Of this build.
        expected: u32,
    },
    /// Made with another tick rate than the definition's.
    #[error("tick rate {found}, the definition says {expected}")]
    TickRate {
        /// In the snapshot.
        found: u16,
        /// Of the definition.
        expected: u16,
    },
    /// A tick that no run reaches.
    #[error("tick {0}, more than {TICK_MAX}")]
    Tick(u64),
    /// Its maps are not those of the definition.
    #[error("its maps are not those of the definition")]
    Maps,
    /// The changes on a map do not fit it.
    #[error("map {name}: {error}")]
    Edits {
        /// Of the map.
        name: String,
        /// What does not fit.
        error: EditError,
    },
    /// A value that no character has.
    #[error("character {character}: {rule}")]
    Character {
        /// Its id.
        character: u32,
        /// The broken rule.
        rule: &'static str,
    },
    /// A player's id could be given a second time.
    #[error("the next player's id is not above every player's")]
    NextPlayer,
    /// The same state has other bytes.
    #[error("not in canonical form")]
    NotCanonical,
}

/// Section 1.
#[derive(Encode, Decode)]
pub(crate) struct Clock {
    pub(crate) ruleset: u32,
    pub(crate) tick_rate: u16,
    pub(crate) tick: u64,
    pub(crate) next_player_id: u32,
    pub(crate) application_hash: u64,
}

/// Section 2.
#[derive(Encode, Decode)]
pub(crate) struct MapsState {
    pub(crate) current: Label,
    pub(crate) maps: List<MapState, MAPS_MAX>,
}

impl MapState {
    /// The state of the map `name`.
    ///
    /// # Panics
    /// If a planner holds more than commands and maps may give it: a defect of the planner.
    pub fn new(name: &Label, edits: MapEdits) -> Self {
        let reason = "a planner holds what checked commands gave it";
        let label = |name: String| Label::new(name).expect(reason);
        let added = edits.added.into_iter();
        Self {
            name: name.clone(),
            available: List::new(edits.available).expect(reason),
            removed: List::new(edits.removed.into_iter().map(label).collect()).expect(reason),
            added: List::new(
                added
                    .map(|(name, polygon)| (label(name), List::new(polygon).expect(reason)))
                    .collect(),
            )
            .expect(reason),
        }
    }

    /// As a planner takes it.
    pub fn edits(&self) -> MapEdits {
        MapEdits {
            available: self.available.to_vec(),
            removed: self.removed.iter().map(|name| name.to_string()).collect(),
            added: self
                .added
                .iter()
                .map(|(name, polygon)| (name.to_string(), polygon.to_vec()))
                .collect(),
        }
    }
}

impl MapsState {
    pub(crate) fn of(world: &World) -> Self {
        Self {
            current: world.maps[world.current_map].0.clone(),
            maps: List::new(world.map_states().collect()).expect("a definition has no more maps"),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        bincode::encode_to_vec(self, configuration()).expect("a Vec takes everything")
    }
}

impl World {
    /// The World that a snapshot of this definition describes; all derived data is rebuilt. Stepping on from it gives the
    /// same digests as never having stopped.
    ///
    /// # Errors
    /// The bytes are no such snapshot; what is wrong first.
    pub fn load(definition: &Definition, bytes: &[u8]) -> Result<Self, SnapshotError> {
        let mut rest = bytes;
        let clock: Clock = decode(&mut rest)?;
        let expected = definition.tick_rate();
        if clock.ruleset != RULESET {
            return Err(SnapshotError::Ruleset {
                found: clock.ruleset,
                expected: RULESET,
            });
        }
        if clock.tick_rate != expected {
            return Err(SnapshotError::TickRate {
                found: clock.tick_rate,
                expected,
            });
        }
        if clock.tick > TICK_MAX {
            return Err(SnapshotError::Tick(clock.tick));
        }
        let maps: MapsState = decode(&mut rest)?;
        let planner: [u8; 2] = decode(&mut rest)?;
        if planner != NO_PLANNER_STATE {
            return Err(SnapshotError::Undecodable(
                "a planner's state of its own".to_owned(),
            ));
        }
        let characters: List<Character, CHARACTERS_MAX> = decode(&mut rest)?;
        if !rest.is_empty() {
            return Err(SnapshotError::Undecodable(format!(
                "{} bytes too many",
                rest.len()
            )));
        }
        check_characters(&characters, &clock)?;
        let mut world = Self::of_state(definition, characters.into_vec());
        world.tick = clock.tick;
        world.next_player_id = clock.next_player_id;
        world.application_hash = clock.application_hash;
        world.set_maps(&maps)?;
        world.rebuild();
        if world.snapshot_bytes() == bytes {
            Ok(world)
        } else {
            Err(SnapshotError::NotCanonical)
        }
    }

    fn set_maps(&mut self, state: &MapsState) -> Result<(), SnapshotError> {
        let names = self.maps.iter().map(|(name, _)| name);
        if !names.eq(state.maps.iter().map(|map| &map.name)) {
            return Err(SnapshotError::Maps);
        }
        self.current_map = self
            .maps
            .iter()
            .position(|(name, _)| *name == state.current)
            .ok_or(SnapshotError::Maps)?;
        for ((name, planner), map) in self.maps.iter_mut().zip(state.maps.iter()) {
            let edits = map.edits();
            if edits != planner.edits() {
                planner.set_edits(&edits).map_err(|error| SnapshotError::Edits {
                    name: name.to_string(),
                    error,
                })?;
            }
        }
        Ok(())
    }
}

fn check_characters(characters: &[Character], clock: &Clock) -> Result<(), SnapshotError> {
    let mut before = 0;
    for character in characters {
        let id = character.id.0;
        let wrong = |rule| SnapshotError::Character { character: id, rule };
        if id <= before {
            return Err(wrong("not in ascending order of ids"));
        }
        before = id;
        character.check(clock.tick).map_err(wrong)?;
        if character.kind == Kind::Player && id >= clock.next_player_id {
            return Err(SnapshotError::NextPlayer);
        }
    }
    if clock.next_player_id == 0 {
        return Err(SnapshotError::NextPlayer);
    }
    Ok(())
}

impl Character {
    /// Everything that the steps rely on.
    fn check(&self, tick: u64) -> Result<(), &'static str> {
        let holds = |condition: bool, rule: &'static str| if condition { Ok(()) } else { Err(rule) };
        let name = self.name.chars().count();
        holds(
            (1..=NAME_CHARACTERS_MAX).contains(&name),
            "name not 1 to 32 characters",
        )?;
        let points = [self.position, self.walk_target, self.requested_walk_target];
        let in_world = |point: &Point| point.in_world();
        holds(
            points.iter().all(in_world) && self.path_waypoints.iter().all(in_world),
            "outside the world limit",
        )?;
        holds(self.level == 0, "level on a flat map")?;
        holds(
            self.yaw > Fixed::from_raw(-PI.raw()) && self.yaw <= PI,
            "yaw outside its range",
        )?;
        let speeds = |speed: Fixed, limit: Fixed| speed > Fixed::ZERO && speed <= limit;
        holds(
            speeds(self.walk_speed, SPEED_PER_TICK_MAX) && speeds(self.rotation_speed, ROTATION_PER_TICK_MAX),
            "speed outside its range",
        )?;
        let radii = [self.collision_radius, self.movement_contact_radius];
        holds(
            radii
                .iter()
                .all(|radius| (Fixed::ZERO..=RADIUS_MAX).contains(radius)),
            "radius outside its range",
        )?;
        holds(
            matches!(self.animation, Animation::Stand | Animation::Walk),
            "jumps or falls on a flat map",
        )?;
        holds(
            (self.current_waypoint_index as usize) < self.path_waypoints.len().max(1),
            "waypoint index outside the path",
        )?;
        let sequence = &self.navigation_retry_cooldown_ticks;
        holds(
            !sequence.is_empty() && sequence.iter().all(|ticks| *ticks >= 1),
            "cooldown sequence empty or with a 0",
        )?;
        holds(
            (self.navigation_retry_cursor as usize) < sequence.len(),
            "cursor outside the cooldown sequence",
        )?;
        holds(
            self.kind == Kind::Npc || self.navigation_retry_remaining == 0,
            "a retry, though no NPC",
        )?;
        holds(
            self.is_active()
                || (!self.has_path()
                    && self.navigation_retry_remaining == 0
                    && self.movement_blocked_ticks == 0),
            "on the way, though dead or disabled",
        )?;
        holds(
            self.kind != Kind::Player || self.behaviour == Behaviour::Idle,
            "a player with a behaviour",
        )?;
        holds(
            self.behaviour.check_values(self.id).is_ok(),
            "behaviour outside its ranges",
        )?;
        let ends = match &self.behaviour {
            Behaviour::Patrol { points, looped, .. } => points.len() - usize::from(*looped),
            Behaviour::Script { steps } => steps.len(),
            Behaviour::Idle | Behaviour::Wander { .. } | Behaviour::Follow { .. } => 0,
        };
        holds(
            self.progress.next as usize <= ends && self.progress.set_at <= tick,
            "behaviour further than it goes",
        )?;
        holds(self.rng.increment & 1 == 1, "even increment of the generator")
    }
}

/// Takes one value off the front of `rest`.
pub(crate) fn decode<T: Decode<()>>(rest: &mut &[u8]) -> Result<T, SnapshotError> {
    let (value, read) = bincode::decode_from_slice(rest, configuration())
        .map_err(|error| SnapshotError::Undecodable(error.to_string()))?;
    *rest = &rest[read..];
    Ok(value)
}

fn configuration() -> impl Config {
    config::standard().with_limit::<DECODED_BYTES_MAX>()
}
