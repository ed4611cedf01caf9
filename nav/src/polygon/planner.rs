//! The planner: the edited map, its border and graphs, who stands on it, and the queries.

use std::sync::Arc;

use super::arrangement::{Outline, TooIntricate, check_outlines};
use super::border::{Border, Location};
use super::exact::Sector;
use super::graph::Graph;
use super::ground::{Ground, Octagon};
use super::nearest::{Candidates, Parts};
use super::nodes::corners;
use super::reach::Reach;
use super::search::{Field, Outcome, Search};
use crate::edits::EditedPolygons;
use crate::geometry::Bounds;
use crate::map_file::{Area, Obstacle, PolygonMap};
use crate::{Circle, EditError, Fixed, Goal, MapEdits, Planner, Point, Query, Route, SearchStats};

/// How far a start or an exact end is moved onto free ground at most.
const SNAP_DISTANCE: Fixed = Fixed::from_int(8);

/// A [`Planner`] on polygons: routes over the visibility graph of their corners (spec 7.1).
#[derive(Clone, Debug)]
pub struct PolygonPlanner {
    pub(super) map: EditedPolygons,
    /// Ascending.
    insets: Vec<Fixed>,
    pub(super) border: Arc<Border>,
    /// With inset 0: where the pushed nodes give no route.
    pub(super) bare: Arc<Graph>,
    /// One for each inset.
    pub(super) graphs: Vec<Arc<Graph>>,
    /// Of how many pairs of nodes the last change, or the first build, asked whether they see each other.
    pub(super) pairs_asked: u64,
    /// Who stands, in order; equal ones count.
    standing: Vec<Circle>,
    scratch: Scratch,
}

/// What a query needs beside the map; kept for the next one.
#[derive(Clone, Debug, Default)]
struct Scratch {
    octagons: Vec<Octagon>,
    corners: Vec<Point>,
    search: Search,
    reach: Reach,
    /// What `reach` knows is of the query in progress.
    reach_has_begun: bool,
    candidates: Candidates,
    sectors: Vec<Sector>,
    parts: Vec<u32>,
}

impl PolygonPlanner {
    /// A planner on these polygons; `insets` is not empty, ascending and not negative, as in a map that was read.
    ///
    /// # Errors
    /// Too many corners.
    pub fn new(areas: &[Area], obstacles: &[Obstacle], insets: &[Fixed]) -> Result<Self, TooIntricate> {
        assert!(
            insets.first().is_some_and(|first| *first >= Fixed::ZERO) && insets.is_sorted_by(|a, b| a < b),
            "the insets of a map are checked when it is read"
        );
        let map = EditedPolygons::new(areas, obstacles);
        check_intricacy(&map)?;
        let mut planner = Self {
            map,
            insets: insets.to_vec(),
            border: Arc::default(),
            bare: Arc::default(),
            graphs: vec![Arc::default(); insets.len()],
            pairs_asked: 0,
            standing: Vec::new(),
            scratch: Scratch::default(),
        };
        planner.rebuild(None);
        Ok(planner)
    }

    /// A planner on a map that was read for it.
    ///
    /// # Panics
    /// If it was read for another planner.
    pub fn of_map(map: &PolygonMap) -> Self {
        Self::new(map.areas(), map.obstacles(), map.insets()).expect("the map was read for this planner")
    }

    /// How many corners there are, and links in the graph of the smallest inset.
    pub fn size(&self) -> (usize, usize) {
        (self.bare.nodes.len(), self.graphs[0].link_count() / 2)
    }

    /// How many obstacles stand now.
    pub fn obstacle_count(&self) -> usize {
        self.map.obstacle_count()
    }

