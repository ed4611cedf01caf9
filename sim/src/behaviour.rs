//! Step 6: what NPCs and bots do by themselves (spec 3.3).
//!
//! Every behaviour keeps its place in one [`Progress`]; each looks at its character in O(1) a tick. Only active characters
//! behave; where a command or a script leads elsewhere meanwhile, a behaviour waits until its character has no path and no
//! retry pending. Setting a behaviour stops the character in place. What the spec leaves open is decided here and fixed by
//! the golden digests in `tests/golden`:
//!
//! - **Waiting.** `wait` counts down in step 6 of every tick in which the character has nothing to do: a wait of n set in
//!   steps 1 to 5 of tick t gives the next target in tick t + n, one set in step 6 a tick later. A bot that persistent
//!   contact stopped gets its `wait` from the next element of its own cooldown sequence, whatever its behaviour had put there.
//! - **Patrol** is the spec's. Its target is set with `on_arrived` = next step; somebody sent elsewhere by a command does not
//!   skip a point by arriving there. With `loop: false` it ends when `next` is past the last point.
//! - **Wander.** The first pause is drawn when the behaviour is set, each further one on arrival: `pause_min` to `pause_max`,
//!   both included. A point is drawn as x, then z, each from −radius to radius (2 × radius + 1 raws, by multiply and shift),
//!   clamped to the world limit. It is taken if it lies in the disc and on free ground of the map in use; after 16 draws
//!   the centre is taken instead. A point that cannot be reached is walked to as near as there is a way, as after any
//!   command. If there is no way at all an NPC retries. A target that leaves nothing to do, neither a path nor a retry nor a
//!   pause, is followed by a wait of the next element of the cooldown sequence.
//! - **Follow.** Farther than `distance` from the one it follows, it walks to where that one is, and again from there when
//!   that one has gone more than max(0.25 m, distance / 2) from the requested target; within `distance` it stops in place. Having
//!   arrived without being so near (somebody stands between), or without a way, it waits for the next element of its cooldown sequence. If the one
//!   it follows is gone, dead or disabled it stops in place and waits for its return.
//! - **Script.** A step runs in step 6 of tick `set_at + after_ticks`, also on the way to somewhere; steps of the same tick
//!   run in their order. Steps that fall due while the character is dead or disabled, and talks with nobody, are passed over,
//!   as the same commands would be rejected. `MoveTo` and `Talk` are the commands of these names.

use bincode::{Decode, Encode};
use nav::{Fixed, Point, WORLD_LIMIT};
use serde::Serialize;

use crate::character::{Character, CharacterId, OnArrived};
use crate::command::{Behaviour, Step};
use crate::event::Event;
use crate::planning::TARGET_REPLAN_THRESHOLD;
use crate::rng::Pcg32;
use crate::world::World;

/// Points that a wanderer draws before it takes the centre.
pub const WANDER_DRAWS: u32 = 16;

/// How far a behaviour has got (its "position", spec 5.4); one for all, so that a wait has one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
pub struct Progress {
    /// Index of the next patrol point or script step.
    pub next: u32,
    /// Ticks to wait before the next target.
    pub wait: u32,
    /// Tick in which the behaviour was set.
    pub set_at: u64,
}

impl Progress {
    /// The start of a behaviour set in `tick`.
    pub(crate) fn start(behaviour: &Behaviour, tick: u64, rng: &mut Pcg32) -> Self {
        let wait = match behaviour {
            Behaviour::Wander {
                pause_min, pause_max, ..
            } => rng.between(*pause_min, *pause_max),
            Behaviour::Idle
            | Behaviour::Patrol { .. }
            | Behaviour::Follow { .. }
            | Behaviour::Script { .. } => 0,
        };
        Self {
            next: 0,
            wait,
            set_at: tick,
        }
    }
}

impl Character {
    pub(crate) fn start_behaviour(&mut self, behaviour: Behaviour, tick: u64) {
        self.progress = Progress::start(&behaviour, tick, &mut self.rng);
        self.behaviour = behaviour;
    }

    /// Nothing is being followed or waited for.
    fn is_free(&self) -> bool {
        !self.has_path() && self.navigation_retry_remaining == 0
    }

    /// Counts a wait down; whether the next target is due.
    fn waited(&mut self) -> bool {
        let due = self.progress.wait == 0;
        self.progress.wait = self.progress.wait.saturating_sub(1);
        due
    }

    /// After a target was set: whoever has nothing to do for it would ask for another in every tick.
    fn wait_if_stuck(&mut self) {
        if self.is_free() && self.progress.wait == 0 {
            self.progress.wait = self.next_cooldown();
        }
    }
}

impl World {
    /// Step 6, in id order.
    pub(crate) fn run_behaviours(&mut self, events: &mut Vec<Event>) {
        for index in 0..self.characters.len() {
            let character = &self.characters[index];
            match character.behaviour {
                Behaviour::Idle => {}
                Behaviour::Script { .. } => self.run_script(index, events),
                _ if !character.is_active() => {}
                Behaviour::Patrol { .. } => self.patrol(index, events),
                Behaviour::Wander { .. } => self.wander(index, events),
                Behaviour::Follow {
                    character: leader,
                    distance,
                } => self.follow(index, leader, distance, events),
            }
        }
    }

