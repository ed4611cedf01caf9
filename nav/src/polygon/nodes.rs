//! The nodes of a graph: the corners of the free space with more than 180 degrees of it, pushed into it by the inset.

use super::arrangement::Place;
use super::border::{Border, Location, VertexSector};
use super::exact::{Sector, Spot, Vector, compare_fractions};
use crate::{Fixed, Point};

/// Steps of a push: as many of `PUSH_STEPS` parts of the inset as leave the whole way free (spec 7.1).
const PUSH_STEPS: i128 = 20;

/// Fraction bits of a unit vector.
pub(super) const UNIT_BITS: u32 = 30;

/// Widest search for a raw point near a spot, raw.
const ROUNDING_REACH: i32 = 64;

/// Most columns (or rows) searched for a raw point in a wedge.
const WEDGE_COLUMNS: i64 = 4_096;

/// A corner, whatever the inset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corner {
    /// Where it is; of a crossing that is no raw point, the raw point that stands for it.
    pub(super) position: Point,
    /// Into the free space: the normalised sum of the two unit normals, with [`UNIT_BITS`] fraction bits.
    pub(super) push: Vector,
    /// Free directions, if the corner is a vertex of the border.
    sector: Option<Sector>,
    /// Of the free space of its angle.
    pub(super) part: u32,
}

/// A corner pushed by an inset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Where its corner is: the nodes are in this order.
    pub(super) corner: Point,
    pub(super) position: Point,
    /// If some, only these directions lead away from the node.
    pub(super) gate: Option<Sector>,
    /// The part it belongs to.
    pub(super) part: u32,
}

/// The corners of a free space in position order.
pub(super) fn corners(border: &Border) -> Vec<Corner> {
    let mut found: Vec<(Corner, Spot)> = Vec::new();
    for vertex in 0..border.vertices.len() as u32 {
        for own in border.sectors_of(vertex) {
            if !own.sector.is_reflex() {
                continue;
            }
            let spot = border.spot(vertex);
            let (position, sector) = match border.vertices[vertex as usize].place {
                Place::Raw(point) => (Some(point), Some(own.sector)),
                Place::Between(spot) => (raw_corner(border, own, &spot), None),
            };
            let Some(position) = position else { continue };
            let corner = Corner {
                position,
                push: push_direction(own.sector),
                sector,
                part: border.part_of(own),
            };
            found.push((corner, spot));
        }
    }
    found.sort_by(|(one, one_spot), (other, other_spot)| {
        one.position
            .cmp(&other.position)
            .then_with(|| one_spot.compare(other_spot))
    });
    found.into_iter().map(|(corner, _)| corner).collect()
}

/// The corner pushed by `inset` as far as it goes.
pub(super) fn pushed(border: &Border, corner: &Corner, inset: Fixed) -> Node {
    let mut position = corner.position;
    for step in (1..=PUSH_STEPS).rev() {
        let offset = |component: i64| {
            let offset = i128::from(component) * i128::from(inset.wide()) * step / (PUSH_STEPS << UNIT_BITS);
            // At most the inset.
            offset as i32
        };
        let (x, z) = (offset(corner.push.x), offset(corner.push.z));
        let (Some(x), Some(z)) = (
            corner.position.x.raw().checked_add(x),
            corner.position.z.raw().checked_add(z),
        ) else {
            continue;
        };
        let end = Point::from_raw(x, z);
        if end == corner.position {
            break;
        }
        let direction = Vector::between(corner.position, end);
        let leads_there = corner.sector.is_none_or(|sector| sector.contains(direction));
        if leads_there && border.sees(corner.position, end) {
            position = end;
            break;
        }
    }
    let gate = if position == corner.position && corner.sector.is_some() {
        corner.sector
    } else {
        gate_at(border, position, corner)
    };
    Node {
        corner: corner.position,
        position,
        gate,
        part: corner.part,
    }
}

