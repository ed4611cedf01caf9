//! Maps from outside: bytes and a file name → a checked map, or every problem with its place (spec 2.2).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::geometry::{Bounds, Polygon, PolygonError};
use crate::grid::{
    BakedGrid, DRAWING_STEPS_MAX, Frame, GridParameters, area_steps, frame_around, movingai, obstacle_steps,
    text,
};
use crate::json::{BYTE_ORDER_MARK, Document, Node, Object};
use crate::polygon;
use crate::{Fixed, PlannerKind, Point, Problems, WORLD_LIMIT};

/// Largest map of polygons, bytes.
pub const MAP_BYTES_MAX: usize = 16 << 20;
/// Most areas of a map.
pub const AREAS_MAX: usize = 4_096;
/// Most obstacles of a location at any time (spec 3.4).
pub const OBSTACLES_MAX: usize = 4_096;
/// Most vertices of all polygons of a map together, before equal neighbours are merged.
pub const MAP_VERTICES_MAX: usize = 1 << 18;
/// Most insets of a map for the polygon planner: each is a graph of its own.
pub const INSETS_MAX: usize = 16;
/// Longest name of an area or obstacle, bytes: commands name them (spec 4.3).
pub const MAP_NAME_BYTES_MAX: usize = 64;

/// A map as a file gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapFile {
    /// `.json`: areas and obstacles.
    Polygons(PolygonMap),
    /// `.txt` or `.map`: cells.
    Baked(BakedGrid),
}

/// Areas and obstacles, with the numbers a grid is built from (spec 2.1, 2.2). Checked: names differ, there is an area, and
/// the grid has at most 2²⁴ cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolygonMap {
    kind: PlannerKind,
    parameters: GridParameters,
    insets: Vec<Fixed>,
    areas: Vec<Area>,
    obstacles: Vec<Obstacle>,
    /// Of a map for the grid.
    frame: Option<Frame>,
}

/// Ground to walk on, such as a room or a doorway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its name, which no other area has.
    pub name: String,
    /// Whether it is open when the map is loaded.
    pub available: bool,
    /// Its outline.
    pub polygon: Polygon,
}

/// Something that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Its name, which no other obstacle has.
    pub name: String,
    /// Its outline.
    pub polygon: Polygon,
}

impl MapFile {
    /// Reads a map; the ending of `file` says what it is: `.json`, `.txt` or `.map`.
    ///
    /// # Errors
    /// Every broken rule, with its JSON path or line.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, Problems> {
        Self::parse_for(None, file, bytes)
    }

    /// As [`MapFile::parse`], to be used by this planner; `None`: by the one that the file names, else the grid.
    ///
    /// # Errors
    /// Every broken rule; a map that is of no use for this planner.
    pub fn parse_for(kind: Option<PlannerKind>, file: &str, bytes: &[u8]) -> Result<Self, Problems> {
        let baked = |map: Result<BakedGrid, Problems>| match kind {
            None | Some(PlannerKind::Grid) => map.map(Self::Baked),
            Some(kind) => {
                let rule = format!("cells, not the polygons that the {} planner needs", kind.name());
                Err(Problems::one(file, "", rule))
            }
        };
        if bytes.starts_with(BYTE_ORDER_MARK) {
            return Err(Problems::one(file, "line 1", "a byte order mark before the text"));
        }
        match file.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "json" => PolygonMap::parse_for(kind, file, bytes).map(Self::Polygons),
            "txt" => baked(text::parse(file, bytes)),
            "map" => baked(movingai::parse_map(file, bytes)),
            _ => Err(Problems::one(
                file,
                "",
                "not a map: the name ends in neither .json, .txt nor .map",
            )),
        }
    }
}

impl PolygonMap {
    /// Reads a `.json` map.
    ///
    /// # Errors
    /// Every broken rule, with its JSON path.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, Problems> {
        Self::parse_for(None, file, bytes)
    }

    /// As [`PolygonMap::parse`], to be used by this planner; `None`: by the one that the file names, else the grid.
    ///
    /// # Errors
    /// Every broken rule; a map that is of no use for this planner.
    pub fn parse_for(kind: Option<PlannerKind>, file: &str, bytes: &[u8]) -> Result<Self, Problems> {
        let document = Document::parse(file, bytes, MAP_BYTES_MAX)?;
        let map = document
            .root()
            .object()
            .and_then(|root| read_map(&document, root, kind));
        document.finish(map)
    }

    /// The planner that it was read for.
    pub fn kind(&self) -> PlannerKind {
        self.kind
    }

    /// How far a polygon planner's nodes keep from their corners, metres: ascending, at least one.
    pub fn insets(&self) -> &[Fixed] {
        &self.insets
    }

    /// The grid's numbers.
    pub fn parameters(&self) -> &GridParameters {
        &self.parameters
    }

    /// The areas in file order; at least one.
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// The obstacles in file order.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    /// Where the grid's cells lie, if the map was read for the grid.
    pub fn frame(&self) -> Option<&Frame> {
        self.frame.as_ref()
    }

    /// The rectangle around all areas.
    pub fn bounds(&self) -> Bounds {
        bounds_of(&self.areas).expect("a map has an area")
    }
}

