//! A map file as the commands use it: its planner, which has its grid.

use std::path::Path;

use nav::{BakedGrid, EditedMap, GridPlanner, MapFile, Problems};

use super::input;

/// A map that has been read.
pub(crate) struct MapInput {
    /// What it is, for people.
    pub(crate) kind: &'static str,
    /// Answers questions; it has the grid and the map's areas and obstacles.
    pub(crate) planner: GridPlanner,
}

impl MapInput {
    /// Reads a map file.
    ///
    /// # Errors
    /// Bad input: it cannot be read; every broken rule.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = input::read(path, input::MAP_BYTES_MAX)?;
        Ok(Self::parse(&input::name(path), &bytes)?)
    }

    /// Reads the bytes of a map file; the ending of its name says what it is.
    ///
    /// # Errors
    /// Every broken rule.
    pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Self, Problems> {
        let map = MapFile::parse(file, bytes)?;
        let kind = match (&map, file.ends_with(".map")) {
            (MapFile::Polygons(_), _) => "polygon map",
            (MapFile::Baked(_), true) => "MovingAI octile map",
            (MapFile::Baked(_), false) => "baked grid",
        };
        let planner = GridPlanner::new(EditedMap::new(&map));
        Ok(Self { kind, planner })
    }

    /// The grid as text has it.
    pub(crate) fn baked(&self) -> BakedGrid {
        self.planner.map().to_baked()
    }
}
