//! The traps of spec 7.1 and maps at the edge of what is allowed, each by name.

use super::reference::keep_apart;
use crate::geometry::{Polygon, Segment};
use crate::map_file::{Area, Obstacle};
use crate::polygon::PolygonPlanner;
use crate::{Circle, Fixed, Goal, Planner, Point, Query, Route};

fn point(x: &str, z: &str) -> Point {
    let read = |text: &str| text.parse().expect("a number");
    Point::new(read(x), read(z))
}

/// `"1,2 3,4"` as points.
fn points(text: &str) -> Vec<Point> {
    text.split_whitespace()
        .map(|pair| {
            let (x, z) = pair.split_once(',').expect("x,z");
            point(x, z)
        })
        .collect()
}

fn polygon(text: &str) -> Polygon {
    Polygon::new(&points(text)).expect("simple")
}

struct Case {
    planner: PolygonPlanner,
    radius: Fixed,
    circles: Vec<Circle>,
}

impl Case {
    fn new(areas: &[&str], obstacles: &[&str], inset: &str) -> Self {
        let inset: Fixed = inset.parse().expect("a number");
        let areas: Vec<Area> = areas
            .iter()
            .enumerate()
            .map(|(index, text)| Area {
                name: format!("area {index}"),
                available: true,
                polygon: polygon(text),
            })
            .collect();
        let obstacles: Vec<Obstacle> = obstacles
            .iter()
            .enumerate()
            .map(|(index, text)| Obstacle {
                name: format!("obstacle {index}"),
                polygon: polygon(text),
            })
            .collect();
        Self {
            planner: PolygonPlanner::new(&areas, &obstacles, &[inset]).expect("a small map"),
            radius: inset,
            circles: Vec::new(),
        }
    }

    fn with_circle(mut self, centre: &str, radius: &str) -> Self {
        self.circles.push(Circle {
            centre: points(centre)[0],
            radius: radius.parse().expect("a number"),
        });
        self
    }

    fn route(&mut self, from: &str, to: &str, goal: Goal) -> Route {
        let mut route = Route::default();
        let query = Query {
            from: points(from)[0],
            to: points(to)[0],
            goal,
            agent_radius: self.radius,
            also: &self.circles,
            except: &[],
            expanded_max: None,
            want_cells: false,
        };
        self.planner.plan(&query, &mut route);
        route
    }

    /// The waypoints as text; `-` for no path, `(…)` when the end was not reached, `!` when obstacles cut it off.
    fn answer(&mut self, from: &str, to: &str, goal: Goal) -> String {
        let route = self.route(from, to, goal);
        if !route.found {
            return "-".to_owned();
        }
        let waypoints: Vec<String> = route
            .waypoints
            .iter()
            .map(|point| format!("{},{}", point.x, point.z))
            .collect();
        let text = waypoints.join(" ");
        let cut_off = if route.search_ran_out { "!" } else { "" };
        if route.complete {
            format!("{text}{cut_off}")
        } else {
            format!("({text}){cut_off}")
        }
    }

    #[track_caller]
    fn check(&mut self, from: &str, to: &str, exact: &str, nearest: &str) {
        assert_eq!(self.answer(from, to, Goal::Exact), exact, "from {from} to {to}");
        assert_eq!(
            self.answer(from, to, Goal::Nearest),
            nearest,
            "from {from} to {to}, nearest"
        );
    }
}

const TUTORIAL: &str = "3,15 3,3 24,3 24,8 6,8 6,10 24,10 24,24 15,24 15,17 21,17 21,15";

#[test]
fn the_example_of_the_tutorial() {
    let corners = points(TUTORIAL);
    let check = |inset: &str, waypoints: &str, cost: &str| {
        for reversed in [false, true] {
            for shift in 0..corners.len() {
                let mut corners = corners.clone();
                corners.rotate_left(shift);
                if reversed {
                    corners.reverse();
                }
                let text: Vec<String> = corners.iter().map(|p| format!("{},{}", p.x, p.z)).collect();
                let mut case = Case::new(&[&text.join(" ")], &[], inset);
                case.check("15,6", "18,22", waypoints, waypoints);
                let length = case.route("15,6", "18,22", Goal::Exact).length;
                assert_eq!(Fixed::from_raw(length as i32).to_string(), cost);
            }
        }
    };
    check("0", "6,8 6,10 21,15 21,17 18,22", "34.86192");
    check(
        "1",
        "5.29291,7.29291 5.29291,10.70709 21.70709,14.29291 21.70709,17.70709 18,22",
        "39.09451",
    );
    let mut case = Case::new(&[TUTORIAL], &[], "1");
    let mut way = vec![points("15,6")[0]];
    way.extend(case.route("15,6", "18,22", Goal::Exact).waypoints);
    let outline = polygon(TUTORIAL);
    let keeps = |distance: i64| {
        way.windows(2).all(|piece| {
            let piece = Segment::new(piece[0], piece[1]);
            outline.edges().all(|edge| keep_apart(piece, edge, distance))
        })
    };
    assert!(keeps(46_340) && !keeps(46_341));
}

