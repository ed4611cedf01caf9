//! The World and its one way forward, `step`.

use nav::Planner;

use crate::character::{Character, CharacterId};
use crate::command::{Command, Label};
use crate::definition::Definition;
use crate::event::Event;
use crate::snapshot::{MapState, Sections, SnapshotError};

/// Number of the rules by which this build steps a World (spec 5.5).
pub const RULESET: u32 = 1;

/// Characters in a location (spec 3.4).
pub const CHARACTERS_MAX: usize = 16_384;

/// A location at a tick. Nothing but [`step`] changes it.
pub struct World {
    definition: Definition,
    tick: u64,
    maps: Vec<(Label, Box<dyn Planner>)>,
    characters: Vec<Character>,
    digest: u64,
    encoded: Vec<u8>,
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
        let maps = definition.inner().maps.iter();
        Self {
            definition: definition.clone(),
            tick: 0,
            maps: maps.map(|map| (map.name.clone(), (map.make_planner)())).collect(),
            characters: Vec::new(),
            digest: 0,
            encoded: Vec::new(),
        }
    }

    /// The World that a snapshot of this definition describes; all derived data is rebuilt.
    ///
    /// # Errors
    /// The bytes are no such snapshot.
    pub fn load(definition: &Definition, bytes: &[u8]) -> Result<Self, SnapshotError> {
        let _ = (definition, bytes);
        Err(SnapshotError::NotCanonical)
    }

    /// Advances the World by one tick: the commands in their order, then everything that happens by itself (spec 3.3).
    /// Appends what happened to `events`.
    pub fn step_into(&mut self, commands: &[Command], events: &mut Vec<Event>) {
        self.step_watched(commands, events, &mut |_| {});
    }

    /// As [`World::step_into`]; `watch` is called at the end of each phase (the World has no clock of its own).
    pub fn step_watched(
        &mut self,
        commands: &[Command],
        events: &mut Vec<Event>,
        watch: &mut impl FnMut(Phase),
    ) {
        let _ = (commands, events);
        self.tick += 1;
        watch(Phase::Digest);
    }

    /// The step that comes next; 0 before the first.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// What it was made from.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// XXH3-64 of the snapshot: after step t this is D_t.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The canonical bytes (spec 5.4).
    pub fn snapshot(&self) -> Vec<u8> {
        self.encoded.clone()
    }

    /// Appends the canonical bytes.
    pub fn snapshot_into(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.encoded);
    }

    /// Digests of the snapshot's parts.
    pub fn sections(&self) -> Sections {
        Sections::default()
    }

    /// The character with this id.
    pub fn character(&self, id: CharacterId) -> Option<&Character> {
        let index = self
            .characters
            .binary_search_by_key(&id, |character| character.id);
        index.ok().map(|index| &self.characters[index])
    }

    /// All characters, in id order.
    pub fn characters(&self) -> &[Character] {
        &self.characters
    }

    /// The map in use and what has been changed on it.
    pub fn map_state(&self) -> MapState {
        MapState::default()
    }

    /// Name of the map in use.
    pub fn map_name(&self) -> &str {
        &self.maps[0].0
    }

    /// The planner of the map in use, for those who draw it or ask about ground.
    pub fn planner(&self) -> &dyn Planner {
        &*self.maps[0].1
    }

    /// What the last step did.
    pub fn counters(&self) -> Counters {
        Counters::default()
    }
}