/// Of a node that does not lie on its own vertex: where it lies on a vertex of several sectors, the one it came from.
fn gate_at(border: &Border, position: Point, corner: &Corner) -> Option<Sector> {
    let Location::AtVertex(vertex) = border.locate_point(position) else {
        return None;
    };
    let sectors = border.sectors_of(vertex);
    if sectors.len() < 2 {
        return None;
    }
    let back = Vector::between(position, corner.position);
    let own = sectors.iter().find(|own| {
        if back.is_zero() {
            border.part_of(own) == corner.part
        } else {
            own.sector.contains(back)
        }
    });
    own.map(|own| own.sector)
}

/// The direction of the push: the sum of the two unit normals, normalised; 0 if they cancel.
fn push_direction(sector: Sector) -> Vector {
    // Free is on the left of the edge that begins here and of the one that ends here.
    let (one, other) = (sector.from.left(), (-sector.to).left());
    unit(unit(one) + unit(other))
}

/// The vector scaled to length 1 with [`UNIT_BITS`] fraction bits, truncated toward zero; components below 2^31.
pub(super) fn unit(vector: Vector) -> Vector {
    let square = vector.dot(vector) as u128;
    if square == 0 {
        return vector;
    }
    // The root of square × 2^60 is the length with 30 more bits.
    let length = (square << (2 * UNIT_BITS)).isqrt() as i128;
    let scale = |component: i64| ((i128::from(component) << (2 * UNIT_BITS)) / length) as i64;
    Vector::new(scale(vector.x), scale(vector.z))
}

/// The raw point that stands for a corner between raw points: the nearest of its part that is not behind the line of either
/// of its edges, so that the corners along them still see it; ties smaller x, then z.
///
/// Of a wall that runs out in a very acute point there may be none nearby; then the end of one of the edges beyond the
/// corner serves, and at last any raw point of the part beside the corner.
fn raw_corner(border: &Border, own: &VertexSector, spot: &Spot) -> Option<Point> {
    let part = border.part_of(own);
    let is_ours = |point: Point| border.is_in_part(border.locate_point(point), part);
    let edges = [own.outgoing, own.incoming].map(|index| border.edges[index as usize]);
    let is_in_front = |point: Point| {
        let mut edges = edges.iter();
        edges.all(|edge| edge.along.cross(Vector::between(edge.start, point)) >= 0)
    };
    let mut near = Vec::new();
    let verdict = |is_good: bool| if is_good { Verdict::Taken } else { Verdict::Passed };
    nearest_raw(spot, &mut near, |point| {
        verdict(is_in_front(point) && is_ours(point))
    })
    .or_else(|| nearest_in_wedge(own, &edges.map(|edge| (edge.start, edge.along)), spot, is_ours))
    .or_else(|| nearest_raw(spot, &mut near, |point| verdict(is_ours(point))))
}

/// What a raw point beside a spot is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stands for the spot.
    Taken,
    /// Look on.
    Passed,
    /// Look on, but not much farther.
    Refused,
}

/// The nearest raw point to a spot that is taken, within [`ROUNDING_REACH`]; ties smaller x, then z. Where points of one
/// ring are refused and none is taken, it stops. `near` is scratch.
pub(super) fn nearest_raw(
    spot: &Spot,
    near: &mut Vec<(i128, i32, i32)>,
    mut judge: impl FnMut(Point) -> Verdict,
) -> Option<Point> {
    let floor = spot.floor();
    let rest_x = spot.x - i128::from(floor.x.wide()) * spot.w;
    let rest_z = spot.z - i128::from(floor.z.wide()) * spot.w;
    // Squared distance × w, less what is the same for all.
    let distance = |x: i32, z: i32| {
        let (x, z) = (i128::from(x), i128::from(z));
        spot.w * (x * x + z * z) - 2 * (rest_x * x + rest_z * z)
    };
    let mut ring = 1;
    loop {
        let square = (-ring..=ring + 1).flat_map(|x| (-ring..=ring + 1).map(move |z| (x, z)));
        near.clear();
        near.extend(square.map(|(x, z)| (distance(x, z), x, z)));
        near.sort_unstable();
        let mut is_refused = false;
        for &(_, x, z) in near.iter() {
            let (Some(x), Some(z)) = (floor.x.raw().checked_add(x), floor.z.raw().checked_add(z)) else {
                continue;
            };
            let point = Point::from_raw(x, z);
            match judge(point) {
                Verdict::Passed => {}
                Verdict::Refused => is_refused = true,
                Verdict::Taken => {
                    // The spot lies in the square from 0 to 1: what lies outside of this one is farther than the ring.
                    let ring_square = u128::from(ring.unsigned_abs()).pow(2);
                    if ring >= ROUNDING_REACH || spot.squared_distance(point).is_within(ring_square) {
                        return Some(point);
                    }
                    is_refused = false;
                    break;
                }
            }
        }
        if is_refused || ring >= ROUNDING_REACH {
            return None;
        }
        ring *= 4;
    }
}