#[test]
fn two_rooms_joined_by_a_door_on_part_of_a_wall() {
    // The rooms touch along x = 10; the wall between them is no wall where both have it.
    let mut case = Case::new(&["0,0 10,0 10,10 0,10", "10,4 20,4 20,6 10,6"], &[], "0.5");
    case.check("1,9", "19,5", "9.64645,5.64645 19,5", "9.64645,5.64645 19,5");
    case.check("5,5", "19,5", "19,5", "19,5");
}

#[test]
fn a_plus_of_two_overlapping_rectangles() {
    let mut case = Case::new(&["0,4 10,4 10,6 0,6", "4,0 6,0 6,10 4,10"], &[], "0");
    case.check("1,5", "5,9", "4,6 5,9", "4,6 5,9");
    case.check("1,5", "9,5", "9,5", "9,5");
    let mut case = Case::new(&["0,4 10,4 10,6 0,6", "4,0 6,0 6,10 4,10"], &[], "0.5");
    case.check("1,6", "4,9", "4.35355,5.64645 4,9", "4.35355,5.64645 4,9");
}

#[test]
fn a_wall_thinner_than_the_inset() {
    // The corner of the wall's end must not be pushed through to the other side of something thin.
    let mut case = Case::new(
        &["0,0 20,0 20,10 0,10"],
        &["9,0 9.1,0 9.1,8 9,8", "0,8.2 20,8.2 20,8.3 0,8.3"],
        "1",
    );
    let route = case.route("1,1", "19,1", Goal::Exact);
    assert!(route.found && route.complete);
    assert!(
        route
            .waypoints
            .iter()
            .all(|point| point.z <= "8.2".parse().expect("a number")),
        "{route:?}"
    );
}

#[test]
fn a_corridor_narrower_than_the_inset_with_a_bend() {
    // A Z of 0.6 m width: nodes pushed by 1 m see nothing of each other.
    let mut case = Case::new(&["0,0 5,0 5,5 10,5 10,5.6 4.4,5.6 4.4,0.6 0,0.6"], &[], "1");
    let answer = case.answer("0.1,0.3", "9.9,5.3", Goal::Exact);
    assert!(
        answer.ends_with("9.9,5.3") && !answer.starts_with('('),
        "{answer}"
    );
}

#[test]
fn two_obstacles_touching_at_a_corner() {
    let boxes = ["4,4 5,4 5,5 4,5", "5,5 6,5 6,6 5,6"];
    let mut case = Case::new(&["0,0 10,0 10,10 0,10"], &boxes, "0");
    // Through the common corner there is no way.
    case.check("4,6", "6,4", "4,4 6,4", "4,4 6,4");
    assert!(case.planner.line_of_sight(points("4,6")[0], points("5,5")[0]));
}

#[test]
fn two_obstacles_touching_along_an_edge() {
    let boxes = ["4,2 5,2 5,5 4,5", "5,2 6,2 6,5 5,5"];
    let mut case = Case::new(&["0,0 10,0 10,10 0,10"], &boxes, "0");
    case.check("5,1", "5,6", "4,2 4,5 5,6", "4,2 4,5 5,6");
    assert!(!case.planner.is_free_ground(points("5,3")[0]));
    assert!(case.planner.is_free_ground(points("5,5")[0]));
    assert!(!case.planner.line_of_sight(points("5,2")[0], points("5,5")[0]));
}

#[test]
fn rooms_that_meet_in_a_point_are_not_connected() {
    let mut case = Case::new(&["0,0 5,0 5,5 0,5", "5,5 10,5 10,10 5,10"], &[], "0");
    case.check("1,1", "9,9", "-", "(5,5)");
    // On the point itself one is in both.
    case.check("5,5", "9,9", "9,9", "9,9");
    case.check("5,5", "1,1", "1,1", "1,1");
    case.check("1,1", "5,5", "5,5", "5,5");
}

