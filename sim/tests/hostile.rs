//! Bad things from outside never panic: random commands of all kinds with hostile values, snapshots of random bytes and with
//! flipped bits, location and command files with mutations (spec 9).

mod cases;

use std::sync::LazyLock;

use cases::{Case, cases_on};
use nav::{Fixed, Point, WORLD_LIMIT};
use proptest::prelude::*;
use sim::bounded::{List, Text};
use sim::{
    Behaviour, CharacterId, CharacterSpec, Command, Definition, Event, PlannerKind, ScriptStep, Sources,
    Step, World, map_paths, parse_command_line, step,
};

const LOCATION: &str = include_str!("../src/ruleset/location.json");
const COMMANDS: &str = include_str!("../src/ruleset/commands.jsonl");

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| cases_on(PlannerKind::Grid));
/// The ruleset's location on every planner.
static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let on_polygons = LOCATION
        .replace("\"grid\"", "\"polygon\"")
        .replace("cellar.txt", "cellar.json");
    let locations = [LOCATION, &on_polygons];
    locations
        .map(|location| load(location.as_bytes()).expect("a good location"))
        .to_vec()
});

fn files() -> Vec<(String, Vec<u8>)> {
    vec![
        (
            "cellar.txt".to_owned(),
            include_bytes!("../src/ruleset/cellar.txt").to_vec(),
        ),
        (
            "cellar.json".to_owned(),
            include_bytes!("../src/ruleset/cellar.json").to_vec(),
        ),
        (
            "yard.json".to_owned(),
            include_bytes!("../src/ruleset/yard.json").to_vec(),
        ),
    ]
}

fn load(location: &[u8]) -> Result<Definition, nav::Problems> {
    Definition::load(&Sources {
        location_file: "location.json",
        location,
        tick_rate: None,
        bots: None,
        files: &files(),
    })
}

fn definition() -> Definition {
    DEFINITIONS[0].clone()
}

/// Ids that are there, and some that are not.
fn id() -> impl Strategy<Value = CharacterId> {
    prop_oneof![
        4 => (1u32..=4).prop_map(CharacterId),
        8 => (10u32..=33).prop_map(CharacterId),
        2 => (40u32..=60).prop_map(CharacterId),
        1 => prop_oneof![Just(0), Just(u32::MAX)].prop_map(CharacterId),
    ]
}

/// Coordinates of the map, of the world, and no coordinates at all.
fn number() -> impl Strategy<Value = Fixed> {
    let limit = WORLD_LIMIT.raw();
    prop_oneof![
        12 => (0i32..24 << 16).prop_map(Fixed::from_raw),
        1 => (-limit..=limit).prop_map(Fixed::from_raw),
        1 => prop_oneof![Just(limit), Just(-limit), Just(limit + 1), Just(i32::MIN), Just(i32::MAX), Just(0), Just(1)]
            .prop_map(Fixed::from_raw),
    ]
}

/// Speeds and radii, good and bad.
fn length() -> impl Strategy<Value = Fixed> {
    prop_oneof![
        6 => (1i32..3 << 16).prop_map(Fixed::from_raw),
        1 => any::<i32>().prop_map(Fixed::from_raw),
        1 => prop_oneof![Just(100 << 16), Just(1000 << 16), Just(0), Just(1), Just(-1)].prop_map(Fixed::from_raw),
    ]
}

fn ticks() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0u32..20, 1 => any::<u32>()]
}

fn point() -> impl Strategy<Value = Point> {
    (number(), number()).prop_map(|(x, z)| Point::new(x, z))
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    let step = prop_oneof![
        (number(), number()).prop_map(|(x, z)| Step::MoveTo { x, z }),
        Just(Step::Stop),
        id().prop_map(|npc| Step::Talk { npc }),
    ];
    let step = (ticks(), step).prop_map(|(after_ticks, step)| ScriptStep { after_ticks, step });
    prop_oneof![
        Just(Behaviour::Idle),
        (prop::collection::vec(point(), 0..4), ticks(), any::<bool>()).prop_map(
            |(points, wait_ticks, looped)| {
                Behaviour::Patrol {
                    points: List::new(points).expect("short"),
                    wait_ticks,
                    looped,
                }
            }
        ),
        (number(), number(), length(), ticks(), ticks()).prop_map(|(x, z, radius, pause_min, pause_max)| {
            Behaviour::Wander {
                x,
                z,
                radius,
                pause_min,
                pause_max,
            }
        }),
        (id(), length()).prop_map(|(character, distance)| Behaviour::Follow { character, distance }),
        prop::collection::vec(step, 0..4).prop_map(|steps| Behaviour::Script {
            steps: List::new(steps).expect("short"),
        }),
    ]
}

