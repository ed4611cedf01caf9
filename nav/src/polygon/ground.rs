//! The free space of one query: the static one without the octagons around dynamic circles.
//!
//! An octagon is an obstacle like any other: its inside blocks, touching it is allowed, and a seam of no width between two
//! octagons, or between one and a wall, is wall. Since a query is no time to build a border, the seams are looked for where
//! a segment touches an octagon.

use std::cmp::Ordering;

use super::border::{Border, Edge, Location, Witnesses};
use super::exact::{Sector, Spot, Vector, compare_fractions, root_up};
use crate::{Circle, Fixed, Point};

/// The octagon around a circle: all that is at most `reach` from the centre along both axes and at most `reach + cut` along
/// both diagonals (the sum of the two coordinates).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Octagon {
    pub(super) centre: Point,
    /// R of spec 7.1, raw: the circle's radius and the inset.
    pub(super) reach: i64,
    /// t of spec 7.1, raw: R × (√2 − 1) rounded up.
    pub(super) cut: i64,
}

impl Octagon {
    /// Around a circle, for an agent of this inset; `None` if both are points.
    pub(super) fn new(circle: Circle, inset: Fixed) -> Option<Self> {
        let reach = circle.radius.wide() + inset.wide();
        let diagonal = root_up(2 * (reach * reach) as u64) as i64;
        (reach > 0).then_some(Self {
            centre: circle.centre,
            reach,
            cut: diagonal - reach,
        })
    }

    /// The corners from the centre, counter-clockwise from the one below the +x axis.
    pub(super) const fn corners(&self) -> [Vector; 8] {
        let (r, t) = (self.reach, self.cut);
        [
            Vector::new(r, -t),
            Vector::new(r, t),
            Vector::new(t, r),
            Vector::new(-t, r),
            Vector::new(-r, t),
            Vector::new(-r, -t),
            Vector::new(-t, -r),
            Vector::new(t, -r),
        ]
    }

    /// A corner as a raw point, if it is one within the world.
    pub(super) fn corner(&self, offset: Vector) -> Option<Point> {
        let x = i32::try_from(self.centre.x.wide() + offset.x).ok()?;
        let z = i32::try_from(self.centre.z.wide() + offset.z).ok()?;
        Some(Point::from_raw(x, z)).filter(|point| point.in_world())
    }

    /// `Greater` inside, `Equal` on the border, `Less` outside.
    pub(super) fn locate(&self, spot: &Spot) -> Ordering {
        let x = (spot.x - i128::from(self.centre.x.wide()) * spot.w).abs();
        let z = (spot.z - i128::from(self.centre.z.wide()) * spot.w).abs();
        let reach = i128::from(self.reach) * spot.w;
        let diagonal = i128::from(self.reach + self.cut) * spot.w;
        reach.cmp(&x).min(reach.cmp(&z)).min(diagonal.cmp(&(x + z)))
    }

    /// As [`Octagon::locate`], of a raw point.
    pub(super) fn locate_point(&self, point: Point) -> Ordering {
        let offset = Vector::between(self.centre, point);
        let (x, z) = (offset.x.abs(), offset.z.abs());
        let diagonal = self.reach + self.cut;
        self.reach
            .cmp(&x)
            .min(self.reach.cmp(&z))
            .min(diagonal.cmp(&(x + z)))
    }

    /// How the segment from `a` along `direction` meets the octagon: `Greater` if it enters the inside, `Equal` if it
    /// touches or may touch it, `Less` if they are apart.
    fn meet(&self, a: Point, direction: Vector) -> Ordering {
        // Two convex sets are apart if and only if they are on one of the axes: the octagon's four and across the segment.
        let from = Vector::between(self.centre, a);
        let to = from + direction;
        let depth = |one: i64, other: i64, reach: i64| {
            let (low, high) = (one.min(other), one.max(other));
            reach.cmp(&low).min(high.cmp(&-reach))
        };
        let diagonal = self.reach + self.cut;
        let along_axes = depth(from.x, to.x, self.reach).min(depth(from.z, to.z, self.reach));
        if along_axes.is_lt() {
            return Ordering::Less;
        }
        let along_diagonals =
            depth(from.x + from.z, to.x + to.z, diagonal).min(depth(from.x - from.z, to.x - to.z, diagonal));
        along_axes
            .min(along_diagonals)
            .min(self.support(direction).cmp(&direction.cross(from).abs()))
    }

