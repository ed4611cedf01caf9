//! The polygons of a map with what has been changed since it was loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arrangement::{Outline, check_outlines};
use crate::geometry::{Bounds, Polygon};
use crate::map_file::{Area, MAP_NAME_BYTES_MAX, OBSTACLES_MAX, Obstacle};
use crate::{EditError, MapEdits, Point};

/// Areas and obstacles as they are now; a clone shares those of the file.
#[derive(Clone, Debug)]
pub(super) struct EditedPolygons {
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
    pub(super) fn new(areas: &[Area], obstacles: &[Obstacle]) -> Self {
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
    pub(super) fn areas(&self) -> impl Iterator<Item = (&Area, bool)> {
        self.source.areas.iter().zip(self.available.iter().copied())
    }

    /// The obstacles that stand now: those of the file in its order, then the added ones by name.
    pub(super) fn obstacles(&self) -> impl Iterator<Item = (&str, &Polygon)> {
        let file = self.source.obstacles.iter().zip(&self.removed);
        let standing = file
            .filter(|(_, removed)| !**removed)
            .map(|(obstacle, _)| (obstacle.name.as_str(), &obstacle.polygon));
        standing.chain(self.added.iter().map(|(name, polygon)| (name.as_str(), polygon)))
    }

    /// What makes the free space: the open areas and the standing obstacles.
    pub(super) fn outlines(&self) -> Vec<Outline<'_>> {
        self.outlines_of(|available| available)
    }

    /// No area that opens can make it too intricate.
    pub(super) fn is_simple_enough(&self) -> bool {
        check_outlines(&self.outlines_of(|_| true)).is_ok()
    }

    fn outlines_of(&self, counts: impl Fn(bool) -> bool) -> Vec<Outline<'_>> {
        let open = self
            .areas()
            .filter(|(_, available)| counts(*available))
            .map(|(area, _)| Outline {
                polygon: &area.polygon,
                is_obstacle: false,
            });
        let standing = self.obstacles().map(|(_, polygon)| Outline {
            polygon,
            is_obstacle: true,
        });
        open.chain(standing).collect()
    }

    /// Opens or closes an area; where the map has changed, if it has.
    pub(super) fn set_area_available(
        &mut self,
        area: &str,
        available: bool,
    ) -> Result<Option<Bounds>, EditError> {
        let index = *self.source.area_index.get(area).ok_or(EditError::UnknownArea)?;
        if std::mem::replace(&mut self.available[index], available) == available {
            return Ok(None);
        }
        Ok(Some(*self.source.areas[index].polygon.bounds()))
    }

    /// Adds an obstacle; where the map has changed.
    pub(super) fn add_obstacle(&mut self, name: &str, polygon: &[Point]) -> Result<Bounds, EditError> {
        let in_file = self.source.obstacle_index.get(name);
        if self.added.contains_key(name) || in_file.is_some_and(|index| !self.removed[*index]) {
            return Err(EditError::NameInUse);
        }
        let polygon = checked(name, polygon)?;
        if self.obstacles().count() >= OBSTACLES_MAX {
            return Err(EditError::NoRoom);
        }
        let bounds = *polygon.bounds();
        self.added.insert(name.to_owned(), polygon);
        if !self.is_simple_enough() {
            self.added.remove(name);
            return Err(EditError::NoRoom);
        }
        Ok(bounds)
    }

    /// Removes an obstacle; where the map has changed.
    pub(super) fn remove_obstacle(&mut self, name: &str) -> Result<Bounds, EditError> {
        if let Some(polygon) = self.added.remove(name) {
            return Ok(*polygon.bounds());
        }
        let index = self.source.obstacle_index.get(name).copied();
        let index = index.filter(|index| !self.removed[*index]);
        let index = index.ok_or(EditError::UnknownObstacle)?;
        self.removed[index] = true;
        Ok(*self.source.obstacles[index].polygon.bounds())
    }

    /// All changes since the map was loaded. An outline has its equal neighbours merged.
    pub(super) fn edits(&self) -> MapEdits {
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

    /// The map with these changes instead; where it differs from this one.
    pub(super) fn with_edits(&self, edits: &MapEdits) -> Result<(Self, Vec<Bounds>), EditError> {
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
        if changed.obstacles().count() > OBSTACLES_MAX || !changed.is_simple_enough() {
            return Err(EditError::NoRoom);
        }
        let bounds = self.differences(&changed);
        Ok((changed, bounds))
    }

    /// Rectangles around the polygons that are in the one and not in the other.
    fn differences(&self, other: &Self) -> Vec<Bounds> {
        let areas = self.source.areas.iter().map(|area| area.polygon.bounds());
        let areas = areas
            .zip(self.available.iter().zip(&other.available))
            .filter(|(_, (one, other))| one != other);
        let obstacles = self
            .source
            .obstacles
            .iter()
            .map(|obstacle| obstacle.polygon.bounds());
        let obstacles = obstacles
            .zip(self.removed.iter().zip(&other.removed))
            .filter(|(_, (one, other))| one != other);
        let only = |one: &Self, other: &Self| -> Vec<Bounds> {
            let added = one.added.iter();
            added
                .filter(|(name, polygon)| other.added.get(*name) != Some(polygon))
                .map(|(_, polygon)| *polygon.bounds())
                .collect()
        };
        let mut bounds: Vec<Bounds> = areas.chain(obstacles).map(|(bounds, _)| *bounds).collect();
        bounds.extend(only(self, other));
        bounds.extend(only(other, self));
        bounds
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