/// The range of a cell's size, metres (spec 2.1).
pub(crate) const CELL_SIZE: RangeInclusive<Fixed> = Fixed::from_raw(655)..=Fixed::from_int(100);
/// The range of radius and paddings, metres.
pub(crate) const CLEARANCE: RangeInclusive<Fixed> = Fixed::ZERO..=Fixed::from_int(100);

impl Default for GridParameters {
    /// What holds where a map says nothing (spec 2.1).
    fn default() -> Self {
        Self {
            // 0.4, 0.45 and 0.25, rounded half-even.
            cell_size: Fixed::from_raw(26_214),
            agent_radius: Fixed::from_raw(29_491),
            object_padding: Fixed::from_raw(16_384),
            boundary_padding: Fixed::ZERO,
            floor_y: Fixed::ZERO,
        }
    }
}

fn read_map(document: &Document, mut root: Object<'_>, used_by: Option<PlannerKind>) -> Option<PolygonMap> {
    let kind = read_kind(&mut root, used_by);
    let default = GridParameters::default();
    let parameters = GridParameters {
        cell_size: root.fixed_or("cellSize", default.cell_size, CELL_SIZE),
        agent_radius: root.fixed_or("agentRadius", default.agent_radius, CLEARANCE),
        object_padding: root.fixed_or("objectPadding", default.object_padding, CLEARANCE),
        boundary_padding: root.fixed_or("boundaryPadding", default.boundary_padding, CLEARANCE),
        floor_y: root
            .optional("floorY")
            .and_then(|node| node.coordinate())
            .unwrap_or(default.floor_y),
    };
    let insets = match kind {
        PlannerKind::Grid => Vec::new(),
        PlannerKind::Polygon => read_insets(&mut root, parameters.agent_radius),
    };
    let mut vertices_left = MAP_VERTICES_MAX;
    let areas = root.optional("areas");
    let count = areas.as_ref().map(|areas| areas.items(AREAS_MAX));
    match (&areas, &count) {
        (None, _) => root.problem_at("areas", "no area (key missing)"),
        (Some(node), Some(Some(items))) if items.is_empty() => node.problem("no area"),
        _ => {}
    }
    let mut names = BTreeSet::new();
    let areas: Vec<Option<Area>> = count
        .flatten()
        .unwrap_or_default()
        .iter()
        .map(|node| {
            let mut object = node.object()?;
            let name = read_name(&mut object, &mut names);
            let available = object.boolean_or("available", true);
            let polygon = read_polygon(&mut object, &mut vertices_left);
            object.finish();
            Some(Area {
                name: name?.to_owned(),
                available,
                polygon: polygon?,
            })
        })
        .collect();
    let mut names = BTreeSet::new();
    let obstacles: Vec<Option<Obstacle>> = root
        .array_or_empty("obstacles", OBSTACLES_MAX)
        .iter()
        .map(|node| {
            let mut object = node.object()?;
            let name = read_name(&mut object, &mut names);
            let polygon = read_polygon(&mut object, &mut vertices_left);
            object.finish();
            Some(Obstacle {
                name: name?.to_owned(),
                polygon: polygon?,
            })
        })
        .collect();
    let areas: Option<Vec<Area>> = areas.into_iter().collect();
    let obstacles: Option<Vec<Obstacle>> = obstacles.into_iter().collect();
    let frame = match (kind, areas.as_deref().and_then(bounds_of)) {
        (PlannerKind::Grid, Some(bounds)) => read_frame(document, &root, &parameters, &bounds),
        _ => None,
    };
    root.finish();
    let (areas, obstacles) = (areas?, obstacles?);
    match kind {
        PlannerKind::Grid => {
            let frame = frame.as_ref()?;
            let areas_steps = areas
                .iter()
                .map(|area| area_steps(frame, &parameters, &area.polygon));
            let obstacles_steps = obstacles
                .iter()
                .map(|obstacle| obstacle_steps(frame, &parameters, &obstacle.polygon));
            if areas_steps.chain(obstacles_steps).sum::<u64>() > DRAWING_STEPS_MAX {
                document.problem("$", "too many edges over too many cells to be drawn");
            }
        }
        PlannerKind::Polygon if document.is_faultless() => {
            if let Err(error) = polygon::check(&areas, &obstacles) {
                document.problem("$", error.to_string());
            }
        }
        PlannerKind::Polygon => {}
    }
    Some(PolygonMap {
        kind,
        parameters,
        insets,
        areas,
        obstacles,
        frame,
    })
}

