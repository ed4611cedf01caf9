//! Where two Worlds differ, field by field.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sim::World;

/// Differences that are listed.
const DIFFERENCES_MAX: usize = 20;

/// A field that is not the same on both sides; `null` where there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// Such as `characters.3.position.x`.
    pub(crate) field: String,
    pub(crate) old: Value,
    pub(crate) new: Value,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} → {}", self.field, self.old, self.new)
    }
}

/// The first fields that differ, in the order of the fields; those of characters by their ids.
pub(crate) fn differences(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", old, new, &mut found);
    found
}

/// A World as fields. Of the parts that it shows to nobody there are digests.
pub(crate) fn of_world(world: &World) -> anyhow::Result<Value> {
    let sections = world.sections();
    let mut fields = Map::new();
    fields.insert("characters".to_owned(), serde_json::to_value(world.characters())?);
    fields.insert("map".to_owned(), serde_json::to_value(world.map_state())?);
    fields.insert(
        "sections".to_owned(),
        json!({
            "clock": format!("{:016x}", sections.clock),
            "map": format!("{:016x}", sections.map),
            "planner": format!("{:016x}", sections.planner),
        }),
    );
    Ok(Value::Object(fields))
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<Difference>) {
    if found.len() == DIFFERENCES_MAX || old == new {
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
        _ => found.push(Difference {
            field: path.to_owned(),
            old: old.clone(),
            new: new.clone(),
        }),
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
            json!({"characters": [{"id": 2, "x": 1}, {"id": 10, "x": 1}]}),
            json!({"characters": [{"id": 1, "x": 1}, {"id": 10, "x": 4}]}),
            &[
                "characters.1: null → {\"id\":1,\"x\":1}",
                "characters.2: {\"id\":2,\"x\":1} → null",
                "characters.10.x: 1 → 4",
            ],
        );
    }
}
