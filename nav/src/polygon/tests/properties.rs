//! Properties on random maps; a failure names the seed.

use std::sync::Arc;

use super::random::{Random, RandomMap};
use super::reference::{Reference, contains, shortest};
use crate::geometry::Polygon;
use crate::map_file::Obstacle;
use crate::polygon::PolygonPlanner;
use crate::polygon::exact::Vector;
use crate::polygon::graph::{Graph, length, may_leave};
use crate::polygon::ground::Octagon;
use crate::{Circle, Fixed, Goal, Planner, Point, Query, Route};

const MAPS: u64 = 500;

fn planner(map: &RandomMap, insets: &[Fixed]) -> PolygonPlanner {
    PolygonPlanner::new(&map.areas, &map.obstacles, insets).expect("a small map")
}

fn reference(map: &RandomMap) -> Reference {
    let open = map.areas.iter().filter(|area| area.available);
    Reference::new(
        open.map(|area| &area.polygon),
        map.obstacles.iter().map(|obstacle| &obstacle.polygon),
    )
}

fn ask(
    planner: &mut PolygonPlanner,
    from: Point,
    to: Point,
    goal: Goal,
    radius: Fixed,
    also: &[Circle],
) -> Route {
    let mut route = Route::default();
    let query = Query {
        from,
        to,
        goal,
        agent_radius: radius,
        also,
        except: &[],
        expanded_max: None,
        want_cells: false,
    };
    planner.plan(&query, &mut route);
    route
}

