//! Steps 2, 3 and 5: retries, forced replans, talkers, and the end of persistent contact (spec 3.3).

use crate::character::{Kind, OnArrived};
use crate::command::Behaviour;
use crate::event::Event;
use crate::planning::TARGET_REPLAN_THRESHOLD;
use crate::world::World;

/// So many rejected, non-following steps in a row end a walk.
pub const BLOCKED_REPLAN_TICKS: u32 = 3;

impl World {
    /// Step 2: NPCs whose cooldown has run down plan again.
    pub(crate) fn run_retries(&mut self, events: &mut Vec<Event>) {
        for index in 0..self.characters.len() {
            let character = &mut self.characters[index];
            if character.navigation_retry_remaining > 0 {
                character.navigation_retry_remaining -= 1;
                if character.navigation_retry_remaining == 0 {
                    self.replan(index, events);
                }
            }
        }
    }

    /// Step 3: after a change of the map everybody on the way, or waiting to be, plans again.
    pub(crate) fn replan_forced(&mut self, events: &mut Vec<Event>) {
        if !std::mem::take(&mut self.map_changed) {
            return;
        }
        for index in 0..self.characters.len() {
            let character = &self.characters[index];
            if character.has_path() || character.navigation_retry_remaining > 0 {
                self.replan(index, events);
            }
        }
    }

    /// Step 3, talkers: they stop where they can talk, and go after an NPC that walks.
    pub(crate) fn follow_talk_targets(&mut self, events: &mut Vec<Event>) {
        for index in 0..self.characters.len() {
            let OnArrived::Talk(npc) = self.characters[index].on_arrived else {
                continue;
            };
            let target = self
                .index_of(npc)
                .filter(|target| self.characters[*target].is_active());
            let Some(target) = target else {
                self.characters[index].stop_in_place();
                continue;
            };
            let (character, target) = (&self.characters[index], &self.characters[target]);
            let place = target.position;
            if self.can_talk(character, target) {
                events.push(Event::TalkStarted {
                    character: character.id,
                    npc,
                });
                self.characters[index].stop_in_place();
            } else if character.has_path()
                && !self
                    .space
                    .within(place, character.requested_walk_target, TARGET_REPLAN_THRESHOLD)
            {
                self.set_target(index, place, OnArrived::Talk(npc), events);
            }
        }
    }

    /// Step 5: who has been rejected too often stops, and with them whom they blocked in turn.
    pub(crate) fn end_persistent_contact(&mut self) {
        for index in 0..self.characters.len() {
            let character = &self.characters[index];
            if character.movement_blocked_ticks < BLOCKED_REPLAN_TICKS {
                continue;
            }
            let id = character.id;
            let blocker = character.blocked_by.and_then(|blocker| self.index_of(blocker));
            self.stop_after_contact(index);
            // With a path it took a step in this tick, so `blocked_by` is of this tick too.
            if let Some(blocker) = blocker
                && self.characters[blocker].has_path()
                && self.characters[blocker].blocked_by == Some(id)
            {
                self.stop_after_contact(blocker);
            }
        }
    }

    /// An NPC tries again later, around the one who was in the way; the others have lost their destination.
    fn stop_after_contact(&mut self, index: usize) {
        let character = &mut self.characters[index];
        match character.kind {
            Kind::Npc => {
                character.clear_path();
                character.walk_target = character.position;
                character.movement_blocked_ticks = 0;
                character.search_ran_out = false;
                character.schedule_retry();
            }
            Kind::Player | Kind::Bot => {
                character.stop_in_place();
                if character.behaviour != Behaviour::Idle {
                    character.progress.wait = character.next_cooldown();
                }
            }
        }
    }
}
