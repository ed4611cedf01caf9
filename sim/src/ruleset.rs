//! The ruleset and its hash (spec 5.5).

use crate::PlannerKind;

/// Last digest of the built-in scenario on this planner: equal hashes step alike.
pub fn ruleset_hash(planner: PlannerKind) -> u64 {
    match planner {
        PlannerKind::Grid => 0,
    }
}
