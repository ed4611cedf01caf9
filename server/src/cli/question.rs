//! Questions to a planner as people write them, answers as tools read them (spec 6, "JSON forms").

use std::path::Path;

use nav::{Circle, Document, Fixed, Goal, Planner, Point, Problems, Query, Route, json};
use serde::Serialize;

use super::input;

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
        let query = Query {
            from: self.from,
            to: self.to,
            goal: self.goal,
            agent_radius: self.agent_radius,
            also: &self.obstacles,
            except: &[],
            expanded_max: None,
            want_cells,
        };
        planner.plan(&query, route);
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
    cost: u32,
    expanded: u32,
}

#[derive(Serialize)]
struct Waypoint {
    x: Fixed,
    y: Fixed,
    z: Fixed,
}

impl<'a> Answer<'a> {
    /// The route on a map whose floor is at `floor_y`.
    pub(crate) fn new(route: &'a Route, floor_y: Fixed) -> Self {
        let waypoints = route.waypoints.iter().map(|point| Waypoint {
            x: point.x,
            y: floor_y,
            z: point.z,
        });
        Self {
            found: route.found,
            complete: route.complete,
            waypoints: waypoints.collect(),
            cells: &route.cells,
            cost: route.cost,
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