    /// Calls `look` with what a query searches.
    pub(super) fn with_field(&mut self, query: &Query<'_>, look: impl FnOnce(&Field<'_>, &mut Reach)) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let graph = self.graph_for(query.agent_radius);
        scratch.take_octagons(&self.standing, query, graph.inset);
        let field = Field {
            ground: ground(&self.border, &scratch.octagons),
            graph,
            corners: &scratch.corners,
        };
        look(&field, &mut scratch.reach);
        self.scratch = scratch;
    }

    /// Builds border and graphs of the map as it is; `changes`: where it differs from the one they were built from.
    fn rebuild(&mut self, changes: Option<&[Bounds]>) {
        let border = Border::new(&outlines(&self.map, |open| open));
        let corners = corners(&border);
        let (bare, mut asked) = self.bare.changed(&border, &corners, Fixed::ZERO, changes);
        self.bare = Arc::new(bare);
        for (graph, &inset) in self.graphs.iter_mut().zip(&self.insets) {
            *graph = if inset == Fixed::ZERO {
                Arc::clone(&self.bare)
            } else {
                let (changed, more) = graph.changed(&border, &corners, inset, changes);
                asked += more;
                Arc::new(changed)
            };
        }
        self.pairs_asked = asked;
        self.border = Arc::new(border);
    }

    /// The graph for an agent: of the smallest inset that is at least its radius, else of the largest.
    pub(super) fn graph_for(&self, agent_radius: Fixed) -> &Graph {
        let index = self.insets.partition_point(|inset| *inset < agent_radius);
        &self.graphs[index.min(self.graphs.len() - 1)]
    }
}

impl Planner for PolygonPlanner {
    fn areas(&self) -> Vec<(String, bool)> {
        let areas = self.map.areas();
        areas.map(|(area, open)| (area.name.clone(), open)).collect()
    }

    fn set_area_available(&mut self, area: &str, available: bool) -> Result<bool, EditError> {
        let Some(changed) = self.map.set_area_available(area, available)? else {
            return Ok(false);
        };
        let changed = *changed.bounds();
        self.rebuild(Some(&[changed]));
        Ok(true)
    }

    fn add_obstacle(&mut self, name: &str, polygon: &[Point]) -> Result<(), EditError> {
        let polygon = self.map.check_new_obstacle(name, polygon)?;
        let changed = *polygon.bounds();
        self.map.insert_obstacle(name, polygon);
        if check_intricacy(&self.map).is_err() {
            self.map.remove_obstacle(name)?;
            return Err(EditError::NoRoom);
        }
        self.rebuild(Some(&[changed]));
        Ok(())
    }

    fn remove_obstacle(&mut self, name: &str) -> Result<(), EditError> {
        let removed = self.map.remove_obstacle(name)?;
        self.rebuild(Some(&[*removed.bounds()]));
        Ok(())
    }

    fn edits(&self) -> MapEdits {
        self.map.edits()
    }

    fn set_edits(&mut self, edits: &MapEdits) -> Result<(), EditError> {
        let map = self.map.with_edits(edits)?;
        check_intricacy(&map).map_err(|TooIntricate| EditError::NoRoom)?;
        let mut changes = self.map.area_differences(&map);
        changes.extend(self.map.obstacle_differences(&map));
        self.map = map;
        if !changes.is_empty() {
            self.rebuild(Some(&changes));
        }
        Ok(())
    }

    fn block(&mut self, circle: Circle) {
        let place = self.standing.partition_point(|standing| *standing < circle);
        self.standing.insert(place, circle);
    }

    fn unblock(&mut self, circle: Circle) {
        if let Ok(place) = self.standing.binary_search(&circle) {
            self.standing.remove(place);
        }
    }

    fn unblock_all(&mut self) {
        self.standing.clear();
    }

    fn plan(&mut self, query: &Query<'_>, route: &mut Route) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let graph = self.graph_for(query.agent_radius);
        scratch.take_octagons(&self.standing, query, graph.inset);
        Asked {
            planner: self,
            graph,
            query,
        }
        .answer(&mut scratch, route);
        self.scratch = scratch;
    }

    fn is_free_ground(&self, point: Point) -> bool {
        self.border.contains(point)
    }

    fn line_of_sight(&self, from: Point, to: Point) -> bool {
        self.border.contains(from) && self.border.contains(to) && self.border.sees(from, to)
    }
}

impl Scratch {
    /// The octagons of a query and their corners, equal ones once.
    fn take_octagons(&mut self, standing: &[Circle], query: &Query<'_>, inset: Fixed) {
        self.octagons.clear();
        let octagon = |circle: &Circle| Octagon::new(*circle, inset);
        self.octagons.extend(query.also.iter().filter_map(octagon));
        for (index, circle) in standing.iter().enumerate() {
            // Equal circles lie side by side; as many of them are left out as the query does not see.
            let first = standing[..index].partition_point(|other| other < circle);
            let hidden = query.except.iter().filter(|other| *other == circle).count();
            if index - first >= hidden {
                self.octagons.extend(octagon(circle));
            }
        }
        self.octagons.sort_unstable();
        self.octagons.dedup();
        self.corners.clear();
        for octagon in &self.octagons {
            let corners = octagon.corners();
            self.corners
                .extend(corners.iter().filter_map(|&offset| octagon.corner(offset)));
        }
    }
}

