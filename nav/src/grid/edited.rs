//! A map with what has been changed on it since it was loaded: areas opened and closed, obstacles added and removed.
//!
//! After every change the cells are those a full build would give. Two layers are kept, the ground (rules 2 and 3 of spec
//! 2.3) and what obstacles cover (rule 4); a change draws one of them again, inside the rectangle it can touch.

use super::build::{
    DRAWING_STEPS_MAX, area_reach, draw_areas, draw_obstacle, obstacle_radius, obstacle_steps,
};
use super::cells::{Cells, Window};
use super::raster::{Frame, fill_inside};
use super::text::BakedGrid;
use super::{Grid, GridParameters};
use crate::edits::EditedPolygons;
use crate::geometry::Polygon;
use crate::map_file::{Area, MapFile, PolygonMap};
use crate::{EditError, MapEdits, Point};

/// A map and the changes on it. A clone shares the map.
///
/// ```
/// use nav::{EditedMap, MapFile};
///
/// let text = br#"{"areas": [{"name": "hall", "polygon": [[0, 0], [9, 0], [9, 4], [0, 4]]},
///                           {"name": "door", "polygon": [[9, 1], [10, 1], [10, 3], [9, 3]]}]}"#;
/// let mut map = EditedMap::new(&MapFile::parse("hall.json", text)?);
/// map.take_changed();
/// assert_eq!(map.set_area_available("door", false), Ok(true));
/// // Which cells may differ, the cells themselves, and a grid of them to search on.
/// assert!(map.take_changed().columns.end <= map.walkable().width());
/// let grid = map.grid();
/// assert_eq!(map.edits().available, [true, false]);
/// # assert_eq!(grid.width(), map.frame().width);
/// # Ok::<(), nav::Problems>(())
/// ```
#[derive(Clone, Debug)]
pub struct EditedMap {
    parameters: GridParameters,
    frame: Frame,
    is_baked: bool,
    map: EditedPolygons,
    ground: Cells,
    covered: Cells,
    walkable: Cells,
    changed: Window,
    marks: Vec<u64>,
}

impl EditedMap {
    /// The map as the file gives it.
    pub fn new(map: &MapFile) -> Self {
        match map {
            MapFile::Polygons(map) => Self::of_polygons(map),
            MapFile::Baked(grid) => Self::of_baked(grid),
        }
    }

    /// A map of polygons, built.
    ///
    /// # Panics
    /// If the map was read for another planner.
    pub fn of_polygons(map: &PolygonMap) -> Self {
        let frame = *map.frame().expect("a map that was read for the grid");
        let empty = Cells::new(frame.width, frame.depth);
        let mut edited = Self {
            frame,
            parameters: *map.parameters(),
            is_baked: false,
            map: EditedPolygons::new(map.areas(), map.obstacles()),
            ground: empty.clone(),
            covered: empty.clone(),
            walkable: empty,
            changed: frame.window(),
            marks: Vec::new(),
        };
        edited.redraw_ground(&frame.window());
        edited.redraw_covered(&frame.window());
        edited
    }

    /// A baked grid: its own cells are the ground.
    pub fn of_baked(grid: &BakedGrid) -> Self {
        let frame = grid.frame();
        Self {
            parameters: grid.parameters,
            is_baked: true,
            map: EditedPolygons::new(&[], &[]),
            frame,
            ground: grid.cells.clone(),
            covered: Cells::new(frame.width, frame.depth),
            walkable: grid.cells.clone(),
            changed: frame.window(),
            marks: Vec::new(),
        }
    }

    /// The numbers the grid is built with.
    pub fn parameters(&self) -> &GridParameters {
        &self.parameters
    }

    /// Where the cells lie; no change moves them.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Which cells are walkable now.
    pub fn walkable(&self) -> &Cells {
        &self.walkable
    }

    /// A rectangle around all cells that differ from what they were at the last call (at first: all). Empty if none can.
    pub fn take_changed(&mut self) -> Window {
        std::mem::replace(
            &mut self.changed,
            Window {
                columns: 0..0,
                rows: 0..0,
            },
        )
    }

    /// The grid as it is now, to search on.
    pub fn grid(&self) -> Grid {
        Grid::from_bits(self.parameters, self.frame.min, &self.walkable)
    }

    /// The grid as it is now, to write as text.
    pub fn to_baked(&self) -> BakedGrid {
        BakedGrid {
            parameters: self.parameters,
            min: self.frame.min,
            cells: self.walkable.clone(),
        }
    }

    /// Whether the map is a baked grid, without areas.
    pub fn is_baked(&self) -> bool {
        self.is_baked
    }

    /// The cells inside an open area that are not walkable, for a picture.
    pub fn blocked_ground(&self) -> Cells {
        let window = self.frame.window();
        let mut inside = Cells::new(self.frame.width, self.frame.depth);
        let open = self.areas().filter(|(_, open)| *open);
        for (area, _) in open {
            fill_inside(&mut inside, &self.frame, &window, &area.polygon, &mut Vec::new());
        }
        let mut blocked = Cells::new(self.frame.width, self.frame.depth);
        blocked.subtract(&inside, &self.walkable, &window);
        blocked
    }