/// The planner that the map is read for: its own or, of a map for the grid, any that uses polygons.
fn read_kind(root: &mut Object<'_>, used_by: Option<PlannerKind>) -> PlannerKind {
    let kinds = PlannerKind::ALL.map(|kind| (kind.name(), kind));
    let own = root.optional("planner");
    let own = own
        .and_then(|node| node.choice(&kinds))
        .unwrap_or(PlannerKind::Grid);
    match used_by {
        None => own,
        Some(used_by) => {
            if own != used_by && own != PlannerKind::Grid {
                let rule = format!(
                    "a map for the {} planner, not for the {} planner",
                    own.name(),
                    used_by.name()
                );
                root.problem_at("planner", rule);
                return own;
            }
            used_by
        }
    }
}

/// The key `inset`: a number or a list, by default the agent's radius.
fn read_insets(root: &mut Object<'_>, agent_radius: Fixed) -> Vec<Fixed> {
    let Some(node) = root.optional("inset") else {
        return vec![agent_radius];
    };
    if !node.is_array() {
        return node.fixed(CLEARANCE).into_iter().collect();
    }
    let items = node.items(INSETS_MAX).unwrap_or_default();
    let insets: Vec<Option<Fixed>> = items.iter().map(|item| item.fixed(CLEARANCE)).collect();
    let insets: Vec<Fixed> = insets.into_iter().collect::<Option<_>>().unwrap_or_default();
    if items.is_empty() {
        node.problem("empty list");
    } else if !insets.is_sorted_by(|one, other| one < other) {
        node.problem("not ascending");
    }
    insets
}

/// Where the cells lie. The size follows from parameters and areas; where one is wrong already it would be reported for a
/// map nobody meant.
fn read_frame(
    document: &Document,
    root: &Object<'_>,
    parameters: &GridParameters,
    bounds: &Bounds,
) -> Option<Frame> {
    let frame = frame_around(parameters, bounds);
    if let Err(error) = &frame
        && document.is_faultless()
    {
        root.problem_at("cellSize", error.to_string());
    }
    frame.ok()
}

/// The name of an area or obstacle; `names` are those before it.
fn read_name<'a>(object: &mut Object<'a>, names: &mut BTreeSet<&'a str>) -> Option<&'a str> {
    let name = object.name("name", MAP_NAME_BYTES_MAX)?;
    if !names.insert(name) {
        object.problem_at("name", format!("duplicate name {name:?}"));
        return None;
    }
    Some(name)
}

/// The outline under the key `polygon`; takes its vertices from those left for the map.
fn read_polygon(object: &mut Object<'_>, vertices_left: &mut usize) -> Option<Polygon> {
    let node = object.required("polygon")?;
    let corners = node.items(MAP_VERTICES_MAX)?;
    let Some(left) = vertices_left.checked_sub(corners.len()) else {
        node.problem(format!(
            "more than {MAP_VERTICES_MAX} vertices in all polygons together"
        ));
        return None;
    };
    *vertices_left = left;
    checked_polygon(&node, &corners)
}

/// A polygon from the elements of the array `node`.
fn checked_polygon(node: &Node<'_>, corners: &[Node<'_>]) -> Option<Polygon> {
    // Every wrong corner is reported, not only the first.
    let points: Vec<Option<Point>> = corners.iter().map(Node::pair).collect();
    let points: Vec<Point> = points.into_iter().collect::<Option<_>>()?;
    match Polygon::new(&points) {
        Ok(polygon) => Some(polygon),
        Err(PolygonError::OutsideWorld) => {
            node.problem(format!("outside the world limit of {WORLD_LIMIT} m"));
            None
        }
        Err(error) => {
            node.problem(error.to_string());
            None
        }
    }
}

fn bounds_of(areas: &[Area]) -> Option<Bounds> {
    areas
        .iter()
        .map(|area| *area.polygon.bounds())
        .reduce(Bounds::union)
}