/// The nearest raw point in the wedge in front of two lines through a spot: by columns or rows from the spot on, or, where
/// those are too many, the first raw point on one of the lines.
fn nearest_in_wedge(
    own: &VertexSector,
    lines: &[(Point, Vector); 2],
    spot: &Spot,
    accept: impl Fn(Point) -> bool,
) -> Option<Point> {
    // The wedge lies opposite to the wall: between the edges carried on beyond the corner.
    let rays = [-own.sector.from, -own.sector.to];
    let by_columns = rays[0].x.abs() >= rays[0].z.abs();
    let turned = |vector: Vector| {
        if by_columns {
            vector
        } else {
            Vector::new(vector.z, vector.x)
        }
    };
    let rays_turned = rays.map(turned);
    let step = rays_turned[0].x.signum();
    let mut best: Option<Point> = None;
    let mut offer = |point: Point| {
        let is_nearer = best.is_none_or(|other| {
            let order = spot
                .squared_distance(point)
                .compare(&spot.squared_distance(other));
            order.then_with(|| point.cmp(&other)).is_lt()
        });
        if point.in_world() && is_nearer && accept(point) {
            best = Some(point);
        }
    };
    // The first raw points on the lines themselves: start + k × along, beyond the spot.
    for ((start, along), ray) in lines.iter().zip(rays) {
        let (position, component, origin) = if along.x != 0 {
            (spot.x, along.x, start.x)
        } else {
            (spot.z, along.z, start.z)
        };
        // k as a fraction, rounded in the direction of the ray.
        let numerator = (position - i128::from(origin.wide()) * spot.w) * i128::from(component.signum());
        let denominator = i128::from(component.abs()) * spot.w;
        let forward = ray.dot(*along) > 0;
        let count = if forward {
            -(-numerator).div_euclid(denominator)
        } else {
            numerator.div_euclid(denominator)
        };
        let coordinate = |origin: Fixed, component: i64| {
            i32::try_from(i128::from(origin.wide()) + count * i128::from(component)).ok()
        };
        if let (Some(x), Some(z)) = (coordinate(start.x, along.x), coordinate(start.z, along.z)) {
            offer(Point::from_raw(x, z));
        }
    }
    if step == 0 || rays_turned[1].x.signum() != step {
        return best;
    }
    let floor = spot.floor();
    let base = if by_columns {
        floor.x.wide()
    } else {
        floor.z.wide()
    };
    for count in 0..WEDGE_COLUMNS {
        let column = base + step * count + i64::from(step > 0);
        // Where the two lines cross the column: raw points between are in the wedge.
        let at = lines.map(|(start, along)| {
            let (start, along) = (turned(Vector::new(start.x.wide(), start.z.wide())), turned(along));
            let numerator = i128::from(start.z) * i128::from(along.x)
                + i128::from(column - start.x) * i128::from(along.z);
            let sign = i128::from(along.x.signum());
            (numerator * sign, i128::from(along.x) * sign)
        });
        let (low, high) = if compare_fractions(at[0], at[1]).is_le() {
            (at[0], at[1])
        } else {
            (at[1], at[0])
        };
        let first = -(-low.0).div_euclid(low.1);
        let last = high.0.div_euclid(high.1);
        if first > last {
            continue;
        }
        for row in [first, last] {
            let (Ok(row), Ok(column)) = (i32::try_from(row), i32::try_from(column)) else {
                continue;
            };
            offer(if by_columns {
                Point::from_raw(column, row)
            } else {
                Point::from_raw(row, column)
            });
        }
        break;
    }
    best
}
