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
mod tests {
    use proptest::prelude::*;

    use super::super::build::literal;
    use super::*;

    /// Rectangles and quadrilaterals on a lattice of half metres, so that they share borders.
    fn outline() -> impl Strategy<Value = Vec<(i32, i32)>> {
        let rectangle = (-9..9i32, -9..9i32, 1..9i32, 1..9i32)
            .prop_map(|(x, z, w, d)| vec![(x, z), (x + w, z), (x + w, z + d), (x, z + d)]);
        let any = prop::collection::vec((-9..9i32, -9..9i32), 3..6);
        prop_oneof![2 => rectangle, 1 => any]
            .prop_filter("simple", |corners| Polygon::new(&points(corners)).is_ok())
    }

    fn points(corners: &[(i32, i32)]) -> Vec<Point> {
        let half = |value: i32| value * 32_768;
        corners
            .iter()
            .map(|&(x, z)| Point::from_raw(half(x), half(z)))
            .collect()
    }

    fn map(areas: &[(bool, Vec<(i32, i32)>)], obstacles: &[Vec<(i32, i32)>], padding: &str) -> PolygonMap {
        let pairs = |corners: &[(i32, i32)]| {
            let pairs = points(corners);
            let pairs = pairs.iter().map(|point| format!("[{},{}]", point.x, point.z));
            pairs.collect::<Vec<_>>().join(",")
        };
        let areas = areas.iter().enumerate().map(|(index, (available, corners))| {
            let polygon = pairs(corners);
            format!(r#"{{"name": "{index}", "available": {available}, "polygon": [{polygon}]}}"#)
        });
        let obstacles = obstacles.iter().enumerate().map(|(index, corners)| {
            let polygon = pairs(corners);
            format!(r#"{{"name": "{index}", "polygon": [{polygon}]}}"#)
        });
        let text = format!(
            r#"{{"cellSize": 0.3, "agentRadius": 0.2, "objectPadding": 0.05, "boundaryPadding": {padding},
                "areas": [{}], "obstacles": [{}]}}"#,
            areas.collect::<Vec<_>>().join(","),
            obstacles.collect::<Vec<_>>().join(",")
        );
        PolygonMap::parse("map.json", text.as_bytes()).expect("a map")
    }

    /// Every cell against the rules as written.
    fn check(edited: &EditedMap) -> Result<(), TestCaseError> {
        let areas: Vec<&Polygon> = edited
            .areas()
            .filter(|(_, open)| *open)
            .map(|(area, _)| &area.polygon)
            .collect();
        let obstacles: Vec<&Polygon> = edited.obstacles().map(|(_, polygon)| polygon).collect();
        let frame = edited.frame();
        for z in 0..frame.depth {
            for x in 0..frame.width {
                let expected =
                    literal::is_walkable(edited.parameters(), &areas, &obstacles, frame.centre(x, z));
                prop_assert_eq!(edited.walkable().get(x, z), expected, "cell {} {}", x, z);
            }
        }
        Ok(())
    }

    #[derive(Clone, Debug)]
    enum Edit {
        Toggle(usize),
        Add(usize, Vec<(i32, i32)>),
        Remove(usize),
        /// Away and back through a snapshot of the changes.
        Reload,
    }

