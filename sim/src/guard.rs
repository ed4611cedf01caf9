//! Following: a step that was rejected by somebody who walks the same way is no blockage (spec 3.3, step 4e). The test for
//! the rejection itself is in `neighbours`.

use crate::movement::WALK_THRESHOLD;
use crate::space::Delta;
use crate::world::World;

impl World {
    /// Whether the character whose `step` was rejected by `blocker` simply waits behind it.
    pub(crate) fn is_following(&self, index: usize, blocker: usize, step: Delta) -> bool {
        self.step_of(blocker).is_some_and(|ahead| same_way(step, ahead)) && !self.leads_back(blocker, index)
    }

    /// The step that a character with a path means to take from where it is now.
    fn step_of(&self, index: usize) -> Option<Delta> {
        let character = &self.characters[index];
        let ahead = character
            .path_waypoints
            .get(character.current_waypoint_index as usize..)?;
        let waypoint = ahead
            .iter()
            .find(|waypoint| !self.space.within(**waypoint, character.position, WALK_THRESHOLD))?;
        Some(
            self.space
                .step_toward(character.position, *waypoint, character.walk_speed),
        )
    }

    /// Whether the `blocked_by` links from `start` on, through characters with a path, lead to `end`.
    fn leads_back(&self, start: usize, end: usize) -> bool {
        let next = |index: usize| {
            let character = &self.characters[index];
            let blocker = if character.has_path() {
                character.blocked_by
            } else {
                None
            };
            blocker.and_then(|blocker| self.index_of(blocker))
        };
        // Links may run in a circle that `end` is not part of: one who walks at half the pace is caught up with in it.
        let (mut current, mut slow, mut moves_slow) = (start, start, false);
        while let Some(blocker) = next(current) {
            if blocker == end {
                return true;
            }
            current = blocker;
            if moves_slow {
                slow = next(slow).expect("it was followed before");
                if slow == current {
                    return false;
                }
            }
            moves_slow = !moves_slow;
        }
        false
    }
}

/// Within 60° of each other: dot > 0 and 4 × dot² ≥ |a|² × |b|².
fn same_way(a: Delta, b: Delta) -> bool {
    let dot = i128::from(a.dot(b));
    dot > 0 && 4 * dot * dot >= i128::from(a.squared()) * i128::from(b.squared())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_degrees_are_the_same_way() {
        let check = |a: (i64, i64), b: (i64, i64), expected: bool| {
            let (a, b) = (Delta { x: a.0, z: a.1 }, Delta { x: b.0, z: b.1 });
            assert_eq!(same_way(a, b), expected, "{a:?} and {b:?}");
        };
        check((1, 0), (5, 0), true);
        check((1, 0), (-5, 0), false);
        check((1, 0), (0, 1), false);
        check((1, 0), (1, 1), true);
        // tan 60° = 1.732…
        check((1000, 0), (1000, 1732), true);
        check((1000, 0), (1000, 1733), false);
        check((0, 0), (1, 1), false);
    }
}