/// A query with what it is asked of.
struct Asked<'a> {
    planner: &'a PolygonPlanner,
    graph: &'a Graph,
    query: &'a Query<'a>,
}

/// A point and where it lies.
#[derive(Clone, Copy, Debug)]
struct Located {
    point: Point,
    location: Location,
}

impl Asked<'_> {
    fn answer(&self, scratch: &mut Scratch, route: &mut Route) {
        clear(route);
        scratch.reach_has_begun = false;
        let Query { from, to, goal, .. } = *self.query;
        let Some(start) = self.free_point(scratch, from) else {
            return;
        };
        if start.point != from {
            route.waypoints.push(start.point);
        }
        match goal {
            Goal::Exact => {
                if let Some(end) = self.free_point(scratch, to)
                    && self.find_way(scratch, start, end, route)
                {
                    route.complete = end.point == to && !route.budget_ran_out;
                }
            }
            Goal::Nearest => self.answer_nearest(scratch, start, route),
        }
        if !route.found {
            route.waypoints.clear();
        }
    }

    /// The way to the end if it can be reached, else to the reachable point nearest to it.
    fn answer_nearest(&self, scratch: &mut Scratch, start: Located, route: &mut Route) {
        let border = &self.planner.border;
        let to = self.located(self.query.to);
        parts_of(border, start.location, &mut scratch.parts);
        let shares_part = Parts::These(&scratch.parts).contain_location(border, to.location);
        let is_open = to.location != Location::Outside
            && ground(border, &scratch.octagons).is_open(to.point, to.location, &mut scratch.sectors);
        let could_be_reached = shares_part && is_open;
        if could_be_reached && self.find_way(scratch, start, to, route) {
            route.complete = !route.budget_ran_out;
            return;
        }
        parts_of(border, start.location, &mut scratch.parts);
        self.begin_reach(scratch, start);
        let Scratch {
            octagons,
            corners,
            reach,
            candidates,
            parts,
            ..
        } = scratch;
        let field = self.bare_field(octagons, corners);
        let is_dynamic = !octagons.is_empty();
        let nearest = candidates.nearest(field.ground, Parts::These(parts), to.point, None, |point| {
            !is_dynamic || reach.connects(&field, point)
        });
        route.search_ran_out = is_dynamic && (could_be_reached || nearest.skipped);
        let end = nearest.point.map_or(start, |point| self.located(point));
        if !self.find_way(scratch, start, end, route) {
            // It was reached, or it could not have been asked for; without it there is the start.
            route.found = true;
            route.waypoints.push(start.point);
            route.waypoints.dedup();
        }
    }

    fn located(&self, point: Point) -> Located {
        let location = self.planner.border.locate_point(point);
        Located { point, location }
    }

    /// The point if it is free; else the nearest free one within 8 m: of any part, or of its own if only octagons cover it.
    fn free_point(&self, scratch: &mut Scratch, point: Point) -> Option<Located> {
        let border = &self.planner.border;
        let ground = ground(border, &scratch.octagons);
        let asked = self.located(point);
        let parts = if asked.location == Location::Outside {
            Parts::Any
        } else {
            if ground.is_open(point, asked.location, &mut scratch.sectors) {
                return Some(asked);
            }
            parts_of(border, asked.location, &mut scratch.parts);
            Parts::These(&scratch.parts)
        };
        let limit = Some(SNAP_DISTANCE.wide());
        let nearest = scratch.candidates.nearest(ground, parts, point, limit, |_| true);
        nearest.point.map(|point| self.located(point))
    }

    fn begin_reach(&self, scratch: &mut Scratch, start: Located) {
        if !std::mem::replace(&mut scratch.reach_has_begun, true) {
            let field = self.bare_field(&scratch.octagons, &scratch.corners);
            scratch.reach.begin(&field, start.point);
        }
    }

    /// What decides whether something can be reached.
    fn bare_field<'f>(&'f self, octagons: &'f [Octagon], corners: &'f [Point]) -> Field<'f> {
        self.field(&self.planner.bare, octagons, corners)
    }

    fn field<'f>(&'f self, graph: &'f Graph, octagons: &'f [Octagon], corners: &'f [Point]) -> Field<'f> {
        Field {
            ground: ground(&self.planner.border, octagons),
            graph,
            corners,
        }
    }

    /// Searches the graph for the agent, then the one with inset 0; whether there is a route.
    fn find_way(&self, scratch: &mut Scratch, start: Located, end: Located, route: &mut Route) -> bool {
        if start.point == end.point {
            route.found = true;
            route.waypoints.push(end.point);
            route.waypoints.dedup();
            return true;
        }
        let border = &self.planner.border;
        parts_of(border, start.location, &mut scratch.parts);
        if !Parts::These(&scratch.parts).contain_location(border, end.location) {
            return false;
        }
        let bare = &self.planner.bare;
        let is_bare = self.graph.inset == Fixed::ZERO;
        let is_dynamic = !scratch.octagons.is_empty();
        let mut asks = is_dynamic;
        for graph in [Some(self.graph), (!is_bare).then_some(bare)]
            .into_iter()
            .flatten()
        {
            let expanded = route.stats.expanded;
            let left = self.query.expanded_max.map(|max| max.saturating_sub(expanded));
            let ends = (start.point, end.point);
            let mut outcome = scratch.search.run(
                &self.field(graph, &scratch.octagons, &scratch.corners),
                ends,
                left,
                asks,
            );
            if outcome == Outcome::Far {
                // Whatever the inset: it is asked once.
                asks = false;
                self.begin_reach(scratch, start);
                let field = self.bare_field(&scratch.octagons, &scratch.corners);
                if !scratch.reach.connects(&field, end.point) {
                    return false;
                }
                outcome = scratch
                    .search
                    .resume(&self.field(graph, &scratch.octagons, &scratch.corners));
            }
            let field = self.field(graph, &scratch.octagons, &scratch.corners);
            let stats = scratch.search.stats();
            route.stats.expanded += stats.expanded;
            route.stats.generated += stats.generated;
            route.stats.queue_peak = route.stats.queue_peak.max(stats.queue_peak);
            if outcome == Outcome::Exhausted {
                continue;
            }
            route.found = true;
            route.budget_ran_out = outcome == Outcome::Limited;
            route.length = scratch.search.way(&field, outcome, &mut route.waypoints);
            if outcome == Outcome::Arrived {
                route.waypoints.push(end.point);
            }
            return true;
        }
        false
    }
}

