//! Planning: the one function through which every path is asked for, and what its answer means (spec 3.2 and 3.3).
//!
//! The obstacles of a plan are every other active character that did not move in the previous tick. The planner keeps their
//! circles between plans: `standing` says, per character, which circle it has, and [`World::sync_standing`] is called where
//! one of the four things it follows from changes (active, `moved_last_tick`, position, radius).

use nav::{Circle, Fixed, Goal, Point, Query, WORLD_LIMIT};

use crate::character::{Character, CharacterId, Kind, OnArrived};
use crate::event::Event;
use crate::world::World;

/// A new destination so near to the old one changes nothing (spec 3.2): 0.25 m.
pub const TARGET_REPLAN_THRESHOLD: Fixed = Fixed::from_raw(1 << 14);

/// Within this distance people talk (spec 3.2): 1.35 m.
pub const NPC_TALK_DISTANCE: Fixed = Fixed::from_raw(88_474);

impl World {
    /// Walks to `destination`, or as near as there is a way; see spec 3.2.
    pub(crate) fn set_target(
        &mut self,
        index: usize,
        destination: Point,
        on_arrived: OnArrived,
        events: &mut Vec<Event>,
    ) {
        let character = &mut self.characters[index];
        character.on_arrived = on_arrived;
        let requested = character.requested_walk_target;
        if character.has_path() && self.space.within(destination, requested, TARGET_REPLAN_THRESHOLD) {
            return;
        }
        self.plan(index, destination, false, events);
    }

    /// Starts on the way to an NPC; on the way there already, nothing changes. Never deduplicated against an older path.
    pub(crate) fn set_talk_target(&mut self, index: usize, npc: usize, events: &mut Vec<Event>) {
        let talk = OnArrived::Talk(self.characters[npc].id);
        let character = &mut self.characters[index];
        if character.on_arrived == talk && character.has_path() {
            return;
        }
        character.on_arrived = talk;
        self.plan(index, self.characters[npc].position, false, events);
    }

    /// Plans again to where the character wanted to go, around whoever blocked it last.
    pub(crate) fn replan(&mut self, index: usize, events: &mut Vec<Event>) {
        self.plan(index, self.characters[index].requested_walk_target, true, events);
    }

    /// Asks the planner for a path and takes it. `promote`: whoever blocked the last step is an obstacle even if moving.
    fn plan(&mut self, index: usize, destination: Point, promote: bool, events: &mut Vec<Event>) {
        let character = &self.characters[index];
        let talks_to = match character.on_arrived {
            OnArrived::Talk(npc) => self.index_of(npc),
            OnArrived::None | OnArrived::NextStep => None,
        };
        let promoted = match character.blocked_by {
            Some(blocker) if promote => self.promoted(blocker, talks_to),
            _ => None,
        };
        let own = self.standing[index];
        let partner = talks_to
            .filter(|npc| *npc != index)
            .and_then(|npc| self.standing[npc]);
        let both = own.zip(partner).map(|(own, partner)| [own, partner]);
        let except = match &both {
            Some(both) => both.as_slice(),
            None => own
                .as_ref()
                .or(partner.as_ref())
                .map_or(&[][..], std::slice::from_ref),
        };
        let query = Query {
            from: character.position,
            to: destination,
            goal: Goal::Nearest,
            agent_radius: character.collision_radius,
            also: promoted.as_slice(),
            except,
            expanded_max: None,
            want_cells: false,
        };
        self.maps[self.current_map].1.plan(&query, &mut self.route);
        self.counters.plans += 1;
        self.counters.expanded += u64::from(self.route.stats.expanded);
        self.take_route(index, destination, events);
    }

    /// The blocker's circle, unless it is an obstacle already, does not block, or is whom the plan wants to talk to.
    fn promoted(&self, blocker: CharacterId, talks_to: Option<usize>) -> Option<Circle> {
        let index = self.index_of(blocker)?;
        let stands = self.standing[index].is_some();
        let blocker = &self.characters[index];
        (blocker.is_active() && !stands && talks_to != Some(index)).then(|| blocker.circle())
    }

