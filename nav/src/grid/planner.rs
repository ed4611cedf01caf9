//! The grid behind the planner interface: the edited map, the standing circles, the search.

use super::{EditedMap, Grid, GridSearch};
use crate::{Circle, EditError, MapEdits, Planner, Point, Query, Route};

/// A [`Planner`] on a grid.
#[derive(Clone, Debug)]
pub struct GridPlanner {
    map: EditedMap,
    search: GridSearch,
}

impl GridPlanner {
    /// A planner on a map with nobody standing.
    pub fn new(map: EditedMap) -> Self {
        Self {
            search: GridSearch::new(map.grid()),
            map,
        }
    }

    /// The grid as it is now.
    pub fn grid(&self) -> &Grid {
        self.search.grid()
    }

    /// The map as it is now.
    pub fn map(&self) -> &EditedMap {
        &self.map
    }

    /// Searches what the map has become.
    fn follow_map(&mut self) {
        // An edit beside the grid, or under another obstacle, changes no cell.
        if !self.map.take_changed().is_empty() {
            self.search.set_grid(self.map.grid());
        }
    }
}

impl Planner for GridPlanner {
    fn areas(&self) -> Vec<(String, bool)> {
        let areas = self.map.areas();
        areas.map(|(area, open)| (area.name.clone(), open)).collect()
    }

    fn set_area_available(&mut self, area: &str, available: bool) -> Result<bool, EditError> {
        let changed = self.map.set_area_available(area, available)?;
        self.follow_map();
        Ok(changed)
    }

    fn add_obstacle(&mut self, name: &str, polygon: &[Point]) -> Result<(), EditError> {
        self.map.add_obstacle(name, polygon)?;
        self.follow_map();
        Ok(())
    }

    fn remove_obstacle(&mut self, name: &str) -> Result<(), EditError> {
        self.map.remove_obstacle(name)?;
        self.follow_map();
        Ok(())
    }

    fn edits(&self) -> MapEdits {
        self.map.edits()
    }

    fn set_edits(&mut self, edits: &MapEdits) -> Result<(), EditError> {
        self.map.set_edits(edits)?;
        self.follow_map();
        Ok(())
    }

    fn block(&mut self, circle: Circle) {
        self.search.block(circle);
    }

    fn unblock(&mut self, circle: Circle) {
        self.search.unblock(circle);
    }

    fn unblock_all(&mut self) {
        self.search.unblock_all();
    }

    fn plan(&mut self, query: &Query<'_>, route: &mut Route) {
        self.search.plan(query, route);
    }

    fn is_free_ground(&self, point: Point) -> bool {
        let grid = self.grid();
        grid.cell_of(point).is_some_and(|cell| grid.is_walkable(cell))
    }

    fn line_of_sight(&self, from: Point, to: Point) -> bool {
        let grid = self.grid();
        let cells = grid.cell_of(from).zip(grid.cell_of(to));
        cells.is_some_and(|(from, to)| {
            grid.is_walkable(from) && grid.is_walkable(to) && grid.line_of_sight(from, to)
        })
    }
}