    /// Half the octagon's extent across a direction, times the direction's length.
    fn support(&self, direction: Vector) -> i64 {
        let (x, z) = (direction.x.abs(), direction.z.abs());
        self.reach * x.max(z) + self.cut * x.min(z)
    }

    /// Where the segment from `a` along `direction`, which does not enter the octagon, passes along it.
    fn contact(&self, a: Point, direction: Vector) -> Option<Contact> {
        let centre = Vector::between(a, self.centre);
        let side = direction.cross(centre);
        if side.abs() != self.support(direction) {
            return None;
        }
        let along = |offset: Vector| {
            i128::from(direction.x) * i128::from(centre.x + offset.x)
                + i128::from(direction.z) * i128::from(centre.z + offset.z)
        };
        let touching = self
            .corners()
            .into_iter()
            .filter(|&offset| direction.cross(offset) == -side)
            .map(along);
        let (low, high) = touching.fold((i128::MAX, i128::MIN), |(low, high), at| {
            (low.min(at), high.max(at))
        });
        let end = i128::from(direction.dot(direction));
        let contact = Contact {
            on_left: side > 0,
            low: (low.max(0), 1),
            high: (high.min(end), 1),
        };
        (contact.low.0 <= contact.high.0).then_some(contact)
    }

    /// The octagon's directions from a point on its border.
    fn wedge(&self, point: Point) -> Option<Sector> {
        let offset = Vector::between(self.centre, point);
        let mut corners = self.corners();
        // R = 1 raw makes a square: two corners are in one place then.
        let mut count = 0;
        for index in 0..corners.len() {
            if count == 0 || corners[index] != corners[count - 1] {
                corners[count] = corners[index];
                count += 1;
            }
        }
        if corners[0] == corners[count - 1] {
            count -= 1;
        }
        (0..count).find_map(|index| {
            let (one, other) = (corners[index], corners[(index + 1) % count]);
            let side = other + -one;
            if offset == one {
                let before = corners[(index + count - 1) % count];
                return Some(Sector {
                    from: side,
                    to: before + -one,
                });
            }
            let way = offset + -one;
            (side.cross(way) == 0 && side.dot(way) > 0 && side.dot(way) < side.dot(side)).then_some(Sector {
                from: side,
                to: -side,
            })
        })
    }
}

/// A stretch of a segment with something blocked beside it; places are fractions of direction · (place − a).
#[derive(Clone, Copy, Debug)]
struct Contact {
    on_left: bool,
    low: (i128, i128),
    high: (i128, i128),
}

impl Contact {
    /// Both sides are blocked somewhere: along a stretch, or in a point between the segment's ends, 0 and `end`.
    fn squeezes(&self, other: &Self, end: i128) -> bool {
        if self.on_left == other.on_left {
            return false;
        }
        let greater = |one: (i128, i128), other: (i128, i128)| {
            if compare_fractions(one, other).is_ge() {
                one
            } else {
                other
            }
        };
        let low = greater(self.low, other.low);
        let high = if compare_fractions(self.high, other.high).is_le() {
            self.high
        } else {
            other.high
        };
        match compare_fractions(low, high) {
            Ordering::Less => true,
            Ordering::Equal => low.0 > 0 && compare_fractions(low, (end, 1)).is_lt(),
            Ordering::Greater => false,
        }
    }
}

/// The free directions around a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Around {
    /// The point is not free.
    Nothing,
    Everything,
    /// Those of the sectors in the list handed in.
    Sectors,
}

/// What blocked the view of one point last: where it is blocked again it is often by one of these.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    edges: Witnesses,
    octagons: [u32; 4],
    count: u8,
    next: u8,
}

impl View {
    /// Something that blocked before blocks the segment from a, which is free, to b.
    #[inline]
    pub(super) fn is_blocked(&self, ground: &Ground<'_>, a: Point, b: Point) -> bool {
        let direction = Vector::between(a, b);
        let mut octagons = self.octagons[..usize::from(self.count)].iter();
        octagons.any(|&index| ground.octagons[index as usize].meet(a, direction).is_gt())
            || self.edges.block(ground.border, a, b)
    }

