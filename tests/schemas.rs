//! The JSON schemas of location and map files (spec 10) say what the program says: of every file that ships, of the
//! reference vectors, and of one file that has every key.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::harness::{run, text};

/// Refused for what a schema cannot say: of these vectors the schema is silent.
const BEYOND_A_SCHEMA: [&str; 10] = [
    "duplicate-area.json",
    "duplicate-obstacle.json",
    "obstacle-self-intersecting.json",
    "self-intersecting.json",
    "self-touching.json",
    "spike.json",
    "too-many-cells.json",
    "two-distinct-vertices.json",
    "zero-area.json",
    "not-json.json",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn schema(name: &str) -> Value {
    read(&root().join("config").join(name))
}

/// All files of this ending beneath a folder.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

/// The first thing in which a value breaks a schema, with its place.
///
/// The words of JSON Schema that the two schemas use, and no others.
fn broken(root: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    let wrong = |rule: &str| Some(format!("{place}: {rule}"));
    let mut below = None;
    for (word, rule) in schema.as_object().expect("a schema is an object") {
        let length = |value: &Value| match value {
            Value::String(text) => Some(text.chars().count()),
            Value::Array(items) => Some(items.len()),
            Value::Object(members) => Some(members.len()),
            _ => None,
        };
        let limit = || rule.as_u64().and_then(|limit| usize::try_from(limit).ok());
        let number = || value.as_f64().zip(rule.as_f64());
        let holds = match word.as_str() {
            "title" | "description" | "default" | "$schema" | "$defs" | "properties" => true,
            "$ref" => {
                let definition = rule.as_str().and_then(|path| path.strip_prefix('#'));
                let definition = definition
                    .and_then(|path| root.pointer(path))
                    .expect("a definition");
                below = below.or_else(|| broken(root, definition, value, place));
                true
            }
            "type" => match rule.as_str().expect("one type") {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "number" => value.is_number(),
                "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
                other => panic!("the type {other}"),
            },
            "const" => value == rule,
            "enum" => rule.as_array().expect("a list").contains(value),
            "oneOf" => {
                let choices = rule.as_array().expect("a list").iter();
                let fitting = choices.filter(|choice| broken(root, choice, value, place).is_none());
                fitting.count() == 1
            }
            "required" => rule
                .as_array()
                .expect("a list")
                .iter()
                .all(|key| value.get(key.as_str().expect("a key")).is_some()),
            "additionalProperties" => {
                for (key, member) in value.as_object().into_iter().flatten() {
                    let known = schema.get("properties").and_then(|known| known.get(key));
                    let place = format!("{place}.{key}");
                    below = below.or_else(|| match known.unwrap_or(rule) {
                        Value::Bool(false) => Some(format!("{place}: unknown key")),
                        schema => broken(root, schema, member, &place),
                    });
                }
                true
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    below = below.or_else(|| broken(root, rule, item, &format!("{place}[{index}]")));
                }
                true
            }
            "minItems" | "minLength" | "minProperties" => length(value) >= limit(),
            "maxItems" | "maxLength" | "maxProperties" => length(value) <= limit(),
            "minimum" => number().is_none_or(|(value, limit)| value >= limit),
            "maximum" => number().is_none_or(|(value, limit)| value <= limit),
            "exclusiveMinimum" => number().is_none_or(|(value, limit)| value > limit),
            "pattern" => match rule.as_str().expect("a text") {
                "^[A-Za-z0-9_-]+$" => value.as_str().is_some_and(|text| {
                    text.chars()
                        .all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
                }),
                r"\.(json|txt|map)$" => value.as_str().is_some_and(|text| {
                    [".json", ".txt", ".map"]
                        .iter()
                        .any(|ending| text.ends_with(ending))
                }),
                other => panic!("the pattern {other}"),
            },
            other => panic!("{other} is no word that is understood here"),
        };
        if !holds {
            return wrong(word);
        }
    }
    below
}

#[test]
fn what_ships_and_the_vectors_fit_the_schemas() {
    let (location, map) = (schema("location.schema.json"), schema("map.schema.json"));
    let mut found = Vec::new();
    for folder in ["config/locations", "tests/vectors/nav-grid", "tests/vectors/sim"] {
        files(&root().join(folder), ".json", &mut found);
    }
    let mut counts = [0, 0];
    for path in found {
        let value = read(&path);
        let (schema, place) = if value.get("areas").is_some() {
            (&map, 0)
        } else if value.get("maps").is_some() {
            (&location, 1)
        } else {
            continue; // the length of a run, a set of queries
        };
        counts[place] += 1;
        assert_eq!(broken(schema, schema, &value, "$"), None, "{}", path.display());
    }
    assert!(counts[0] > 20 && counts[1] > 10, "{counts:?}");
}

