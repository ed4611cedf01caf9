//! The grid planner (spec 2): the world as equal square cells in the XZ plane, walkable or blocked.

mod build;
mod cells;
mod components;
mod edited;
mod jump;
mod line_of_sight;
mod lines;
pub mod movingai;
mod numbering;
mod planner;
mod raster;
mod reach;
mod search;
mod smooth;
mod snap;
mod stamp;
mod stops;
pub mod text;

pub(crate) use build::{DRAWING_STEPS_MAX, area_steps, frame_around, obstacle_steps};
pub use cells::{Cells, Window};
pub use edited::EditedMap;
pub use planner::GridPlanner;
pub use raster::Frame;
pub use search::GridSearch;
pub use text::BakedGrid;

use std::sync::Arc;

use crate::{Fixed, Point};
use components::Components;
pub(crate) use jump::JumpPoints;
pub(crate) use lines::{Lines, WORD};
pub(crate) use numbering::Numbering;
pub(crate) use stamp::{Bounds, Stamp};
pub(crate) use stops::Stops;

/// Most cells of a grid (spec 2.2).
pub const CELLS_MAX: usize = 1 << 24;

/// A cell: column x and row z, both from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// Column.
    pub x: u32,
    /// Row.
    pub z: u32,
}

/// The numbers that a grid is built and searched with (spec 2.1), already checked against their ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridParameters {
    /// Width and depth of a cell, metres; 0.01 to 100.
    pub cell_size: Fixed,
    /// Half-width of a character, metres.
    pub agent_radius: Fixed,
    /// Extra clearance around obstacle polygons, metres.
    pub object_padding: Fixed,
    /// Inward erosion from the outer edge of the areas, metres.
    pub boundary_padding: Fixed,
    /// Y of every waypoint, metres.
    pub floor_y: Fixed,
}

/// Which cells are walkable, and what follows from that. Immutable; a clone shares everything.
#[derive(Clone, Debug)]
pub struct Grid {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    parameters: GridParameters,
    min: Point,
    width: u32,
    depth: u32,
    half_diagonal: i64,
    numbering: Numbering,
    rows: Lines,
    columns: Lines,
    components: Components,
}

impl Grid {
    /// The grid of `walkable[z × width + x]` whose corner of least x and z is `min`.
    ///
    /// # Panics
    /// If `walkable` is not width × depth long, a side is 0, there are more than [`CELLS_MAX`] cells, or the far corner is
    /// no [`Fixed`] (see [`Grid::fits`]): the readers of maps check all this.
    pub fn from_cells(
        parameters: GridParameters,
        min: Point,
        width: u32,
        depth: u32,
        walkable: &[bool],
    ) -> Self {
        Self::from_bits(parameters, min, &Cells::from_bools(width, depth, walkable))
    }

    /// As [`Grid::from_cells`], many times faster.
    ///
    /// # Panics
    /// If the size does not fit (see [`Grid::fits`]).
    pub fn from_bits(parameters: GridParameters, min: Point, walkable: &Cells) -> Self {
        let (width, depth) = (walkable.width(), walkable.depth());
        assert!(
            Self::fits(parameters.cell_size, min, width, depth),
            "a checked size"
        );
        Self {
            shared: Arc::new(Shared {
                parameters,
                min,
                width,
                depth,
                half_diagonal: half_diagonal(parameters.cell_size.wide()),
                numbering: Numbering::new(width),
                rows: walkable.to_rows(),
                columns: walkable.to_columns(),
                components: Components::of(walkable),
            }),
        }
    }

    /// A grid can have this size and place: 1 to [`CELLS_MAX`] cells, and its far corner is still a [`Fixed`].
    pub fn fits(cell_size: Fixed, min: Point, width: u32, depth: u32) -> bool {
        let far = |min: Fixed, cells: u32| min.wide() + i64::from(cells) * cell_size.wide();
        cell_size > Fixed::ZERO
            && width > 0
            && depth > 0
            && u64::from(width) * u64::from(depth) <= CELLS_MAX as u64
            && far(min.x, width) <= i64::from(i32::MAX)
            && far(min.z, depth) <= i64::from(i32::MAX)
    }

    /// What it was built with.
    pub fn parameters(&self) -> &GridParameters {
        &self.shared.parameters
    }

    /// The corner of least x and z.
    pub fn min(&self) -> Point {
        self.shared.min
    }

