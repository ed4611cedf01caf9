//! The grid behind the planner interface: the edited map, the standing circles, the search.

use super::{Grid, literal};
use crate::{Circle, EditError, MapEdits, Planner, Point, Query, Route};

/// A [`Planner`] on a grid.
#[derive(Clone, Debug)]
pub struct GridPlanner {
    grid: Grid,
    standing: Vec<Circle>,
}

impl GridPlanner {
    /// A planner on `grid` with nobody standing.
    pub fn new(grid: Grid) -> Self {
        Self {
            grid,
            standing: Vec::new(),
        }
    }

    /// The grid as it is now.
    pub fn grid(&self) -> &Grid {
        &self.grid
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
        self.standing.push(circle);
    }

    fn unblock(&mut self, circle: Circle) {
        let position = self.standing.iter().position(|standing| *standing == circle);
        self.standing
            .swap_remove(position.expect("unblocked what was blocked"));
    }

    fn unblock_all(&mut self) {
        self.standing.clear();
    }

    fn plan(&mut self, query: &Query<'_>, route: &mut Route) {
        let mut standing = self.standing.clone();
        for circle in query.except {
            let position = standing.iter().position(|standing| standing == circle);
            standing.swap_remove(position.expect("excepted what was blocked"));
        }
        *route = literal::plan(&self.grid, &standing, query);
    }

    fn is_free_ground(&self, point: Point) -> bool {
        self.grid
            .cell_of(point)
            .is_some_and(|cell| self.grid.is_walkable(cell))
    }

    fn line_of_sight(&self, from: Point, to: Point) -> bool {
        let cells = self.grid.cell_of(from).zip(self.grid.cell_of(to));
        cells.is_some_and(|(from, to)| {
            self.grid.is_walkable(from) && self.grid.is_walkable(to) && self.grid.line_of_sight(from, to)
        })
    }
}
