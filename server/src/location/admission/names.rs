//! The names that NPCs and bots of the World have: looked up for everybody who comes in, made anew only when they have changed.

use std::collections::BTreeSet;

use sim::{Command, Kind, World};

use crate::location::roster::folded;

/// Their names, folded; `None`: not known as they are now.
#[derive(Debug, Default)]
pub(in crate::location) struct Names(Option<BTreeSet<String>>);

impl Names {
    /// A turn has run with these commands.
    pub(in crate::location) fn turn_ran(&mut self, commands: &[Command]) {
        let changes = |command: &Command| {
            matches!(
                command,
                Command::SpawnBot(_) | Command::SpawnNpc(_) | Command::Despawn { .. }
            )
        };
        if commands.iter().any(changes) {
            self.0 = None;
        }
    }

    /// Whether one of them has this name; players' are the sessions'.
    pub(super) fn contain(&mut self, name: &str, world: &World) -> bool {
        let names = self.0.get_or_insert_with(|| {
            let characters = world.characters().iter();
            let others = characters.filter(|character| character.kind != Kind::Player);
            others.map(|character| folded(&character.name)).collect()
        });
        !name.is_empty() && names.contains(&folded(name))
    }
}
