//! A location as read from its files: checked once, immutable, cheap to clone (spec 5.3 and 6).

use std::fmt;
use std::sync::Arc;

use nav::{Fixed, Planner, Point, Problems};
use serde::Serialize;

use crate::character::Kind;
use crate::command::{CharacterSpec, Label};

/// The files and flags that make a definition.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// Name of the location file for its errors.
    pub location_file: &'a str,
    /// The location file.
    pub location: &'a [u8],
    /// Overrides the file's tick rate, Hz.
    pub tick_rate: Option<u16>,
    /// Overrides the number of bots.
    pub bots: Option<u32>,
    /// The map files under the paths that the location file uses.
    pub files: &'a [(String, Vec<u8>)],
}

/// Which planner a location uses (spec 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlannerKind {
    /// The uniform grid of spec 2.
    Grid,
}

/// A checked location: everything a World is made from.
#[derive(Clone)]
pub struct Definition {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) tick_rate: u16,
    pub(crate) planner: PlannerKind,
    /// In name order.
    pub(crate) maps: Vec<Map>,
    pub(crate) start_map: usize,
    pub(crate) spawns: Vec<Point>,
    /// A player's, metres per tick.
    pub(crate) walk_speed: Fixed,
    /// A player's, radians per tick.
    pub(crate) rotation_speed: Fixed,
    /// In id order.
    pub(crate) characters: Vec<(Kind, CharacterSpec)>,
}

/// A named map and how to make its planner.
pub(crate) struct Map {
    pub(crate) name: Label,
    pub(crate) make_planner: Box<dyn Fn() -> Box<dyn Planner> + Send + Sync>,
}

impl Map {
    pub(crate) fn planner(&self) -> Box<dyn Planner> {
        (self.make_planner)()
    }
}

impl Definition {
    /// Reads and checks a location and its maps.
    ///
    /// # Errors
    /// Every problem in every file, each with its place.
    pub fn load(sources: &Sources<'_>) -> Result<Self, Problems> {
        Err(Problems::one(sources.location_file, "", "not readable yet"))
    }

    /// Name of the location.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Ticks per second, 1 to 128.
    pub fn tick_rate(&self) -> u16 {
        self.inner.tick_rate
    }

    /// The planner of all its maps.
    pub fn planner(&self) -> PlannerKind {
        self.inner.planner
    }

    /// Names of the maps, in name order.
    pub fn map_names(&self) -> impl Iterator<Item = &str> {
        self.inner.maps.iter().map(|map| map.name.as_str())
    }

    /// Where players spawn, in file order.
    pub fn spawns(&self) -> &[Point] {
        &self.inner.spawns
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.inner.name)
            .field("tick_rate", &self.inner.tick_rate)
            .finish_non_exhaustive()
    }
}

/// The map paths that a location file names, sorted by bytes, each once.
///
/// # Errors
/// The file is no location file.
pub fn map_paths(location_file: &str, _location: &[u8]) -> Result<Vec<String>, Problems> {
    Err(Problems::one(location_file, "", "not readable yet"))
}