#[test]
fn bad_maps_break_the_schema_where_a_schema_can_tell() {
    let map = schema("map.schema.json");
    let mut found = Vec::new();
    files(&root().join("tests/vectors/bad"), ".json", &mut found);
    assert!(found.len() > 15);
    for path in found {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Ok(value) = serde_json::from_slice::<Value>(&fs::read(&path).expect("a file")) else {
            continue;
        };
        let problem = broken(&map, &map, &value, "$");
        assert_eq!(
            problem.is_some(),
            !BEYOND_A_SCHEMA.contains(&&*name),
            "{name}: {problem:?}"
        );
    }
}

/// Whatever a schema allows the program knows; the two together have every key and are refused by neither.
#[test]
fn every_key_of_a_schema_is_a_key_of_the_program() {
    let square = json!([[0, 0], [20, 0], [20, 20], [0, 20]]);
    let map = json!({
        "planner": "polygon", "cellSize": 0.5, "agentRadius": 0.4, "objectPadding": 0.2, "boundaryPadding": 0,
        "floorY": 1, "inset": [0.4, 0.8],
        "areas": [{"name": "yard", "available": true, "polygon": square}],
        "obstacles": [{"name": "well", "polygon": [[9, 9], [10, 9], [10, 10]]}],
    });
    let character = |id: u32, behaviour: Value| {
        json!({
            "id": id, "name": format!("Nobody {id}"), "x": id, "z": 2, "walkSpeed": 1.5, "rotationSpeed": 9,
            "navigationAvoidanceRadius": 0.4, "movementContactRadius": 0.3, "navigationRetryCooldownTicks": [5, 10],
            "enabled": true, "alive": true, "behaviour": behaviour,
        })
    };
    let mut in_milliseconds = character(5, json!("idle"));
    let members = in_milliseconds.as_object_mut().expect("an object");
    members.remove("navigationRetryCooldownTicks");
    members.insert("navigationRetryCooldownMs".to_owned(), json!([500]));
    let steps = json!([
        {"afterTicks": 1, "step": {"MoveTo": {"x": 3, "z": 3}}},
        {"afterTicks": 9, "step": {"Talk": {"npc": 1}}},
        {"afterTicks": 12, "step": "Stop"},
    ]);
    let location = json!({
        "name": "yard", "tickRate": 20, "planner": "polygon", "maps": {"day": "map.json"}, "startMap": "day",
        "spawns": [{"x": 5, "z": 5}],
        "npcs": [
            character(1, json!({"patrol": {"points": [[3, 3], [4, 4]], "waitTicks": 2, "loop": false}})),
            character(2, json!({"wander": {"x": 5, "z": 5, "radius": 2, "pauseTicks": [1, 2]}})),
            character(3, json!({"follow": {"character": 1, "distance": 2}})),
            in_milliseconds,
        ],
        "bots": [character(4, json!({ "script": steps }))],
    });
    let folder = tempdir().expect("a folder");
    for (name, value, schema) in [
        ("map.json", &map, schema("map.schema.json")),
        ("yard.json", &location, schema("location.schema.json")),
    ] {
        assert_eq!(broken(&schema, &schema, value, "$"), None, "{name}");
        let mut unused = Vec::new();
        keys(&schema, &mut unused);
        unused.retain(|key| !value.to_string().contains(&format!("\"{key}\":")));
        assert_eq!(
            unused, [""; 0],
            "keys of the schema of {name} that are not in the file"
        );
        fs::write(folder.path().join(name), value.to_string()).expect("a file");
        let output = run(&["check", folder.path().join(name).to_str().expect("UTF-8")]);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    }
}

/// All keys that a schema names.
fn keys(schema: &Value, found: &mut Vec<String>) {
    for (word, rule) in schema.as_object().into_iter().flatten() {
        if word == "properties" {
            found.extend(rule.as_object().into_iter().flatten().map(|(key, _)| key.clone()));
        }
        keys(rule, found);
    }
    for rule in schema.as_array().into_iter().flatten() {
        keys(rule, found);
    }
}
