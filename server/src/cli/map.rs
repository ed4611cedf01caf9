//! A map file as the commands use it: the planner that it is for, or the grid.

use std::path::Path;

use nav::{EditedMap, Fixed, GridPlanner, MapFile, Planner, PlannerKind, PolygonPlanner, Problems};

use super::input;

/// A map that has been read.
pub(crate) struct MapInput {
    /// What it is, for people.
    pub(crate) kind: &'static str,
    /// Height of every waypoint, metres.
    pub(crate) floor_y: Fixed,
    /// Answers questions.
    pub(crate) planner: MapPlanner,
}

/// The planners that maps are for.
pub(crate) enum MapPlanner {
    /// It has its grid and the map's areas and obstacles.
    Grid(Box<GridPlanner>),
    /// It has its graphs and the map's polygons.
    Polygon(Box<PolygonPlanner>),
}

impl MapInput {
    /// Reads a map file for a planner; `None`: for the one that the file names, else the grid.
    ///
    /// # Errors
    /// Bad input: it cannot be read; every broken rule.
    pub(crate) fn read(path: &Path, planner: Option<PlannerKind>) -> anyhow::Result<Self> {
        let bytes = input::read(path, input::MAP_BYTES_MAX)?;
        Ok(Self::parse(&input::name(path), &bytes, planner)?)
    }

    /// Reads the bytes of a map file; the ending of its name says what it is.
    ///
    /// # Errors
    /// Every broken rule.
    pub(crate) fn parse(file: &str, bytes: &[u8], planner: Option<PlannerKind>) -> Result<Self, Problems> {
        let map = MapFile::parse_for(planner, file, bytes)?;
        let kind = match (&map, file.ends_with(".map")) {
            (MapFile::Polygons(_), _) => "polygon map",
            (MapFile::Baked(_), true) => "MovingAI octile map",
            (MapFile::Baked(_), false) => "baked grid",
        };
        let floor_y = match &map {
            MapFile::Polygons(map) => map.parameters().floor_y,
            MapFile::Baked(map) => map.parameters.floor_y,
        };
        let planner = match &map {
            MapFile::Polygons(map) if map.kind() == PlannerKind::Polygon => {
                MapPlanner::Polygon(Box::new(PolygonPlanner::of_map(map)))
            }
            _ => MapPlanner::Grid(Box::new(GridPlanner::new(EditedMap::new(&map)))),
        };
        Ok(Self {
            kind,
            floor_y,
            planner,
        })
    }
}

impl MapPlanner {
    /// Whichever it is.
    pub(crate) fn any(&mut self) -> &mut dyn Planner {
        match self {
            Self::Grid(planner) => &mut **planner,
            Self::Polygon(planner) => &mut **planner,
        }
    }
}

/// Reads a map file for the grid.
///
/// # Errors
/// Bad input: it cannot be read; every broken rule; a map for another planner.
pub(crate) fn read_grid(path: &Path) -> anyhow::Result<GridPlanner> {
    let bytes = input::read(path, input::MAP_BYTES_MAX)?;
    Ok(parse_grid(&input::name(path), &bytes)?)
}

/// Reads the bytes of a map file for the grid.
///
/// # Errors
/// Every broken rule; a map for another planner.
pub(crate) fn parse_grid(file: &str, bytes: &[u8]) -> Result<GridPlanner, Problems> {
    let map = MapFile::parse_for(Some(PlannerKind::Grid), file, bytes)?;
    Ok(GridPlanner::new(EditedMap::new(&map)))
}
