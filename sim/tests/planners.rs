//! What holds on every planner: people who walk among each other never come to overlap, a run replayed is the same run, and
//! a snapshot taken at any time goes on like the World it was taken of.

mod cases;

use sim::{Character, Command, Definition, Event, PlannerKind, Sources, World, step};

const TICKS: u64 = 400;

/// Two rooms, two doors, a block in each, and people who wander, patrol and follow through all of it.
const MAP: &str = r#"{
  "agentRadius": 0.3, "objectPadding": 0.1,
  "areas": [
    {"name": "west", "polygon": [[0, 0], [12, 0], [12, 16], [0, 16]]},
    {"name": "east", "polygon": [[14, 0], [26, 0], [26, 16], [14, 16]]},
    {"name": "north door", "polygon": [[11, 3], [15, 3], [15, 5.5], [11, 5.5]]},
    {"name": "south door", "polygon": [[11, 11], [15, 11], [15, 13.5], [11, 13.5]]}
  ],
  "obstacles": [
    {"name": "west block", "polygon": [[4, 5], [7, 4], [8, 9], [5, 10]]},
    {"name": "east block", "polygon": [[18, 6], [21, 6], [21, 11], [19, 9], [18, 10]]}
  ]
}"#;

/// The same ground as one hall, with a block and a door in other places.
const OTHER_MAP: &str = r#"{
  "agentRadius": 0.3, "objectPadding": 0.1,
  "areas": [
    {"name": "hall", "polygon": [[0, 0], [26, 0], [26, 16], [0, 16]]},
    {"name": "porch", "available": false, "polygon": [[26, 6], [30, 6], [30, 10], [26, 10]]}
  ],
  "obstacles": [{"name": "block", "polygon": [[11, 6], [15, 6], [15, 10], [13, 8], [11, 10]]}]
}"#;

fn definition(planner: PlannerKind) -> Definition {
    let person = |id: u32, x: u32, z: u32| {
        let behaviour = match id % 3 {
            0 => r#"{"patrol": {"points": [[2, 2], [24, 14], [24, 2], [2, 14]], "waitTicks": 3}}"#.to_owned(),
            1 => r#"{"wander": {"x": 13, "z": 8, "radius": 12, "pauseTicks": [0, 6]}}"#.to_owned(),
            _ => format!(r#"{{"follow": {{"character": {}, "distance": 1}}}}"#, id - 1),
        };
        format!(r#"{{"id": {id}, "name": "P{id}", "x": {x}, "z": {z}, "behaviour": {behaviour}}}"#)
    };
    let npcs: Vec<String> = (0..18)
        .map(|n| person(100 + n, 1 + n % 2 * 2, 1 + n / 2 * 3 % 15))
        .collect();
    let bots: Vec<String> = (0..12)
        .map(|n| person(200 + n, 22 + n % 2 * 3, 1 + n / 2 * 2))
        .collect();
    let location = format!(
        r#"{{"name": "crowd", "planner": "{}", "maps": {{"m": "m.json", "n": "n.json"}}, "startMap": "m",
            "npcs": [{}], "bots": [{}]}}"#,
        planner.name(),
        npcs.join(", "),
        bots.join(", ")
    );
    Definition::load(&Sources {
        location_file: "location.json",
        location: location.as_bytes(),
        tick_rate: None,
        bots: None,
        files: &[
            ("m.json".to_owned(), MAP.as_bytes().to_vec()),
            ("n.json".to_owned(), OTHER_MAP.as_bytes().to_vec()),
        ],
    })
    .unwrap_or_else(|problems| panic!("{problems}"))
}

