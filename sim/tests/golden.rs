//! What the spec leaves open about behaviours (the decisions of `behaviour.rs`), fixed as states and digests every tenth
//! tick. `BLESS=1` rewrites the files of `tests/golden`; a changed digest is a changed ruleset.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use sim::{Command, Definition, Sources, World, parse_command_line, step};

fn check(name: &str, characters: &str, commands: &[&str], bots: Option<u32>, ticks: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let map = fs::read(folder.join("map.json")).expect("the map is there");
    let location = format!(r#"{{"name": "{name}", "maps": {{"map": "map.json"}}, {characters}}}"#);
    let definition = Definition::load(&Sources {
        location_file: name,
        location: location.as_bytes(),
        tick_rate: None,
        bots,
        files: &[("map.json".to_owned(), map)],
    })
    .unwrap_or_else(|problems| panic!("{problems}"));
    let commands: Vec<(u64, Command)> = commands
        .iter()
        .map(|line| {
            parse_command_line(name, 1, line.as_bytes(), 10).unwrap_or_else(|problems| panic!("{problems}"))
        })
        .collect();
    let mut world = World::new(&definition);
    let mut found = String::new();
    for tick in 0..ticks {
        let due = commands.iter().filter(|(at, _)| *at == tick);
        let turn: Vec<Command> = due.map(|(_, command)| command.clone()).collect();
        let events = step(&mut world, &turn);
        for event in events {
            writeln!(found, "{tick}: {event:?}").expect("a String takes everything");
        }
        if tick % 10 == 0 {
            writeln!(found, "{tick}: digest {:016x}", world.digest()).expect("a String takes everything");
            for character in world.characters() {
                let progress = character.progress;
                writeln!(
                    found,
                    "  {} at {} {} yaw {} toward {} {} next {} wait {}",
                    character.id.0,
                    character.position.x,
                    character.position.z,
                    character.yaw,
                    character.requested_walk_target.x,
                    character.requested_walk_target.z,
                    progress.next,
                    progress.wait,
                )
                .expect("a String takes everything");
            }
        }
    }
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, found).expect("writable");
        return;
    }
    let expected = fs::read_to_string(&path).expect("BLESS=1 writes it");
    for (line, (found, expected)) in (1..).zip(found.lines().zip(expected.lines())) {
        assert_eq!(found, expected, "{name} line {line}; BLESS=1 to accept");
    }
    assert_eq!(found.len(), expected.len(), "{name}; BLESS=1 to accept");
}

#[test]
fn wander() {
    check(
        "wander",
        r#""npcs": [
            {"id": 1, "name": "A", "x": 5, "z": 5, "behaviour": {"wander": {"x": 5, "z": 5, "radius": 4, "pauseTicks": [0, 8]}}},
            {"id": 2, "name": "On the block", "x": 14, "z": 10, "behaviour": {"wander": {"x": 10, "z": 10, "radius": 1, "pauseTicks": [3, 3]}}},
            {"id": 3, "name": "Nowhere to go", "x": 3, "z": 15, "behaviour": {"wander": {"x": 3, "z": 15, "radius": 0, "pauseTicks": [0, 0]}}}],
           "bots": [
            {"id": 4, "name": "B", "x": 6, "z": 6, "behaviour": {"wander": {"x": 5, "z": 5, "radius": 4, "pauseTicks": [0, 0]}}}]"#,
        &[
            r#"{"tick": 60, "command": {"MoveTo": {"character": 1, "x": 18, "z": 18}}}"#,
            r#"{"tick": 80, "command": {"SetBehaviour": {"character": 4, "behaviour": {"wander": {"x": 15, "z": 15, "radius": 4, "pauseTicks": [2, 4]}}}}}"#,
            r#"{"tick": 90, "command": {"SetEnabled": {"character": 2, "enabled": false}}}"#,
            r#"{"tick": 120, "command": {"SetEnabled": {"character": 2, "enabled": true}}}"#,
        ],
        None,
        300,
    );
}