    fn edit() -> impl Strategy<Value = Edit> {
        prop_oneof![
            (0..6usize).prop_map(Edit::Toggle),
            (0..8usize, outline()).prop_map(|(name, corners)| Edit::Add(name, corners)),
            (0..8usize).prop_map(Edit::Remove),
            Just(Edit::Reload),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn after_every_change_the_cells_are_those_of_the_rules(
            areas in prop::collection::vec((any::<bool>(), outline()), 1..6),
            obstacles in prop::collection::vec(outline(), 0..4),
            padding in prop::sample::select(vec!["0", "0.1", "0.45"]),
            edits in prop::collection::vec(edit(), 0..8),
        ) {
            let map = map(&areas, &obstacles, padding);
            let mut edited = EditedMap::of_polygons(&map);
            check(&edited)?;
            edited.take_changed();
            for edit in edits {
                let before = edited.walkable().clone();
                match edit {
                    Edit::Toggle(area) => {
                        let open = edited.areas().nth(area).map(|(_, open)| open);
                        let result = edited.set_area_available(&area.to_string(), !open.unwrap_or(true));
                        prop_assert_eq!(result, open.map(|_| true).ok_or(EditError::UnknownArea));
                    }
                    Edit::Add(name, corners) => {
                        let name = name.to_string();
                        let there = edited.obstacles().any(|(other, _)| other == name);
                        let result = edited.add_obstacle(&name, &points(&corners));
                        prop_assert_eq!(result, if there { Err(EditError::NameInUse) } else { Ok(()) });
                    }
                    Edit::Remove(name) => {
                        let name = name.to_string();
                        let there = edited.obstacles().any(|(other, _)| other == name);
                        let result = edited.remove_obstacle(&name);
                        prop_assert_eq!(result, if there { Ok(()) } else { Err(EditError::UnknownObstacle) });
                    }
                    Edit::Reload => {
                        let mut fresh = EditedMap::of_polygons(&map);
                        fresh.set_edits(&edited.edits()).expect("edits of this map");
                        prop_assert_eq!(fresh.walkable(), edited.walkable());
                        prop_assert_eq!(fresh.edits(), edited.edits());
                        let loaded = EditedMap::of_polygons(&map);
                        edited.set_edits(&loaded.edits()).expect("no edits");
                        prop_assert_eq!(edited.walkable(), loaded.walkable());
                        edited.set_edits(&fresh.edits()).expect("edits of this map");
                    }
                }
                check(&edited)?;
                let changed = edited.take_changed();
                for z in 0..before.depth() {
                    for x in 0..before.width() {
                        let within = changed.columns.contains(&x) && changed.rows.contains(&z);
                        prop_assert!(within || before.get(x, z) == edited.walkable().get(x, z));
                    }
                }
            }
            // The same from its text, and obstacles come and go on that too.
            let baked = edited.to_baked();
            let mut again = EditedMap::of_baked(
                &super::super::text::parse("g.txt", baked.to_text().as_bytes()).expect("as written"));
            prop_assert_eq!(&again.to_baked(), &baked);
            prop_assert_eq!(again.set_area_available("0", true), Err(EditError::NoAreas));
            again.add_obstacle("table", &points(&[(0, 0), (5, 0), (3, 4)])).expect("a triangle");
            if !edited.obstacles().any(|(name, _)| name == "table") {
                edited.add_obstacle("table", &points(&[(0, 0), (5, 0), (3, 4)])).expect("a triangle");
            }
            prop_assert_eq!(again.walkable(), edited.walkable());
            again.remove_obstacle("table").expect("just added");
            prop_assert_eq!(again.walkable(), &baked.cells);
        }
    }

    #[test]
    fn changes_that_do_not_fit_change_nothing() {
        let square = vec![(0, 0), (8, 0), (8, 8), (0, 8)];
        let map = map(
            &[(true, square.clone()), (false, vec![(8, 0), (16, 0), (16, 8)])],
            &[square],
            "0",
        );
        let mut edited = EditedMap::of_polygons(&map);
        let before = edited.edits();
        let corners = points(&[(0, 0), (1, 0), (0, 1)]);
        assert_eq!(edited.set_area_available("0", true), Ok(false));
        assert_eq!(edited.set_area_available("2", true), Err(EditError::UnknownArea));
        assert_eq!(edited.add_obstacle("0", &corners), Err(EditError::NameInUse));
        assert_eq!(edited.add_obstacle("", &corners), Err(EditError::BadPolygon));
        assert_eq!(
            edited.add_obstacle("x", &corners[..2]),
            Err(EditError::BadPolygon)
        );
        assert_eq!(edited.remove_obstacle("1"), Err(EditError::UnknownObstacle));
        let with = |change: fn(&mut MapEdits)| {
            let mut edits = before.clone();
            change(&mut edits);
            edits
        };
        for (edits, error) in [
            (with(|edits| edits.available.push(true)), EditError::UnknownArea),
            (
                with(|edits| edits.removed.push("7".to_owned())),
                EditError::UnknownObstacle,
            ),
            (
                with(|edits| edits.removed = vec!["0".to_owned(), "0".to_owned()]),
                EditError::UnknownObstacle,
            ),
            (
                with(|edits| edits.added.push(("0".to_owned(), Vec::new()))),
                EditError::NameInUse,
            ),
            (
                with(|edits| edits.added.push(("1".to_owned(), Vec::new()))),
                EditError::BadPolygon,
            ),
        ] {
            assert_eq!(edited.set_edits(&edits), Err(error), "{edits:?}");
            assert_eq!(edited.edits(), before);
        }
    }

    #[test]
    fn there_is_room_for_so_many_obstacles() {
        let map = map(
            &[(true, vec![(0, 0), (8, 0), (8, 8)])],
            &[vec![(0, 0), (8, 0), (8, 8)]],
            "0",
        );
        let mut edited = EditedMap::of_polygons(&map);
        let corners = points(&[(0, 0), (1, 0), (0, 1)]);
        for number in 1..OBSTACLES_MAX {
            edited
                .add_obstacle(&format!("n{number}"), &corners)
                .expect("room");
        }
        assert_eq!(edited.add_obstacle("n", &corners), Err(EditError::NoRoom));
        edited.remove_obstacle("0").expect("the file's");
        edited.add_obstacle("n", &corners).expect("room again");
    }
}