/// Doors that close and open, a cart that comes and goes, and another map for a while.
fn commands(tick: u64) -> Vec<Command> {
    let line = match tick {
        60 => r#"{"SetAreaAvailable": {"area": "north door", "available": false}}"#,
        120 => {
            r#"{"AddObstacle": {"name": "cart", "polygon": [[12.5, 11.5], [13.5, 11.5], [13.5, 12.5], [12.5, 12.5]]}}"#
        }
        180 => r#"{"SetAreaAvailable": {"area": "north door", "available": true}}"#,
        200 => r#"{"SwitchMap": {"map": "n"}}"#,
        220 => r#"{"SetAreaAvailable": {"area": "porch", "available": true}}"#,
        260 => r#"{"SwitchMap": {"map": "m"}}"#,
        300 => r#"{"RemoveObstacle": {"name": "cart"}}"#,
        310 => r#"{"SwitchMap": {"map": "n"}}"#,
        _ => return Vec::new(),
    };
    let line = format!(r#"{{"tick": {tick}, "command": {line}}}"#);
    let parsed = sim::parse_command_line("commands", 1, line.as_bytes(), 10);
    vec![parsed.unwrap_or_else(|problems| panic!("{problems}")).1]
}

fn overlap(one: &Character, other: &Character) -> bool {
    let reach = one.movement_contact_radius.wide() + other.movement_contact_radius.wide();
    one.position.squared_distance(other.position) < reach * reach
}

#[test]
fn nobody_walks_into_anybody() {
    for planner in PlannerKind::ALL {
        let mut world = World::new(&definition(planner));
        let mut moved = 0;
        for tick in 0..TICKS {
            let before = world.characters().to_vec();
            step(&mut world, &commands(tick));
            let after = world.characters();
            for (index, one) in after.iter().enumerate() {
                moved += u64::from(one.moved_last_tick);
                for (other, known) in after[..index].iter().zip(&before) {
                    assert!(
                        !overlap(one, other) || overlap(&before[index], known),
                        "{}, tick {tick}: {} and {} overlap",
                        planner.name(),
                        one.id.0,
                        other.id.0
                    );
                }
            }
        }
        assert!(moved > 2_000, "{}: only {moved} steps", planner.name());
    }
}

#[test]
fn a_replay_is_the_same_run_from_any_snapshot_on() {
    for planner in PlannerKind::ALL {
        let definition = definition(planner);
        let mut world = World::new(&definition);
        let mut snapshots = Vec::new();
        let mut digests = Vec::new();
        for tick in 0..TICKS {
            if tick % 50 == 0 {
                snapshots.push(world.snapshot());
            }
            let events = step(&mut world, &commands(tick));
            let mut events = events.iter();
            assert!(
                !events.any(|event| matches!(event, Event::CommandRejected { .. })),
                "{}, tick {tick}",
                planner.name()
            );
            digests.push(world.digest());
        }
        for (index, snapshot) in snapshots.iter().enumerate() {
            let mut copy = World::load(&definition, snapshot).expect("its own snapshot");
            for tick in index as u64 * 50..TICKS {
                step(&mut copy, &commands(tick));
                assert_eq!(
                    copy.digest(),
                    digests[tick as usize],
                    "{}, tick {tick}",
                    planner.name()
                );
            }
        }
    }
}

/// The reference cases take the same commands on every planner that reads their maps; there, too, nobody comes to overlap
/// but by a command.
#[test]
fn reference_cases_keep_people_apart() {
    for planner in PlannerKind::ALL {
        let cases = cases::cases_on(planner);
        assert!(
            cases.len() >= 20,
            "{}: only {} cases",
            planner.name(),
            cases.len()
        );
        for case in &cases {
            let mut world = World::new(&case.definition);
            for tick in 0..case.ticks {
                let before = world.characters().to_vec();
                let commands = case.commands_at(tick);
                step(&mut world, &commands);
                if !commands.is_empty() {
                    continue;
                }
                let after = world.characters();
                assert_eq!(after.len(), before.len(), "{}", case.name);
                for (index, one) in after.iter().enumerate() {
                    for (other, known) in after[..index].iter().zip(&before) {
                        let is_new = overlap(one, other) && !overlap(&before[index], known);
                        assert!(
                            !is_new || !one.alive || !other.alive || !one.enabled || !other.enabled,
                            "{} on {}, tick {tick}: {} and {} overlap",
                            case.name,
                            planner.name(),
                            one.id.0,
                            other.id.0
                        );
                    }
                }
            }
            assert!(
                world
                    .characters()
                    .iter()
                    .all(|character| character.path_waypoints.len() <= 4_096)
            );
        }
    }
}

/// A character plans on the graph of its own radius.
#[test]
fn radius_classes_are_the_characters() {
    let map = r#"{"planner": "polygon", "inset": [0.3, 1],
        "areas": [{"name": "ground", "polygon": [[0, 0], [10, 0], [10, 10], [0, 10]]}],
        "obstacles": [{"name": "box", "polygon": [[4, 4], [6, 4], [6, 6], [4, 6]]}]}"#;
    let location = r#"{"name": "classes", "planner": "polygon", "maps": {"m": "m.json"}, "bots": [
        {"id": 1, "name": "Thin", "x": 2, "z": 4.5, "navigationAvoidanceRadius": 0.3, "movementContactRadius": 0},
        {"id": 2, "name": "Thick", "x": 2, "z": 4.5, "navigationAvoidanceRadius": 0.31, "movementContactRadius": 0}]}"#;
    let definition = Definition::load(&Sources {
        location_file: "location.json",
        location: location.as_bytes(),
        tick_rate: None,
        bots: None,
        files: &[("m.json".to_owned(), map.as_bytes().to_vec())],
    })
    .unwrap_or_else(|problems| panic!("{problems}"));
    let mut world = World::new(&definition);
    let go = |id: u32| {
        let line =
            format!(r#"{{"tick": 0, "command": {{"MoveTo": {{"character": {id}, "x": 8, "z": 4.5}}}}}}"#);
        sim::parse_command_line("commands", 1, line.as_bytes(), 10)
            .expect("a command")
            .1
    };
    // The other one must not stand in the way.
    step(
        &mut world,
        &[
            Command::SetEnabled {
                character: sim::CharacterId(2),
                enabled: false,
            },
            go(1),
        ],
    );
    let thin = world.characters()[0].path_waypoints[0];
    step(
        &mut world,
        &[
            Command::SetEnabled {
                character: sim::CharacterId(1),
                enabled: false,
            },
            Command::SetEnabled {
                character: sim::CharacterId(2),
                enabled: true,
            },
            go(2),
        ],
    );
    let thick = world.characters()[1].path_waypoints[0];
    // The box begins at 4; the corner is pushed by the inset along the diagonal.
    assert_eq!(
        (thin.z.to_string(), thick.z.to_string()),
        ("3.78787".to_owned(), "3.29291".to_owned())
    );
}
