//! A picture as data: layers of shapes in metres, each shape with a style that says what it is.
//!
//! `path --svg`, `render` and the web page paint the same [`Drawing`]; [`Drawing::to_svg`] is one painter. Everything here is
//! numbers of the map itself, so a picture shows what the simulation uses and nothing that was computed for the picture.

use serde::Serialize;

use crate::geometry::{Bounds, Polygon};
use crate::grid::{Cells, EditedMap, Frame};
use crate::map_file::Area;
use crate::{Circle, Fixed, Point, Route};

/// What to paint, first layer lowest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drawing {
    /// The part of the world that is shown, metres.
    pub bounds: Bounds,
    /// The layers, lowest first.
    pub layers: Vec<Layer>,
}

/// Shapes that are shown or hidden together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Its name, as in `--layers`.
    pub name: &'static str,
    /// The shapes, lowest first.
    pub shapes: Vec<Shape>,
}

/// One thing to paint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// What it is; the painter knows how that looks.
    pub style: Style,
    /// Where it is.
    pub form: Form,
    /// What a person who points at it is told; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
}

/// The forms, all in metres.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// A closed outline with its inside.
    Polygon(Vec<Point>),
    /// A line through points.
    Polyline(Vec<Point>),
    /// A circle of a real size.
    Circle {
        /// Its centre.
        centre: Point,
        /// Its radius, metres.
        radius: Fixed,
    },
    /// Rectangles along the axes, such as runs of cells.
    Rectangles(Vec<Bounds>),
    /// A point, painted in a size that can be seen.
    Dot(Point),
    /// Text about a point.
    Label {
        /// The middle of the text.
        at: Point,
        /// The text.
        text: String,
        /// The width there is for it, metres.
        width: Fixed,
    },
}

/// What a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Style {
    /// Walkable cells of a baked grid.
    Ground,
    /// An open area.
    Area,
    /// A closed area.
    ClosedArea,
    /// Cells inside an open area that are not walkable: too near to something.
    Blocked,
    /// An obstacle of the file or one added since.
    Obstacle,
    /// The name of an area.
    Name,
    /// Somebody who stands.
    Standing,
    /// A cell that the search took from its queue.
    Expanded,
    /// The searched chain of cells before smoothing.
    Chain,
    /// From a requested end to the cell it was snapped to.
    Snap,
    /// The octagon in which a planner of polygons sees somebody who stands.
    Octagon,
    /// A link between two nodes of a graph.
    Link,
    /// The direction from an edge into the free space.
    EdgeNormal,
    /// From a corner to its node.
    CornerNormal,
    /// A corner of more than 180 degrees.
    Concave,
    /// A node: such a corner, pushed into the free space.
    Node,
    /// From the start to a node in sight.
    StartLink,
    /// From the end to a node in sight.
    EndLink,
    /// The path to walk.
    Path,
    /// A waypoint.
    Waypoint,
    /// Where the path starts.
    Start,
    /// The requested end, when the path ends there.
    End,
    /// The requested end, when it cannot be reached.
    UnreachedEnd,
}

/// Every layer there is, lowest first; a map or a query that has nothing for one leaves it empty or out.
pub const LAYERS: [&str; 17] = [
    "ground",
    "areas",
    "blocked",
    "obstacles",
    "names",
    "links",
    "normals",
    "concave",
    "standing",
    "octagons",
    "start-links",
    "end-links",
    "expanded",
    "chain",
    "snapped",
    "path",
    "ends",
];

/// A query and its answer, to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct QueryPicture<'a> {
    /// Where it started.
    pub from: Point,
    /// The requested end.
    pub to: Point,
    /// Who stood in the way.
    pub standing: &'a [Circle],
    /// The answer; its cells are drawn if it has them.
    pub route: &'a Route,
    /// Cells the search took from its queue, if they were recorded.
    pub expanded: &'a [(u32, u32)],
}

impl Drawing {
    /// A map as it is now: the layers `ground` (baked grids), `areas`, `blocked`, `obstacles`, `names`.
    pub fn of_map(map: &EditedMap) -> Self {
        let frame = map.frame();
        let mut drawing = Self {
            bounds: frame.bounds(),
            layers: Vec::new(),
        };
        if map.is_baked() {
            let runs = merged_runs(map.walkable(), frame);
            drawing.push_layer("ground", vec![shape(Style::Ground, Form::Rectangles(runs))]);
        }
        drawing.push_areas(map.areas());
        if !map.is_baked() {
            let runs = merged_runs(&map.blocked_ground(), frame);
            drawing.push_layer("blocked", vec![shape(Style::Blocked, Form::Rectangles(runs))]);
        }
        drawing.push_obstacles(map.obstacles());
        drawing.push_names(map.areas());
        drawing
    }

