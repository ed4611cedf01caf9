//! The one struct for players, bots and NPCs: everything about them that can change a later tick (spec 3.1).

use bincode::{Decode, Encode};
use nav::{Circle, Fixed, Point};
use serde::Serialize;

use crate::behaviour::Progress;
use crate::bounded::List;
use crate::command::{Behaviour, COOLDOWN_TICKS_MAX, CharacterSpec, Name};
use crate::rng::{Pcg32, shuffle};

/// Waypoints of a path; what a planner returns beyond them is cut off (spec 3.4).
pub const PATH_WAYPOINTS_MAX: usize = 4_096;

/// Stable, unique in a run; all ordering is by ascending id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode, Serialize)]
pub struct CharacterId(pub u32);

/// Who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Commanded by a session that joined.
    Player,
    /// Commanded by a bot session, or by its own behaviour.
    Bot,
    /// Behaves by itself; retries when blocked.
    Npc,
}

/// What is to be seen of its movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Animation {
    /// Stands.
    #[default]
    Stand,
    /// Walks.
    Walk,
    /// Levelled maps only.
    Jump,
    /// Levelled maps only.
    Fall,
}

/// What happens on arrival: data, not a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnArrived {
    /// Nothing.
    #[default]
    None,
    /// Talk to this NPC.
    Talk(CharacterId),
    /// Go on with its behaviour.
    NextStep,
}

/// A player, bot or NPC. The fields stand in the order of spec 3.1, which is the order of the snapshot (5.4).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Character {
    /// Unique in the location.
    pub id: CharacterId,
    /// Player, bot or NPC.
    pub kind: Kind,
    /// 1 to 32 printable characters.
    pub name: Name,
    /// Metres.
    pub position: Point,
    /// Level index, 0 on flat maps.
    pub level: u8,
    /// Radians in (−π, π]; 0 looks along +Z and it grows toward +X.
    pub yaw: Fixed,
    /// Metres per tick, above 0.
    pub walk_speed: Fixed,
    /// Radians per tick, above 0.
    pub rotation_speed: Fixed,
    /// Planning radius, metres.
    pub collision_radius: Fixed,
    /// Guard radius, metres.
    pub movement_contact_radius: Fixed,
    /// The dead neither move nor block.
    pub alive: bool,
    /// The disabled neither move nor block.
    pub enabled: bool,
    /// Stands or walks.
    pub animation: Animation,
    /// What is being followed; empty: no path.
    pub path_waypoints: List<Point, PATH_WAYPOINTS_MAX>,
    /// The waypoint being walked to; 0 without a path.
    pub current_waypoint_index: u32,
    /// Reachable end of the current path.
    pub walk_target: Point,
    /// Where the command wanted to go.
    pub requested_walk_target: Point,
    /// What happens at the end of the path.
    pub on_arrived: OnArrived,
    /// Really displaced in the previous tick.
    pub moved_last_tick: bool,
    /// Rejected, non-following steps in a row.
    pub movement_blocked_ticks: u32,
    /// Who rejected the last step.
    pub blocked_by: Option<CharacterId>,
    /// The cooldown sequence, ticks, each at least 1; 1 to 64 values, already shuffled.
    pub navigation_retry_cooldown_ticks: List<u32, COOLDOWN_TICKS_MAX>,
    /// Next element of the sequence to consume.
    pub navigation_retry_cursor: u32,
    /// NPC: ticks until the pending retry, 0 = none.
    pub navigation_retry_remaining: u32,
    /// Dynamic obstacles cut the current path short.
    pub search_ran_out: bool,
    /// What it does by itself.
    pub behaviour: Behaviour,
    /// How far its behaviour has got.
    #[serde(rename = "behaviour_progress")]
    pub progress: Progress,
    /// The generator its behaviour draws from.
    pub rng: Pcg32,
}

/// Ticks of the default cooldown sequence before it is shuffled (spec 3.1).
const COOLDOWN_TICKS: [u32; 10] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

impl Character {
    /// A character as a spec describes it, standing; its behaviour counts from `tick`. The spec's ranges are checked already.
    pub(crate) fn new(kind: Kind, spec: &CharacterSpec, tick: u64) -> Self {
        let mut cooldown = spec
            .cooldown_ticks
            .as_ref()
            .map_or_else(|| COOLDOWN_TICKS.to_vec(), |ticks| ticks.to_vec());
        for ticks in &mut cooldown {
            *ticks = (*ticks).max(1);
        }
        shuffle(&mut cooldown, spec.id.0);
        let position = Point::new(spec.x, spec.z);
        let mut rng = Pcg32::of_character(spec.id.0);
        let progress = Progress::start(&spec.behaviour, tick, &mut rng);
        Self {
            id: spec.id,
            kind,
            name: spec.name.clone(),
            position,
            level: 0,
            yaw: Fixed::ZERO,
            walk_speed: spec.speed_per_tick,
            rotation_speed: spec.rotation_per_tick,
            collision_radius: spec.collision_radius,
            movement_contact_radius: spec.movement_contact_radius,
            alive: spec.alive,
            enabled: spec.enabled,
            animation: Animation::Stand,
            path_waypoints: List::default(),
            current_waypoint_index: 0,
            walk_target: position,
            requested_walk_target: position,
            on_arrived: OnArrived::None,
            moved_last_tick: false,
            movement_blocked_ticks: 0,
            blocked_by: None,
            navigation_retry_cooldown_ticks: List::new(cooldown)
                .expect("a spec's sequence has the same limit"),
            navigation_retry_cursor: 0,
            navigation_retry_remaining: 0,
            search_ran_out: false,
            behaviour: spec.behaviour.clone(),
            progress,
            rng,
        }
    }

    /// Alive and enabled: it may move, and it blocks.
    pub fn is_active(&self) -> bool {
        self.alive && self.enabled
    }

    /// On the way to a target.
    pub fn has_path(&self) -> bool {
        !self.path_waypoints.is_empty()
    }

    /// Really displaced in the last tick; a character that has a path but stands still is not moving.
    pub fn is_moving(&self) -> bool {
        self.moved_last_tick
    }

    /// Its circle as a planning obstacle: the full `collision_radius`.
    pub fn circle(&self) -> Circle {
        Circle {
            centre: self.position,
            radius: self.collision_radius,
        }
    }

    /// Consumes the next element of the cooldown sequence, ticks.
    pub(crate) fn next_cooldown(&mut self) -> u32 {
        let sequence = &self.navigation_retry_cooldown_ticks;
        let ticks = sequence[self.navigation_retry_cursor as usize];
        self.navigation_retry_cursor = (self.navigation_retry_cursor + 1) % sequence.len() as u32;
        ticks
    }

    /// Both targets become the position; path, `on_arrived`, blockage and retry are cleared (spec 3.2).
    pub(crate) fn stop_in_place(&mut self) {
        self.walk_target = self.position;
        self.requested_walk_target = self.position;
        self.clear_path();
        self.on_arrived = OnArrived::None;
        self.movement_blocked_ticks = 0;
        self.blocked_by = None;
        self.navigation_retry_remaining = 0;
        self.search_ran_out = false;
        self.animation = Animation::Stand;
    }

    /// No path any more; the targets stay.
    pub(crate) fn clear_path(&mut self) {
        self.path_waypoints.clear();
        self.current_waypoint_index = 0;
    }

    /// `navigation_retry_remaining` = the next element of the sequence (spec 3.2).
    pub(crate) fn schedule_retry(&mut self) {
        self.navigation_retry_remaining = self.next_cooldown();
    }
}