    /// The areas in file order, and whether each is open; none on a baked grid.
    pub fn areas(&self) -> impl Iterator<Item = (&Area, bool)> {
        self.map.areas()
    }

    /// The obstacles that stand now: those of the file in its order, then the added ones by name.
    pub fn obstacles(&self) -> impl Iterator<Item = (&str, &Polygon)> {
        self.map.obstacles()
    }

    /// Opens or closes an area; `Ok(false)` if it was so already.
    ///
    /// # Errors
    /// `NoAreas` on a baked grid, `UnknownArea`.
    pub fn set_area_available(&mut self, area: &str, available: bool) -> Result<bool, EditError> {
        if self.is_baked {
            return Err(EditError::NoAreas);
        }
        let Some(changed) = self.map.set_area_available(area, available)? else {
            return Ok(false);
        };
        let window = self
            .frame
            .cells_within(changed.bounds(), area_reach(&self.parameters));
        self.redraw_ground(&window);
        Ok(true)
    }

    /// Adds an obstacle, as [`crate::Planner::add_obstacle`].
    ///
    /// # Errors
    /// `NameInUse`, `BadPolygon` (also for a name that is empty or longer than 64 bytes), `NoRoom` (also where drawing it
    /// would take longer than a map may take to draw).
    pub fn add_obstacle(&mut self, name: &str, polygon: &[Point]) -> Result<(), EditError> {
        let polygon = self.map.check_new_obstacle(name, polygon)?;
        if self.takes_too_long(&polygon) {
            return Err(EditError::NoRoom);
        }
        let window = self.window_of(&polygon);
        let Self {
            covered,
            frame,
            parameters,
            marks,
            ..
        } = self;
        draw_obstacle(covered, frame, &window, parameters, &polygon, marks);
        self.map.insert_obstacle(name, polygon);
        self.finish_change(&window);
        Ok(())
    }

    /// Removes an obstacle that was added, or one of the file.
    ///
    /// # Errors
    /// `UnknownObstacle`.
    pub fn remove_obstacle(&mut self, name: &str) -> Result<(), EditError> {
        let removed = self.map.remove_obstacle(name)?;
        let window = self.window_of(&removed);
        self.redraw_covered(&window);
        Ok(())
    }

    /// All changes since the map was loaded. An outline has its equal neighbours merged.
    pub fn edits(&self) -> MapEdits {
        self.map.edits()
    }

    /// Makes `edits` the changes since the map was loaded, whatever they were before.
    ///
    /// # Errors
    /// If they do not fit this map, or are not in name order; nothing has changed then.
    pub fn set_edits(&mut self, edits: &MapEdits) -> Result<(), EditError> {
        let map = self.map.with_edits(edits)?;
        if map.added().any(|polygon| self.takes_too_long(polygon)) {
            return Err(EditError::NoRoom);
        }
        let ground_differs = !self.map.area_differences(&map).is_empty();
        let obstacles_differ = !self.map.obstacle_differences(&map).is_empty();
        self.map = map;
        if ground_differs {
            self.redraw_ground(&self.frame.window());
        }
        if obstacles_differ {
            self.redraw_covered(&self.frame.window());
        }
        Ok(())
    }

    /// An obstacle is not to be drawn.
    fn takes_too_long(&self, obstacle: &Polygon) -> bool {
        obstacle_steps(&self.frame, &self.parameters, obstacle) > DRAWING_STEPS_MAX
    }

    /// The cells that an obstacle can cover.
    fn window_of(&self, obstacle: &Polygon) -> Window {
        self.frame
            .cells_within(obstacle.bounds(), obstacle_radius(self.parameters()))
    }

    /// Draws the open areas again, inside a window.
    fn redraw_ground(&mut self, window: &Window) {
        let Self {
            parameters,
            frame,
            map,
            ground,
            marks,
            ..
        } = self;
        // Also those that touch the window only with their padding, or with a seam on its border.
        let margin = area_reach(parameters);
        let near = |area: &Area| {
            let cells = frame.cells_within(area.polygon.bounds(), 2 * margin);
            !cells.intersection(window).is_empty()
        };
        let open: Vec<&Polygon> = map
            .areas()
            .filter(|(area, available)| *available && near(area))
            .map(|(area, _)| &area.polygon)
            .collect();
        draw_areas(ground, frame, window, parameters, &open, marks);
        self.finish_change(window);
    }

    /// Draws the standing obstacles again, inside a window.
    fn redraw_covered(&mut self, window: &Window) {
        let Self {
            parameters,
            frame,
            map,
            covered,
            marks,
            ..
        } = self;
        covered.clear(window);
        for (_, polygon) in map.obstacles() {
            draw_obstacle(covered, frame, window, parameters, polygon, marks);
        }
        self.finish_change(window);
    }

    fn finish_change(&mut self, window: &Window) {
        self.walkable.subtract(&self.ground, &self.covered, window);
        self.changed = self.changed.union(window);
    }
}

#[cfg(test)]
mod tests;
