//! From polygons to the border of the free space: every edge is cut where it meets another polygon's, and a piece is border
//! if exactly one of its sides is free.
//!
//! Free is what lies in an available area and in no obstacle. A piece with equal sides is dropped: the seam of two areas
//! (both free) and the seam of two obstacles (both wall) vanish alike, which is what "the closure of the interior" in spec
//! 7.1 says.
//!
//! Crossings need not be raw points. They are never compared as points: all edges through one point meet pairwise, so two
//! crossings are the same vertex exactly if some edge is cut by both at one parameter.

use super::exact::{Spot, Vector, compare_fractions};
use crate::Point;
use crate::geometry::{Bounds, Polygon};

/// Most vertices of all polygons and crossings of their outlines together: all may be corners that see each other.
pub const CORNERS_MAX: usize = 1 << 13;

/// A map has too many corners for the polygon planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {CORNERS_MAX} vertices and crossings of outlines, too many for the polygon planner")]
pub struct TooIntricate;

/// One polygon of the map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline<'a> {
    pub(super) polygon: &'a Polygon,
    pub(super) is_obstacle: bool,
}

/// A place where pieces of the border end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Raw(Point),
    Between(Spot),
}

/// A straight piece of the border with the free space on its left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// A raw point on its line.
    pub(super) start: Point,
    /// The primitive direction of its line, from `from` to `to`.
    pub(super) along: Vector,
    /// Indices of places.
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Whether there can be at most [`CORNERS_MAX`] corners, whichever of these polygons are open.
///
/// # Errors
/// If there can be more.
pub(super) fn check_outlines(outlines: &[Outline<'_>]) -> Result<(), TooIntricate> {
    let vertices: usize = outlines
        .iter()
        .map(|outline| outline.polygon.vertices().len())
        .sum();
    if vertices > CORNERS_MAX {
        return Err(TooIntricate);
    }
    Cutter::new(&directed_edges(outlines)).cut_all()
}

/// The border of the free space of some polygons that have passed [`check_outlines`]; the places that no piece uses are left
/// in the list.
pub(super) fn border_pieces(outlines: &[Outline<'_>]) -> (Vec<Place>, Vec<Piece>) {
    let edges = directed_edges(outlines);
    let mut cutter = Cutter::new(&edges);
    cutter.cut_all().expect("the polygons have been checked");
    let mut stretches = cutter.stretches();
    stretches.sort_unstable_by_key(|stretch| (stretch.low, stretch.high, stretch.edge));
    let mut cover = Cover::new(outlines);
    let mut pieces = Vec::new();
    for owners in stretches.chunk_by(|one, other| (one.low, one.high) == (other.low, other.high)) {
        let first = &owners[0];
        let edge = &edges[first.edge as usize];
        let [left, right] = cover.free_sides(owners, &edges);
        if left == right {
            continue;
        }
        let upward = if first.is_upward { edge.along } else { -edge.along };
        let (from, to, along) = if left {
            (first.low, first.high, upward)
        } else {
            (first.high, first.low, -upward)
        };
        pieces.push(Piece {
            start: edge.a,
            along: along.primitive(),
            from,
            to,
        });
    }
    (cutter.places, pieces)
}

/// An edge of a polygon, the polygon's inside on the left.
#[derive(Clone, Copy, Debug)]
struct Edge {
    outline: u32,
    a: Point,
    b: Point,
    along: Vector,
}

fn directed_edges(outlines: &[Outline<'_>]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (outline, &Outline { polygon, .. }) in outlines.iter().enumerate() {
        let is_clockwise = polygon.doubled_area() < 0;
        for edge in polygon.edges() {
            let (a, b) = if is_clockwise {
                (edge.b, edge.a)
            } else {
                (edge.a, edge.b)
            };
            edges.push(Edge {
                outline: outline as u32,
                a,
                b,
                along: Vector::between(a, b),
            });
        }
    }
    edges
}

/// A place on an edge, at `numerator / denominator` of its way from a to b.
#[derive(Clone, Copy, Debug)]
struct Cut {
    edge: u32,
    numerator: i64,
    denominator: i64,
    place: u32,
}

/// What lies between two neighbouring cuts of an edge.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    low: u32,
    high: u32,
    edge: u32,
    /// The edge goes from the lower to the higher place.
    is_upward: bool,
    /// An inner point as a parameter of the edge.
    middle: (i128, i128),
}

struct Cutter<'a> {
    edges: &'a [Edge],
    /// The polygons' vertices in position order, then crossings in the order in which they were found.
    places: Vec<Place>,
    vertices: Vec<Point>,
    cuts: Vec<Cut>,
    /// The same place found again, as a forest: the smallest number is the root.
    same: Vec<u32>,
}

