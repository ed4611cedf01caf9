//! The free space and shortest ways again, slowly and from the definitions alone: polygons, not their border.
//!
//! Coordinates are at most 2^29 raw here, so that fractions of fractions fit `i128`.

use crate::Point;
use crate::geometry::{Polygon, Segment};

type Pair = (i128, i128);

/// Polygons, and whether each is an obstacle.
pub(super) struct Reference {
    pub(super) polygons: Vec<(Vec<Pair>, bool)>,
}

/// A point (x / w, z / w).
#[derive(Clone, Copy, Debug)]
struct Place {
    x: i128,
    z: i128,
    w: i128,
}

fn pair(point: Point) -> Pair {
    (point.x.wide().into(), point.z.wide().into())
}

fn cross(a: Pair, b: Pair) -> i128 {
    a.0 * b.1 - a.1 * b.0
}

fn minus(a: Pair, b: Pair) -> Pair {
    (a.0 - b.0, a.1 - b.1)
}

impl Reference {
    pub(super) fn new<'a>(
        areas: impl Iterator<Item = &'a Polygon>,
        obstacles: impl Iterator<Item = &'a Polygon>,
    ) -> Self {
        let corners = |polygon: &Polygon| {
            let mut corners: Vec<Pair> = polygon.vertices().iter().map(|&point| pair(point)).collect();
            if polygon.doubled_area() < 0 {
                corners.reverse();
            }
            corners
        };
        let areas = areas.map(|polygon| (corners(polygon), false));
        Self {
            polygons: areas
                .chain(obstacles.map(|polygon| (corners(polygon), true)))
                .collect(),
        }
    }

    /// The point lies in the closure of the inside of the free space: some direction from it is free.
    pub(super) fn is_free(&self, point: Point) -> bool {
        let place = Place {
            x: pair(point).0,
            z: pair(point).1,
            w: 1,
        };
        self.directions_around(&place, (1, 0))
            .into_iter()
            .any(|direction| self.is_free_towards(&place, direction))
    }

    /// The segment lies in the free space, and passes no point where only points connect.
    pub(super) fn sees(&self, a: Point, b: Point) -> bool {
        let (a, b) = (pair(a), pair(b));
        let along = minus(b, a);
        if along == (0, 0) {
            return true;
        }
        let mut cuts: Vec<Pair> = vec![(0, 1), (1, 1)];
        for (corners, _) in &self.polygons {
            for (index, &c) in corners.iter().enumerate() {
                let side = minus(corners[(index + 1) % corners.len()], c);
                let turn = cross(along, side);
                let offset = minus(c, a);
                if turn != 0 {
                    let (on_segment, on_side) = (cross(offset, side), cross(offset, along));
                    let sign = turn.signum();
                    let (on_segment, on_side, turn) = (on_segment * sign, on_side * sign, turn * sign);
                    if (0..=turn).contains(&on_segment) && (0..=turn).contains(&on_side) {
                        cuts.push((on_segment, turn));
                    }
                } else if cross(along, offset) == 0 {
                    let length = along.0 * along.0 + along.1 * along.1;
                    for end in [offset, (offset.0 + side.0, offset.1 + side.1)] {
                        let way = end.0 * along.0 + end.1 * along.1;
                        if (0..=length).contains(&way) {
                            cuts.push((way, length));
                        }
                    }
                }
            }
        }
        cuts.sort_by(|one, other| (one.0 * other.1).cmp(&(other.0 * one.1)));
        cuts.dedup_by(|one, other| one.0 * other.1 == other.0 * one.1);
        let place = |(n, d): Pair| Place {
            x: a.0 * d + along.0 * n,
            z: a.1 * d + along.1 * n,
            w: d,
        };
        let left = (-along.1, along.0);
        let right = (along.1, -along.0);
        let pieces_are_free = cuts.windows(2).all(|cut| {
            let middle = place((cut[0].0 + cut[1].0, cut[0].1 + cut[1].1));
            self.is_free_towards(&middle, left) || self.is_free_towards(&middle, right)
        });
        pieces_are_free
            && cuts[1..cuts.len() - 1].iter().all(|&cut| {
                let place = place(cut);
                let directions = self.directions_around(&place, along);
                let all_free = |side: Pair| {
                    let mut half = directions
                        .iter()
                        .filter(|direction| direction.0 * side.0 + direction.1 * side.1 > 0);
                    half.all(|&direction| self.is_free_towards(&place, direction))
                };
                all_free(left) || all_free(right)
            })
    }

    /// The free directions around a point, sector by sector, each counter-clockwise from the first ray to the second; the
    /// two are the same where all are free.
    pub(super) fn sectors(&self, point: Point) -> Vec<(Pair, Pair)> {
        let (x, z) = pair(point);
        let place = Place { x, z, w: 1 };
        let rays = self.rays_around(&place, (1, 0));
        let next = |index: usize| rays[(index + 1) % rays.len()];
        let is_free: Vec<bool> = (0..rays.len())
            .map(|index| {
                let (one, other) = (rays[index], next(index));
                self.is_free_towards(&place, (one.0 + other.0, one.1 + other.1))
            })
            .collect();
        let Some(wall) = is_free.iter().position(|is_free| !is_free) else {
            return vec![((1, 0), (1, 0))];
        };
        let mut sectors: Vec<(Pair, Pair)> = Vec::new();
        let mut goes_on = false;
        for index in (wall..wall + rays.len()).map(|index| index % rays.len()) {
            if is_free[index] {
                if goes_on {
                    sectors.last_mut().expect("one goes on").1 = next(index);
                } else {
                    sectors.push((rays[index], next(index)));
                }
            }
            goes_on = is_free[index];
        }
        sectors
    }

    /// Directions of which one lies strictly between any two neighbouring rays of polygons at a place, and of one line.
    fn directions_around(&self, place: &Place, line: Pair) -> Vec<Pair> {
        let rays = self.rays_around(place, line);
        (0..rays.len())
            .map(|index| {
                let (one, other) = (rays[index], rays[(index + 1) % rays.len()]);
                (one.0 + other.0, one.1 + other.1)
            })
            .collect()
    }

    /// The directions of edges at a place, and of two lines at right angles, counter-clockwise.
    fn rays_around(&self, place: &Place, (x, z): Pair) -> Vec<Pair> {
        let mut rays: Vec<Pair> = vec![(x, z), (-z, x), (-x, -z), (z, -x)];
        for (corners, _) in &self.polygons {
            for (index, &a) in corners.iter().enumerate() {
                let b = corners[(index + 1) % corners.len()];
                if on_edge(place, a, b) {
                    rays.push(minus(b, a));
                    rays.push(minus(a, b));
                }
            }
        }
        let half = |ray: &Pair| ray.1 < 0 || (ray.1 == 0 && ray.0 < 0);
        rays.sort_by(|one, other| half(one).cmp(&half(other)).then(0.cmp(&cross(*one, *other))));
        rays.dedup_by(|one, other| half(one) == half(other) && cross(*one, *other) == 0);
        rays
    }

    /// A trifle from the place in this direction, which is no edge's there, it is free.
    fn is_free_towards(&self, place: &Place, direction: Pair) -> bool {
        let covers = |corners: &[Pair]| {
            // Along the direction from the place: crossings of a ray, each edge half open across it.
            let is_left = |point: Pair| {
                let offset = (point.0 * place.w - place.x, point.1 * place.w - place.z);
                cross(direction, offset) > 0
            };
            let mut inside = false;
            for (index, &a) in corners.iter().enumerate() {
                let b = corners[(index + 1) % corners.len()];
                let (a_left, b_left) = (is_left(a), is_left(b));
                if a_left == b_left {
                    continue;
                }
                // The turn from a to b around the place.
                let at = (place.x, place.z);
                let turn = place.w * cross(a, b) - cross(a, at) - cross(at, b);
                let is_ahead = if b_left { turn > 0 } else { turn < 0 };
                inside ^= is_ahead;
            }
            inside
        };
        let mut in_area = false;
        for (corners, is_obstacle) in &self.polygons {
            if covers(corners) {
                if *is_obstacle {
                    return false;
                }
                in_area = true;
            }
        }
        in_area
    }
}

