//! The World as canonical bytes (spec 5.4).

use nav::{EditError, Point};
use serde::Serialize;

use bincode::{Decode, Encode};

use crate::bounded::List;
use crate::command::{Label, POLYGON_POINTS_MAX};

/// Areas of one map in a snapshot.
pub const AREAS_MAX: usize = 65_536;
/// Obstacles in a location (spec 3.4).
pub const OBSTACLES_MAX: usize = 4_096;

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
    /// A value that no World has.
    #[error("character {character}: {rule}")]
    Character {
        /// Its id.
        character: u32,
        /// The broken rule.
        rule: &'static str,
    },
    /// The same state has other bytes.
    #[error("not in canonical form")]
    NotCanonical,
}
