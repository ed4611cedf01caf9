//! A map file as the commands use it: its grid with a planner, and the outlines to draw.

use std::path::Path;

use nav::{BakedGrid, EditedMap, GridPlanner, MapFile, Problems};

use super::input;
use super::picture::Outline;

/// A map that has been read.
pub(crate) struct MapInput {
    /// What it is, for people.
    pub(crate) kind: &'static str,
    /// Its grid as text has it.
    pub(crate) baked: BakedGrid,
    /// Answers questions; `planner.grid()` is the same grid.
    pub(crate) planner: GridPlanner,
    /// Of a polygon map.
    pub(crate) areas: Vec<Outline>,
    /// Of a polygon map.
    pub(crate) obstacles: Vec<Outline>,
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
        let edited = EditedMap::new(&map);
        let baked = edited.to_baked();
        let areas = edited.areas().map(|(area, available)| Outline {
            name: area.name.clone(),
            polygon: area.polygon.vertices().to_vec(),
            available,
        });
        let areas = areas.collect();
        let obstacles = edited.obstacles().map(|(name, polygon)| Outline {
            name: name.to_owned(),
            polygon: polygon.vertices().to_vec(),
            available: true,
        });
        let obstacles = obstacles.collect();
        Ok(Self {
            kind,
            planner: GridPlanner::new(edited),
            areas,
            obstacles,
            baked,
        })
    }
}
