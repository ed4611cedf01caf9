//! Every command, with every behaviour.

use nav::Point;
use sim::bounded::{List, Text};
use sim::{Behaviour, CharacterId, CharacterSpec, Command, ScriptStep, Step};

use super::{fixed, list, named};

pub(super) fn commands() -> Vec<(String, Command)> {
    let character = CharacterId(3);
    let (x, z) = (fixed("1.5"), fixed("-2"));
    let polygon = list([Point::new(x, z), Point::new(z, x), Point::new(x, x)]);
    named([
        ("MoveTo", Command::MoveTo { character, x, z }),
        ("Stop", Command::Stop { character }),
        (
            "Talk",
            Command::Talk {
                character,
                npc: CharacterId(100),
            },
        ),
        (
            "Join",
            Command::Join {
                name: Text::cut("Zoë"),
            },
        ),
        ("Leave", Command::Leave { character }),
        (
            "SpawnBot",
            Command::SpawnBot(spec(Some(list([200, 300])), Behaviour::Idle)),
        ),
        (
            "SpawnNpc",
            Command::SpawnNpc(spec(
                None,
                Behaviour::Patrol {
                    points: list([Point::new(x, z)]),
                    wait_ticks: 10,
                    looped: true,
                },
            )),
        ),
        ("Despawn", Command::Despawn { character }),
        (
            "SetEnabled",
            Command::SetEnabled {
                character,
                enabled: false,
            },
        ),
        (
            "SetAlive",
            Command::SetAlive {
                character,
                alive: true,
            },
        ),
        ("Teleport", Command::Teleport { character, x, z }),
        (
            "SetAreaAvailable",
            Command::SetAreaAvailable {
                area: Text::cut("door"),
                available: false,
            },
        ),
        (
            "AddObstacle",
            Command::AddObstacle {
                name: Text::cut("cart"),
                polygon,
            },
        ),
        (
            "RemoveObstacle",
            Command::RemoveObstacle {
                name: Text::cut("cart"),
            },
        ),
        (
            "SwitchMap",
            Command::SwitchMap {
                map: Text::cut("night"),
            },
        ),
        (
            "SetBehaviour Wander",
            Command::SetBehaviour {
                character,
                behaviour: Behaviour::Wander {
                    x,
                    z,
                    radius: fixed("8"),
                    pause_min: 5,
                    pause_max: 20,
                },
            },
        ),
        (
            "SetBehaviour Follow",
            Command::SetBehaviour {
                character,
                behaviour: Behaviour::Follow {
                    character: CharacterId(100),
                    distance: fixed("2"),
                },
            },
        ),
        (
            "SetBehaviour Script",
            Command::SetBehaviour {
                character,
                behaviour: Behaviour::Script {
                    steps: list(
                        [
                            (5, Step::MoveTo { x, z }),
                            (300, Step::Stop),
                            (
                                70_000,
                                Step::Talk {
                                    npc: CharacterId(100),
                                },
                            ),
                        ]
                        .map(|(after_ticks, step)| ScriptStep { after_ticks, step }),
                    ),
                },
            },
        ),
        (
            "Application",
            Command::Application {
                character,
                payload: list([0, 255, 7]),
            },
        ),
    ])
}

fn spec(
    cooldown_ticks: Option<List<u32, { sim::COOLDOWN_TICKS_MAX }>>,
    behaviour: Behaviour,
) -> CharacterSpec {
    CharacterSpec {
        id: CharacterId(200),
        name: Text::cut("Guard"),
        x: fixed("5"),
        z: fixed("-5.25"),
        speed_per_tick: fixed("0.14"),
        rotation_per_tick: fixed("1"),
        collision_radius: fixed("0.45"),
        movement_contact_radius: fixed("0.32"),
        cooldown_ticks,
        enabled: true,
        alive: true,
        behaviour,
    }
}
