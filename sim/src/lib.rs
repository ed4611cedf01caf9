//! The simulation of a location: `step(&mut World, &[Command]) -> Vec<Event>` and nothing else.
//!
//! No clock, no thread, no socket, no file, no float, no hash map: the same World and the same commands give the same World,
//! bit for bit, everywhere (spec 1 and 3). A tour in the order of a location's life:
//!
//! - [`Definition`] is a location as read from its files (`location`, `definition`); [`parse_command_line`] reads commands
//!   that people write (`command_file`). Units are converted there and nowhere else (`units`), ranges checked (`range`, `name`).
//! - [`World`] is the location at a tick (`world`): its [`Character`]s, its maps with what was changed on them, a few counters.
//! - A step (`World::step_into`) runs the phases of spec 3.3 in order: commands (`apply`, `spawn`), retries, forced replans
//!   and talkers (`retry`), movement (`movement`, `neighbours`, `guard`), persistent contact (`retry`), behaviours
//!   (`behaviour`). All paths come from one function (`planning`), all distances from one type (`space`).
//! - The state is written as canonical bytes after every step (`digest`), which name themselves by their digest; `World::load`
//!   reads them back (`snapshot`), [`Contents`] shows them (`contents`). [`ruleset_hash`] says which rules this build steps by (`ruleset`).
#![deny(clippy::float_arithmetic)]

mod apply;
mod behaviour;
pub mod bounded;
mod character;
mod command;
mod command_file;
mod contents;
mod definition;
mod digest;
mod event;
mod guard;
mod location;
mod movement;
mod name;
mod neighbours;
mod planning;
mod range;
mod retry;
mod rng;
mod ruleset;
mod snapshot;
mod space;
mod spawn;
#[cfg(test)]
mod state_tests;
mod units;
mod world;
mod yaw;

pub use behaviour::{Progress, WANDER_DRAWS};
pub use character::{Animation, Character, CharacterId, Kind, OnArrived, PATH_WAYPOINTS_MAX};
pub use command::{
    Behaviour, COOLDOWN_TICKS_MAX, CharacterSpec, Command, LABEL_BYTES_MAX, Label, NAME_BYTES_MAX, Name,
    Outcome, PATROL_POINTS_MAX, PAYLOAD_BYTES_MAX, POLYGON_POINTS_MAX, SCRIPT_STEPS_MAX, ScriptStep, Step,
};
pub use command_file::{COMMAND_LINE_BYTES_MAX, COMMAND_NAMES, parse_command_line};
pub use contents::{ClockContents, Contents, MapContents};
pub use definition::{Definition, Sources, map_paths};
pub use event::Event;
pub use location::{LOCATION_BYTES_MAX, MAP_PATH_BYTES_MAX, SPAWNS_MAX, TICK_RATES};
pub use movement::WALK_THRESHOLD;
pub use name::{NAME_CHARACTERS_MAX, NameError, check_name};
pub use nav::PlannerKind;
pub use planning::{NPC_TALK_DISTANCE, TARGET_REPLAN_THRESHOLD};
pub use range::{RADIUS_MAX, ROTATION_PER_TICK_MAX, RangeError, SPEED_PER_TICK_MAX};
pub use retry::BLOCKED_REPLAN_TICKS;
pub use rng::Pcg32;
pub use ruleset::{compute_ruleset_hash, ruleset_hash};
pub use snapshot::{AREAS_MAX, MAPS_MAX, MapState, OBSTACLES_MAX, Sections, SnapshotError, TICK_MAX};
pub use spawn::{COLLISION_RADIUS, MOVEMENT_CONTACT_RADIUS, SPAWN_RINGS};
pub use world::{CHARACTERS_MAX, Counters, Phase, RULESET, World, step};
pub use yaw::PI;