    /// Number of columns.
    pub fn width(&self) -> u32 {
        self.shared.width
    }

    /// Number of rows.
    pub fn depth(&self) -> u32 {
        self.shared.depth
    }

    /// The cell that a point lies in; `None` outside the grid.
    pub fn cell_of(&self, point: Point) -> Option<Cell> {
        let (x, z) = self.unclamped_cell_of(point);
        let inside = (0..i64::from(self.width())).contains(&x) && (0..i64::from(self.depth())).contains(&z);
        inside.then_some(Cell {
            x: x as u32,
            z: z as u32,
        })
    }

    /// The cell that a point lies in, of a point outside the nearest one (spec 2.4, "Snapping").
    pub fn nearest_cell(&self, point: Point) -> Cell {
        let (x, z) = self.unclamped_cell_of(point);
        Cell {
            x: x.clamp(0, i64::from(self.width()) - 1) as u32,
            z: z.clamp(0, i64::from(self.depth()) - 1) as u32,
        }
    }

    fn unclamped_cell_of(&self, point: Point) -> (i64, i64) {
        let cell_size = self.shared.parameters.cell_size.wide();
        let along = |value: Fixed, min: Fixed| (value.wide() - min.wide()).div_euclid(cell_size);
        (
            along(point.x, self.shared.min.x),
            along(point.z, self.shared.min.z),
        )
    }

    /// The centre of a cell of this grid.
    pub fn centre_of(&self, cell: Cell) -> Point {
        let cell_size = self.shared.parameters.cell_size.wide();
        let along = |index: u32, min: Fixed| {
            // At most half a cell beyond the last whole one, and the far corner is a Fixed.
            Fixed::from_raw((min.wide() + (((2 * i64::from(index) + 1) * cell_size) >> 1)) as i32)
        };
        Point::new(along(cell.x, self.shared.min.x), along(cell.z, self.shared.min.z))
    }

    /// z × width + x.
    pub fn index_of(&self, cell: Cell) -> u32 {
        self.shared.numbering.index_of(cell)
    }

    /// How its cells are numbered.
    pub(crate) fn numbering(&self) -> Numbering {
        self.shared.numbering
    }

    /// The cell of an index of this grid.
    pub fn cell_at(&self, index: u32) -> Cell {
        self.shared.numbering.cell_at(index)
    }

    /// The cell is in the grid and walkable.
    pub fn is_walkable(&self, cell: Cell) -> bool {
        cell.x < self.width() && cell.z < self.depth() && self.shared.rows.get(cell.z, cell.x)
    }

    /// Number of static components: sets of walkable cells that reach each other (spec 2.3, rule 5).
    pub fn components(&self) -> u32 {
        self.shared.components.count()
    }

    /// The component of a cell, numbered from 0 by smallest cell index; `None` if it is not walkable.
    pub fn component_of(&self, cell: Cell) -> Option<u32> {
        let inside = cell.x < self.width() && cell.z < self.depth();
        inside
            .then(|| self.shared.components.label(self.index_of(cell)))
            .flatten()
    }

    /// Line of sight between two cells over walkable ground (spec 2.5, rule 2); the first cell itself is not looked at.
    pub fn line_of_sight(&self, from: Cell, to: Cell) -> bool {
        line_of_sight::first_blocker(self.rows(), from, to).is_none()
    }

    /// Half the diagonal of a cell rounded up, raw: the smallest h with (2h)² ≥ 2 × cellSize² (spec 2.6).
    pub(crate) fn half_diagonal(&self) -> i64 {
        self.shared.half_diagonal
    }

    /// Size, place and parameters are the same.
    pub(crate) fn has_frame_of(&self, other: &Self) -> bool {
        let frame = |grid: &Self| (*grid.parameters(), grid.min(), grid.width(), grid.depth());
        frame(self) == frame(other)
    }

    /// Walkable cells by row.
    pub(crate) fn rows(&self) -> &Lines {
        &self.shared.rows
    }

    /// Walkable cells by column.
    pub(crate) fn columns(&self) -> &Lines {
        &self.shared.columns
    }
}

fn half_diagonal(cell_size: i64) -> i64 {
    let below = (cell_size * cell_size / 2).isqrt();
    (below..)
        .find(|half| 2 * half * half >= cell_size * cell_size)
        .expect("a next number")
}