    /// As [`Ground::sees`].
    pub(super) fn sees(&mut self, ground: &Ground<'_>, a: Point, b: Point) -> bool {
        !self.is_blocked(ground, a, b)
            && self.is_clear(ground, a, b)
            && self.edges.sees_beyond(ground.border, a, b)
    }

    /// As [`Ground::is_clear`].
    pub(super) fn is_clear(&mut self, ground: &Ground<'_>, a: Point, b: Point) -> bool {
        match ground.blocking_octagon(a, b) {
            Ok(is_clear) => is_clear,
            Err(index) => {
                self.octagons[usize::from(self.next)] = index as u32;
                self.next = (self.next + 1) % self.octagons.len() as u8;
                self.count = (self.count + 1).min(self.octagons.len() as u8);
                false
            }
        }
    }
}

/// A border and the octagons of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'a> {
    pub(super) border: &'a Border,
    pub(super) octagons: &'a [Octagon],
}

impl Ground<'_> {
    /// The segment between two raw points lies in the free space; `a` does.
    pub(super) fn sees(&self, a: Point, b: Point) -> bool {
        self.is_clear(a, b) && self.border.sees(a, b)
    }

    /// No octagon blocks a segment that lies in the static free space.
    pub(super) fn is_clear(&self, a: Point, b: Point) -> bool {
        self.blocking_octagon(a, b).unwrap_or(false)
    }

    /// Whether it squeezes through nowhere, or the number of an octagon that it enters.
    fn blocking_octagon(&self, a: Point, b: Point) -> Result<bool, usize> {
        let direction = Vector::between(a, b);
        if direction.is_zero() {
            return Ok(true);
        }
        let mut touches = false;
        for (index, octagon) in self.octagons.iter().enumerate() {
            match octagon.meet(a, direction) {
                Ordering::Greater => return Err(index),
                Ordering::Equal => touches = true,
                Ordering::Less => {}
            }
        }
        Ok(!(touches && self.squeezes_through(a, b, direction)))
    }

    /// A point of the static free space lies in the free space; `sectors` is scratch.
    pub(super) fn is_open(&self, point: Point, location: Location, sectors: &mut Vec<Sector>) -> bool {
        let mut touching = 0;
        for octagon in self.octagons {
            match octagon.locate_point(point) {
                Ordering::Greater => return false,
                Ordering::Equal => touching += 1,
                Ordering::Less => {}
            }
        }
        // One octagon leaves free what is beside it, unless a wall is there.
        let is_simple = touching == 0 || (touching == 1 && matches!(location, Location::Inside(_)));
        is_simple || self.around(point, location, sectors) != Around::Nothing
    }

    /// The free directions around a point of the static free space.
    pub(super) fn around(&self, point: Point, location: Location, sectors: &mut Vec<Sector>) -> Around {
        sectors.clear();
        match location {
            Location::Outside => return Around::Nothing,
            Location::Inside(_) => {}
            Location::OnEdge(edge) => {
                let along = self.border.edges[edge as usize].along;
                sectors.push(Sector {
                    from: along,
                    to: -along,
                });
            }
            Location::AtVertex(vertex) => {
                sectors.extend(self.border.sectors_of(vertex).iter().map(|own| own.sector));
            }
        }
        let static_count = sectors.len();
        for octagon in self.octagons {
            match octagon.locate_point(point) {
                Ordering::Greater => return Around::Nothing,
                Ordering::Equal => sectors.extend(octagon.wedge(point)),
                Ordering::Less => {}
            }
        }
        if sectors.len() == static_count {
            return if static_count == 0 {
                Around::Everything
            } else {
                Around::Sectors
            };
        }
        subtract_wedges(sectors, static_count);
        if sectors.is_empty() {
            Around::Nothing
        } else {
            Around::Sectors
        }
    }

    /// Somewhere on the segment both of its sides are blocked, one of them at least by an octagon.
    fn squeezes_through(&self, a: Point, b: Point, direction: Vector) -> bool {
        let end = i128::from(direction.dot(direction));
        let touching = |octagon: &Octagon| {
            let meets = octagon.meet(a, direction).is_eq();
            if meets {
                octagon.contact(a, direction)
            } else {
                None
            }
        };
        let mut contacts = self.octagons.iter().enumerate();
        contacts.any(|(index, octagon)| {
            let Some(contact) = touching(octagon) else {
                return false;
            };
            let mut others = self.octagons[index + 1..].iter().filter_map(touching);
            others.any(|other| contact.squeezes(&other, end))
                || self.border.any_edge_along(a, b, |edge| {
                    let walls = self.wall_contacts(edge, a, b, direction);
                    walls
                        .into_iter()
                        .flatten()
                        .any(|wall| contact.squeezes(&wall, end))
                })
        })
    }

    /// Where a border edge, or the walls at its ends, touch a segment that lies in the static free space.
    fn wall_contacts(&self, edge: &Edge, a: Point, b: Point, direction: Vector) -> [Option<Contact>; 3] {
        let border = self.border;
        let is_on_line = |vertex: u32| border.side_of_vertex(a, direction, vertex).is_eq();
        let place = |vertex: u32| {
            let Spot { x, z, w } = border.spot(vertex);
            let (x, z) = (x - i128::from(a.x.wide()) * w, z - i128::from(a.z.wide()) * w);
            (i128::from(direction.x) * x + i128::from(direction.z) * z, w)
        };
        let at_vertex = |vertex: u32| {
            let inside = is_on_line(vertex) && border.on_segment(a, b, vertex) == Some(Ordering::Equal);
            let wall_begins = border.passage(vertex, direction).filter(|_| inside)?.sector.to;
            let turn = direction.cross(wall_begins);
            Some(Contact {
                on_left: turn > 0 || (turn == 0 && direction.dot(wall_begins) > 0),
                low: place(vertex),
                high: place(vertex),
            })
        };
        let along = (is_on_line(edge.from) && is_on_line(edge.to)).then(|| {
            let is_forward = edge.along.dot(direction) > 0;
            let (low, high) = if is_forward {
                (edge.from, edge.to)
            } else {
                (edge.to, edge.from)
            };
            Contact {
                on_left: !is_forward,
                low: place(low),
                high: place(high),
            }
        });
        [along, at_vertex(edge.from), at_vertex(edge.to)]
    }
}