fn spec() -> impl Strategy<Value = CharacterSpec> {
    let cooldown = prop::option::of(prop::collection::vec(ticks(), 0..4));
    (
        (id(), ".{0,5}", number(), number()),
        (length(), length(), length(), length()),
        (
            cooldown,
            prop::bool::weighted(0.9),
            prop::bool::weighted(0.9),
            behaviour(),
        ),
    )
        .prop_map(
            |((id, name, x, z), lengths, (cooldown, enabled, alive, behaviour))| CharacterSpec {
                id,
                name: Text::cut(&name),
                x,
                z,
                speed_per_tick: lengths.0,
                rotation_per_tick: lengths.1,
                collision_radius: lengths.2,
                movement_contact_radius: lengths.3,
                cooldown_ticks: cooldown.map(|ticks| List::new(ticks).expect("short")),
                enabled,
                alive,
                behaviour,
            },
        )
}

fn label(names: &'static [&'static str]) -> impl Strategy<Value = Text<64>> {
    prop::sample::select(names).prop_map(Text::cut)
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        6 => (id(), number(), number()).prop_map(|(character, x, z)| Command::MoveTo { character, x, z }),
        1 => id().prop_map(|character| Command::Stop { character }),
        2 => (id(), id()).prop_map(|(character, npc)| Command::Talk { character, npc }),
        2 => ".{0,3}".prop_map(|name| Command::Join { name: Text::cut(&name) }),
        1 => id().prop_map(|character| Command::Leave { character }),
        1 => spec().prop_map(Command::SpawnBot),
        1 => spec().prop_map(Command::SpawnNpc),
        1 => id().prop_map(|character| Command::Despawn { character }),
        1 => (id(), any::<bool>()).prop_map(|(character, enabled)| Command::SetEnabled { character, enabled }),
        1 => (id(), any::<bool>()).prop_map(|(character, alive)| Command::SetAlive { character, alive }),
        2 => (id(), number(), number()).prop_map(|(character, x, z)| Command::Teleport { character, x, z }),
        1 => (label(&["hall", "garden", "north door", "south door", "", "attic"]), any::<bool>())
            .prop_map(|(area, available)| Command::SetAreaAvailable { area, available }),
        1 => (label(&["table", "a", "b", ""]), prop::collection::vec(point(), 0..6)).prop_map(|(name, polygon)| {
            Command::AddObstacle {
                name,
                polygon: List::new(polygon).expect("short"),
            }
        }),
        1 => label(&["table", "well", "a", "b", "c"]).prop_map(|name| Command::RemoveObstacle { name }),
        1 => label(&["yard", "cellar", "attic"]).prop_map(|map| Command::SwitchMap { map }),
        2 => (id(), behaviour())
            .prop_map(|(character, behaviour)| Command::SetBehaviour { character, behaviour }),
        1 => (id(), prop::collection::vec(any::<u8>(), 0..9)).prop_map(|(character, payload)| {
            Command::Application {
                character,
                payload: List::new(payload).expect("short"),
            }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever the commands: no panic, derived data stays what it is derived to be, every rejection is one of the codes
    /// and names its command, a snapshot steps on alike.
    #[test]
    fn commands_never_panic(turns in prop::collection::vec(prop::collection::vec(command(), 0..5), 1..40)) {
        for definition in DEFINITIONS.iter() {
            let mut world = World::new(definition);
            for turn in &turns {
                let mut copy = World::load(definition, world.snapshot_bytes())?;
                let events = step(&mut world, turn);
                prop_assert_eq!(&step(&mut copy, turn), &events);
                prop_assert_eq!(copy.digest(), world.digest());
                prop_assert_eq!(world.check_derived(), Ok(()));
                for event in events {
                    if let Event::CommandRejected { index, code } = event {
                        prop_assert!((index as usize) < turn.len() && (1..=12).contains(&code));
                    }
                }
            }
        }
    }

    /// A turn whose commands are all rejected leaves the World as an empty turn does.
    #[test]
    fn rejected_commands_change_nothing(
        before in prop::collection::vec(prop::collection::vec(command(), 0..5), 0..10),
        turn in prop::collection::vec(command(), 1..30),
    ) {
        for definition in DEFINITIONS.iter() {
            let mut world = World::new(definition);
            for turn in &before {
                step(&mut world, turn);
            }
            let copy = || World::load(definition, world.snapshot_bytes()).expect("its own snapshot");
            let mut empty = copy();
            step(&mut empty, &[]);
            for command in &turn {
                let mut one = copy();
                let events = step(&mut one, std::slice::from_ref(command));
                let rejected = events.iter().any(|event| matches!(event, Event::CommandRejected { .. }));
                if rejected {
                    prop_assert_eq!(one.digest(), empty.digest(), "{:?}", command);
                }
            }
        }
    }

    #[test]
    fn random_bytes_are_no_snapshot(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(World::load(&definition(), &bytes).is_err());
    }

    /// A snapshot with changed bytes is refused, or is another World that can be stepped.
    #[test]
    fn changed_snapshots_never_panic(
        case in 0usize..26,
        tick in 0u64..60,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let case = &CASES[case];
        let mut world = World::new(&case.definition);
        for tick in 0..tick {
            step(&mut world, &case.commands_at(tick));
        }
        let mut bytes = world.snapshot();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(mut loaded) = World::load(&case.definition, &bytes) {
            for tick in tick..tick + 30 {
                step(&mut loaded, &case.commands_at(tick));
                prop_assert_eq!(loaded.check_derived(), Ok(()));
            }
        }
    }

    #[test]
    fn mutated_location_files_never_panic(changes in mutations()) {
        let text = mutated(LOCATION.as_bytes(), &changes);
        let _ = map_paths("location.json", &text);
        if let Ok(definition) = load(&text) {
            let mut world = World::new(&definition);
            for _ in 0..20 {
                step(&mut world, &[]);
            }
        }
    }

    #[test]
    fn mutated_command_lines_never_panic(line in any::<prop::sample::Index>(), changes in mutations()) {
        let lines: Vec<&str> = COMMANDS.lines().collect();
        let text = mutated(lines[line.index(lines.len())].as_bytes(), &changes);
        if let Ok((_, command)) = parse_command_line("commands.jsonl", 1, &text, 10) {
            prop_assert_eq!(command.check(), Ok(()));
            step(&mut World::new(&definition()), &[command]);
        }
    }
}

/// Bytes replaced, removed or put in; mostly by what means something in JSON.
fn mutations() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    let byte = prop_oneof![3 => prop::sample::select(&b"0123456789-.eE\"[]{}:,nft"[..]), 1 => any::<u8>()];
    prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, byte), 1..5)
}

