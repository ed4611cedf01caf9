//! Making the Worlds of a journal again, from nothing but the journal.

use protocol::Bundle;
use sim::{Definition, Event, SnapshotError, Sources, World};

use super::record::{Keyframe, Record, Turn};

/// The definition that a journal was recorded on.
///
/// # Errors
/// Every problem that this release has with it.
pub(crate) fn definition(bundle: &Bundle) -> Result<Definition, nav::Problems> {
    Definition::load(&Sources {
        location_file: "the journal's location file",
        location: &bundle.location,
        tick_rate: bundle.tick_rate,
        bots: bundle.bots,
        files: &bundle.files,
    })
}

/// A keyframe and the turns behind it: enough to make the World after the last of them, and cheap to keep up with.
pub(crate) struct Since {
    keyframe: Keyframe,
    turns: Vec<Turn>,
}

impl Since {
    pub(crate) fn new(keyframe: Keyframe) -> Self {
        Self {
            keyframe,
            turns: Vec::new(),
        }
    }

    /// Takes in the record that follows.
    pub(crate) fn follow(&mut self, record: Record) {
        match record {
            Record::Keyframe(keyframe) => {
                self.keyframe = keyframe;
                self.turns.clear();
            }
            Record::Turn(turn) => self.turns.push(turn),
            _ => {}
        }
    }

    /// The last turn, if one has followed the keyframe.
    pub(crate) fn last_turn(&self) -> Option<&Turn> {
        self.turns.last()
    }

    /// The World behind the last record, and what its last step reported.
    ///
    /// # Errors
    /// The keyframe is no snapshot of this definition.
    pub(crate) fn world(&self, definition: &Definition) -> Result<(World, Vec<Event>), SnapshotError> {
        let mut world = World::load(definition, &self.keyframe.snapshot)?;
        let mut events = Vec::new();
        for turn in &self.turns {
            events.clear();
            world.step_into(&turn.commands, &mut events);
        }
        Ok((world, events))
    }
}
