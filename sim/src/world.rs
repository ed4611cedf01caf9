//! The World and its one way forward, `step` (spec 3.3).

use std::fmt;

use nav::{Circle, MapEdits, Planner, Point, Route};

use crate::character::{Character, CharacterId};
use crate::command::{Command, Label};
use crate::definition::Definition;
use crate::digest::Encoded;
use crate::event::Event;
use crate::movement::current_waypoint;
use crate::neighbours::Neighbours;
use crate::planning::standing_circle;
use crate::snapshot::{MapState, Sections};
use crate::space::Space;

/// Number of the rules by which this build steps a World (spec 5.5).
pub const RULESET: u32 = 1;

/// Characters in a location (spec 3.4).
pub const CHARACTERS_MAX: usize = 16_384;

/// A location at a tick. Nothing but [`World::step_into`] changes it.
///
/// The first group of fields is the state and goes into the snapshot (spec 5.4); everything else is derived from it and
/// rebuilt on load.
pub struct World {
    pub(crate) tick: u64,
    pub(crate) next_player_id: u32,
    pub(crate) application_hash: u64,
    /// In name order. A planner keeps its map's changes, also while another map is in use.
    pub(crate) maps: Vec<(Label, Box<dyn Planner>)>,
    pub(crate) current_map: usize,
    /// In id order.
    pub(crate) characters: Vec<Character>,

    pub(crate) definition: Definition,
    pub(crate) space: Space,
    /// Per character the circle that the planner in use has for it; from the characters (see `planning`).
    pub(crate) standing: Vec<Option<Circle>>,
    /// Per character the waypoint it walks to, if it has a path: from path and index. The paths themselves lie all over the
    /// heap, and most steps need no more of them than this.
    pub(crate) waypoints: Vec<Point>,
    /// From the characters; stale between a command that puts somebody elsewhere and its next use.
    pub(crate) neighbours: Neighbours,
    pub(crate) neighbours_stale: bool,
    /// Places that the Joins just before this one have found taken or unfit; 0 after any other command.
    pub(crate) places_tried: usize,
    /// A map, an area or an obstacle was changed in this step.
    pub(crate) map_changed: bool,
    /// Per character: this step changed the position.
    pub(crate) moved: Vec<bool>,
    /// Scratch of the planner.
    pub(crate) route: Route,
    pub(crate) counters: Counters,
    /// The state as bytes, and its digest.
    pub(crate) encoded: Encoded,
}

/// The phases of a step, for those who measure them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Commands.
    Commands,
    /// Retries, forced replans and talkers.
    Replans,
    /// Guard and motion.
    Movement,
    /// Persistent contact.
    Contact,
    /// Behaviours.
    Behaviours,
    /// Snapshot and digest.
    Digest,
}

/// What the last step did, for people and benchmarks; not part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Plans made.
    pub plans: u32,
    /// Nodes that they expanded.
    pub expanded: u64,
    /// Steps that the guard rejected.
    pub rejected_steps: u32,
    /// NPCs waiting for a retry after the step.
    pub waiting_npcs: u32,
}

/// Advances the World by one tick; see [`World::step_into`].
pub fn step(world: &mut World, commands: &[Command]) -> Vec<Event> {
    let mut events = Vec::new();
    world.step_into(commands, &mut events);
    events
}

impl World {
    /// The World of a definition before step 0.
    pub fn new(definition: &Definition) -> Self {
        let inner = definition.inner();
        let characters = inner.characters.iter();
        let mut world = Self::of_state(
            definition,
            characters
                .map(|(kind, spec)| Character::new(*kind, spec, 0))
                .collect(),
        );
        world.current_map = inner.start_map;
        world.rebuild();
        world
    }

    /// A World with these characters, on unchanged maps; derived data is not built yet.
    pub(crate) fn of_state(definition: &Definition, characters: Vec<Character>) -> Self {
        let maps = definition.inner().maps.iter();
        Self {
            tick: 0,
            next_player_id: 1,
            application_hash: 0,
            maps: maps.map(|map| (map.name.clone(), map.planner())).collect(),
            current_map: 0,
            characters,
            definition: definition.clone(),
            space: Space,
            standing: Vec::new(),
            waypoints: Vec::new(),
            neighbours: Neighbours::default(),
            neighbours_stale: true,
            places_tried: 0,
            map_changed: false,
            moved: Vec::new(),
            route: Route::default(),
            counters: Counters::default(),
            encoded: Encoded::default(),
        }
    }

    /// Builds everything that is derived from the state.
    pub(crate) fn rebuild(&mut self) {
        self.standing = vec![None; self.characters.len()];
        self.waypoints = self.characters.iter().map(current_waypoint).collect();
        for index in 0..self.characters.len() {
            self.sync_standing(index);
        }
        self.neighbours_stale = true;
        self.encoded.maps_changed();
        self.take_digest();
    }

    /// Advances the World by one tick: the commands in their order, then everything that happens by itself (spec 3.3).
    /// Appends what happened to `events`. A command that cannot apply changes nothing and yields `CommandRejected`.
    pub fn step_into(&mut self, commands: &[Command], events: &mut Vec<Event>) {
        self.step_watched(commands, events, &mut |_| {});
    }