fn mutated(text: &[u8], changes: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    let mut text = text.to_vec();
    for (index, kind, byte) in changes {
        let at = index.index(text.len());
        match kind {
            0 => text[at] = *byte,
            1 => text.insert(at, *byte),
            _ => drop(text.remove(at)),
        }
    }
    text
}

/// A baked grid whose ground goes on past the world limit: the way round leads there, nobody does.
#[test]
fn ground_beyond_the_world_limit_is_not_walked_on() {
    let open = "1".repeat(40) + "\n";
    let wall = "0".repeat(16) + &"1".repeat(24) + "\n";
    let map = format!(
        "cellSize 1\nminX 15990\nminZ 15990\ngridWidth 40\ngridDepth 9\n{}{wall}{}",
        open.repeat(4),
        open.repeat(4),
    );
    let location = r#"{"name": "edge", "maps": {"m": "m.txt"},
        "npcs": [{"id": 1, "name": "N", "x": 15995, "z": 15991, "walkSpeed": 5}]}"#;
    let definition = Definition::load(&Sources {
        location_file: "edge.json",
        location: location.as_bytes(),
        tick_rate: None,
        bots: None,
        files: &[("m.txt".to_owned(), map.into_bytes())],
    })
    .expect("a good location");
    let mut world = World::new(&definition);
    let (character, x, z) = (CharacterId(1), Fixed::from_int(15_995), Fixed::from_int(15_997));
    step(&mut world, &[Command::MoveTo { character, x, z }]);
    assert!(!world.characters()[0].path_waypoints.is_empty());
    for _ in 0..60 {
        step(&mut world, &[]);
        World::load(&definition, world.snapshot_bytes()).expect("its own snapshot");
    }
}

#[test]
fn worlds_go_to_other_threads() {
    fn sent<T: Send>(_: T) {}
    sent(World::new(&definition()));
}
