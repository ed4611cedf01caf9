//! Recorded commands in the form of `simulate --commands`, so that what a journal holds can be run again, changed, or
//! copied into a test.

use serde_json::{Map, Value, json};
use sim::{Behaviour, CharacterSpec, Command, ScriptStep, Step};

/// A command as a command file of a location with this tick rate writes it: reading it gives the same command.
pub(crate) fn command_form(command: &Command, tick_rate: u16) -> Value {
    match command {
        Command::SpawnBot(spec) => json!({ "SpawnBot": character_form(spec, tick_rate) }),
        Command::SpawnNpc(spec) => json!({ "SpawnNpc": character_form(spec, tick_rate) }),
        Command::AddObstacle { name, polygon } => {
            let polygon: Vec<Value> = polygon.iter().map(|point| json!([point.x, point.z])).collect();
            json!({ "AddObstacle": { "name": name, "polygon": polygon } })
        }
        Command::SetBehaviour { character, behaviour } => {
            json!({ "SetBehaviour": { "character": character, "behaviour": behaviour_form(behaviour) } })
        }
        // The others have the same form as their fields.
        command => json!(command),
    }
}

fn character_form(spec: &CharacterSpec, tick_rate: u16) -> Value {
    // Exact: a raw times the rate has at most 38 bits, and dividing by 65536 only moves the point.
    let per_second = |per_tick: nav::Fixed| f64::from(per_tick.raw()) * f64::from(tick_rate) / 65_536.0;
    let mut form = Map::new();
    let mut set = |key: &str, value: Value| form.insert(key.to_owned(), value);
    set("id", json!(spec.id));
    set("name", json!(spec.name));
    set("x", json!(spec.x));
    set("z", json!(spec.z));
    set("walkSpeed", json!(per_second(spec.speed_per_tick)));
    set("rotationSpeed", json!(per_second(spec.rotation_per_tick)));
    set("navigationAvoidanceRadius", json!(spec.collision_radius));
    set("movementContactRadius", json!(spec.movement_contact_radius));
    if let Some(ticks) = &spec.cooldown_ticks {
        set("navigationRetryCooldownTicks", json!(ticks));
    }
    set("enabled", json!(spec.enabled));
    set("alive", json!(spec.alive));
    set("behaviour", behaviour_form(&spec.behaviour));
    Value::Object(form)
}

fn behaviour_form(behaviour: &Behaviour) -> Value {
    match behaviour {
        Behaviour::Idle => json!("idle"),
        Behaviour::Patrol {
            points,
            wait_ticks,
            looped,
        } => {
            let points: Vec<Value> = points.iter().map(|point| json!([point.x, point.z])).collect();
            json!({ "patrol": { "points": points, "waitTicks": wait_ticks, "loop": looped } })
        }
        Behaviour::Wander {
            x,
            z,
            radius,
            pause_min,
            pause_max,
        } => {
            json!({ "wander": { "x": x, "z": z, "radius": radius, "pauseTicks": [pause_min, pause_max] } })
        }
        Behaviour::Follow { character, distance } => {
            json!({ "follow": { "character": character, "distance": distance } })
        }
        Behaviour::Script { steps } => {
            let steps: Vec<Value> = steps.iter().map(step_form).collect();
            json!({ "script": steps })
        }
    }
}

fn step_form(ScriptStep { after_ticks, step }: &ScriptStep) -> Value {
    let step = match step {
        Step::MoveTo { x, z } => json!({ "MoveTo": { "x": x, "z": z } }),
        Step::Stop => json!("Stop"),
        Step::Talk { npc } => json!({ "Talk": { "npc": npc } }),
    };
    json!({ "afterTicks": after_ticks, "step": step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back_as_the_same_command() {
        let character = r#"{"id": 7, "name": "Seven", "x": 1.5, "z": -2.25, "walkSpeed": 1.37, "rotationSpeed": 9.1,
            "navigationRetryCooldownTicks": [3, 1, 4], "enabled": false, "behaviour": BEHAVIOUR}"#;
        let behaviours = [
            r#""idle""#,
            r#"{"patrol": {"points": [[1, 2], [3.3, 4]], "waitTicks": 7, "loop": false}}"#,
            r#"{"wander": {"x": 1, "z": 0.1, "radius": 8, "pauseTicks": [5, 20]}}"#,
            r#"{"follow": {"character": 100, "distance": 2.5}}"#,
            r#"{"script": [{"afterTicks": 0, "step": "Stop"}, {"afterTicks": 5, "step": {"MoveTo": {"x": 4, "z": 2}}},
                {"afterTicks": 9, "step": {"Talk": {"npc": 100}}}]}"#,
        ];
        let mut commands: Vec<String> = [
            r#"{"MoveTo": {"character": 3, "x": 1.1, "z": 2}}"#,
            r#"{"Stop": {"character": 3}}"#,
            r#"{"Talk": {"character": 3, "npc": 100}}"#,
            r#"{"Join": {"name": "Zoë"}}"#,
            r#"{"Leave": {"character": 3}}"#,
            r#"{"Despawn": {"character": 3}}"#,
            r#"{"SetEnabled": {"character": 3, "enabled": false}}"#,
            r#"{"SetAlive": {"character": 3, "alive": true}}"#,
            r#"{"Teleport": {"character": 3, "x": -1, "z": 0.00002}}"#,
            r#"{"SetAreaAvailable": {"area": "door", "available": true}}"#,
            r#"{"AddObstacle": {"name": "crate", "polygon": [[0, 0], [1.2, 0], [1, 1]]}}"#,
            r#"{"RemoveObstacle": {"name": "crate"}}"#,
            r#"{"SwitchMap": {"map": "night"}}"#,
            r#"{"Application": {"character": 3, "payload": [0, 255, 10]}}"#,
        ]
        .map(str::to_owned)
        .to_vec();
        for behaviour in behaviours {
            let character = character.replace("BEHAVIOUR", behaviour);
            commands.push(format!(r#"{{"SpawnNpc": {character}}}"#));
            commands.push(format!(r#"{{"SpawnBot": {character}}}"#));
            commands.push(format!(
                r#"{{"SetBehaviour": {{"character": 3, "behaviour": {behaviour}}}}}"#
            ));
        }
        for tick_rate in [1, 10, 30, 128] {
            let read = |command: &str| {
                let line = format!(r#"{{"tick": 5, "command": {command}}}"#).replace('\n', " ");
                let parsed = sim::parse_command_line("commands", 1, line.as_bytes(), tick_rate);
                parsed
                    .unwrap_or_else(|problems| panic!("{command}: {problems}"))
                    .1
            };
            for command in &commands {
                let expected = read(command);
                assert_eq!(
                    read(&command_form(&expected, tick_rate).to_string()),
                    expected,
                    "{command}"
                );
            }
        }
    }
}
