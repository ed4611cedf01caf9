//! Location and command files: what is read, and that every mistake is named with its place and rule.

use nav::{Fixed, Point};
use sim::bounded::{List, Text};
use sim::{
    Behaviour, CharacterId, CharacterSpec, Command, Definition, Kind, ScriptStep, Sources, Step, World,
    map_paths, parse_command_line, step,
};

const MAP: &str = r#"{"areas": [{"name": "a", "polygon": [[0, 0], [20, 0], [20, 20], [0, 20]]}]}"#;

fn load(location: &str, bots: Option<u32>) -> Result<Definition, String> {
    Definition::load(&Sources {
        location_file: "l.json",
        location: location.as_bytes(),
        tick_rate: None,
        bots,
        files: &[("m.json".to_owned(), MAP.as_bytes().to_vec())],
    })
    .map_err(|problems| problems.to_string())
}

/// A location with these further members, and all its problems.
fn check(members: &str, expected: &[&str]) {
    let location = format!(r#"{{"name": "l", "maps": {{"m": "m.json"}}, {members}}}"#);
    let found = load(&location, None)
        .map(|_| String::new())
        .unwrap_or_else(|problems| problems);
    let expected: Vec<String> = expected
        .iter()
        .map(|problem| format!("l.json: {problem}"))
        .collect();
    assert_eq!(found, expected.join("\n"), "{members}");
}

fn check_npc(members: &str, expected: &[&str]) {
    check(
        &format!(r#""npcs": [{{"id": 5, "name": "N", "x": 1, "z": 2, {members}}}]"#),
        expected,
    );
}

fn metres(value: f64) -> Fixed {
    Fixed::from_f64(value).expect("in the world")
}

#[test]
fn locations_have_their_problems_named() {
    check(r#""startMap": "m""#, &[]);
    check(r#""tickRate": 0"#, &["$.tickRate: outside 1 to 128"]);
    check(r#""tickRate": 129"#, &["$.tickRate: outside 1 to 128"]);
    check(
        r#""tickrate": 10"#,
        &["$.tickrate: unknown key (did you mean tickRate)"],
    );
    check(
        r#""planner": "gird""#,
        &["$.planner: not one of grid, polygon (did you mean grid)"],
    );
    check(r#""startMap": "n""#, &["$.startMap: not one of m"]);
    check(r#""spawns": [{"x": 1}]"#, &["$.spawns[0].z: missing"]);
    check(
        r#""spawns": [{"x": 1, "z": 16001}, {"x": "1", "z": 0}]"#,
        &[
            "$.spawns[0].z: outside the world limit of 16000 m",
            "$.spawns[1].x: not a number",
        ],
    );
    check(
        r#""npcs": [{"id": 5, "name": "N", "x": 1, "z": 2}], "bots": [{"id": 5, "name": "B", "x": 1, "z": 2}]"#,
        &["$.bots[0]: id 5 is taken by $.npcs[0]"],
    );
    check(
        r#""npcs": [{"id": 0, "name": "", "x": 1}]"#,
        &[
            "$.npcs[0].id: outside 1 to 4294967295",
            "$.npcs[0].name: empty name",
            "$.npcs[0].z: missing",
        ],
    );
    let bad = [
        (
            r#"{"name": "a b", "maps": {"m": "m.json"}}"#,
            "$.name: not only letters",
        ),
        (r#"{"name": "l"}"#, "$.maps: missing"),
        (r#"{"name": "l", "maps": {}}"#, "$.maps: not 1 to 64 maps"),
        ("\u{feff}{}", "line 1: a byte order mark before the text"),
        (
            r#"{"name": "l", "maps": {"m": "../m.json"}}"#,
            "$.maps.m: not a relative path",
        ),
        (
            r#"{"name": "l", "maps": {"m": "/m.json"}}"#,
            "$.maps.m: not a relative path",
        ),
        (
            r#"{"name": "l", "maps": {"m": "a\\m.json"}}"#,
            "$.maps.m: not a relative path",
        ),
        (
            r#"{"name": "l", "maps": {"m": "m.png"}}"#,
            "$.maps.m: ends in neither",
        ),
        (
            r#"{"name": "l", "maps": {"m": "n.json"}}"#,
            "$.maps.m: n.json is not there",
        ),
        (
            r#"{"name": "l", "maps": {"m": "m.json", "n": "m.json"}}"#,
            "$.startMap: missing",
        ),
    ];
    for (location, expected) in bad {
        let problems = load(location, None).expect_err(location);
        assert!(problems.contains(expected), "{location}: {problems}");
    }
    // What follows from a problem is not another one.
    let problems = load(r#"{"name": "l", "maps": {}, "startMap": "m"}"#, None).expect_err("no map");
    assert_eq!(problems, "l.json: $.maps: not 1 to 64 maps");
}

#[test]
fn characters_have_their_problems_named() {
    check_npc(r#""alive": true"#, &[]);
    check_npc(
        r#""walkspeed": 1"#,
        &["$.npcs[0].walkspeed: unknown key (did you mean walkSpeed)"],
    );
    let speed = "not above 0 (and not 0 in a tick) and at most 1000 a tick";
    check_npc(r#""walkSpeed": 0"#, &[&format!("$.npcs[0].walkSpeed: {speed}")]);
    check_npc(
        r#""walkSpeed": -1.4"#,
        &[&format!("$.npcs[0].walkSpeed: {speed}")],
    );
    check_npc(
        r#""walkSpeed": 0.00001"#,
        &[&format!("$.npcs[0].walkSpeed: {speed}")],
    );
    check_npc(
        r#""walkSpeed": 10001"#,
        &[&format!("$.npcs[0].walkSpeed: {speed}")],
    );
    check_npc(
        r#""rotationSpeed": 1e300"#,
        &[&format!("$.npcs[0].rotationSpeed: {speed}")],
    );
    check_npc(
        r#""navigationAvoidanceRadius": -0.1"#,
        &["$.npcs[0].navigationAvoidanceRadius: outside 0 to 100"],
    );
    check_npc(
        r#""navigationRetryCooldownTicks": []"#,
        &["$.npcs[0].navigationRetryCooldownTicks: not 1 to 64 values"],
    );
    check_npc(
        r#""navigationRetryCooldownTicks": [1, 2.5]"#,
        &["$.npcs[0].navigationRetryCooldownTicks[1]: not a whole number"],
    );
    check_npc(
        r#""navigationRetryCooldownTicks": [1], "navigationRetryCooldownMs": [100]"#,
        &["$.npcs[0].navigationRetryCooldownMs: beside navigationRetryCooldownTicks: only one of them"],
    );
    check_npc(
        r#""behaviour": "patrol""#,
        &[
            r#"$.npcs[0].behaviour: not "idle" nor {"patrol" | "wander" | "follow" | "script": …} (did you mean patrol)"#,
        ],
    );
    check_npc(
        r#""behaviour": {"patrol": {"points": [[1, 2]]}}"#,
        &["$.npcs[0].behaviour.patrol.waitTicks: a single point needs at least 1"],
    );
    check_npc(
        r#""behaviour": {"patrol": {"points": []}}"#,
        &["$.npcs[0].behaviour.patrol.points: no point"],
    );
    check_npc(
        r#""behaviour": {"wander": {"x": 1, "z": 1, "radius": 2, "pauseTicks": [3, 1]}}"#,
        &["$.npcs[0].behaviour.wander.pauseTicks: the least is more than the most"],
    );
    check_npc(
        r#""behaviour": {"wander": {"x": 1, "z": 1, "radius": -2, "pauseTicks": [3]}}"#,
        &[
            "$.npcs[0].behaviour.wander.radius: outside 0 to 16000",
            "$.npcs[0].behaviour.wander.pauseTicks: not a [least, most] pair",
        ],
    );
    check_npc(
        r#""behaviour": {"follow": {"character": 5, "distance": 2}}"#,
        &["$.npcs[0].behaviour.follow.character: nobody follows themselves"],
    );
    check_npc(
        r#""behaviour": {"script": [{"afterTicks": 5, "step": "Stop"}, {"afterTicks": 4, "step": "Stop"}]}"#,
        &["$.npcs[0].behaviour.script[1].afterTicks: before the step above"],
    );
    check_npc(
        r#""behaviour": {"script": [{"afterTicks": 5, "step": {"Moveto": {"x": 1, "z": 1}}}]}"#,
        &[
            r#"$.npcs[0].behaviour.script[0].step: not {"MoveTo": …}, "Stop" or {"Talk": …} (did you mean MoveTo)"#,
        ],
    );
}

#[test]
fn characters_become_what_the_file_says() {
    let location = r#"{"name": "l", "tickRate": 20, "maps": {"m": "m.json"},
        "npcs": [{"id": 9, "name": "N", "x": 1.5, "z": -2, "walkSpeed": 2, "rotationSpeed": 5, "enabled": false,
                  "navigationAvoidanceRadius": 0.5, "movementContactRadius": 0.25, "navigationRetryCooldownMs": [100, 125]}],
        "bots": [{"id": 3, "name": "B", "x": 4, "z": 4, "alive": false}]}"#;
    let definition = load(location, None).expect("a good location");
    assert_eq!(definition.tick_rate(), 20);
    let characters = definition.characters();
    let (kind, bot) = &characters[0];
    assert_eq!((*kind, bot.id, bot.alive), (Kind::Bot, CharacterId(3), false));
    assert_eq!(bot.speed_per_tick.raw(), 4588);
    assert_eq!(bot.collision_radius, sim::COLLISION_RADIUS);
    let (kind, npc) = &characters[1];
    assert_eq!((*kind, npc.id, npc.enabled), (Kind::Npc, CharacterId(9), false));
    assert_eq!(npc.speed_per_tick, metres(0.1));
    assert_eq!(npc.rotation_per_tick, metres(0.25));
    assert_eq!(npc.collision_radius, metres(0.5));
    assert_eq!(npc.movement_contact_radius, metres(0.25));
    let ticks = npc.cooldown_ticks.as_ref().expect("given");
    assert_eq!(ticks[..], [2, 3]);
}

#[test]
fn bots_as_many_as_wanted() {
    let location = r#"{"name": "l", "maps": {"m": "m.json"}, "spawns": [{"x": 5, "z": 5}],
        "npcs": [{"id": 7, "name": "N", "x": 1, "z": 1}],
        "bots": [{"id": 3, "name": "B", "x": 4, "z": 4}, {"id": 2, "name": "C", "x": 15, "z": 15}]}"#;
    let ids = |bots: Option<u32>| -> Vec<u32> {
        let definition = load(location, bots).expect("a good location");
        definition
            .characters()
            .iter()
            .map(|(_, spec)| spec.id.0)
            .collect()
    };
    assert_eq!(ids(None), [2, 3, 7]);
    assert_eq!(ids(Some(0)), [7]);
    assert_eq!(ids(Some(1)), [3, 7]);
    assert_eq!(ids(Some(4)), [2, 3, 7, 8, 9]);
    let definition = load(location, Some(3)).expect("a good location");
    let (kind, bot) = &definition.characters()[3];
    assert_eq!((*kind, &*bot.name), (Kind::Bot, "Bot 3"));
    assert_eq!((bot.x, bot.z), (metres(5.0), metres(5.0)));
    let problems = load(location, Some(10_000)).expect_err("the rings are full");
    assert!(problems.starts_with("l.json: $.bots: no room"), "{problems}");
    let problems = load(location, Some(16_384)).expect_err("too many");
    assert!(problems.contains("more than 16384 characters"), "{problems}");
}

#[test]
fn map_paths_are_listed_once_in_order() {
    let location =
        br#"{"name": "l", "maps": {"a": "z/m.json", "b": "n.txt", "c": "z/m.json"}, "startMap": "a"}"#;
    assert_eq!(
        map_paths("l.json", location),
        Ok(vec!["n.txt".to_owned(), "z/m.json".to_owned()])
    );
}

#[test]
fn every_command_can_be_written() {
    let check = |text: &str, expected: Command| {
        let line = format!(r#"{{"tick": 7, "command": {text}}}"#);
        let found = parse_command_line("c.jsonl", 1, line.as_bytes(), 10);
        assert_eq!(found, Ok((7, expected)), "{text}");
    };
    let (character, x, z) = (CharacterId(3), metres(1.5), metres(-2.0));
    check(
        r#"{"MoveTo": {"character": 3, "x": 1.5, "z": -2}}"#,
        Command::MoveTo { character, x, z },
    );
    check(r#"{"Stop": {"character": 3}}"#, Command::Stop { character });
    check(
        r#"{"Talk": {"character": 3, "npc": 9}}"#,
        Command::Talk {
            character,
            npc: CharacterId(9),
        },
    );
    check(
        r#"{"Join": {"name": "Ann"}}"#,
        Command::Join {
            name: Text::cut("Ann"),
        },
    );
    check(r#"{"Leave": {"character": 3}}"#, Command::Leave { character });
    check(r#"{"Despawn": {"character": 3}}"#, Command::Despawn { character });
    check(
        r#"{"SetEnabled": {"character": 3, "enabled": false}}"#,
        Command::SetEnabled {
            character,
            enabled: false,
        },
    );
    check(
        r#"{"SetAlive": {"character": 3, "alive": true}}"#,
        Command::SetAlive {
            character,
            alive: true,
        },
    );
    check(
        r#"{"Teleport": {"character": 3, "x": 1.5, "z": -2}}"#,
        Command::Teleport { character, x, z },
    );
    check(
        r#"{"SetAreaAvailable": {"area": "door", "available": false}}"#,
        Command::SetAreaAvailable {
            area: Text::cut("door"),
            available: false,
        },
    );
    check(
        r#"{"AddObstacle": {"name": "box", "polygon": [[0, 0], [1.5, -2], [0, 1.5]]}}"#,
        Command::AddObstacle {
            name: Text::cut("box"),
            polygon: List::new(vec![
                Point::default(),
                Point::new(x, z),
                Point::new(Fixed::ZERO, x),
            ])
            .expect("short"),
        },
    );
    check(
        r#"{"RemoveObstacle": {"name": "box"}}"#,
        Command::RemoveObstacle {
            name: Text::cut("box"),
        },
    );
    check(
        r#"{"SwitchMap": {"map": "night"}}"#,
        Command::SwitchMap {
            map: Text::cut("night"),
        },
    );
    let behaviour = Behaviour::Script {
        steps: List::new(vec![
            ScriptStep {
                after_ticks: 1,
                step: Step::MoveTo { x, z },
            },
            ScriptStep {
                after_ticks: 1,
                step: Step::Stop,
            },
            ScriptStep {
                after_ticks: 2,
                step: Step::Talk { npc: CharacterId(9) },
            },
        ])
        .expect("short"),
    };
    check(
        r#"{"SetBehaviour": {"character": 3, "behaviour": {"script": [
            {"afterTicks": 1, "step": {"MoveTo": {"x": 1.5, "z": -2}}}, {"afterTicks": 1, "step": "Stop"},
            {"afterTicks": 2, "step": {"Talk": {"npc": 9}}}]}}}"#,
        Command::SetBehaviour { character, behaviour },
    );
    check(
        r#"{"SetBehaviour": {"character": 3, "behaviour": "idle"}}"#,
        Command::SetBehaviour {
            character,
            behaviour: Behaviour::Idle,
        },
    );
    let payload = |bytes: &[u8]| Command::Application {
        character,
        payload: List::new(bytes.to_vec()).expect("short"),
    };
    check(
        r#"{"Application": {"character": 3, "payload": "hé"}}"#,
        payload("hé".as_bytes()),
    );
    check(
        r#"{"Application": {"character": 3, "payload": [0, 255]}}"#,
        payload(&[0, 255]),
    );
    let spec = CharacterSpec {
        id: CharacterId(8),
        name: Text::cut("N"),
        x,
        z,
        speed_per_tick: Fixed::from_raw(9175),
        rotation_per_tick: Fixed::ONE,
        collision_radius: sim::COLLISION_RADIUS,
        movement_contact_radius: sim::MOVEMENT_CONTACT_RADIUS,
        cooldown_ticks: Some(List::new(vec![1, 1]).expect("short")),
        enabled: true,
        alive: true,
        behaviour: Behaviour::Follow {
            character,
            distance: x,
        },
    };
    let text = r#"{"id": 8, "name": "N", "x": 1.5, "z": -2, "navigationRetryCooldownTicks": [-3, 1],
        "behaviour": {"follow": {"character": 3, "distance": 1.5}}}"#;
    check(
        &format!(r#"{{"SpawnNpc": {text}}}"#),
        Command::SpawnNpc(spec.clone()),
    );
    check(&format!(r#"{{"SpawnBot": {text}}}"#), Command::SpawnBot(spec));
}

#[test]
fn command_lines_have_their_problems_named() {
    let check = |line: &str, expected: &[&str]| {
        let problems = parse_command_line("c.jsonl", 8, line.as_bytes(), 10).expect_err(line);
        let expected: Vec<String> = expected
            .iter()
            .map(|problem| format!("c.jsonl: line 8{problem}"))
            .collect();
        assert_eq!(problems.to_string(), expected.join("\n"), "{line}");
    };
    check("{", &[" column 1: not JSON: EOF while parsing an object"]);
    check("{}", &[": $.tick: missing", ": $.command: missing"]);
    check(
        r#"{"tick": -1, "command": {"MoveTo": {"character": 1, "x": 1e9, "zz": 1}}}"#,
        &[
            ": $.tick: outside 0 to 18446744073709551615",
            ": $.command.MoveTo.x: outside the world limit of 16000 m",
            ": $.command.MoveTo.z: missing",
            ": $.command.MoveTo.zz: unknown key",
        ],
    );
    check(
        r#"{"tick": 1, "command": {"MovTo": {"character": 1}}}"#,
        &[": $.command: not a command {NAME: {…}} (did you mean MoveTo)"],
    );
    check(
        r#"{"tick": 1, "command": "Stop"}"#,
        &[": $.command: not a command {NAME: {…}} (did you mean Stop)"],
    );
    check(
        r#"{"tick": 1, "command": {"Join": {"name": "a\u0007"}}}"#,
        &[": $.command.Join.name: '\\u{7}' is not allowed: letters, digits, space and _ - . ' are"],
    );
    check(
        r#"{"tick": 1, "command": {"Application": {"character": 1, "payload": [256]}}}"#,
        &[": $.command.Application.payload[0]: outside 0 to 255"],
    );
    let long = format!(
        r#"{{"tick": 1, "command": {{"Application": {{"character": 1, "payload": "{}"}}}}}}"#,
        "x".repeat(513)
    );
    check(&long, &[": $.command.Application.payload: longer than 512 bytes"]);
}

#[test]
fn players_get_ids_once_and_places_apart() {
    let location = r#"{"name": "l", "maps": {"m": "m.json"}, "spawns": [{"x": 10, "z": 10}],
        "npcs": [{"id": 2, "name": "N", "x": 1, "z": 1}]}"#;
    let mut world = World::new(&load(location, None).expect("a good location"));
    let join = || Command::Join {
        name: Text::cut("Ann"),
    };
    step(
        &mut world,
        &[
            join(),
            join(),
            Command::Leave {
                character: CharacterId(3),
            },
            join(),
        ],
    );
    let ids: Vec<u32> = world
        .characters()
        .iter()
        .map(|character| character.id.0)
        .collect();
    assert_eq!(ids, [1, 2, 4], "2 is taken, 3 was somebody");
    let at = |id: u32| world.character(CharacterId(id)).expect("there").position;
    assert_eq!(at(1), Point::new(metres(10.0), metres(10.0)));
    assert_eq!(
        at(4),
        Point::new(metres(9.0), metres(9.0)),
        "the first of the first ring"
    );
    let events = step(&mut world, &vec![join(); 2000]);
    let rejected = events
        .iter()
        .filter(|event| matches!(event, sim::Event::CommandRejected { code: 12, .. }));
    assert!(
        rejected.count() > 1000,
        "the rings around one point have room for some hundreds"
    );
}