    /// As [`World::step_into`]; `watch` is called at the end of each phase, since the World has no clock of its own.
    pub fn step_watched(
        &mut self,
        commands: &[Command],
        events: &mut Vec<Event>,
        watch: &mut impl FnMut(Phase),
    ) {
        self.counters = Counters::default();
        self.apply_commands(commands, events);
        watch(Phase::Commands);
        self.run_retries(events);
        self.replan_forced(events);
        self.follow_talk_targets(events);
        watch(Phase::Replans);
        self.move_characters(events);
        watch(Phase::Movement);
        self.end_persistent_contact();
        watch(Phase::Contact);
        self.run_behaviours(events);
        watch(Phase::Behaviours);
        self.note_who_moved();
        self.tick += 1;
        self.take_digest();
        watch(Phase::Digest);
    }

    /// Step 7: what counts as standing in the next tick.
    fn note_who_moved(&mut self) {
        for index in 0..self.characters.len() {
            let character = &mut self.characters[index];
            self.counters.waiting_npcs += u32::from(character.navigation_retry_remaining > 0);
            if character.moved_last_tick != self.moved[index] {
                character.moved_last_tick = self.moved[index];
                self.sync_standing(index);
            }
        }
    }

    /// The step that comes next; 0 before the first.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// What it was made from.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// XXH3-64 of the snapshot: after step t this is D_t (spec 4.1).
    pub fn digest(&self) -> u64 {
        self.encoded.digest()
    }

    /// The canonical bytes of the state (spec 5.4), as the last step left them.
    pub fn snapshot_bytes(&self) -> &[u8] {
        self.encoded.bytes()
    }

    /// A copy of the canonical bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        self.snapshot_bytes().to_vec()
    }

    /// Appends the canonical bytes.
    pub fn snapshot_into(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.snapshot_bytes());
    }

    /// Digests of the snapshot's parts.
    pub fn sections(&self) -> Sections {
        self.encoded.sections(&self.characters)
    }

    /// The id that the next player gets, if nobody else has it by then.
    pub fn next_player_id(&self) -> u32 {
        self.next_player_id
    }

    /// The running hash over all Application commands.
    pub fn application_hash(&self) -> u64 {
        self.application_hash
    }

    /// The character with this id.
    pub fn character(&self, id: CharacterId) -> Option<&Character> {
        self.index_of(id).map(|index| &self.characters[index])
    }

    /// All characters, in id order.
    pub fn characters(&self) -> &[Character] {
        &self.characters
    }

    /// The map in use and what has been changed on it.
    pub fn map_state(&self) -> MapState {
        let (name, planner) = &self.maps[self.current_map];
        MapState::new(name, planner.edits())
    }

    /// All maps with what has been changed on them, in name order.
    pub fn map_states(&self) -> impl Iterator<Item = MapState> {
        self.maps
            .iter()
            .map(|(name, planner)| MapState::new(name, planner.edits()))
    }

    /// Name of the map in use.
    pub fn map_name(&self) -> &str {
        &self.maps[self.current_map].0
    }

    /// What has been changed on the map in use, as the planner says it.
    pub fn map_edits(&self) -> MapEdits {
        self.planner().edits()
    }

    /// The planner of the map in use, for those who draw it or ask about ground.
    pub fn planner(&self) -> &dyn Planner {
        &*self.maps[self.current_map].1
    }

    pub(crate) fn planner_mut(&mut self) -> &mut dyn Planner {
        &mut *self.maps[self.current_map].1
    }

    /// What the last step did.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// For tests: compares the derived data, kept step by step, with what the state says it is.
    ///
    /// # Errors
    /// What differs.
    pub fn check_derived(&self) -> Result<(), String> {
        let standing = self.characters.iter().map(standing_circle);
        if !standing.eq(self.standing.iter().copied()) {
            return Err(format!("tick {}: standing obstacles", self.tick));
        }
        let walking = self.characters.iter().zip(&self.waypoints);
        let mut walking = walking.filter(|(character, _)| character.has_path());
        if walking.any(|(character, waypoint)| current_waypoint(character) != *waypoint) {
            return Err(format!("tick {}: current waypoints", self.tick));
        }
        let mut neighbours = Neighbours::default();
        neighbours.rebuild(&self.characters);
        if self.neighbours_stale || self.neighbours.contents() == neighbours.contents() {
            Ok(())
        } else {
            Err(format!("tick {}: neighbours", self.tick))
        }
    }

    /// Where the character with this id stands in `characters`.
    pub(crate) fn index_of(&self, id: CharacterId) -> Option<usize> {
        self.characters
            .binary_search_by_key(&id, |character| character.id)
            .ok()
    }

    /// The neighbours as the characters are now.
    pub(crate) fn refresh_neighbours(&mut self) {
        if std::mem::take(&mut self.neighbours_stale) {
            self.neighbours.rebuild(&self.characters);
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("definition", &self.definition)
            .field("tick", &self.tick)
            .field("digest", &self.digest())
            .finish_non_exhaustive()
    }
}
