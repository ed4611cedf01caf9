//! Step 1: commands (spec 3.2). Each either applies or changes nothing at all and says why.

use nav::{EditError, Point};
use xxhash_rust::xxh3::xxh3_64;

use crate::character::{Character, CharacterId, Kind, OnArrived};
use crate::command::{Behaviour, CharacterSpec, Command, Outcome};
use crate::event::Event;
use crate::world::{CHARACTERS_MAX, World};

impl World {
    /// The commands of a turn, in its order.
    pub(crate) fn apply_commands(&mut self, commands: &[Command], events: &mut Vec<Event>) {
        self.places_tried = 0;
        for (index, command) in (0..).zip(commands) {
            if !matches!(command, Command::Join { .. }) {
                self.places_tried = 0;
            }
            if let Err(outcome) = self.apply(command, events) {
                events.push(Event::CommandRejected {
                    index,
                    code: outcome.code(),
                });
            }
        }
    }

    /// Applies one command; the error is the outcome of one that changed nothing.
    fn apply(&mut self, command: &Command, events: &mut Vec<Event>) -> Result<(), Outcome> {
        command.check_values().map_err(|error| error.outcome)?;
        match command {
            Command::MoveTo { character, x, z } => {
                let index = self.able(*character)?;
                self.set_target(index, Point::new(*x, *z), OnArrived::None, events);
                Ok(())
            }
            Command::Stop { character } => {
                let index = self.known(*character)?;
                self.characters[index].stop_in_place();
                Ok(())
            }
            Command::Talk { character, npc } => {
                let index = self.able(*character)?;
                let npc = self.partner(*character, *npc)?;
                self.set_talk_target(index, npc, events);
                Ok(())
            }
            Command::Join { name } => self.join(name, events),
            Command::Leave { character } | Command::Despawn { character } => self.remove(*character, events),
            Command::SpawnBot(spec) => self.spawn(Kind::Bot, spec),
            Command::SpawnNpc(spec) => self.spawn(Kind::Npc, spec),
            Command::SetEnabled { character, enabled } => {
                let index = self.known(*character)?;
                self.characters[index].enabled = *enabled;
                self.activity_changed(index);
                Ok(())
            }
            Command::SetAlive { character, alive } => {
                let index = self.known(*character)?;
                self.characters[index].alive = *alive;
                self.activity_changed(index);
                Ok(())
            }
            Command::Teleport { character, x, z } => {
                let index = self.known(*character)?;
                self.characters[index].position = Point::new(*x, *z);
                self.characters[index].stop_in_place();
                self.placed(index);
                Ok(())
            }
            Command::SetAreaAvailable { area, available } => {
                let changed = self.planner_mut().set_area_available(area, *available);
                self.edited(changed)
            }
            Command::AddObstacle { name, polygon } => {
                let added = self.planner_mut().add_obstacle(name, polygon);
                self.edited(added.map(|()| true))
            }
            Command::RemoveObstacle { name } => {
                let removed = self.planner_mut().remove_obstacle(name);
                self.edited(removed.map(|()| true))
            }
            Command::SwitchMap { map } => self.switch_map(map),
            Command::SetBehaviour { character, behaviour } => self.set_behaviour(*character, behaviour),
            Command::Application { character, payload } => {
                self.known(*character)?;
                self.application_hash = folded(self.application_hash, self.tick, *character, payload);
                events.push(Event::Application {
                    character: *character,
                    payload: payload.clone(),
                });
                Ok(())
            }
        }
    }

    fn known(&self, id: CharacterId) -> Result<usize, Outcome> {
        self.index_of(id).ok_or(Outcome::UnknownCharacter)
    }

    /// A character that can walk.
    fn able(&self, id: CharacterId) -> Result<usize, Outcome> {
        let index = self.known(id)?;
        if self.characters[index].is_active() {
            Ok(index)
        } else {
            Err(Outcome::NotAble)
        }
    }

    /// The NPC that somebody wants to talk to; a dead or disabled one does not talk.
    pub(crate) fn partner(&self, character: CharacterId, npc: CharacterId) -> Result<usize, Outcome> {
        let index = self.index_of(npc).ok_or(Outcome::UnknownNpc)?;
        let partner = &self.characters[index];
        if partner.kind != Kind::Npc || npc == character {
            Err(Outcome::UnknownNpc)
        } else if partner.is_active() {
            Ok(index)
        } else {
            Err(Outcome::NotAble)
        }
    }

