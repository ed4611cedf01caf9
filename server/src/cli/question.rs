//! Questions to a planner as people write them, answers as tools read them (spec 6, "JSON forms").

use std::fmt;
use std::path::Path;

use nav::{Circle, Document, FRACTION_BITS, Fixed, Goal, Planner, Point, Problems, Query, Route, json};
use serde::{Serialize, Serializer};

use super::input;
use super::map::{MapInput, MapPlanner};

/// Obstacles of one question.
const OBSTACLES_MAX: usize = 16_384;
/// Questions of one file.
const QUESTIONS_MAX: usize = 4_000_000;
/// Largest radius of an obstacle or an agent, metres.
pub(crate) const RADIUS_MAX: Fixed = Fixed::from_int(100);

/// From where to where, around whom.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) from: Point,
    pub(crate) to: Point,
    pub(crate) goal: Goal,
    pub(crate) agent_radius: Fixed,
    pub(crate) obstacles: Vec<Circle>,
}

impl Question {
    /// A line of `--queries`.
    ///
    /// # Errors
    /// Every broken rule with its line and JSON path.
    pub(crate) fn parse(file: &str, line: u64, text: &[u8]) -> Result<Self, Problems> {
        let document = Document::parse_line(file, line, text, input::LINE_BYTES_MAX)?;
        let question = document.root().object().and_then(|mut object| {
            let from = object.required("from").and_then(|node| node.pair());
            let to = object.required("to").and_then(|node| node.pair());
            let exact = object.boolean_or("exact", false);
            let obstacles = circles(object.array_or_empty("obstacles", OBSTACLES_MAX));
            object.finish();
            Some(Self {
                from: from?,
                to: to?,
                goal: if exact { Goal::Exact } else { Goal::Nearest },
                agent_radius: Fixed::ZERO,
                obstacles: obstacles?,
            })
        });
        document.finish(question)
    }

    /// Asks.
    pub(crate) fn ask(&self, planner: &mut dyn Planner, want_cells: bool, route: &mut Route) {
        planner.plan(&self.query(want_cells), route);
    }

    /// As a planner takes it.
    pub(crate) fn query(&self, want_cells: bool) -> Query<'_> {
        Query {
            from: self.from,
            to: self.to,
            goal: self.goal,
            agent_radius: self.agent_radius,
            also: &self.obstacles,
            except: &[],
            expanded_max: None,
            want_cells,
        }
    }
}

/// A file of `--queries`. All questions are read before the first is answered, so that a broken line costs nothing.
///
/// # Errors
/// Bad input: every broken line; more than [`QUESTIONS_MAX`].
pub(crate) fn read_all(path: &Path) -> anyhow::Result<Vec<Question>> {
    let name = input::name(path);
    let mut questions = Vec::new();
    let mut problems = Problems::new();
    input::for_each_line(path, |line, text| {
        match Question::parse(&name, line, text) {
            _ if questions.len() == QUESTIONS_MAX => {
                let rule = format!("more than {QUESTIONS_MAX} queries");
                return Err(Problems::one(&name, format!("line {line}"), rule).into());
            }
            Ok(question) => questions.push(question),
            Err(found) => problems.append(found),
        }
        Ok(())
    })?;
    Ok(problems.or_else(|| questions)?)
}

/// A file of `--obstacles`: the array alone.
///
/// # Errors
/// Every broken rule with its JSON path.
pub(crate) fn parse_obstacles(file: &str, bytes: &[u8]) -> Result<Vec<Circle>, Problems> {
    let document = Document::parse(file, bytes, input::OBSTACLES_BYTES_MAX)?;
    let obstacles = document.root().items(OBSTACLES_MAX).and_then(circles);
    document.finish(obstacles)
}

/// The answer as `path --json` prints it.
#[derive(Serialize)]
pub(crate) struct Answer<'a> {
    found: bool,
    complete: bool,
    waypoints: Vec<Waypoint>,
    cells: &'a [(u32, u32)],
    cost: Cost,
    expanded: u32,
}

/// What a route costs, in the planner's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// The grid's: 10 per cardinal and 14 per diagonal step.
    Steps(u32),
    /// A length, raw.
    Length(i64),
}

impl Cost {
    /// Of a route on a map for this planner.
    pub(crate) fn of(route: &Route, planner: &MapPlanner) -> Self {
        match planner {
            MapPlanner::Grid(_) => Self::Steps(route.cost),
            MapPlanner::Polygon(_) => Self::Length(route.length),
        }
    }
}

impl fmt::Display for Cost {
    /// A length with the digits of a Fixed, however long it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Steps(cost) => write!(f, "{cost}"),
            Self::Length(raw) => {
                let fraction = Fixed::from_raw((raw & (Fixed::ONE.wide() - 1)) as i32).to_string();
                // 65535/65536 needs five digits: no fraction is rounded up to a whole.
                let digits = fraction.strip_prefix('0').expect("a fraction is below 1");
                write!(f, "{}{digits}", raw >> FRACTION_BITS)
            }
        }
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Steps(cost) => serializer.serialize_u32(cost),
            Self::Length(raw) if raw % Fixed::ONE.wide() == 0 => {
                serializer.serialize_i64(raw >> FRACTION_BITS)
            }
            // The shortest text that reads back to this f64 is the decimal it was parsed from.
            Self::Length(_) => serializer.serialize_f64(self.to_string().parse().expect("a decimal number")),
        }
    }
}

#[derive(Serialize)]
struct Waypoint {
    x: Fixed,
    y: Fixed,
    z: Fixed,
}

impl<'a> Answer<'a> {
    /// The route on this map.
    pub(crate) fn new(route: &'a Route, map: &MapInput) -> Self {
        let waypoints = route.waypoints.iter().map(|point| Waypoint {
            x: point.x,
            y: map.floor_y,
            z: point.z,
        });
        Self {
            found: route.found,
            complete: route.complete,
            waypoints: waypoints.collect(),
            cells: &route.cells,
            cost: Cost::of(route, &map.planner),
            expanded: route.stats.expanded,
        }
    }
}

fn circles(nodes: Vec<json::Node<'_>>) -> Option<Vec<Circle>> {
    // Every one is looked at, so that every problem is told.
    let circles: Vec<Option<Circle>> = nodes.iter().map(circle).collect();
    circles.into_iter().collect()
}

fn circle(node: &json::Node<'_>) -> Option<Circle> {
    let mut object = node.object()?;
    let centre = object.point();
    let radius = object.fixed("radius", Fixed::ZERO..=RADIUS_MAX);
    object.finish();
    Some(Circle {
        centre: centre?,
        radius: radius?,
    })
}