impl<'a> Cutter<'a> {
    fn new(edges: &'a [Edge]) -> Self {
        let mut vertices: Vec<Point> = edges.iter().map(|edge| edge.a).collect();
        vertices.sort_unstable();
        vertices.dedup();
        let mut cutter = Self {
            edges,
            places: vertices.iter().map(|&point| Place::Raw(point)).collect(),
            same: (0..vertices.len() as u32).collect(),
            vertices,
            cuts: Vec::new(),
        };
        for (index, edge) in edges.iter().enumerate() {
            let ends = [cutter.vertex(edge.a), cutter.vertex(edge.b)];
            for (place, numerator) in ends.into_iter().zip([0, 1]) {
                cutter.cuts.push(Cut {
                    edge: index as u32,
                    numerator,
                    denominator: 1,
                    place,
                });
            }
        }
        cutter
    }

    /// Cuts every edge where it meets one of another polygon. (Edges of one polygon meet at its vertices only.)
    fn cut_all(&mut self) -> Result<(), TooIntricate> {
        let mut order: Vec<(i32, i32, u32)> = (0u32..)
            .zip(self.edges)
            .map(|(index, edge)| (edge.a.x.min(edge.b.x).raw(), edge.a.x.max(edge.b.x).raw(), index))
            .collect();
        order.sort_unstable();
        for (rank, &(_, end, one)) in order.iter().enumerate() {
            let edge = &self.edges[one as usize];
            let (low, high) = (edge.a.z.min(edge.b.z), edge.a.z.max(edge.b.z));
            for &(start, _, other) in &order[rank + 1..] {
                if start > end {
                    break;
                }
                let met = &self.edges[other as usize];
                let is_apart = met.a.z.max(met.b.z) < low || met.a.z.min(met.b.z) > high;
                if !is_apart && met.outline != edge.outline {
                    self.meet(one.min(other), one.max(other));
                }
            }
            if self.places.len() > CORNERS_MAX {
                return Err(TooIntricate);
            }
        }
        Ok(())
    }

    fn meet(&mut self, one: u32, other: u32) {
        let (e, f) = (&self.edges[one as usize], &self.edges[other as usize]);
        let offset = Vector::between(e.a, f.a);
        let turn = e.along.cross(f.along);
        if turn == 0 {
            if e.along.cross(offset) == 0 {
                for point in [f.a, f.b] {
                    self.cut_at_vertex(one, point);
                }
                for point in [e.a, e.b] {
                    self.cut_at_vertex(other, point);
                }
            }
            return;
        }
        let sign = turn.signum();
        let denominator = turn * sign;
        let on_one = offset.cross(f.along) * sign;
        let on_other = offset.cross(e.along) * sign;
        if !(0..=denominator).contains(&on_one) || !(0..=denominator).contains(&on_other) {
            return;
        }
        let place = if on_one == 0 {
            self.vertex(e.a)
        } else if on_one == denominator {
            self.vertex(e.b)
        } else if on_other == 0 {
            self.vertex(f.a)
        } else if on_other == denominator {
            self.vertex(f.b)
        } else {
            self.crossing(Spot::on_line(e.a, e.along, on_one.into(), denominator.into()))
        };
        for (edge, numerator) in [(one, on_one), (other, on_other)] {
            if 0 < numerator && numerator < denominator {
                self.cuts.push(Cut {
                    edge,
                    numerator,
                    denominator,
                    place,
                });
            }
        }
    }

    /// Cuts an edge at a vertex on its line, if that lies between its ends.
    fn cut_at_vertex(&mut self, edge: u32, point: Point) {
        let Edge { a, along, .. } = self.edges[edge as usize];
        let offset = Vector::between(a, point);
        let (numerator, denominator) = if along.x != 0 {
            (offset.x * along.x.signum(), along.x.abs())
        } else {
            (offset.z * along.z.signum(), along.z.abs())
        };
        if 0 < numerator && numerator < denominator {
            let place = self.vertex(point);
            self.cuts.push(Cut {
                edge,
                numerator,
                denominator,
                place,
            });
        }
    }

    fn vertex(&self, point: Point) -> u32 {
        self.vertices.binary_search(&point).expect("a polygon's vertex") as u32
    }

    fn crossing(&mut self, spot: Spot) -> u32 {
        let place = match spot.as_point() {
            None => Place::Between(spot),
            Some(point) => match self.vertices.binary_search(&point) {
                Ok(vertex) => return vertex as u32,
                Err(_) => Place::Raw(point),
            },
        };
        self.places.push(place);
        self.same.push(self.same.len() as u32);
        self.same.len() as u32 - 1
    }

