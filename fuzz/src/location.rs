//! A location that is read begins a World that steps, and its bundle is the same location again.
//!
//! Input: the location file; behind a NUL each a map file for the paths that it names, in their order. Without one the maps
//! of the ruleset's location are there.

use nav::{MapFile, PlannerKind};
use protocol::Bundle;
use sim::{Definition, Sources, World, map_paths};

use super::map::is_small;

const NAME: &str = "location.json";
const TICKS: usize = 10;
/// A World of many is right and slow.
const CHARACTERS_MAX: usize = 64;
const MAPS_MAX: usize = 4;

/// See the module.
pub fn location(input: &[u8]) {
    let mut parts = input.split(|&byte| byte == 0);
    let location = parts.next().unwrap_or_default();
    let paths = match map_paths(NAME, location) {
        Ok(paths) => paths,
        Err(problems) => {
            assert!(!problems.to_string().is_empty());
            return;
        }
    };
    let given: Vec<&[u8]> = parts.collect();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (number, path) in paths.into_iter().take(MAPS_MAX).enumerate() {
        let bytes = match given.get(number) {
            Some(bytes) => bytes.to_vec(),
            None => known(&path).to_vec(),
        };
        let large = |kind| MapFile::parse_for(Some(kind), &path, &bytes).is_ok_and(|map| !is_small(&map));
        if PlannerKind::ALL.into_iter().any(large) {
            return;
        }
        files.push((path, bytes));
    }
    let definition = Definition::load(&Sources {
        location_file: NAME,
        location,
        tick_rate: None,
        bots: None,
        files: &files,
    });
    let definition = match definition {
        Ok(definition) => definition,
        Err(problems) => {
            assert!(!problems.to_string().is_empty());
            return;
        }
    };
    let bundle = Bundle::new(location.to_vec(), None, None, files).expect("few small files");
    let again = Bundle::unpack(&bundle.pack()).expect("what was packed");
    let again = again.definition(NAME).expect("the same location");
    if definition.characters().len() <= CHARACTERS_MAX {
        play(&definition, &again);
    }
}

/// Two Worlds of one location go the same way, and one of them can stop at every tick.
fn play(definition: &Definition, again: &Definition) {
    let (mut world, mut same) = (World::new(definition), World::new(again));
    for tick in 0..TICKS {
        assert_eq!(world.snapshot_bytes(), same.snapshot_bytes(), "tick {tick}");
        same = World::load(again, same.snapshot_bytes()).expect("its own snapshot");
        let events = sim::step(&mut world, &[]);
        assert_eq!(sim::step(&mut same, &[]), events, "tick {tick}");
    }
    assert_eq!(world.digest(), same.digest());
    assert_eq!(world.check_derived(), Ok(()));
}

/// The maps of the ruleset's location; any other `.json` is its yard.
fn known(path: &str) -> &'static [u8] {
    match path {
        "cellar.txt" => include_bytes!("../../sim/src/ruleset/cellar.txt"),
        "cellar.json" => include_bytes!("../../sim/src/ruleset/cellar.json"),
        _ => include_bytes!("../../sim/src/ruleset/yard.json"),
    }
}
