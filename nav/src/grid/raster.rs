//! Polygons onto cells, row by row, exactly: the cells whose centre lies inside, and those whose centre is near an edge.
//!
//! Nothing is asked cell by cell. Along a row both questions have intervals as their answers; their ends are found by
//! integer divisions and roots and rounded to the side where the predicate still holds.

use std::ops::Range;

use super::cells::{Cells, Window};
use crate::geometry::{Bounds, Polygon, Segment};
use crate::{Fixed, Point};

/// Where the cells of a grid lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The corner of least x and z.
    pub min: Point,
    /// Number of columns.
    pub width: u32,
    /// Number of rows.
    pub depth: u32,
    /// Width and depth of a cell, metres.
    pub cell_size: Fixed,
}

/// How near counts: within a radius, or nearer than it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    radius: i64,
    /// 1 if the radius itself is too far, else 0: integers below a bound are those up to one less.
    strict: i64,
}

impl Frame {
    /// All of it.
    pub fn window(&self) -> Window {
        Window {
            columns: 0..self.width,
            rows: 0..self.depth,
        }
    }

    /// The rectangle that all cells cover.
    pub fn bounds(&self) -> Bounds {
        self.cells_bounds(0..self.width, 0..self.depth)
    }

    /// The rectangle that some columns of some rows cover.
    pub fn cells_bounds(&self, columns: Range<u32>, rows: Range<u32>) -> Bounds {
        // A frame ends within GRID_REACH.
        let along = |min: Fixed, cells: u32| {
            Fixed::from_raw((min.wide() + i64::from(cells) * self.cell_size.wide()) as i32)
        };
        let corner = |x: u32, z: u32| Point::new(along(self.min.x, x), along(self.min.z, z));
        Bounds {
            min: corner(columns.start, rows.start),
            max: corner(columns.end, rows.end),
        }
    }

    /// The cells whose centres lie in the rectangle, grown by `margin` raw on each side.
    pub fn cells_within(&self, bounds: &Bounds, margin: i64) -> Window {
        Window {
            columns: self.columns_before(bounds.min.x.wide() - margin)
                ..self.columns_before(bounds.max.x.wide() + margin + 1),
            rows: self.rows_before(bounds.min.z.wide() - margin)
                ..self.rows_before(bounds.max.z.wide() + margin + 1),
        }
    }

    /// The centre of a cell (spec 2.1).
    pub fn centre(&self, x: u32, z: u32) -> Point {
        Point::from_raw(
            centre_along(self.min.x, self.cell_size, x),
            centre_along(self.min.z, self.cell_size, z),
        )
    }

    /// Number of columns whose centre's x is less than `x` raw.
    fn columns_before(&self, x: i64) -> u32 {
        centres_before(x - self.min.x.wide(), self.cell_size, self.width)
    }

    /// Number of rows whose centre's z is less than `z` raw.
    fn rows_before(&self, z: i64) -> u32 {
        centres_before(z - self.min.z.wide(), self.cell_size, self.depth)
    }
}

impl Reach {
    /// Distances ≤ `radius` raw.
    pub(super) fn within(radius: i64) -> Self {
        Self { radius, strict: 0 }
    }

    /// Distances < `radius` raw; `radius` > 0.
    pub(super) fn nearer_than(radius: i64) -> Self {
        Self { radius, strict: 1 }
    }
}

/// Sets the cells of a window whose centre lies inside the polygon (spec 2.3, rule 2). `marks` is scratch.
pub(super) fn fill_inside(
    cells: &mut Cells,
    frame: &Frame,
    window: &Window,
    polygon: &Polygon,
    marks: &mut Vec<u64>,
) {
    let window = frame.cells_within(polygon.bounds(), 0).intersection(window);
    if window.is_empty() {
        return;
    }
    // A cell is inside if an odd number of edges crosses its row beyond it. Each crossing is one bit in `marks`, at the first
    // column that is not before it; the parity of all bits beyond a column is its answer.
    let first_word = (window.columns.start / 64) as usize;
    let words = (window.columns.end / 64) as usize + 1 - first_word;
    marks.clear();
    marks.resize(words * window.rows.len(), 0);
    for Segment { a, b } in polygon.edges() {
        let (low, high) = if a.z <= b.z { (a, b) } else { (b, a) };
        let rows = frame.rows_before(low.z.wide())..frame.rows_before(high.z.wide());
        let (dx, dz) = (high.x.wide() - low.x.wide(), high.z.wide() - low.z.wide());
        for row in rows.start.max(window.rows.start)..rows.end.min(window.rows.end) {
            let z = i64::from(centre_along(frame.min.z, frame.cell_size, row));
            let crossing = low.x.wide() + divide_up(dx * (z - low.z.wide()), dz);
            let column = frame
                .columns_before(crossing)
                .clamp(window.columns.start, window.columns.end);
            let word = (row - window.rows.start) as usize * words + (column / 64) as usize - first_word;
            marks[word] ^= 1 << (column % 64);
        }
    }
    for (row, marks) in window.rows.zip(marks.chunks_mut(words)) {
        let mut beyond = 0;
        for word in marks.iter_mut().rev() {
            // Bit i becomes the parity of bits i and up …
            let mut parity = *word;
            for shift in [1, 2, 4, 8, 16, 32] {
                parity ^= parity >> shift;
            }
            // … and then of those above it, here and in the words beyond.
            *word = (parity >> 1) ^ beyond;
            if parity & 1 == 1 {
                beyond = !beyond;
            }
        }
        cells.or_words(row, first_word, marks.iter().copied());
    }
}