fn on_edge(place: &Place, a: Pair, b: Pair) -> bool {
    let offset = (place.x - a.0 * place.w, place.z - a.1 * place.w);
    let side = minus(b, a);
    let way = offset.0 * side.0 + offset.1 * side.1;
    cross(side, offset) == 0 && way >= 0 && way <= (side.0 * side.0 + side.1 * side.1) * place.w
}

/// The sector has this direction, ends included.
pub(super) fn contains((from, to): (Pair, Pair), direction: Pair) -> bool {
    if from == to || direction == (0, 0) {
        return true;
    }
    let turn = |one: Pair, other: Pair| cross(one, other).signum();
    let is_along = |ray: Pair| turn(ray, direction) == 0 && ray.0 * direction.0 + ray.1 * direction.1 > 0;
    let between = match turn(from, to) {
        1 => turn(from, direction) > 0 && turn(direction, to) > 0,
        0 => turn(from, direction) > 0,
        _ => !(turn(to, direction) > 0 && turn(direction, from) > 0),
    };
    is_along(from) || is_along(to) || between
}

/// Every pair against every edge: no link is known before.
pub(super) fn shortest<N: Copy>(
    nodes: &[N],
    start: usize,
    end: usize,
    length: impl Fn(N, N) -> i64,
    mut are_linked: impl FnMut(N, N) -> bool,
) -> Option<i64> {
    let mut best: Vec<Option<i64>> = vec![None; nodes.len()];
    let mut done = vec![false; nodes.len()];
    best[start] = Some(0);
    loop {
        let open = (0..nodes.len()).filter(|&node| !done[node] && best[node].is_some());
        let node = open.min_by_key(|&node| best[node])?;
        let cost = best[node].expect("filtered");
        if node == end {
            return Some(cost);
        }
        done[node] = true;
        for other in 0..nodes.len() {
            let through = cost + length(nodes[node], nodes[other]);
            if !done[other]
                && best[other].is_none_or(|known| through < known)
                && are_linked(nodes[node], nodes[other])
            {
                best[other] = Some(through);
            }
        }
    }
}

/// Two segments are at least so far apart, raw.
pub(super) fn keep_apart(one: Segment, other: Segment, distance: i64) -> bool {
    let from = |segment: Segment, point: Point| segment.compare_distance(point, distance).is_ge();
    !one.meets(other) && from(one, other.a) && from(one, other.b) && from(other, one.a) && from(other, one.b)
}
