//! The planner against definitions: random maps, the traps of spec 7.1, degenerate maps, changes.

mod properties;
mod random;
mod reference;
mod traps;
