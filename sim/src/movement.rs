//! Step 4: everybody with a path takes a step, in id order (spec 3.3).

use nav::{Fixed, Point};

use crate::character::{Animation, Character};
use crate::event::Event;
use crate::space::Delta;
use crate::world::World;
use crate::yaw::{turned, yaw_of};

/// A waypoint within this distance is reached: 0.05 m.
pub const WALK_THRESHOLD: Fixed = Fixed::from_raw(3_277);

impl World {
    /// Step 4. Reservations are the tick-start circles of all active characters; a step taken moves its own on at once.
    pub(crate) fn move_characters(&mut self, events: &mut Vec<Event>) {
        self.refresh_neighbours();
        self.moved.clear();
        self.moved.resize(self.characters.len(), false);
        for index in 0..self.characters.len() {
            if !self.characters[index].is_active() {
                continue;
            }
            match self.next_step(index, events) {
                Some(step) => self.take_step(index, step),
                None => self.characters[index].animation = Animation::Stand,
            }
        }
    }

    /// Goes on to the first waypoint that is not reached yet, or arrives; the step toward it (4a, 4b).
    fn next_step(&mut self, index: usize, events: &mut Vec<Event>) -> Option<Delta> {
        let space = self.space;
        let character = &mut self.characters[index];
        if !character.has_path() {
            return None;
        }
        let waypoint = &mut self.waypoints[index];
        while space.within(*waypoint, character.position, WALK_THRESHOLD) {
            character.current_waypoint_index += 1;
            let current = character.current_waypoint_index as usize;
            let Some(next) = character.path_waypoints.get(current) else {
                self.arrive(index, events);
                return None;
            };
            *waypoint = *next;
        }
        Some(space.step_toward(character.position, *waypoint, character.walk_speed))
    }

    /// Takes the step if nobody is in the way (4c to 4f).
    fn take_step(&mut self, index: usize, step: Delta) {
        let rejecting = self.neighbours.first_rejecting(self.space, index, step);
        let following = rejecting.is_some_and(|blocker| self.is_following(index, blocker, step));
        let blocked_by = rejecting.map(|blocker| self.characters[blocker].id);
        let character = &mut self.characters[index];
        character.blocked_by = blocked_by;
        if blocked_by.is_some() {
            character.animation = Animation::Stand;
            let ticks = &mut character.movement_blocked_ticks;
            *ticks = ticks.saturating_add(u32::from(!following));
            self.counters.rejected_steps += 1;
        } else {
            character.position = self.space.moved(character.position, step);
            character.animation = Animation::Walk;
            character.movement_blocked_ticks = 0;
        }
        if let Some(yaw) = yaw_of(step) {
            character.yaw = turned(character.yaw, yaw, character.rotation_speed);
        }
        if blocked_by.is_none() && !step.is_zero() {
            self.moved[index] = true;
            self.neighbours.place(index, self.characters[index].position);
            // Whoever stood in the previous tick is an obstacle until this one ends, wherever it has got to.
            if self.standing[index].is_some() {
                self.sync_standing(index);
            }
        }
    }
}

/// The waypoint that a character walks to; without a path it means nothing.
pub(crate) fn current_waypoint(character: &Character) -> Point {
    let waypoint = character
        .path_waypoints
        .get(character.current_waypoint_index as usize);
    waypoint.copied().unwrap_or_default()
}