#[test]
fn free_space_and_sight_are_those_of_the_polygons() {
    for seed in 0..MAPS {
        let map = RandomMap::new(seed);
        let planner = planner(&map, &[Fixed::ZERO]);
        let reference = reference(&map);
        let mut random = Random(seed ^ 0xABCD);
        let point = |index| match index % 4 {
            0 => map.point(&mut random),
            _ => map.free_point(&mut random, |point| reference.is_free(point)),
        };
        let points: Vec<Point> = (0..16).map(point).collect();
        for &point in &points {
            assert_eq!(
                planner.is_free_ground(point),
                reference.is_free(point),
                "seed {seed}: {point:?} free"
            );
        }
        for &a in &points {
            for &b in &points {
                if reference.is_free(a) && reference.is_free(b) {
                    assert_eq!(
                        planner.line_of_sight(a, b),
                        reference.sees(a, b),
                        "seed {seed}: sight from {a:?} to {b:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn links_are_all_pairs_in_sight() {
    for seed in 0..MAPS {
        let map = RandomMap::new(seed);
        let insets = map.insets(&mut Random(seed));
        let planner = planner(&map, &insets);
        let reference = reference(&map);
        for graph in planner.graphs.iter().chain([&planner.bare]) {
            for (one, node) in graph.nodes.iter().enumerate() {
                assert!(
                    reference.is_free(node.position),
                    "seed {seed}: node {node:?} is free"
                );
                let linked: Vec<usize> = graph
                    .links_of(one as u32)
                    .iter()
                    .map(|link| link.node as usize)
                    .collect();
                let expected: Vec<usize> = (0..graph.nodes.len())
                    .filter(|&other| other != one && linked_by(&reference, graph, one, other))
                    .collect();
                assert_eq!(
                    linked, expected,
                    "seed {seed}: links of {node:?}, inset {}",
                    graph.inset
                );
            }
        }
    }
}

fn linked_by(reference: &Reference, graph: &Graph, one: usize, other: usize) -> bool {
    let (one, other) = (&graph.nodes[one], &graph.nodes[other]);
    let direction = Vector::between(one.position, other.position);
    one.part == other.part
        && may_leave(one, direction)
        && may_leave(other, -direction)
        && reference.sees(one.position, other.position)
}

#[test]
fn routes_are_free_and_cost_what_brute_force_finds() {
    for seed in 0..MAPS {
        let map = RandomMap::new(seed);
        let mut random = Random(seed ^ 0x1234);
        let insets = map.insets(&mut random);
        let mut planner = planner(&map, &insets);
        let reference = reference(&map);
        let graphs: Vec<Arc<Graph>> = planner.graphs.iter().chain([&planner.bare]).cloned().collect();
        for _ in 0..4 {
            let mut point = || map.free_point(&mut random, |point| reference.is_free(point));
            let (from, to) = (point(), point());
            if !reference.is_free(from) || !reference.is_free(to) || from == to {
                continue;
            }
            for (class, inset) in insets.iter().enumerate() {
                let route = ask(&mut planner, from, to, Goal::Exact, *inset, &[]);
                // The nodes of the class, and where they give nothing, the bare ones.
                let expected = [&graphs[class], &graphs[insets.len()]]
                    .into_iter()
                    .find_map(|graph| cost_by(&reference, graph, from, to));
                let context = format!("seed {seed}, inset {inset}: from {from:?} to {to:?}: {route:?}");
                assert_eq!(route.found.then_some(route.length), expected, "{context}");
                check_route(&reference, &route, from, &context);
                assert!(!route.found || route.waypoints.last() == Some(&to), "{context}");
            }
        }
    }
}

/// Every piece of a route is in the free space, and the lengths add up.
fn check_route(reference: &Reference, route: &Route, from: Point, context: &str) {
    let mut at = from;
    let mut sum = 0;
    for &waypoint in &route.waypoints {
        assert!(
            reference.sees(at, waypoint),
            "{context}: leaves the free space after {at:?}"
        );
        sum += i64::from(length(at, waypoint));
        at = waypoint;
    }
    assert_eq!(sum, route.length, "{context}");
}

/// The cost between two points over the nodes of a graph, its links forgotten.
fn cost_by(reference: &Reference, graph: &Graph, from: Point, to: Point) -> Option<i64> {
    let count = graph.nodes.len();
    let nodes: Vec<usize> = (0..count + 2).collect();
    let place = |node: usize| match graph.nodes.get(node) {
        Some(node) => node.position,
        None if node == count => from,
        None => to,
    };
    let length = |one, other| length(place(one), place(other)).into();
    shortest(&nodes, count, count + 1, length, |one, other| {
        let (a, b) = (place(one), place(other));
        let direction = Vector::between(a, b);
        let may = |node: usize, direction: Vector| {
            graph
                .nodes
                .get(node)
                .is_none_or(|node| may_leave(node, direction))
        };
        let parts = graph.nodes.get(one).zip(graph.nodes.get(other));
        parts.is_none_or(|(one, other)| one.part == other.part)
            && may(one, direction)
            && may(other, -direction)
            && reference.sees(a, b)
    })
}

#[test]
fn without_inset_routes_are_the_shortest_there_are() {
    let (mut turns, mut compared) = (0, 0);
    for seed in 0..MAPS {
        let mut map = RandomMap::new(seed);
        // Every crossing is a place here, and every pair of places is tested.
        map.obstacles.truncate(6);
        if seed % 4 == 1 {
            map.areas.truncate(1);
        }
        let mut planner = planner(&map, &[Fixed::ZERO]);
        let reference = reference(&map);
        // All vertices, and all raw points where edges cross, corner or not; each once for every sector of it.
        let places: Vec<_> = crossings(&reference)
            .into_iter()
            .flat_map(|place| {
                reference
                    .sectors(place)
                    .into_iter()
                    .map(move |sector| (place, sector))
            })
            .filter(|(_, (from, to))| from != to)
            .collect();
        let mut random = Random(seed ^ 0x77);
        for _ in 0..2 {
            let mut point = || map.free_point(&mut random, |point| reference.is_free(point));
            let (from, to) = (point(), point());
            if !reference.is_free(from) || !reference.is_free(to) || from == to {
                continue;
            }
            let route = ask(&mut planner, from, to, Goal::Exact, Fixed::ZERO, &[]);
            let mut nodes = places.clone();
            nodes.extend([from, to].map(|point| (point, ((1, 0), (1, 0)))));
            let (start, end) = (nodes.len() - 2, nodes.len() - 1);
            // In 1/1024 raw, so that rounding does not add up.
            let root =
                |(a, _): (Point, _), (b, _)| (u128::from(a.squared_distance(b) as u64) << 20).isqrt() as i64;
            let expected = shortest(&nodes, start, end, root, |(a, leaving), (b, entering)| {
                let (x, z) = (
                    i128::from(b.x.wide() - a.x.wide()),
                    i128::from(b.z.wide() - a.z.wide()),
                );
                // From one sector of a place into another there is no way at the place.
                a != b && contains(leaving, (x, z)) && contains(entering, (-x, -z)) && reference.sees(a, b)
            });
            let context = format!("seed {seed}: from {from:?} to {to:?}: {route:?}, {expected:?}");
            turns += usize::from(route.waypoints.len() > 1);
            // Where outlines of areas cross between raw points there is a corner that nobody else knows of.
            let mut waypoints = route.waypoints.iter();
            let is_known = waypoints.all(|waypoint| nodes.iter().any(|(place, _)| place == waypoint));
            assert!(route.found == expected.is_some() || !is_known, "{context}");
            if let Some(expected) = expected {
                let links = route.waypoints.len() as i64;
                assert!(expected / 1024 <= route.length + 1 || !is_known, "{context}");
                assert!(route.length <= expected / 1024 + links + 1, "{context}");
                compared += usize::from(is_known);
            }
        }
    }
    assert!(turns > MAPS as usize / 4, "only {turns} routes have corners");
    assert!(compared > MAPS as usize, "only {compared} routes are compared");
}

fn crossings(reference: &Reference) -> Vec<Point> {
    let mut points = Vec::new();
    let edges = |corners: &[(i128, i128)]| -> Vec<((i128, i128), (i128, i128))> {
        (0..corners.len())
            .map(|index| (corners[index], corners[(index + 1) % corners.len()]))
            .collect()
    };
    for (corners, _) in &reference.polygons {
        points.extend(corners.iter().copied());
        for (a, b) in edges(corners) {
            for (others, _) in &reference.polygons {
                for (c, d) in edges(others) {
                    let (x, z) = (b.0 - a.0, b.1 - a.1);
                    let (u, v) = (d.0 - c.0, d.1 - c.1);
                    let turn = x * v - z * u;
                    if turn == 0 {
                        continue;
                    }
                    let way = (c.0 - a.0) * v - (c.1 - a.1) * u;
                    if (a.0 * turn + x * way) % turn == 0 && (a.1 * turn + z * way) % turn == 0 {
                        points.push((a.0 + x * way / turn, a.1 + z * way / turn));
                    }
                }
            }
        }
    }
    points.sort_unstable();
    points.dedup();
    let in_reach = |value: i128| i32::try_from(value).is_ok_and(|value| value.abs() < 1 << 28);
    points.retain(|point| in_reach(point.0) && in_reach(point.1));
    points
        .into_iter()
        .map(|(x, z)| Point::from_raw(x as i32, z as i32))
        .collect()
}

#[test]
fn order_and_winding_of_vertices_and_polygons_change_nothing() {
    for seed in 0..MAPS {
        let map = RandomMap::new(seed);
        let mut random = Random(seed ^ 0x5555);
        let insets = map.insets(&mut random);
        let mut one = planner(&map, &insets);
        let mut other = planner(&map.shuffled(&mut random), &insets);
        for _ in 0..4 {
            let (from, to) = (map.point(&mut random), map.point(&mut random));
            let circles = [0, 1].map(|_| Circle {
                centre: map.point(&mut random),
                radius: Fixed::from_raw(map.size * map.unit / 8),
            });
            for (goal, also) in [
                (Goal::Exact, &[][..]),
                (Goal::Nearest, &[]),
                (Goal::Nearest, &circles),
            ] {
                let answers =
                    [&mut one, &mut other].map(|planner| ask(planner, from, to, goal, insets[0], also));
                assert_eq!(
                    format!("{:?}", answers[0]),
                    format!("{:?}", answers[1]),
                    "seed {seed}: from {from:?} to {to:?}, {goal:?}, {also:?}"
                );
            }
        }
    }
}

#[test]
fn an_edited_map_is_the_one_built_fresh() {
    for seed in 0..MAPS {
        let mut map = RandomMap::new(seed);
        let mut random = Random(seed ^ 0x9999);
        let insets = map.insets(&mut random);
        let mut edited = planner(&map, &insets);
        for step in 0..6 {
            match random.below(3) {
                0 => {
                    let index = random.below(map.areas.len() as u32) as usize;
                    let area = &mut map.areas[index];
                    area.available ^= true;
                    assert_eq!(edited.set_area_available(&area.name, area.available), Ok(true));
                }
                1 if !map.obstacles.is_empty() => {
                    let index = random.below(map.obstacles.len() as u32) as usize;
                    let obstacle = map.obstacles.remove(index);
                    assert_eq!(edited.remove_obstacle(&obstacle.name), Ok(()));
                }
                _ => {
                    let name = format!("step {step}");
                    let polygon = map.polygon(&mut random, 4);
                    assert_eq!(edited.add_obstacle(&name, polygon.vertices()), Ok(()));
                    map.obstacles.push(Obstacle { name, polygon });
                }
            }
            let fresh = planner(&map, &insets);
            assert_eq!(edited.bare, fresh.bare, "seed {seed}, step {step}");
            assert_eq!(edited.graphs, fresh.graphs, "seed {seed}, step {step}");
        }
        // And all at once.
        let mut loaded = planner(&RandomMap::new(seed), &insets);
        assert_eq!(loaded.set_edits(&edited.edits()), Ok(()));
        assert_eq!(loaded.edits(), edited.edits());
        assert_eq!(loaded.graphs, edited.graphs, "seed {seed}");
    }
}

/// A circle is an obstacle in the shape of its octagon, no more and no less, also where octagons touch walls and each other.
#[test]
fn circles_are_octagons() {
    for seed in 0..MAPS {
        let map = RandomMap::new(seed);
        let mut random = Random(seed ^ 0x4242);
        let mut dynamic = planner(&map, &[Fixed::ZERO]);
        let circles: Vec<Circle> = (0..random.between(1, 4))
            .map(|_| Circle {
                centre: map.point(&mut random),
                radius: Fixed::from_raw(random.between(1, 2 + map.size / 4) * map.unit),
            })
            .collect();
        let mut built = map.clone();
        let mut distinct = circles.clone();
        distinct.sort_unstable();
        distinct.dedup();
        for (index, &circle) in distinct.iter().enumerate() {
            let octagon = Octagon::new(circle, Fixed::ZERO).expect("a radius");
            let corners = octagon.corners().map(|offset| {
                Point::from_raw(
                    circle.centre.x.raw() + offset.x as i32,
                    circle.centre.z.raw() + offset.z as i32,
                )
            });
            built.obstacles.push(Obstacle {
                name: format!("circle {index}"),
                polygon: Polygon::new(&corners).expect("an octagon"),
            });
        }
        let mut fixed = planner(&built, &[Fixed::ZERO]);
        let before = reference(&map);
        let after = reference(&built);
        for _ in 0..6 {
            let from = map.free_point(&mut random, |point| after.is_free(point));
            if !after.is_free(from) {
                continue;
            }
            let to = match random.below(2) {
                0 => map.free_point(&mut random, |point| after.is_free(point)),
                _ => map.point(&mut random),
            };
            for goal in [Goal::Exact, Goal::Nearest] {
                if goal == Goal::Exact && before.is_free(to) && !after.is_free(to) {
                    // Here an end keeps to its static part, there nobody knows of any.
                    continue;
                }
                let one = ask(&mut dynamic, from, to, goal, Fixed::ZERO, &circles);
                let other = ask(&mut fixed, from, to, goal, Fixed::ZERO, &[]);
                let context = format!("seed {seed}: from {from:?} to {to:?}, {goal:?}, {circles:?}");
                assert_eq!(one.waypoints, other.waypoints, "{context}");
                assert_eq!(
                    (one.found, one.complete, one.length),
                    (other.found, other.complete, other.length),
                    "{context}"
                );
                check_route(&after, &one, from, &context);
            }
        }
    }
}

#[test]
fn standing_circles_count_like_those_of_a_query() {
    for seed in 0..MAPS / 5 {
        let map = RandomMap::new(seed);
        let mut random = Random(seed ^ 0x3333);
        let mut planner = planner(&map, &[Fixed::from_raw(map.unit)]);
        let mut circle = || Circle {
            centre: map.point(&mut random),
            radius: Fixed::from_raw(map.size / 5 * map.unit),
        };
        let circles = [circle(), circle(), circle()];
        let (from, to) = (map.point(&mut random), map.point(&mut random));
        let expected = ask(&mut planner, from, to, Goal::Nearest, Fixed::ZERO, &circles[..2]);
        for circle in [circles[2], circles[0], circles[0], circles[1], circles[2]] {
            planner.block(circle);
        }
        planner.unblock(circles[2]);
        let mut route = Route::default();
        let query = Query {
            from,
            to,
            goal: Goal::Nearest,
            agent_radius: Fixed::ZERO,
            also: &[],
            except: &circles[2..],
            expanded_max: None,
            want_cells: false,
        };
        planner.plan(&query, &mut route);
        assert_eq!(format!("{route:?}"), format!("{expected:?}"), "seed {seed}");
        planner.unblock_all();
        let again = ask(&mut planner, from, to, Goal::Nearest, Fixed::ZERO, &circles[..2]);
        assert_eq!(format!("{again:?}"), format!("{expected:?}"), "seed {seed}");
    }
}
