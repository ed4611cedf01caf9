//! A map with what has been changed on it since it was loaded: areas opened and closed, obstacles added and removed.
//!
//! After every change the cells are those a full build would give. Two layers are kept, the ground (rules 2 and 3 of spec
//! 2.3) and what obstacles cover (rule 4); a change draws one of them again, inside the rectangle it can touch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::build::{
    DRAWING_STEPS_MAX, area_reach, draw_areas, draw_obstacle, obstacle_radius, obstacle_steps,
};
use super::cells::{Cells, Window};
use super::raster::{Frame, fill_inside};
use super::text::BakedGrid;
use super::{Grid, GridParameters};
use crate::geometry::Polygon;
use crate::map_file::{Area, MAP_NAME_BYTES_MAX, MapFile, OBSTACLES_MAX, Obstacle, PolygonMap};
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
    source: Arc<Source>,
    frame: Frame,
    /// Per area of the file.
    available: Vec<bool>,
    /// Per obstacle of the file.
    removed: Vec<bool>,
    added: BTreeMap<String, Polygon>,
    ground: Cells,
    covered: Cells,
    walkable: Cells,
    changed: Window,
    marks: Vec<u64>,
}

/// What the file gave, and where its names are.
#[derive(Debug)]
struct Source {
    parameters: GridParameters,
    areas: Vec<Area>,
    obstacles: Vec<Obstacle>,
    /// Index of each obstacle of the file.
    obstacle_index: BTreeMap<String, usize>,
    /// Index of each area.
    area_index: BTreeMap<String, usize>,
    is_baked: bool,
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
        let index = |names: &mut dyn Iterator<Item = &String>| {
            names
                .enumerate()
                .map(|(index, name)| (name.clone(), index))
                .collect()
        };
        let source = Source {
            parameters: *map.parameters(),
            areas: map.areas().to_vec(),
            obstacles: map.obstacles().to_vec(),
            obstacle_index: index(&mut map.obstacles().iter().map(|obstacle| &obstacle.name)),
            area_index: index(&mut map.areas().iter().map(|area| &area.name)),
            is_baked: false,
        };
        let frame = *map.frame().expect("a map that was read for the grid");
        let empty = Cells::new(frame.width, frame.depth);
        let mut edited = Self {
            frame,
            available: source.areas.iter().map(|area| area.available).collect(),
            removed: vec![false; source.obstacles.len()],
            added: BTreeMap::new(),
            ground: empty.clone(),
            covered: empty.clone(),
            walkable: empty,
            changed: frame.window(),
            marks: Vec::new(),
            source: Arc::new(source),
        };
        edited.redraw_ground(&frame.window());
        edited.redraw_covered(&frame.window());
        edited
    }

    /// A baked grid: its own cells are the ground.
    pub fn of_baked(grid: &BakedGrid) -> Self {
        let frame = grid.frame();
        let source = Source {
            parameters: grid.parameters,
            areas: Vec::new(),
            obstacles: Vec::new(),
            obstacle_index: BTreeMap::new(),
            area_index: BTreeMap::new(),
            is_baked: true,
        };
        Self {
            source: Arc::new(source),
            frame,
            available: Vec::new(),
            removed: Vec::new(),
            added: BTreeMap::new(),
            ground: grid.cells.clone(),
            covered: Cells::new(frame.width, frame.depth),
            walkable: grid.cells.clone(),
            changed: frame.window(),
            marks: Vec::new(),
        }
    }

    /// The numbers the grid is built with.
    pub fn parameters(&self) -> &GridParameters {
        &self.source.parameters
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
        Grid::from_bits(self.source.parameters, self.frame.min, &self.walkable)
    }

    /// The grid as it is now, to write as text.
    pub fn to_baked(&self) -> BakedGrid {
        BakedGrid {
            parameters: self.source.parameters,
            min: self.frame.min,
            cells: self.walkable.clone(),
        }
    }

    /// Whether the map is a baked grid, without areas.
    pub fn is_baked(&self) -> bool {
        self.source.is_baked
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
        self.source.areas.iter().zip(self.available.iter().copied())
    }

    /// The obstacles that stand now: those of the file in its order, then the added ones by name.
    pub fn obstacles(&self) -> impl Iterator<Item = (&str, &Polygon)> {
        let file = self.source.obstacles.iter().zip(&self.removed);
        let file = file
            .filter(|(_, removed)| !**removed)
            .map(|(obstacle, _)| (obstacle.name.as_str(), &obstacle.polygon));
        file.chain(self.added.iter().map(|(name, polygon)| (name.as_str(), polygon)))
    }

    /// Opens or closes an area; `Ok(false)` if it was so already.
    ///
    /// # Errors
    /// `NoAreas` on a baked grid, `UnknownArea`.
    pub fn set_area_available(&mut self, area: &str, available: bool) -> Result<bool, EditError> {
        if self.source.is_baked {
            return Err(EditError::NoAreas);
        }
        let index = *self.source.area_index.get(area).ok_or(EditError::UnknownArea)?;
        if self.available[index] == available {
            return Ok(false);
        }
        self.available[index] = available;
        let bounds = self.source.areas[index].polygon.bounds();
        let window = self.frame.cells_within(bounds, area_reach(self.parameters()));
        self.redraw_ground(&window);
        Ok(true)
    }

    /// Adds an obstacle, as [`crate::Planner::add_obstacle`].
    ///
    /// # Errors
    /// `NameInUse`, `BadPolygon` (also for a name that is empty or longer than 64 bytes), `NoRoom` (also where drawing it
    /// would take longer than a map may take to draw).
    pub fn add_obstacle(&mut self, name: &str, polygon: &[Point]) -> Result<(), EditError> {
        if self.stands(name) {
            return Err(EditError::NameInUse);
        }
        let polygon = checked(name, polygon)?;
        let steps = obstacle_steps(&self.frame, self.parameters(), &polygon);
        if self.obstacle_count() >= OBSTACLES_MAX || steps > DRAWING_STEPS_MAX {
            return Err(EditError::NoRoom);
        }
        let window = self.window_of(&polygon);
        let Self {
            covered,
            frame,
            source,
            marks,
            ..
        } = self;
        draw_obstacle(covered, frame, &window, &source.parameters, &polygon, marks);
        self.added.insert(name.to_owned(), polygon);
        self.finish_change(&window);
        Ok(())
    }

    /// Removes an obstacle that was added, or one of the file.
    ///
    /// # Errors
    /// `UnknownObstacle`.
    pub fn remove_obstacle(&mut self, name: &str) -> Result<(), EditError> {
        let window = if let Some(polygon) = self.added.remove(name) {
            self.window_of(&polygon)
        } else {
            let index = self.source.obstacle_index.get(name).copied();
            let index = index.filter(|index| !self.removed[*index]);
            let index = index.ok_or(EditError::UnknownObstacle)?;
            self.removed[index] = true;
            self.window_of(&self.source.obstacles[index].polygon)
        };
        self.redraw_covered(&window);
        Ok(())
    }

    /// All changes since the map was loaded. An outline has its equal neighbours merged.
    pub fn edits(&self) -> MapEdits {
        let obstacles = self.source.obstacles.iter().zip(&self.removed);
        let mut removed: Vec<String> = obstacles
            .filter(|(_, removed)| **removed)
            .map(|(obstacle, _)| obstacle.name.clone())
            .collect();
        removed.sort_unstable();
        let added = self.added.iter();
        MapEdits {
            available: self.available.clone(),
            removed,
            added: added
                .map(|(name, polygon)| (name.clone(), polygon.vertices().to_vec()))
                .collect(),
        }
    }

    /// Makes `edits` the changes since the map was loaded, whatever they were before.
    ///
    /// # Errors
    /// If they do not fit this map, or are not in name order; nothing has changed then.
    pub fn set_edits(&mut self, edits: &MapEdits) -> Result<(), EditError> {
        if edits.available.len() != self.available.len() {
            return Err(EditError::UnknownArea);
        }
        let mut removed = vec![false; self.removed.len()];
        for name in &edits.removed {
            let index = self.source.obstacle_index.get(name);
            removed[*index.ok_or(EditError::UnknownObstacle)?] = true;
        }
        if !edits.removed.is_sorted_by(|one, two| one < two) {
            return Err(EditError::UnknownObstacle);
        }
        if !edits.added.is_sorted_by(|one, two| one.0 < two.0) {
            return Err(EditError::NameInUse);
        }
        let mut added = BTreeMap::new();
        for (name, polygon) in &edits.added {
            let index = self.source.obstacle_index.get(name);
            if index.is_some_and(|index| !removed[*index]) {
                return Err(EditError::NameInUse);
            }
            let polygon = checked(name, polygon)?;
            if obstacle_steps(&self.frame, self.parameters(), &polygon) > DRAWING_STEPS_MAX {
                return Err(EditError::NoRoom);
            }
            added.insert(name.clone(), polygon);
        }
        let standing = removed.iter().filter(|removed| !**removed).count() + added.len();
        if standing > OBSTACLES_MAX {
            return Err(EditError::NoRoom);
        }
        let ground_differs = self.available != edits.available;
        let obstacles_differ = self.removed != removed || self.added != added;
        self.available.clone_from(&edits.available);
        self.removed = removed;
        self.added = added;
        if ground_differs {
            self.redraw_ground(&self.frame.window());
        }
        if obstacles_differ {
            self.redraw_covered(&self.frame.window());
        }
        Ok(())
    }

    /// An obstacle of this name stands now.
    fn stands(&self, name: &str) -> bool {
        let index = self.source.obstacle_index.get(name);
        self.added.contains_key(name) || index.is_some_and(|index| !self.removed[*index])
    }

    fn obstacle_count(&self) -> usize {
        self.removed.iter().filter(|removed| !**removed).count() + self.added.len()
    }

    /// The cells that an obstacle can cover.
    fn window_of(&self, obstacle: &Polygon) -> Window {
        self.frame
            .cells_within(obstacle.bounds(), obstacle_radius(self.parameters()))
    }

    /// Draws the open areas again, inside a window.
    fn redraw_ground(&mut self, window: &Window) {
        let Self {
            source,
            frame,
            available,
            ground,
            marks,
            ..
        } = self;
        // Also those that touch the window only with their padding, or with a seam on its border.
        let margin = area_reach(&source.parameters);
        let near = |area: &Area| {
            let cells = frame.cells_within(area.polygon.bounds(), 2 * margin);
            !cells.intersection(window).is_empty()
        };
        let open: Vec<&Polygon> = source
            .areas
            .iter()
            .zip(available.iter())
            .filter(|(area, available)| **available && near(area))
            .map(|(area, _)| &area.polygon)
            .collect();
        draw_areas(ground, frame, window, &source.parameters, &open, marks);
        self.finish_change(window);
    }

    /// Draws the standing obstacles again, inside a window.
    fn redraw_covered(&mut self, window: &Window) {
        let Self {
            source,
            frame,
            removed,
            added,
            covered,
            marks,
            ..
        } = self;
        covered.clear(window);
        let file = source.obstacles.iter().zip(removed.iter());
        let standing = file
            .filter(|(_, removed)| !**removed)
            .map(|(obstacle, _)| &obstacle.polygon);
        for polygon in standing.chain(added.values()) {
            draw_obstacle(covered, frame, window, &source.parameters, polygon, marks);
        }
        self.finish_change(window);
    }

    fn finish_change(&mut self, window: &Window) {
        self.walkable.subtract(&self.ground, &self.covered, window);
        self.changed = self.changed.union(window);
    }
}

fn checked(name: &str, polygon: &[Point]) -> Result<Polygon, EditError> {
    if name.is_empty() || name.len() > MAP_NAME_BYTES_MAX {
        return Err(EditError::BadPolygon);
    }
    Polygon::new(polygon).map_err(|_| EditError::BadPolygon)
}

#[cfg(test)]
mod tests;
