//! A line of a command file (spec 6): `{"tick": 3, "command": {"MoveTo": {"character": 3, "x": 1.5, "z": 2}}}`.
//!
//! Every command of spec 3.2 is an object of one key, its name, with its fields. `SpawnNpc` and `SpawnBot` hold a character
//! as in the location file, `SetBehaviour` a behaviour in that form; a polygon is an array of `[x, z]`; the payload of an
//! `Application` is an array of bytes or a text (its UTF-8).

use nav::json::{Document, Node, Object};
use nav::{Point, Problems};

use crate::bounded::List;
use crate::command::{Command, LABEL_BYTES_MAX, Label, PAYLOAD_BYTES_MAX, POLYGON_POINTS_MAX};
use crate::location::{behaviour, character_name, character_spec, identity};

/// Bytes of a line.
pub const COMMAND_LINE_BYTES_MAX: usize = 256 << 10;

/// The names of the commands as files and printed lines write them (spec 4.3, in the order of their numbers).
pub const COMMAND_NAMES: [&str; 17] = [
    "MoveTo",
    "Stop",
    "Talk",
    "Join",
    "Leave",
    "SpawnBot",
    "SpawnNpc",
    "Despawn",
    "SetEnabled",
    "SetAlive",
    "Teleport",
    "SetAreaAvailable",
    "AddObstacle",
    "RemoveObstacle",
    "SwitchMap",
    "SetBehaviour",
    "Application",
];

/// Reads one line: the tick at whose start the command is applied, and the command. Speeds and milliseconds are converted
/// with the location's tick rate. `line` counts from 1.
///
/// # Errors
/// Every problem in the line, with its place.
pub fn parse_command_line(
    file: &str,
    line: u64,
    text: &[u8],
    tick_rate: u16,
) -> Result<(u64, Command), Problems> {
    let document = Document::parse_line(file, line, text, COMMAND_LINE_BYTES_MAX)?;
    let parsed = document.root().object().and_then(|mut object| {
        let tick = object.unsigned("tick", 0..=u64::MAX);
        let command = object
            .required("command")
            .and_then(|node| command(&node, tick_rate));
        // `replay --print commands --json` says these beside; here they decide nothing.
        object.optional("origin");
        object.optional("outcome");
        object.finish();
        let command = command?;
        // The readers know the ranges; this is the same net that a session's commands go through.
        if document.is_faultless()
            && let Err(error) = command.check()
        {
            document.problem("$.command", error.to_string());
        }
        Some((tick?, command))
    });
    document.finish(parsed)
}

fn command(node: &Node<'_>, tick_rate: u16) -> Option<Command> {
    let (name, content) = node.variant()?;
    let Some(content) = content.filter(|_| COMMAND_NAMES.contains(&name)) else {
        let hint = nav::json::did_you_mean(name, COMMAND_NAMES.into_iter());
        node.problem(format!("not a command {{NAME: {{…}}}}{hint}"));
        return None;
    };
    match name {
        "SpawnBot" => return character_spec(&content, tick_rate).map(Command::SpawnBot),
        "SpawnNpc" => return character_spec(&content, tick_rate).map(Command::SpawnNpc),
        _ => {}
    }
    let mut object = content.object()?;
    let command = fields(name, &mut object);
    object.finish();
    command
}

/// The fields of a command, in the order of spec 4.3.
fn fields(name: &str, object: &mut Object<'_>) -> Option<Command> {
    match name {
        "SetAreaAvailable" => {
            let (area, available) = (label(object, "area"), object.boolean("available"));
            return Some(Command::SetAreaAvailable {
                area: area?,
                available: available?,
            });
        }
        "AddObstacle" => {
            let (name, polygon) = (label(object, "name"), polygon(object));
            return Some(Command::AddObstacle {
                name: name?,
                polygon: polygon?,
            });
        }
        "RemoveObstacle" => return label(object, "name").map(|name| Command::RemoveObstacle { name }),
        "SwitchMap" => return label(object, "map").map(|map| Command::SwitchMap { map }),
        "Join" => return character_name(object).map(|name| Command::Join { name }),
        _ => {}
    }
    let character = identity(object, "character");
    match name {
        "MoveTo" | "Teleport" => {
            let point = object.point();
            let (character, point) = (character?, point?);
            let (x, z) = (point.x, point.z);
            Some(if name == "MoveTo" {
                Command::MoveTo { character, x, z }
            } else {
                Command::Teleport { character, x, z }
            })
        }
        "Stop" => character.map(|character| Command::Stop { character }),
        "Leave" => character.map(|character| Command::Leave { character }),
        "Despawn" => character.map(|character| Command::Despawn { character }),
        "Talk" => {
            let npc = identity(object, "npc");
            Some(Command::Talk {
                character: character?,
                npc: npc?,
            })
        }
        "SetEnabled" => {
            let enabled = object.boolean("enabled");
            Some(Command::SetEnabled {
                character: character?,
                enabled: enabled?,
            })
        }
        "SetAlive" => {
            let alive = object.boolean("alive");
            Some(Command::SetAlive {
                character: character?,
                alive: alive?,
            })
        }
        "SetBehaviour" => {
            let of = character.unwrap_or_default();
            let behaviour = object.required("behaviour").and_then(|node| behaviour(&node, of));
            Some(Command::SetBehaviour {
                character: character?,
                behaviour: behaviour?,
            })
        }
        "Application" => {
            let payload = payload(object);
            Some(Command::Application {
                character: character?,
                payload: payload?,
            })
        }
        _ => unreachable!("the name is one of COMMAND_NAMES"),
    }
}

fn label(object: &mut Object<'_>, key: &'static str) -> Option<Label> {
    Label::new(object.name(key, LABEL_BYTES_MAX)?).ok()
}

fn polygon(object: &mut Object<'_>) -> Option<List<Point, POLYGON_POINTS_MAX>> {
    let points = object.required("polygon")?.items(POLYGON_POINTS_MAX)?;
    let points: Vec<Option<Point>> = points.iter().map(Node::pair).collect();
    List::new(points.into_iter().collect::<Option<_>>()?).ok()
}

fn payload(object: &mut Object<'_>) -> Option<List<u8, PAYLOAD_BYTES_MAX>> {
    let node = object.required("payload")?;
    if node.is_text() {
        return List::new(node.text(PAYLOAD_BYTES_MAX)?.as_bytes().to_vec()).ok();
    }
    let bytes = node.items(PAYLOAD_BYTES_MAX)?;
    let bytes: Vec<Option<i64>> = bytes.iter().map(|byte| byte.integer(0..=255)).collect();
    let bytes = bytes
        .into_iter()
        .map(|byte| Some(u8::try_from(byte?).expect("a checked range")));
    List::new(bytes.collect::<Option<_>>()?).ok()
}
