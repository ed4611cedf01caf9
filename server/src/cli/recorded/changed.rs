//! Recordings of the demo in which a test changes one character: what no command does.

use std::path::{Path, PathBuf};

use protocol::{Bundle, wire};
use sim::{Character, CharacterId, Contents, Definition, World};
use tempfile::TempDir;

use crate::journal::offline::Recorder;
use crate::location_files::LocationFiles;

/// Who is changed.
pub(crate) const CHANGED: CharacterId = CharacterId(201);
pub(crate) fn definition() -> (Bundle, Definition) {
    let files = LocationFiles::demo();
    let definition = files.definition(None, None).expect("the demo is valid");
    let bundle = Bundle::new(files.location, None, None, files.maps).expect("the demo is small");
    (bundle, definition)
}

/// The demo before step `tick`.
pub(crate) fn world_at(definition: &Definition, tick: u64) -> World {
    let mut world = World::new(definition);
    while world.tick() < tick {
        sim::step(&mut world, &[]);
    }
    world
}

/// The World with one character changed.
pub(crate) fn changed(world: &World, change: impl FnOnce(&mut Character)) -> World {
    let snapshot = world.snapshot();
    let contents = Contents::decode(&snapshot).expect("a snapshot");
    let before = contents
        .characters
        .iter()
        .find(|character| character.id == CHANGED);
    let before = before.expect("a bot of the demo");
    let mut after = before.clone();
    change(&mut after);
    let (old, new) = (wire::encode(before), wire::encode(&after));
    let at = snapshot.windows(old.len()).position(|bytes| bytes == old);
    let at = at.expect("its bytes are in the snapshot");
    let bytes = [&snapshot[..at], &new, &snapshot[at + old.len()..]].concat();
    World::load(world.definition(), &bytes).expect("still a snapshot")
}

/// Records up to tick `end`; after step `at` the World is what `change` makes of it.
pub(crate) fn record(
    path: &Path,
    bundle: &Bundle,
    mut world: World,
    end: u64,
    at: u64,
    change: impl Fn(&World) -> World,
) {
    let mut recorder = Recorder::branch(path, bundle, &world, "test").expect("a new file");
    while world.tick() < end {
        recorder
            .step(&mut world, Vec::new(), &mut Vec::new())
            .expect("writable");
        if at.checked_add(1) == Some(world.tick()) {
            world = change(&world);
        }
    }
    recorder.close(&world).expect("writable");
}

pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.lsj"))
    }
}

pub(crate) fn files() -> Files {
    Files {
        folder: tempfile::tempdir().expect("a folder"),
    }
}