    /// Leave and Despawn: no link to the one who left remains.
    fn remove(&mut self, id: CharacterId, events: &mut Vec<Event>) -> Result<(), Outcome> {
        let index = self.known(id)?;
        if let Some(circle) = self.standing.remove(index) {
            self.planner_mut().unblock(circle);
        }
        self.characters.remove(index);
        self.waypoints.remove(index);
        for character in &mut self.characters {
            if character.blocked_by == Some(id) {
                character.blocked_by = None;
            }
        }
        self.neighbours_stale = true;
        events.push(Event::Left { character: id });
        Ok(())
    }

    fn spawn(&mut self, kind: Kind, spec: &CharacterSpec) -> Result<(), Outcome> {
        if self.index_of(spec.id).is_some() {
            return Err(Outcome::IdInUse);
        }
        if self.characters.len() >= CHARACTERS_MAX {
            return Err(Outcome::NoRoom);
        }
        self.insert(Character::new(kind, spec, self.tick));
        Ok(())
    }

    /// Adds a character whose id is not in use.
    pub(crate) fn insert(&mut self, character: Character) {
        let index = self.characters.partition_point(|other| other.id < character.id);
        self.characters.insert(index, character);
        self.standing.insert(index, None);
        self.waypoints.insert(index, Point::default());
        self.placed(index);
    }

    /// After `alive` or `enabled` was set: who cannot walk stops.
    fn activity_changed(&mut self, index: usize) {
        if !self.characters[index].is_active() {
            self.characters[index].stop_in_place();
        }
        self.placed(index);
    }

    /// Somebody is elsewhere, or there at all, in another way than by walking.
    fn placed(&mut self, index: usize) {
        self.sync_standing(index);
        self.neighbours_stale = true;
    }

    /// After an edit of the map in use; `Ok(false)`: it was so already.
    fn edited(&mut self, changed: Result<bool, EditError>) -> Result<(), Outcome> {
        match changed {
            Ok(changed) => {
                if changed {
                    self.map_changed = true;
                    self.encoded.maps_changed();
                }
                Ok(())
            }
            Err(error) => Err(match error {
                EditError::UnknownArea => Outcome::UnknownArea,
                EditError::NoAreas => Outcome::NoAreas,
                EditError::UnknownObstacle => Outcome::UnknownObstacle,
                EditError::NameInUse => Outcome::NameInUse,
                EditError::BadPolygon => Outcome::BadPolygon,
                EditError::NoRoom => Outcome::NoRoom,
            }),
        }
    }

    fn switch_map(&mut self, name: &str) -> Result<(), Outcome> {
        let index = self
            .maps
            .binary_search_by(|(map, _)| map.as_str().cmp(name))
            .map_err(|_| Outcome::UnknownMap)?;
        if index != self.current_map {
            self.planner_mut().unblock_all();
            self.current_map = index;
            self.block_standing();
            self.map_changed = true;
            self.encoded.maps_changed();
        }
        Ok(())
    }

    /// A new behaviour starts from a stand: nothing of the old one's way is left.
    fn set_behaviour(&mut self, id: CharacterId, behaviour: &Behaviour) -> Result<(), Outcome> {
        let index = self.known(id)?;
        if self.characters[index].kind == Kind::Player {
            return Err(Outcome::NotAble);
        }
        let tick = self.tick;
        let character = &mut self.characters[index];
        character.stop_in_place();
        character.start_behaviour(behaviour.clone(), tick);
        Ok(())
    }
}

/// XXH3-64 of the hash so far, the tick, the character and the payload (spec 5.4).
fn folded(hash: u64, tick: u64, character: CharacterId, payload: &[u8]) -> u64 {
    let mut bytes = Vec::with_capacity(20 + payload.len());
    bytes.extend_from_slice(&hash.to_le_bytes());
    bytes.extend_from_slice(&tick.to_le_bytes());
    bytes.extend_from_slice(&character.0.to_le_bytes());
    bytes.extend_from_slice(payload);
    xxh3_64(&bytes)
}
