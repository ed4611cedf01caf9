//! Where two states differ, field by field.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sim::{Contents, SnapshotError, World};

/// A field that is not the same on both sides; `null` where there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// Whose field it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) character: Option<u32>,
    /// Such as `position.x`; empty: the character as a whole.
    pub(crate) field: String,
    pub(crate) old: Value,
    pub(crate) new: Value,
}

impl Difference {
    /// A field that belongs to no character.
    pub(crate) fn of(field: impl Into<String>, old: impl Into<Value>, new: impl Into<Value>) -> Self {
        Self {
            character: None,
            field: field.into(),
            old: old.into(),
            new: new.into(),
        }
    }

    /// Digests are written as they are everywhere else.
    pub(crate) fn of_digests(field: &str, old: u64, new: u64) -> Option<Self> {
        let hex = |digest| format!("{digest:016x}");
        (old != new).then(|| Self::of(field, hex(old), hex(new)))
    }

    /// `path` leads to the field from the state as a whole.
    fn at(path: &str, old: &Value, new: &Value) -> Self {
        let whose = path
            .strip_prefix(CHARACTERS)
            .and_then(|rest| rest.strip_prefix('.'));
        let whose = whose.map(|rest| rest.split_once('.').unwrap_or((rest, "")));
        let character = whose.and_then(|(id, _)| id.parse().ok());
        let field = match (character, whose) {
            (Some(_), Some((_, field))) => field,
            _ => path,
        };
        Self {
            character,
            ..Self::of(field, old.clone(), new.clone())
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.character {
            Some(id) if self.field.is_empty() => write!(f, "character {id}")?,
            Some(id) => write!(f, "character {id} {}", self.field)?,
            None => write!(f, "{}", self.field)?,
        }
        write!(f, ": {} → {}", shown(&self.old), shown(&self.new))
    }
}

/// Name of the list of characters in a state.
const CHARACTERS: &str = "characters";

/// The fields that differ, in the order of the fields; those of characters by their ids.
pub(crate) fn differences(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", old, new, &mut found);
    found
}

/// Differences as lines of at most so many fields.
pub(crate) fn lines(differences: &[Difference], fields_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = differences
        .iter()
        .take(fields_max)
        .map(ToString::to_string)
        .collect();
    if differences.len() > fields_max {
        lines.push(format!("… and {} more fields", differences.len() - fields_max));
    }
    lines
}

/// A World as fields.
///
/// # Errors
/// As [`of_snapshot`].
pub(crate) fn of_world(world: &World) -> anyhow::Result<Value> {
    Ok(of_snapshot(&world.snapshot())?)
}

/// A snapshot as fields; its definition is not needed.
///
/// # Errors
/// Not a snapshot.
pub(crate) fn of_snapshot(bytes: &[u8]) -> Result<Value, SnapshotError> {
    let contents = Contents::decode(bytes)?;
    let mut map = Map::new();
    map.insert("current".to_owned(), json!(contents.map.current));
    for state in contents.map.maps.iter() {
        map.insert(state.name.to_string(), json!(state));
    }
    Ok(json!({
        "clock": contents.clock,
        "map": map,
        "planner": contents.planner,
        CHARACTERS: contents.characters,
    }))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    }
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<Difference>) {
    if old == new {
        return;
    }
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => compare_members(path, a, b, found),
        (Value::Array(a), Value::Array(b)) if a.iter().chain(b).all(|item| item.get("id").is_some()) => {
            compare_members(path, &by_id(a), &by_id(b), found);
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, found);
            }
        }
        _ => found.push(Difference::at(path, old, new)),
    }
}

fn compare_members(
    path: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    found: &mut Vec<Difference>,
) {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    let mut keys: Vec<&String> = old.keys().chain(added).collect();
    keys.sort_by_key(|key| key.parse::<u32>().ok());
    for key in keys {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let side = |fields: &Map<String, Value>| fields.get(key).cloned().unwrap_or(Value::Null);
        compare(&path, &side(old), &side(new), found);
    }
}

fn by_id(items: &[Value]) -> Map<String, Value> {
    items
        .iter()
        .map(|item| (item["id"].to_string(), item.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: Value, new: Value, expected: &[&str]) {
        let found: Vec<String> = differences(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn fields_are_named_and_characters_matched_by_id() {
        check(json!({"a": 1}), json!({"a": 1}), &[]);
        check(json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), &["a.b: 1 → 2"]);
        check(json!({"a": [1, 2]}), json!({"a": [1, 3]}), &["a[1]: 2 → 3"]);
        check(json!({"a": [1]}), json!({"a": [1, 3]}), &["a: [1] → [1,3]"]);
        check(
            json!({"characters": [{"id": 2, "x": 1}, {"id": 10, "p": {"x": 1.5}}]}),
            json!({"characters": [{"id": 1, "x": 1}, {"id": 10, "p": {"x": 4}}]}),
            &[
                "character 1: none → {\"id\":1,\"x\":1}",
                "character 2: {\"id\":2,\"x\":1} → none",
                "character 10 p.x: 1.5 → 4",
            ],
        );
    }

    #[test]
    fn what_is_too_long_to_be_read_is_counted() {
        let difference = Difference::of("a", 1, 2);
        let found = lines(&[difference.clone(), difference.clone(), difference], 2);
        assert_eq!(found, ["a: 1 → 2", "a: 1 → 2", "… and 1 more fields"]);
    }
}