/// Sets the cells of a window whose centre is near the polygon's border (spec 2.3, rule 4).
pub(super) fn fill_near_border(
    cells: &mut Cells,
    frame: &Frame,
    window: &Window,
    polygon: &Polygon,
    reach: Reach,
) {
    let window = frame
        .cells_within(polygon.bounds(), reach.radius)
        .intersection(window);
    if window.is_empty() {
        return;
    }
    for edge in polygon.edges() {
        for_each_near_span(frame, &window, edge, reach, |row, columns| {
            cells.fill(row, columns)
        });
    }
}

/// The cells of a window whose centre is near an edge, a span per row.
pub(super) fn for_each_near_span(
    frame: &Frame,
    window: &Window,
    edge: Segment,
    reach: Reach,
    mut each: impl FnMut(u32, Range<u32>),
) {
    let window = frame
        .cells_within(&edge.bounds(), reach.radius)
        .intersection(window);
    if window.is_empty() {
        return;
    }
    let strip = Strip::new(edge, reach);
    for row in window.rows {
        let z = i64::from(centre_along(frame.min.z, frame.cell_size, row));
        let Some((least, greatest)) = strip.interval(z) else {
            continue;
        };
        let columns = frame.columns_before(least).max(window.columns.start)
            ..frame.columns_before(greatest + 1).min(window.columns.end);
        if !columns.is_empty() {
            each(row, columns);
        }
    }
}

/// The points near an edge: a circle around each end and the rectangle between. Convex, so an interval on every row.
struct Strip {
    a: Point,
    b: Point,
    /// Greatest squared distance that is near.
    squared: i64,
    /// b − a.
    dx: i64,
    dz: i64,
    squared_length: i64,
    /// Greatest |cross product with the edge| that is near: cross² = distance² × length².
    cross_max: i64,
}

impl Strip {
    fn new(edge: Segment, reach: Reach) -> Self {
        let squared_length = edge.squared_length();
        let radius = i128::from(reach.radius);
        let cross_squared = radius * radius * i128::from(squared_length) - i128::from(reach.strict);
        Self {
            a: edge.a,
            b: edge.b,
            squared: reach.radius * reach.radius - reach.strict,
            dx: edge.b.x.wide() - edge.a.x.wide(),
            dz: edge.b.z.wide() - edge.a.z.wide(),
            squared_length,
            cross_max: cross_squared.isqrt() as i64,
        }
    }

    /// The least and greatest integer x that are near at height `z`, all raw.
    fn interval(&self, z: i64) -> Option<(i64, i64)> {
        let parts = [self.around(self.a, z), self.around(self.b, z), self.between(z)];
        let hull = |one: (i64, i64), two: (i64, i64)| (one.0.min(two.0), one.1.max(two.1));
        parts.into_iter().flatten().reduce(hull)
    }

    /// The circle around an end.
    fn around(&self, end: Point, z: i64) -> Option<(i64, i64)> {
        let dz = z - end.z.wide();
        let rest = self.squared - dz * dz;
        if rest < 0 {
            return None;
        }
        let half = rest.isqrt();
        Some((end.x.wide() - half, end.x.wide() + half))
    }

    /// The rectangle: |cross| ≤ the greatest, and the foot of the perpendicular on the edge, 0 ≤ dot ≤ length².
    fn between(&self, z: i64) -> Option<(i64, i64)> {
        let dz = z - self.a.z.wide();
        let cross = dz * self.dx;
        let dot = dz * self.dz;
        let across = solve(self.dz, cross - self.cross_max, cross + self.cross_max)?;
        let along = solve(self.dx, -dot, self.squared_length - dot)?;
        let (least, greatest) = (across.0.max(along.0), across.1.min(along.1));
        (least <= greatest).then(|| (self.a.x.wide() + least, self.a.x.wide() + greatest))
    }
}