#[test]
fn a_start_under_two_circles() {
    let mut case = Case::new(&["0,0 20,0 20,20 0,20"], &[], "0.5")
        .with_circle("10,10", "0.5")
        .with_circle("10.5,10", "0.5");
    let route = case.route("10.2,10", "18,10", Goal::Exact);
    assert!(route.complete && route.waypoints.len() >= 2, "{route:?}");
    assert!(
        case.answer("10.2,10", "18,10", Goal::Exact)
            .starts_with("10.2,9 "),
        "{route:?}"
    );
}

#[test]
fn an_end_behind_a_ring_of_circles() {
    let mut case = Case::new(&["0,0 20,0 20,20 0,20"], &[], "0.5");
    for (x, z) in [
        ("8", "10"),
        ("8.6", "8.6"),
        ("10", "8"),
        ("11.4", "8.6"),
        ("12", "10"),
        ("11.4", "11.4"),
        ("10", "12"),
        ("8.6", "11.4"),
    ] {
        case = case.with_circle(&format!("{x},{z}"), "0.5");
    }
    case.check("1,10", "10,10", "-", "(7.58578,9 7.6,9)!");
    // From inside one gets no farther either.
    let answer = case.answer("10,10", "1,10", Goal::Nearest);
    assert!(answer.ends_with("!"), "{answer}");
}

#[test]
fn a_convex_polygon() {
    let mut case = Case::new(&["0,0 10,0 12,6 5,11 -2,6"], &[], "0.45");
    case.check("1,1", "9,5", "9,5", "9,5");
    case.check("3,3", "3,3", "3,3", "3,3");
    // From outside and to outside.
    case.check("5,-3", "5,15", "(5,0 5,11)", "(5,0 5,11)");
    case.check("5,-9", "5,9", "-", "-");
    case.check("5,1", "5,20", "-", "(5,11)");
}

#[test]
fn collinear_runs_and_duplicate_points() {
    let outline = "0,0 3,0 3,0 5,0 10,0 10,5 10,10 6,10 6,7 6,5 6,5 4,5 4,7 4,10 0,10 0,4 0,0 0,0";
    let mut case = Case::new(&[outline], &[], "0");
    case.check("2,9", "8,9", "4,5 6,5 8,9", "4,5 6,5 8,9");
    assert_eq!(case.planner.size().0, 2);
    let mut plain = Case::new(&["0,0 10,0 10,10 6,10 6,5 4,5 4,10 0,10"], &[], "0.5");
    let mut runs = Case::new(&[outline], &[], "0.5");
    for (from, to) in [("2,9", "8,9"), ("4,7", "6,7"), ("5,5", "5,8"), ("-1,-1", "4,5")] {
        for goal in [Goal::Exact, Goal::Nearest] {
            assert_eq!(
                runs.answer(from, to, goal),
                plain.answer(from, to, goal),
                "from {from} to {to}"
            );
        }
    }
}

#[test]
fn spikes_and_touching_edges_are_no_polygons() {
    for outline in [
        "0,0 10,0 10,10 5,10 5,15 5,10 0,10",
        "0,0 10,0 10,10 5,0 0,10",
        "0,0 10,0 10,10 0,10 5,5 0,10",
        "0,0 5,0 10,0",
        "0,0 10,0",
    ] {
        assert!(Polygon::new(&points(outline)).is_err(), "{outline}");
    }
}

#[test]
fn starts_and_ends_exactly_on_vertices_and_edges() {
    // An L; its reflex corner is at 5,5.
    let mut case = Case::new(&["0,0 10,0 10,5 5,5 5,10 0,10"], &[], "0");
    case.check("5,5", "10,5", "10,5", "10,5");
    case.check("5,5", "5,10", "5,10", "5,10");
    case.check("10,5", "5,10", "5,5 5,10", "5,5 5,10");
    case.check("10,0", "0,10", "5,5 0,10".trim_start_matches("5,5 "), "0,10");
    case.check("10,2", "2,10", "5,5 2,10", "5,5 2,10");
    case.check("0,0", "5,5", "5,5", "5,5");
    case.check("5,7", "7,5", "5,5 7,5", "5,5 7,5");
    case.check("7,0", "7,5", "7,5", "7,5");
    let mut pushed = Case::new(&["0,0 10,0 10,5 5,5 5,10 0,10"], &[], "1");
    pushed.check("10,5", "5,10", "4.29291,4.29291 5,10", "4.29291,4.29291 5,10");
}