/// From a list of free sectors (none: everything is free) and, from `first_wedge` on, of blocked ones: the free sectors.
fn subtract_wedges(sectors: &mut Vec<Sector>, first_wedge: usize) {
    let count = sectors.len();
    // The rays of all, in order: between two neighbours everything is free or nothing.
    for index in 0..count {
        let Sector { from, to } = sectors[index];
        sectors.push(Sector { from, to: from });
        sectors.push(Sector { from: to, to });
    }
    sectors[count..].sort_unstable_by(|one, other| one.from.compare_angle(other.from));
    let rays_end = sectors.len();
    let mut ray = count;
    while ray < rays_end {
        let from = sectors[ray].from;
        let mut next = ray + 1;
        while next < rays_end && sectors[next].from.compare_angle(from).is_eq() {
            next += 1;
        }
        let to = sectors[if next < rays_end { next } else { count }].from;
        let middle = between(from, to);
        let (free, blocked) = sectors[..count].split_at(first_wedge);
        let is_free = (free.is_empty() || free.iter().any(|sector| sector.contains_sum(middle)))
            && !blocked.iter().any(|sector| sector.contains_sum(middle));
        if is_free {
            let last = sectors.len() - 1;
            if last >= rays_end && sectors[last].to.compare_angle(from).is_eq() {
                sectors[last].to = to;
            } else {
                sectors.push(Sector { from, to });
            }
        }
        ray = next;
    }
    // The last may go on in the first.
    let last = sectors.len() - 1;
    if last > rays_end && sectors[last].to.compare_angle(sectors[rays_end].from).is_eq() {
        sectors[rays_end].from = sectors[last].from;
        sectors.pop();
    }
    sectors.drain(..rays_end);
}

/// A direction strictly between two, counter-clockwise.
fn between(from: Vector, to: Vector) -> Vector {
    match from.cross(to).cmp(&0) {
        Ordering::Greater => from + to,
        Ordering::Equal => from.left(),
        Ordering::Less => -(from + to),
    }
}