#[test]
fn follow() {
    check(
        "follow",
        r#""npcs": [
            {"id": 1, "name": "Leader", "x": 3, "z": 3, "behaviour": {"patrol": {"points": [[17, 3], [17, 17], [3, 17], [3, 3]], "waitTicks": 12}}},
            {"id": 2, "name": "Near", "x": 2, "z": 5, "behaviour": {"follow": {"character": 1, "distance": 2}}},
            {"id": 3, "name": "Nearer than can be", "x": 5, "z": 2, "walkSpeed": 2, "behaviour": {"follow": {"character": 1, "distance": 0.1}}},
            {"id": 5, "name": "After nobody", "x": 15, "z": 8, "behaviour": {"follow": {"character": 9, "distance": 1}}}],
           "bots": [
            {"id": 4, "name": "Bot", "x": 10, "z": 15, "behaviour": {"follow": {"character": 3, "distance": 1.5}}}]"#,
        &[
            r#"{"tick": 100, "command": {"SetEnabled": {"character": 1, "enabled": false}}}"#,
            r#"{"tick": 130, "command": {"SetEnabled": {"character": 1, "enabled": true}}}"#,
            r#"{"tick": 150, "command": {"MoveTo": {"character": 4, "x": 2, "z": 2}}}"#,
            r#"{"tick": 160, "command": {"SpawnNpc": {"id": 9, "name": "Somebody", "x": 28, "z": 9.5}}}"#,
            r#"{"tick": 220, "command": {"Despawn": {"character": 9}}}"#,
        ],
        None,
        300,
    );
}

#[test]
fn script() {
    check(
        "script",
        r#""npcs": [
            {"id": 1, "name": "Actor", "x": 3, "z": 3, "behaviour": {"script": [
                {"afterTicks": 0, "step": {"MoveTo": {"x": 10, "z": 3}}},
                {"afterTicks": 20, "step": "Stop"},
                {"afterTicks": 25, "step": {"MoveTo": {"x": 3, "z": 16}}},
                {"afterTicks": 40, "step": {"Talk": {"npc": 2}}},
                {"afterTicks": 200, "step": {"Talk": {"npc": 3}}}]}},
            {"id": 2, "name": "Partner", "x": 16, "z": 16},
            {"id": 3, "name": "Asleep", "x": 16, "z": 3, "alive": false, "behaviour": {"script": [
                {"afterTicks": 5, "step": {"MoveTo": {"x": 1, "z": 1}}},
                {"afterTicks": 60, "step": {"MoveTo": {"x": 16, "z": 8}}}]}}]"#,
        &[
            r#"{"tick": 50, "command": {"SetAlive": {"character": 3, "alive": true}}}"#,
            r#"{"tick": 150, "command": {"SetBehaviour": {"character": 2, "behaviour": {"script": [{"afterTicks": 3, "step": {"MoveTo": {"x": 10, "z": 17}}}]}}}}"#,
        ],
        None,
        260,
    );
}

/// A bot that persistent contact stopped waits for an element of its own sequence; NPCs retry.
#[test]
fn contact() {
    check(
        "contact",
        r#""npcs": [
            {"id": 1, "name": "N", "x": 15, "z": 9.5, "behaviour": {"patrol": {"points": [[29, 9.5], [15, 9.5]], "waitTicks": 1}}}],
           "bots": [
            {"id": 2, "name": "B", "x": 29, "z": 9.5, "behaviour": {"patrol": {"points": [[15, 9.5], [29, 9.5]], "waitTicks": 1}}},
            {"id": 3, "name": "C", "x": 28, "z": 9.5, "behaviour": {"wander": {"x": 10, "z": 5, "radius": 3, "pauseTicks": [0, 2]}}}]"#,
        &[],
        None,
        300,
    );
}

/// More bots than the file has.
#[test]
fn further_bots() {
    check(
        "further-bots",
        r#""spawns": [{"x": 2, "z": 2}, {"x": 18, "z": 18}],
           "npcs": [{"id": 70, "name": "N", "x": 2, "z": 3}],
           "bots": [{"id": 2, "name": "B", "x": 10, "z": 4, "behaviour": {"wander": {"x": 10, "z": 4, "radius": 3, "pauseTicks": [0, 9]}}}]"#,
        &[r#"{"tick": 5, "command": {"Join": {"name": "Ann"}}}"#],
        Some(12),
        60,
    );
}
