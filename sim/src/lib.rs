//! The simulation of a location: `step(&mut World, &[Command]) -> Vec<Event>` and nothing else.
#![deny(clippy::float_arithmetic)]

mod apply;
mod behaviour;
pub mod bounded;
mod character;
mod command;
mod command_file;
mod definition;
mod digest;
mod event;
mod guard;
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
mod units;
mod world;
mod yaw;

pub use behaviour::Progress;
pub use character::{Animation, Character, CharacterId, Kind, OnArrived, PATH_WAYPOINTS_MAX};
pub use command::{
    Behaviour, COOLDOWN_TICKS_MAX, CharacterSpec, Command, LABEL_BYTES_MAX, Label, NAME_BYTES_MAX, Name,
    Outcome, PATROL_POINTS_MAX, PAYLOAD_BYTES_MAX, POLYGON_POINTS_MAX, SCRIPT_STEPS_MAX, ScriptStep, Step,
};
pub use command_file::{COMMAND_LINE_BYTES_MAX, parse_command_line};
pub use definition::{Definition, PlannerKind, Sources, map_paths};
pub use event::Event;
pub use name::{NAME_CHARACTERS_MAX, NameError, check_name};
pub use range::{RADIUS_MAX, ROTATION_PER_TICK_MAX, RangeError, SPEED_PER_TICK_MAX};
pub use rng::Pcg32;
pub use ruleset::ruleset_hash;
pub use snapshot::{AREAS_MAX, MapState, OBSTACLES_MAX, Sections, SnapshotError};
pub use world::{CHARACTERS_MAX, Counters, Phase, RULESET, World, step};
