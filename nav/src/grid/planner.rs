//! The grid behind the planner interface: the edited map, the standing circles, the search.

use super::{Grid, GridSearch};
use crate::{Circle, EditError, MapEdits, Planner, Point, Query, Route};

/// A [`Planner`] on a grid.
#[derive(Clone, Debug)]
pub struct GridPlanner {
    search: GridSearch,
}

impl GridPlanner {
    /// A planner on `grid` with nobody standing.
    pub fn new(grid: Grid) -> Self {
        Self {
            search: GridSearch::new(grid),
        }
    }

    /// The grid as it is now.
    pub fn grid(&self) -> &Grid {
        self.search.grid()
    }
}

impl Planner for GridPlanner {
    fn areas(&self) -> Vec<(String, bool)> {
        Vec::new()
    }

    fn set_area_available(&mut self, _area: &str, _available: bool) -> Result<bool, EditError> {
        Err(EditError::NoAreas)
    }

    fn add_obstacle(&mut self, _name: &str, _polygon: &[Point]) -> Result<(), EditError> {
        Err(EditError::BadPolygon)
    }

    fn remove_obstacle(&mut self, _name: &str) -> Result<(), EditError> {
        Err(EditError::UnknownObstacle)
    }

    fn edits(&self) -> MapEdits {
        MapEdits::default()
    }

    fn set_edits(&mut self, _edits: &MapEdits) -> Result<(), EditError> {
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