    /// `OnArrived::NextStep`: a target that the behaviour had set is reached.
    pub(crate) fn finish_behaviour_step(&mut self, index: usize) {
        let character = &mut self.characters[index];
        match &character.behaviour {
            Behaviour::Patrol {
                points,
                wait_ticks,
                looped,
            } => {
                character.progress.next += 1;
                if *looped && character.progress.next as usize >= points.len() {
                    character.progress.next = 0;
                }
                character.progress.wait = *wait_ticks;
            }
            Behaviour::Wander {
                pause_min, pause_max, ..
            } => character.progress.wait = character.rng.between(*pause_min, *pause_max),
            Behaviour::Follow { .. } => character.progress.wait = character.next_cooldown(),
            Behaviour::Idle | Behaviour::Script { .. } => {}
        }
    }

    fn patrol(&mut self, index: usize, events: &mut Vec<Event>) {
        let character = &mut self.characters[index];
        let Behaviour::Patrol { points, .. } = &character.behaviour else {
            return;
        };
        let point = points.get(character.progress.next as usize).copied();
        if let Some(point) = point
            && character.is_free()
            && character.waited()
        {
            self.set_target(index, point, OnArrived::NextStep, events);
        }
    }

    fn wander(&mut self, index: usize, events: &mut Vec<Event>) {
        let character = &mut self.characters[index];
        if let Behaviour::Wander { x, z, radius, .. } = character.behaviour
            && character.is_free()
            && character.waited()
        {
            let point = self.draw_point(index, Point::new(x, z), radius);
            self.set_target(index, point, OnArrived::NextStep, events);
            self.characters[index].wait_if_stuck();
        }
    }

    /// A point of free ground in the disc, or its centre.
    fn draw_point(&mut self, index: usize, centre: Point, radius: Fixed) -> Point {
        let planner = &self.maps[self.current_map].1;
        let rng = &mut self.characters[index].rng;
        // At most 2 × 16000 m + 1 raw: fits u32.
        let width = 2 * radius.raw() as u32 + 1;
        for _ in 0..WANDER_DRAWS {
            let mut offset = || i64::from(rng.below(width)) - radius.wide();
            let (x, z) = (offset(), offset());
            let inside = x * x + z * z <= radius.wide() * radius.wide();
            let point = Point::new(shifted(centre.x, x), shifted(centre.z, z));
            if inside && planner.is_free_ground(point) {
                return point;
            }
        }
        centre
    }

    fn follow(&mut self, index: usize, leader: CharacterId, distance: Fixed, events: &mut Vec<Event>) {
        let leader = self.index_of(leader).map(|leader| &self.characters[leader]);
        let place = leader
            .filter(|leader| leader.is_active())
            .map(|leader| leader.position);
        let character = &self.characters[index];
        let near = place.is_none_or(|place| self.space.within(place, character.position, distance));
        let space = self.space;
        let character = &mut self.characters[index];
        if !character.is_free() {
            // Sent elsewhere by a command, it goes there first.
            if character.on_arrived != OnArrived::NextStep {
                return;
            }
            let lag = TARGET_REPLAN_THRESHOLD.max(Fixed::from_raw(distance.raw() / 2));
            match place {
                Some(place) if !near => {
                    let went_on = !space.within(place, character.requested_walk_target, lag);
                    if character.has_path() && went_on {
                        self.set_target(index, place, OnArrived::NextStep, events);
                        self.characters[index].wait_if_stuck();
                    }
                }
                _ => character.stop_in_place(),
            }
        } else if let Some(place) = place
            && !near
            && character.waited()
        {
            self.set_target(index, place, OnArrived::NextStep, events);
            self.characters[index].wait_if_stuck();
        }
    }

    fn run_script(&mut self, index: usize, events: &mut Vec<Event>) {
        loop {
            let character = &mut self.characters[index];
            let Behaviour::Script { steps } = &character.behaviour else {
                return;
            };
            let elapsed = self.tick - character.progress.set_at;
            let due = steps
                .get(character.progress.next as usize)
                .filter(|step| u64::from(step.after_ticks) <= elapsed)
                .map(|step| step.step.clone());
            let Some(step) = due else {
                return;
            };
            character.progress.next += 1;
            if character.is_active() {
                self.run_step(index, &step, events);
            }
        }
    }

    fn run_step(&mut self, index: usize, step: &Step, events: &mut Vec<Event>) {
        match *step {
            Step::MoveTo { x, z } => self.set_target(index, Point::new(x, z), OnArrived::None, events),
            Step::Stop => self.characters[index].stop_in_place(),
            Step::Talk { npc } => {
                if let Ok(npc) = self.partner(self.characters[index].id, npc) {
                    self.set_talk_target(index, npc, events);
                }
            }
        }
    }
}

/// A coordinate moved by raws, kept within the world limit.
fn shifted(coordinate: Fixed, raws: i64) -> Fixed {
    let limit = WORLD_LIMIT.wide();
    let sum = (coordinate.wide() + raws).clamp(-limit, limit);
    Fixed::from_raw(i32::try_from(sum).expect("the world limit fits"))
}