    /// Adds a query on the map of this frame: the layers `standing`, `expanded`, `chain`, `snapped`, `path`, `ends`.
    pub fn add_query(&mut self, frame: &Frame, query: &QueryPicture<'_>) {
        let &QueryPicture {
            from,
            to,
            standing,
            route,
            expanded,
        } = query;
        self.push_standing(standing);

        let mut cells = Cells::new(frame.width, frame.depth);
        for &(x, z) in expanded {
            cells.set(x, z, true);
        }
        let runs = if expanded.is_empty() {
            Vec::new()
        } else {
            merged_runs(&cells, frame)
        };
        self.push_layer("expanded", vec![shape(Style::Expanded, Form::Rectangles(runs))]);

        let chain: Vec<Point> = route.cells.iter().map(|&(x, z)| frame.centre(x, z)).collect();
        let ends = [chain.first().zip(Some(&from)), chain.last().zip(Some(&to))];
        // An end in its own cell was not snapped.
        let snapped = ends.into_iter().flatten().filter(|(centre, end)| {
            let half = frame.cell_size.wide() / 2 + 1;
            !Bounds::around([**centre]).is_some_and(|cell| cell.contains_within(**end, half))
        });
        let snapped: Vec<Shape> = snapped
            .map(|(centre, end)| shape(Style::Snap, Form::Polyline(vec![*end, *centre])))
            .collect();
        self.push_layer("chain", vec![shape(Style::Chain, Form::Polyline(chain))]);
        self.push_layer("snapped", snapped);

        self.push_route(from, to, route);
    }

    /// The layer `areas`; open ones above closed ones, since where they overlap one can walk.
    pub(crate) fn push_areas<'a>(&mut self, areas: impl Iterator<Item = (&'a Area, bool)>) {
        let mut areas: Vec<_> = areas.collect();
        areas.sort_by_key(|(_, open)| *open);
        let polygons = areas.into_iter().map(|(area, open)| Shape {
            style: if open { Style::Area } else { Style::ClosedArea },
            form: Form::Polygon(area.polygon.vertices().to_vec()),
            title: format!("{}{}", area.name, if open { "" } else { " (closed)" }),
        });
        self.push_layer("areas", polygons.collect());
    }

    /// The layer `obstacles`.
    pub(crate) fn push_obstacles<'a>(&mut self, obstacles: impl Iterator<Item = (&'a str, &'a Polygon)>) {
        let obstacles = obstacles.map(|(name, polygon)| Shape {
            style: Style::Obstacle,
            form: Form::Polygon(polygon.vertices().to_vec()),
            title: name.to_owned(),
        });
        self.push_layer("obstacles", obstacles.collect());
    }

    /// The layer `names`, of areas.
    pub(crate) fn push_names<'a>(&mut self, areas: impl Iterator<Item = (&'a Area, bool)>) {
        let names = areas.map(|(area, _)| {
            let bounds = area.polygon.bounds();
            shape(
                Style::Name,
                Form::Label {
                    at: bounds.centre(),
                    text: area.name.clone(),
                    width: bounds.width(),
                },
            )
        });
        self.push_layer("names", names.collect());
    }

    /// The layer `standing`.
    pub(crate) fn push_standing(&mut self, standing: &[Circle]) {
        let standing = standing.iter().map(|circle| {
            shape(
                Style::Standing,
                Form::Circle {
                    centre: circle.centre,
                    radius: circle.radius,
                },
            )
        });
        self.push_layer("standing", standing.collect());
    }

    /// The layers `path` and `ends`.
    pub(crate) fn push_route(&mut self, from: Point, to: Point, route: &Route) {
        let mut path = Vec::new();
        if !route.waypoints.is_empty() {
            let line = std::iter::once(from).chain(route.waypoints.iter().copied());
            path.push(shape(Style::Path, Form::Polyline(line.collect())));
        }
        let dots = route.waypoints.iter().enumerate().map(|(index, waypoint)| Shape {
            style: Style::Waypoint,
            form: Form::Dot(*waypoint),
            title: format!("waypoint {index}: {}, {}", waypoint.x, waypoint.z),
        });
        path.extend(dots);
        self.push_layer("path", path);

        let end = if route.complete {
            Style::End
        } else {
            Style::UnreachedEnd
        };
        let ends = [(Style::Start, from, "from"), (end, to, "to")];
        let ends = ends.map(|(style, point, word)| Shape {
            style,
            form: Form::Dot(point),
            title: format!("{word} {}, {}", point.x, point.z),
        });
        self.push_layer("ends", ends.to_vec());

        // Ends may lie outside the grid.
        let points = [from, to].into_iter().chain(route.waypoints.iter().copied());
        if let Some(bounds) = Bounds::around(points) {
            self.bounds = self.bounds.union(bounds);
        }
    }

    /// Adds a layer on top; those of maps and queries are [`LAYERS`].
    pub fn push_layer(&mut self, name: &'static str, shapes: Vec<Shape>) {
        let shapes = shapes
            .into_iter()
            .filter(|shape| !shape.form.is_empty())
            .collect();
        self.layers.push(Layer { name, shapes });
    }

    /// Leaves the layers of these names only.
    pub fn keep_layers(&mut self, names: &[impl AsRef<str>]) {
        self.layers
            .retain(|layer| names.iter().any(|name| name.as_ref() == layer.name));
    }
}

