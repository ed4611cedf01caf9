//! Least lengths on a grid by plain Dijkstra, for any two costs of a step: the judge where a route's length is not the
//! published one. It shares nothing with the planner but the grid.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ::nav::{Cell, Grid};

/// The least cost from cell to cell with the moves of spec 2.4, in the unit of the two costs; `None` if there is no way.
pub(super) fn least_cost(grid: &Grid, start: Cell, goal: Cell, cardinal: u64, diagonal: u64) -> Option<u64> {
    let mut best = vec![u64::MAX; grid.width() as usize * grid.depth() as usize];
    let mut queue = BinaryHeap::new();
    best[grid.index_of(start) as usize] = 0;
    queue.push(Reverse((0, grid.index_of(start))));
    while let Some(Reverse((cost, index))) = queue.pop() {
        let cell = grid.cell_at(index);
        if cell == goal {
            return Some(cost);
        }
        if cost > best[index as usize] {
            continue;
        }
        for (dx, dz) in [
            (-1, 0),
            (1, 0),
            (0, -1),
            (0, 1),
            (-1, -1),
            (1, -1),
            (-1, 1),
            (1, 1),
        ] {
            let Some(next) = moved(grid, cell, dx, dz) else {
                continue;
            };
            let is_diagonal = dx != 0 && dz != 0;
            // No corner is cut.
            if is_diagonal && (moved(grid, cell, dx, 0).is_none() || moved(grid, cell, 0, dz).is_none()) {
                continue;
            }
            let next_cost = cost + if is_diagonal { diagonal } else { cardinal };
            let index = grid.index_of(next);
            if next_cost < best[index as usize] {
                best[index as usize] = next_cost;
                queue.push(Reverse((next_cost, index)));
            }
        }
    }
    None
}

/// The walkable cell beside.
fn moved(grid: &Grid, cell: Cell, dx: i32, dz: i32) -> Option<Cell> {
    let (x, z) = (cell.x.checked_add_signed(dx)?, cell.z.checked_add_signed(dz)?);
    let inside = x < grid.width() && z < grid.depth();
    (inside && grid.is_walkable(Cell { x, z })).then_some(Cell { x, z })
}
