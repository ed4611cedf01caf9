//! The planner against definitions: random maps, the traps of spec 7.1, degenerate maps, changes, files that mean harm.

mod changes;
mod hostile;
mod properties;
mod random;
mod reference;
mod traps;