/// What makes the free space, of the areas those that count: the areas, then the standing obstacles.
fn outlines(map: &EditedPolygons, counts: impl Fn(bool) -> bool) -> Vec<Outline<'_>> {
    let areas = map.areas().filter(|(_, available)| counts(*available));
    let areas = areas.map(|(area, _)| (&area.polygon, false));
    let obstacles = map.obstacles().map(|(_, polygon)| (polygon, true));
    areas
        .chain(obstacles)
        .map(|(polygon, is_obstacle)| Outline { polygon, is_obstacle })
        .collect()
}

/// No area that opens can make the map too intricate.
fn check_intricacy(map: &EditedPolygons) -> Result<(), TooIntricate> {
    check_outlines(&outlines(map, |_| true))
}

fn ground<'a>(border: &'a Border, octagons: &'a [Octagon]) -> Ground<'a> {
    Ground { border, octagons }
}

/// The parts of a location, each once.
fn parts_of(border: &Border, location: Location, parts: &mut Vec<u32>) {
    parts.clear();
    match location {
        Location::Outside => {}
        Location::Inside(part) => parts.push(part),
        Location::OnEdge(edge) => parts.push(border.edges[edge as usize].part),
        Location::AtVertex(vertex) => {
            let sectors = border.sectors_of(vertex).iter();
            parts.extend(sectors.map(|sector| border.part_of(sector)));
            parts.sort_unstable();
            parts.dedup();
        }
    }
}

fn clear(route: &mut Route) {
    route.found = false;
    route.complete = false;
    route.search_ran_out = false;
    route.budget_ran_out = false;
    route.waypoints.clear();
    route.cells.clear();
    route.cost = 0;
    route.length = 0;
    route.stats = SearchStats::default();
}
