//! A small location, and a World that plays the server's.

pub(crate) mod server;

use protocol::message::{Part, ServerMessage, Turn, Welcome};
use protocol::{Blob, Bundle};
use sim::bounded::{List, Text};
use sim::{CharacterId, Command, Definition, World, ruleset_hash};

/// Bytes of a part, so small that everything has several.
const PART_BYTES: usize = 60;

const LOCATION: &str = r#"{
    "name": "yard", "tickRate": 20, "maps": {"day": "yard.json"}, "startMap": "day",
    "spawns": [{"x": 2, "z": 2}, {"x": 8, "z": 8}],
    "npcs": [{"id": 100, "name": "Guard", "x": 5, "z": 5, "behaviour": {"wander": {"x": 5, "z": 5, "radius": 3, "pauseTicks": [1, 3]}}}]
}"#;
const MAP: &str =
    r#"{"areas": [{"name": "ground", "polygon": [[0, 0], [10, 0], [10, 10], [0, 10]]}], "obstacles": []}"#;

/// The server's side of a location.
pub(crate) struct Authority {
    pub(crate) bundle: Bundle,
    pub(crate) definition: Definition,
    pub(crate) world: World,
}

impl Authority {
    /// At tick 0.
    pub(crate) fn new() -> Self {
        let files = vec![("yard.json".to_owned(), MAP.as_bytes().to_vec())];
        let bundle = Bundle::new(LOCATION.as_bytes().to_vec(), None, None, files).expect("small");
        let definition = bundle.definition("yard").expect("a good location");
        let world = World::new(&definition);
        Self {
            bundle,
            definition,
            world,
        }
    }

    /// At tick 3, with one player, whose id is 1.
    pub(crate) fn with_player() -> Self {
        let mut authority = Self::new();
        authority.turn(vec![Command::Join {
            name: Text::cut("Ann"),
        }]);
        authority.turn(vec![]);
        authority.turn(vec![]);
        authority
    }

    /// Runs a turn.
    pub(crate) fn turn(&mut self, commands: Vec<Command>) -> Turn {
        let tick = self.world.tick();
        sim::step(&mut self.world, &commands);
        Turn {
            tick,
            commands: List::new(commands).expect("few"),
            digest: self.world.digest(),
        }
    }

    /// For session 7 with character 1.
    pub(crate) fn welcome(&self) -> Welcome {
        Welcome {
            version: protocol::VERSION,
            features: 0,
            run: [1; 16],
            session: 7,
            token: [2; 16],
            characters: List::new(vec![CharacterId(1)]).expect("one"),
            next_tick: self.world.tick(),
            tick_rate: self.definition.tick_rate(),
            ruleset: sim::RULESET,
            ruleset_hash: ruleset_hash(self.definition.planner()),
            definition: self.bundle.hash(),
            grace_ms: 30_000,
            last_sequence: 0,
        }
    }

    pub(crate) fn definition_parts(&self) -> Vec<(u32, u32, Part)> {
        parts(&self.bundle.encode())
    }

    /// Of the World as it is now.
    pub(crate) fn snapshot_parts(&self) -> Vec<(u32, u32, Part)> {
        parts(&self.world.snapshot())
    }

    pub(crate) fn definition_messages(&self) -> Vec<ServerMessage> {
        let message = |(part, parts, bytes)| ServerMessage::Definition { part, parts, bytes };
        self.definition_parts().into_iter().map(message).collect()
    }

    pub(crate) fn snapshot_messages(&self) -> Vec<ServerMessage> {
        let tick = self.world.tick();
        let message = |(part, parts, bytes)| ServerMessage::Snapshot {
            tick,
            part,
            parts,
            bytes,
        };
        self.snapshot_parts().into_iter().map(message).collect()
    }
}

fn parts(bytes: &[u8]) -> Vec<(u32, u32, Part)> {
    let chunks: Vec<&[u8]> = bytes.chunks(PART_BYTES).collect();
    let count = chunks.len() as u32;
    let part =
        |(index, chunk): (usize, &[u8])| (index as u32, count, Blob::new(chunk.to_vec()).expect("small"));
    chunks.into_iter().enumerate().map(part).collect()
}
