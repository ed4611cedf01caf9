//! Bytes are no snapshot, or are a World: the same bytes again, and one that can be stepped.
//!
//! Input: which location, then the snapshot. It has no checksum: that it is the one form of a state is what is checked.

use std::sync::LazyLock;

use nav::{Fixed, Point};
use sim::bounded::{List, Text};
use sim::{CharacterId, Command, Contents, Definition, Sources, World};

use super::input::Input;

/// Has all behaviours and two maps.
const LOCATION: &str = include_str!("../../sim/src/ruleset/location.json");
const TICKS: usize = 12;
/// Plans of long ways are right and slow; so many bytes hold a dozen characters.
const BYTES_MAX: usize = 8 * 1024;

/// The location on each planner.
pub(crate) static DEFINITIONS: LazyLock<[Definition; 2]> = LazyLock::new(|| {
    let on_polygons = LOCATION
        .replace("\"grid\"", "\"polygon\"")
        .replace("cellar.txt", "cellar.json");
    let files = [
        (
            "cellar.txt",
            include_bytes!("../../sim/src/ruleset/cellar.txt").as_slice(),
        ),
        ("cellar.json", include_bytes!("../../sim/src/ruleset/cellar.json")),
        ("yard.json", include_bytes!("../../sim/src/ruleset/yard.json")),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    [LOCATION, &on_polygons].map(|location| {
        Definition::load(&Sources {
            location_file: "location.json",
            location: location.as_bytes(),
            tick_rate: None,
            bots: None,
            files: &files,
        })
        .expect("a good location")
    })
});

/// See the module.
pub fn snapshot(input: &[u8]) {
    let mut input = Input::new(input);
    let definition = &DEFINITIONS[usize::from(input.byte() & 1)];
    let bytes = input.rest();
    if bytes.len() > BYTES_MAX {
        return;
    }
    let contents = Contents::decode(bytes);
    let Ok(mut world) = World::load(definition, bytes) else {
        return;
    };
    assert_eq!(world.snapshot(), bytes, "a state has one form");
    assert_eq!(world.check_derived(), Ok(()));
    let contents = contents.expect("what loads can be shown");
    assert_eq!(contents.clock.tick, world.tick());
    assert_eq!(contents.characters, world.characters());
    for tick in 0..TICKS {
        let commands = commands(tick, &world);
        let mut copy = World::load(definition, world.snapshot_bytes()).expect("its own snapshot");
        let events = sim::step(&mut world, &commands);
        assert_eq!(sim::step(&mut copy, &commands), events, "tick {tick}");
        assert_eq!(copy.digest(), world.digest(), "tick {tick}");
    }
    assert_eq!(world.check_derived(), Ok(()));
}

/// Something to do for whoever is there.
fn commands(tick: usize, world: &World) -> Vec<Command> {
    let first = world
        .characters()
        .first()
        .map_or(CharacterId(1), |character| character.id);
    let last = world
        .characters()
        .last()
        .map_or(CharacterId(1), |character| character.id);
    let (x, z) = (Fixed::from_int(12), Fixed::from_int(9));
    let square =
        [(9, 9), (10, 9), (10, 10), (9, 10)].map(|(x, z)| Point::new(Fixed::from_int(x), Fixed::from_int(z)));
    match tick {
        1 => vec![
            Command::Join {
                name: Text::cut("Ann"),
            },
            Command::MoveTo {
                character: first,
                x,
                z,
            },
        ],
        3 => vec![
            Command::AddObstacle {
                name: Text::cut("crate"),
                polygon: List::new(square.to_vec()).expect("four corners"),
            },
            Command::Talk {
                character: first,
                npc: last,
            },
        ],
        5 => vec![
            Command::SetAreaAvailable {
                area: Text::cut("north door"),
                available: false,
            },
            Command::Teleport {
                character: last,
                x,
                z,
            },
        ],
        7 => vec![
            Command::SwitchMap {
                map: Text::cut("cellar"),
            },
            Command::Leave { character: first },
        ],
        9 => vec![Command::SetAlive {
            character: last,
            alive: false,
        }],
        _ => Vec::new(),
    }
}