#[test]
fn a_hole_between_areas_that_cross_between_raw_points() {
    // Four bars, none along an axis, around a hole of which no corner is a raw point.
    let bars = [
        "-10,-3.01 10,-2.87 10,-1.87 -10,-2.03",
        "-10,2.03 10,2.17 10,3.17 -10,3.03",
        "-3.01,-10 -2.03,-10 -2.17,10 -3.17,10",
        "2.03,-10 3.03,-10 2.87,10 1.87,10",
    ];
    let mut case = Case::new(&bars, &[], "0");
    let route = case.route("-9,-2.5", "9,2.6", Goal::Exact);
    assert!(route.complete && route.waypoints.len() >= 2, "{route:?}");
    assert!(!case.planner.is_free_ground(points("0,0")[0]));
    assert!(
        !case
            .planner
            .line_of_sight(points("-9,-2.5")[0], points("9,2.6")[0])
    );
    assert_eq!(
        case.answer("-9,-2.5", "0,0", Goal::Nearest).matches(' ').count(),
        0
    );
}

#[test]
fn rooms_that_miss_each_other_by_a_raw() {
    // A wall of a third of a millimetre at most: the second room's edge is askew by one raw, so on one half they overlap.
    let one = "0,0 10,0 10,10 0,10";
    let raw = |x: i32, z: i32| Point::from_raw(x, z);
    let metre = 1 << 16;
    let other = Polygon::new(&[
        raw(10 * metre + 1, 0),
        raw(20 * metre, 0),
        raw(20 * metre, 10 * metre),
        raw(10 * metre - 1, 10 * metre),
    ]);
    let areas = [polygon(one), other.expect("simple")].map(|polygon| Area {
        name: format!("{:?}", polygon.bounds().min),
        available: true,
        polygon,
    });
    let planner = PolygonPlanner::new(&areas, &[], &[Fixed::ZERO]).expect("a small map");
    let mut case = Case {
        planner,
        radius: Fixed::ZERO,
        circles: Vec::new(),
    };
    // Straight through where they overlap, not where there is a gap.
    case.check("2,9", "18,9", "18,9", "18,9");
    assert!(!case.planner.line_of_sight(points("2,1")[0], points("18,1")[0]));
    let route = case.route("2,1", "18,1", Goal::Exact);
    assert!(route.complete && route.waypoints.len() >= 2, "{route:?}");
    let mut at = points("2,1")[0];
    for &waypoint in &route.waypoints {
        assert!(case.planner.line_of_sight(at, waypoint), "{route:?}");
        at = waypoint;
    }
}

#[test]
fn near_parallel_walls_at_the_world_limit() {
    let limit = 16_000 << 16;
    let polygon = |corners: &[(i32, i32)]| {
        let corners: Vec<Point> = corners.iter().map(|&(x, z)| Point::from_raw(x, z)).collect();
        Polygon::new(&corners).expect("simple")
    };
    let ground = polygon(&[(-limit, -limit), (limit, -limit), (limit, limit), (-limit, limit)]);
    let answer = |lower: (i32, i32), upper: (i32, i32)| {
        // Two walls across the whole world with a slit between them, each end's height given.
        let walls = [
            polygon(&[
                (-limit, -limit),
                (limit, -limit),
                (limit, lower.1),
                (-limit, lower.0),
            ]),
            polygon(&[
                (-limit, upper.0),
                (limit, upper.1),
                (limit, limit),
                (-limit, limit),
            ]),
        ];
        let obstacles = walls.map(|polygon| Obstacle {
            name: format!("{:?}", polygon.bounds()),
            polygon,
        });
        let area = Area {
            name: "ground".to_owned(),
            available: true,
            polygon: ground.clone(),
        };
        let mut planner = PolygonPlanner::new(&[area], &obstacles, &[Fixed::ONE]).expect("a small map");
        let mut route = Route::default();
        let query = Query {
            from: Point::from_raw(-limit, lower.0.max(0)),
            to: Point::from_raw(limit, lower.1.max(0)),
            goal: Goal::Exact,
            agent_radius: Fixed::ONE,
            also: &[],
            except: &[],
            expanded_max: None,
            want_cells: false,
        };
        planner.plan(&query, &mut route);
        route.complete
    };
    // Open by a raw at one end, closed at the other in a point; open all along; crossing in the middle.
    assert!(answer((0, 0), (1, 1)));
    assert!(answer((0, 1), (2, 2)));
    assert!(answer((0, 0), (1, 0)));
    assert!(!answer((0, 1), (1, 0)));
    assert!(!answer((0, 3), (2, 1)));
}
