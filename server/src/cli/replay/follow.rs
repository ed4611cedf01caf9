//! The World of a journal while its records are read, stepped no more than what is asked of it needs.

use sim::{Definition, Event, World};

use super::verify::load;
use crate::journal::record::{Keyframe, Record, Turn};

/// Reads along; the World is made when somebody looks at it.
pub(super) struct Follower<'a> {
    definition: &'a Definition,
    keyframe: Keyframe,
    /// Turns that the World has not run.
    waiting: Vec<Turn>,
    world: Option<World>,
    events: Vec<Event>,
    /// The first tick of those stepped whose digest is not the recorded one.
    pub(super) parted: Option<u64>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(definition: &'a Definition, keyframe: Keyframe) -> Self {
        Self {
            definition,
            keyframe,
            waiting: Vec::new(),
            world: None,
            events: Vec::new(),
            parted: None,
        }
    }

    /// Takes the record that follows. A keyframe makes the turns before it needless, unless they have been run already.
    pub(super) fn follow(&mut self, record: Record) {
        match record {
            Record::Keyframe(keyframe) if self.world.is_none() || !self.waiting.is_empty() => {
                self.keyframe = keyframe;
                self.waiting.clear();
                self.world = None;
            }
            Record::Turn(turn) => self.waiting.push(turn),
            _ => {}
        }
    }

    /// The World behind the last record, and what its last step reported.
    ///
    /// # Errors
    /// The keyframe is no snapshot of the definition.
    pub(super) fn world(&mut self) -> anyhow::Result<(&mut World, &[Event])> {
        let world = match self.world.take() {
            Some(world) => world,
            None => load(self.definition, &self.keyframe)?,
        };
        let world = self.world.insert(world);
        for turn in self.waiting.drain(..) {
            self.events.clear();
            world.step_into(&turn.commands, &mut self.events);
            if self.parted.is_none() && world.digest() != turn.digest {
                self.parted = Some(turn.tick);
            }
        }
        Ok((world, &self.events))
    }
}
