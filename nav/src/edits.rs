//! The polygons of a map with what has been changed since it was loaded, by name: areas opened and closed, obstacles added and
//! removed. Whatever is built from them is the business of a planner.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::geometry::{Bounds, Polygon};
use crate::map_file::{Area, MAP_NAME_BYTES_MAX, OBSTACLES_MAX, Obstacle};
use crate::{EditError, MapEdits, Point};

/// Areas and obstacles as they are now; a clone shares those of the file.
#[derive(Clone, Debug)]
pub(crate) struct EditedPolygons {
    source: Arc<Source>,
    /// Per area of the file.
    available: Vec<bool>,
    /// Per obstacle of the file.
    removed: Vec<bool>,
    added: BTreeMap<String, Polygon>,
}

/// What the file gave, and where its names are.
#[derive(Debug)]
struct Source {
    areas: Vec<Area>,
    obstacles: Vec<Obstacle>,
    area_index: BTreeMap<String, usize>,
    obstacle_index: BTreeMap<String, usize>,
}

impl EditedPolygons {
    /// The polygons of a file, unchanged.
    pub(crate) fn new(areas: &[Area], obstacles: &[Obstacle]) -> Self {
        let source = Source {
            areas: areas.to_vec(),
            obstacles: obstacles.to_vec(),
            area_index: index(areas.iter().map(|area| &area.name)),
            obstacle_index: index(obstacles.iter().map(|obstacle| &obstacle.name)),
        };
        Self {
            available: areas.iter().map(|area| area.available).collect(),
            removed: vec![false; obstacles.len()],
            added: BTreeMap::new(),
            source: Arc::new(source),
        }
    }

    /// The areas in file order, and whether each is open.
    pub(crate) fn areas(&self) -> impl Iterator<Item = (&Area, bool)> {
        self.source.areas.iter().zip(self.available.iter().copied())
    }

    /// The obstacles that stand now: those of the file in its order, then the added ones by name.
    pub(crate) fn obstacles(&self) -> impl Iterator<Item = (&str, &Polygon)> {
        let file = self.source.obstacles.iter().zip(&self.removed);
        let standing = file
            .filter(|(_, removed)| !**removed)
            .map(|(obstacle, _)| (obstacle.name.as_str(), &obstacle.polygon));
        standing.chain(self.added.iter().map(|(name, polygon)| (name.as_str(), polygon)))
    }

    /// The obstacles that were added, by name.
    pub(crate) fn added(&self) -> impl Iterator<Item = &Polygon> {
        self.added.values()
    }

    /// How many obstacles stand now.
    pub(crate) fn obstacle_count(&self) -> usize {
        self.removed.iter().filter(|removed| !**removed).count() + self.added.len()
    }

    /// Opens or closes an area; its outline, unless it was so already.
    ///
    /// # Errors
    /// `UnknownArea`.
    pub(crate) fn set_area_available(
        &mut self,
        area: &str,
        available: bool,
    ) -> Result<Option<&Polygon>, EditError> {
        let index = *self.source.area_index.get(area).ok_or(EditError::UnknownArea)?;
        let before = std::mem::replace(&mut self.available[index], available);
        Ok((before != available).then(|| &self.source.areas[index].polygon))
    }

    /// An outline that can be added by this name.
    ///
    /// # Errors
    /// `NameInUse`, `BadPolygon` (also for a name that is empty or too long), `NoRoom`.
    pub(crate) fn check_new_obstacle(&self, name: &str, polygon: &[Point]) -> Result<Polygon, EditError> {
        if self.added.contains_key(name) || self.standing_index(name).is_some() {
            return Err(EditError::NameInUse);
        }
        let polygon = checked(name, polygon)?;
        if self.obstacle_count() >= OBSTACLES_MAX {
            return Err(EditError::NoRoom);
        }
        Ok(polygon)
    }

    /// Adds an obstacle that was checked.
    pub(crate) fn insert_obstacle(&mut self, name: &str, polygon: Polygon) {
        self.added.insert(name.to_owned(), polygon);
    }

    /// Removes an obstacle that was added, or one of the file; its outline.
    ///
    /// # Errors
    /// `UnknownObstacle`.
    pub(crate) fn remove_obstacle(&mut self, name: &str) -> Result<Polygon, EditError> {
        if let Some(polygon) = self.added.remove(name) {
            return Ok(polygon);
        }
        let index = self.standing_index(name).ok_or(EditError::UnknownObstacle)?;
        self.removed[index] = true;
        Ok(self.source.obstacles[index].polygon.clone())
    }

    /// All changes since the map was loaded. An outline has its equal neighbours merged.
    pub(crate) fn edits(&self) -> MapEdits {
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

    /// The map with these changes instead.
    ///
    /// # Errors
    /// If they do not fit this map, or are not in name order.
    pub(crate) fn with_edits(&self, edits: &MapEdits) -> Result<Self, EditError> {
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
            added.insert(name.clone(), checked(name, polygon)?);
        }
        let changed = Self {
            source: Arc::clone(&self.source),
            available: edits.available.clone(),
            removed,
            added,
        };
        if changed.obstacle_count() > OBSTACLES_MAX {
            return Err(EditError::NoRoom);
        }
        Ok(changed)
    }

    /// Rectangles around the areas that are open here or in `other` alone; a clone with other changes.
    pub(crate) fn area_differences(&self, other: &Self) -> Vec<Bounds> {
        let areas = self
            .source
            .areas
            .iter()
            .zip(self.available.iter().zip(&other.available));
        areas
            .filter(|(_, (one, other))| one != other)
            .map(|(area, _)| *area.polygon.bounds())
            .collect()
    }

    /// Rectangles around the obstacles that stand here or in `other` alone; a clone with other changes.
    pub(crate) fn obstacle_differences(&self, other: &Self) -> Vec<Bounds> {
        let obstacles = self
            .source
            .obstacles
            .iter()
            .zip(self.removed.iter().zip(&other.removed));
        let of_file = obstacles
            .filter(|(_, (one, other))| one != other)
            .map(|(obstacle, _)| *obstacle.polygon.bounds());
        let only = |one: &Self, other: &Self| -> Vec<Bounds> {
            let added = one.added.iter();
            added
                .filter(|(name, polygon)| other.added.get(*name) != Some(polygon))
                .map(|(_, polygon)| *polygon.bounds())
                .collect()
        };
        of_file
            .chain(only(self, other))
            .chain(only(other, self))
            .collect()
    }

    /// The obstacle of the file that has this name and stands.
    fn standing_index(&self, name: &str) -> Option<usize> {
        let index = self.source.obstacle_index.get(name).copied();
        index.filter(|index| !self.removed[*index])
    }
}

fn index<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<String, usize> {
    names
        .enumerate()
        .map(|(index, name)| (name.clone(), index))
        .collect()
}

fn checked(name: &str, polygon: &[Point]) -> Result<Polygon, EditError> {
    if name.is_empty() || name.len() > MAP_NAME_BYTES_MAX {
        return Err(EditError::BadPolygon);
    }
    Polygon::new(polygon).map_err(|_| EditError::BadPolygon)
}