    /// The stretches between the cuts of each edge, places found twice counted once.
    fn stretches(&mut self) -> Vec<Stretch> {
        let parameter = |cut: &Cut| (i128::from(cut.numerator), i128::from(cut.denominator));
        let mut cuts = std::mem::take(&mut self.cuts);
        cuts.sort_unstable_by(|one, other| {
            one.edge
                .cmp(&other.edge)
                .then_with(|| compare_fractions(parameter(one), parameter(other)))
        });
        let is_same = |one: &Cut, other: &Cut| {
            one.edge == other.edge && compare_fractions(parameter(one), parameter(other)).is_eq()
        };
        for pair in cuts.windows(2) {
            if is_same(&pair[0], &pair[1]) {
                self.unite(pair[0].place, pair[1].place);
            }
        }
        cuts.dedup_by(|one, other| is_same(one, other));
        let mut stretches = Vec::new();
        for pair in cuts.windows(2) {
            let [one, other] = pair else { continue };
            if one.edge != other.edge {
                continue;
            }
            let (from, to) = (self.root(one.place), self.root(other.place));
            let ((a, b), (c, d)) = (parameter(one), parameter(other));
            stretches.push(Stretch {
                low: from.min(to),
                high: from.max(to),
                edge: one.edge,
                is_upward: from < to,
                // The mediant lies strictly between, with a denominator as small as can be had without a search.
                middle: (a + c, b + d),
            });
        }
        stretches
    }

    fn root(&mut self, mut place: u32) -> u32 {
        while self.same[place as usize] != place {
            let parent = self.same[place as usize];
            self.same[place as usize] = self.same[parent as usize];
            place = parent;
        }
        place
    }

    fn unite(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        self.same[one.max(other) as usize] = one.min(other);
    }
}

/// Which polygons cover a point.
struct Cover<'a> {
    outlines: &'a [Outline<'a>],
    /// Outlines by their least x.
    order: Vec<(i32, u32)>,
}

impl<'a> Cover<'a> {
    fn new(outlines: &'a [Outline<'a>]) -> Self {
        let mut order: Vec<(i32, u32)> = (0u32..)
            .zip(outlines)
            .map(|(index, outline)| (outline.polygon.bounds().min.x.raw(), index))
            .collect();
        order.sort_unstable();
        Self { outlines, order }
    }

    /// Whether the left and the right side of a stretch, seen from its lower place to the higher, are free. `owners` are
    /// all stretches of edges that coincide there.
    fn free_sides(&mut self, owners: &[Stretch], edges: &[Edge]) -> [bool; 2] {
        let edge = &edges[owners[0].edge as usize];
        let (numerator, denominator) = owners[0].middle;
        let middle = Spot::on_line(edge.a, edge.along, numerator, denominator);
        let floor = middle.floor();
        let (mut in_area, mut in_obstacle) = ([false; 2], [false; 2]);
        for owner in owners {
            let outline = edges[owner.edge as usize].outline;
            let covers = if self.outlines[outline as usize].is_obstacle {
                &mut in_obstacle
            } else {
                &mut in_area
            };
            covers[usize::from(!owner.is_upward)] = true;
        }
        let is_owner = |outline: u32| {
            owners
                .iter()
                .any(|owner| edges[owner.edge as usize].outline == outline)
        };
        let candidates = self.order.partition_point(|&(least, _)| least <= floor.x.raw());
        for &(_, index) in &self.order[..candidates] {
            let outline = &self.outlines[index as usize];
            let covered = if outline.is_obstacle {
                &mut in_obstacle
            } else {
                &mut in_area
            };
            let is_known = covered[0] && covered[1];
            if !is_known
                && may_contain(outline.polygon.bounds(), floor)
                && !is_owner(index)
                && contains(outline.polygon, &middle, floor)
            {
                *covered = [true; 2];
                if outline.is_obstacle {
                    return [false; 2];
                }
            }
        }
        [0, 1].map(|side| in_area[side] && !in_obstacle[side])
    }
}

/// A spot with this floor may lie inside.
fn may_contain(bounds: &Bounds, floor: Point) -> bool {
    bounds.min.x <= floor.x && floor.x < bounds.max.x && bounds.min.z <= floor.z && floor.z < bounds.max.z
}

/// A spot that lies on no edge of the polygon is inside: edges that the ray from it in +x crosses are odd in number.
fn contains(polygon: &Polygon, spot: &Spot, floor: Point) -> bool {
    let crossings = polygon.edges().filter(|edge| {
        if (edge.a.z > floor.z) == (edge.b.z > floor.z) {
            return false;
        }
        if edge.a.x <= floor.x && edge.b.x <= floor.x {
            return false;
        }
        if edge.a.x > floor.x && edge.b.x > floor.x {
            return true;
        }
        let side = spot.side(edge.a, Vector::between(edge.a, edge.b));
        side.is_gt() == (edge.b.z > edge.a.z)
    });
    crossings.count() % 2 == 1
}
