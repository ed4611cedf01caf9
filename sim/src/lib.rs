//! The simulation of a location: `step(&mut World, &[Command]) -> Vec<Event>` and nothing else.
#![deny(clippy::float_arithmetic)]

pub mod bounded;
mod character;
mod command;
mod event;

pub use character::{Animation, CharacterId, Kind, OnArrived};
pub use command::{
    Behaviour, COOLDOWN_TICKS_MAX, CharacterSpec, Command, LABEL_BYTES_MAX, Label, NAME_BYTES_MAX, Name,
    Outcome, PATROL_POINTS_MAX, PAYLOAD_BYTES_MAX, POLYGON_POINTS_MAX, SCRIPT_STEPS_MAX, ScriptStep, Step,
};
pub use event::Event;