/// The least and greatest integer u with `min` ≤ u × `factor` ≤ `max`, cut at ±2^40 (far outside of every grid).
fn solve(factor: i64, min: i64, max: i64) -> Option<(i64, i64)> {
    const FAR: i64 = 1 << 40;
    let (least, greatest) = match factor {
        0 => {
            return (min <= 0 && 0 <= max).then_some((-FAR, FAR));
        }
        1.. => (divide_up(min, factor), max.div_euclid(factor)),
        _ => (divide_up(-max, -factor), (-min).div_euclid(-factor)),
    };
    (least <= greatest).then(|| (least.clamp(-FAR, FAR), greatest.clamp(-FAR, FAR)))
}

/// The quotient rounded up; `divisor` > 0.
fn divide_up(dividend: i64, divisor: i64) -> i64 {
    -(-dividend).div_euclid(divisor)
}

/// A centre's coordinate: `min + (((2i + 1) × cs) >> 1)`.
fn centre_along(min: Fixed, cell_size: Fixed, index: u32) -> i32 {
    // A frame ends within GRID_REACH.
    (min.wide() + (((2 * i64::from(index) + 1) * cell_size.wide()) >> 1)) as i32
}

/// How many of the first `count` centres lie before `offset` raw, counted from the grid's corner.
fn centres_before(offset: i64, cell_size: Fixed, count: u32) -> u32 {
    // ((2i + 1) × cs) >> 1 < offset  ⇔  (2i + 1) × cs < 2 × offset  ⇔  2i + 1 ≤ (2 × offset − 1) / cs
    if offset <= 0 {
        return 0;
    }
    let odd_max = (2 * offset - 1) / cell_size.wide();
    ((odd_max + 1) / 2).min(i64::from(count)) as u32
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    /// Coordinates on a coarse lattice (so that centres fall on borders), or anywhere.
    fn point(extent: i32) -> impl Strategy<Value = Point> {
        let lattice = (-8..=8i32, -8..=8i32)
            .prop_map(move |(x, z)| Point::from_raw(x * (extent / 8), z * (extent / 8)));
        let anywhere = (-extent..=extent, -extent..=extent).prop_map(|(x, z)| Point::from_raw(x, z));
        prop_oneof![lattice, anywhere]
    }

    /// The rows and columns of a frame about ±`extent`, compared with the predicates cell by cell.
    fn check(points: &[Point], cell_size: i32, corner: Point, radius: i64) -> Result<(), TestCaseError> {
        let Ok(polygon) = Polygon::new(points) else {
            return Ok(());
        };
        let frame = Frame {
            min: corner,
            width: 70,
            depth: 30,
            cell_size: Fixed::from_raw(cell_size),
        };
        let windows = [
            frame.window(),
            Window {
                columns: 5..66,
                rows: 3..20,
            },
        ];
        for window in windows {
            let mut inside = Cells::new(frame.width, frame.depth);
            fill_inside(&mut inside, &frame, &window, &polygon, &mut Vec::new());
            let mut within = Cells::new(frame.width, frame.depth);
            fill_near_border(&mut within, &frame, &window, &polygon, Reach::within(radius));
            let mut nearer = Cells::new(frame.width, frame.depth);
            if radius > 0 {
                fill_near_border(&mut nearer, &frame, &window, &polygon, Reach::nearer_than(radius));
            }
            for z in 0..frame.depth {
                for x in 0..frame.width {
                    let centre = frame.centre(x, z);
                    let here = window.columns.contains(&x) && window.rows.contains(&z);
                    let near = |wanted: fn(Ordering) -> bool| {
                        polygon
                            .edges()
                            .any(|edge| wanted(edge.compare_distance(centre, radius)))
                    };
                    prop_assert_eq!(
                        inside.get(x, z),
                        here && polygon.contains(centre),
                        "inside {} {}",
                        x,
                        z
                    );
                    prop_assert_eq!(
                        within.get(x, z),
                        here && near(Ordering::is_le),
                        "within {} {}",
                        x,
                        z
                    );
                    prop_assert_eq!(
                        nearer.get(x, z),
                        here && near(Ordering::is_lt),
                        "nearer {} {}",
                        x,
                        z
                    );
                }
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn spans_are_the_predicates(
            points in prop::collection::vec(point(16 << 16), 3..7),
            cell_size in prop_oneof![Just(1 << 15), 20_000..40_000i32],
            radius in prop_oneof![Just(0i64), Just(1 << 16), 0..200_000i64],
        ) {
            check(&points, cell_size, Point::from_raw(-(17 << 16), -(8 << 16)), radius)?;
        }

        #[test]
        fn spans_are_the_predicates_across_the_world(
            points in prop::collection::vec(point(16_000 << 16), 3..6),
            cell_size in prop_oneof![Just(100 << 16), Just(655), 1_000_000..6_553_600i32],
            corner in point(16_000 << 16),
            radius in 0..=200i64 << 16,
        ) {
            let far = (16_400 << 16) - 70 * cell_size;
            let corner = Point::from_raw(corner.x.raw().min(far), corner.z.raw().min(far));
            check(&points, cell_size, corner, radius)?;
        }
    }
}