    /// Follows the planner's answer (spec 3.2, "After any plan").
    fn take_route(&mut self, index: usize, destination: Point, events: &mut Vec<Event>) {
        for waypoint in &mut self.route.waypoints {
            *waypoint = in_world(*waypoint);
        }
        let character = &mut self.characters[index];
        let cut = character.path_waypoints.fill_cut(&self.route.waypoints);
        character.current_waypoint_index = 0;
        character.requested_walk_target = destination;
        character.walk_target = character
            .path_waypoints
            .last()
            .copied()
            .unwrap_or(character.position);
        character.movement_blocked_ticks = 0;
        character.blocked_by = None;
        character.navigation_retry_remaining = 0;
        character.search_ran_out = self.route.search_ran_out || cut;
        if let Some(first) = character.path_waypoints.first() {
            self.waypoints[index] = *first;
            return;
        }
        if self.route.found {
            self.arrive(index, events);
        } else if character.kind == Kind::Npc {
            character.schedule_retry();
        } else {
            character.stop_in_place();
        }
    }

    /// The end of a path, or as near as it gets (spec 3.2): an NPC that a crowd cut off tries again later instead.
    pub(crate) fn arrive(&mut self, index: usize, events: &mut Vec<Event>) {
        let character = &mut self.characters[index];
        character.clear_path();
        character.movement_blocked_ticks = 0;
        character.blocked_by = None;
        let cut_off = std::mem::take(&mut character.search_ran_out);
        if cut_off && character.kind == Kind::Npc {
            character.schedule_retry();
            return;
        }
        let id = character.id;
        events.push(Event::Arrived { character: id });
        match std::mem::take(&mut character.on_arrived) {
            OnArrived::None => {}
            OnArrived::NextStep => self.finish_behaviour_step(index),
            // Usually the talkers' phase was first; a path that ends at once is too short for it.
            OnArrived::Talk(npc) => {
                if let Some(other) = self.index_of(npc).map(|npc| &self.characters[npc])
                    && other.is_active()
                    && self.can_talk(&self.characters[index], other)
                {
                    events.push(Event::TalkStarted { character: id, npc });
                }
            }
        }
    }

    /// Whether two are near enough to talk.
    pub(crate) fn can_talk(&self, one: &Character, other: &Character) -> bool {
        self.space.share_level(one.level, other.level)
            && self.space.within(one.position, other.position, NPC_TALK_DISTANCE)
    }

    /// Makes the planner's circle for a character what it should be now.
    pub(crate) fn sync_standing(&mut self, index: usize) {
        let wanted = standing_circle(&self.characters[index]);
        let known = std::mem::replace(&mut self.standing[index], wanted);
        if known == wanted {
            return;
        }
        let planner = self.planner_mut();
        if let Some(circle) = known {
            planner.unblock(circle);
        }
        if let Some(circle) = wanted {
            planner.block(circle);
        }
    }

    /// Gives all standing circles to the map in use, which knows none yet.
    pub(crate) fn block_standing(&mut self) {
        let planner = &mut self.maps[self.current_map].1;
        for circle in self.standing.iter().flatten() {
            planner.block(*circle);
        }
    }
}

/// A baked grid may have ground beyond the world limit, where nothing can be named; nobody walks there either, so that
/// distances stay within their types.
fn in_world(point: Point) -> Point {
    if point.in_world() {
        return point;
    }
    let limit = WORLD_LIMIT.raw();
    let within = |coordinate: Fixed| coordinate.raw().clamp(-limit, limit);
    Point::from_raw(within(point.x), within(point.z))
}

/// The circle by which a character is an obstacle to the plans of others (spec 3.3, "Planning").
pub(crate) fn standing_circle(character: &Character) -> Option<Circle> {
    (character.is_active() && !character.moved_last_tick).then(|| character.circle())
}