impl Form {
    /// There is nothing to paint.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Polygon(points) | Self::Polyline(points) => points.is_empty(),
            Self::Rectangles(rectangles) => rectangles.is_empty(),
            Self::Label { text, .. } => text.is_empty(),
            Self::Circle { .. } | Self::Dot(_) => false,
        }
    }
}

pub(crate) fn shape(style: Style, form: Form) -> Shape {
    Shape {
        style,
        form,
        title: String::new(),
    }
}

/// The set cells as few rectangles: the runs of each row, equal ones of neighbouring rows as one.
fn merged_runs(cells: &Cells, frame: &Frame) -> Vec<Bounds> {
    let mut rectangles = Vec::new();
    // Runs that the row before ended with: columns, and the row they began in.
    let mut open: Vec<(std::ops::Range<u32>, u32)> = Vec::new();
    for z in 0..=cells.depth() {
        let runs: Vec<_> = if z < cells.depth() {
            cells.runs(z).collect()
        } else {
            Vec::new()
        };
        let mut next = Vec::with_capacity(runs.len());
        let mut before = open.drain(..).peekable();
        for columns in runs {
            let mut began = z;
            while let Some((other, start)) = before.next_if(|(other, _)| other.start <= columns.start) {
                if other == columns {
                    began = start;
                } else {
                    rectangles.push(frame.cells_bounds(other, start..z));
                }
            }
            next.push((columns, began));
        }
        rectangles.extend(before.map(|(columns, start)| frame.cells_bounds(columns, start..z)));
        open = next;
    }
    rectangles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapFile;

    #[test]
    fn equal_runs_of_neighbouring_rows_are_one_rectangle() {
        let rows = ["1101", "1101", "1110", "0000", "0110"];
        let mut cells = Cells::new(4, 5);
        for (z, row) in rows.iter().enumerate() {
            for (x, _) in row.bytes().enumerate().filter(|(_, byte)| *byte == b'1') {
                cells.set(x as u32, z as u32, true);
            }
        }
        let frame = Frame {
            min: Point::default(),
            width: 4,
            depth: 5,
            cell_size: Fixed::ONE,
        };
        let found = merged_runs(&cells, &frame);
        let rectangle = |x: (i32, i32), z: (i32, i32)| Bounds {
            min: Point::new(Fixed::from_int(x.0), Fixed::from_int(z.0)),
            max: Point::new(Fixed::from_int(x.1), Fixed::from_int(z.1)),
        };
        let expected = [
            rectangle((0, 2), (0, 2)),
            rectangle((3, 4), (0, 2)),
            rectangle((0, 3), (2, 3)),
            rectangle((1, 3), (4, 5)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn layers_are_known_in_order_and_chosen_by_name() {
        let polygons = br#"{"areas": [{"name": "a", "polygon": [[0, 0], [4, 0], [4, 4], [0, 4]]}]}"#;
        let baked = MapFile::parse("map.json", polygons).map(|map| EditedMap::new(&map).to_baked().to_text());
        let baked = baked.expect("a good map");
        for (file, bytes) in [("map.json", &polygons[..]), ("map.txt", baked.as_bytes())] {
            let map = EditedMap::new(&MapFile::parse(file, bytes).expect("a good map"));
            let mut drawing = Drawing::of_map(&map);
            let query = QueryPicture {
                from: Point::default(),
                to: Point::default(),
                standing: &[],
                route: &Route::default(),
                expanded: &[],
            };
            drawing.add_query(map.frame(), &query);
            let places = drawing.layers.iter().map(|layer| {
                let place = LAYERS.iter().position(|name| *name == layer.name);
                place.unwrap_or_else(|| panic!("{file}: {} is unknown", layer.name))
            });
            assert!(places.is_sorted(), "{file}");
            drawing.keep_layers(&["ground", "blocked", "path"]);
            assert_eq!(drawing.layers.len(), 2, "{file}: it has either ground or blocked");
        }
    }
}
