//! The reference vectors of `tests/vectors/sim`: every tick of every case, every field listed; and at every tick a snapshot,
//! loaded, must step on to the same digest.

mod cases;

use cases::{Case, cases_on};
use serde_json::Value;
use sim::{PlannerKind, World, step};

#[test]
fn every_tick_of_every_case() {
    let cases = cases_on(PlannerKind::Grid);
    assert!(cases.len() >= 26, "only {} cases", cases.len());
    let failures: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn snapshots_step_on_alike() {
    for case in PlannerKind::ALL.into_iter().flat_map(cases_on) {
        let mut world = World::new(&case.definition);
        for tick in 0..case.ticks {
            let mut copy = World::load(&case.definition, world.snapshot_bytes())
                .unwrap_or_else(|error| panic!("{} before tick {tick}: {error}", case.name));
            assert_eq!(copy.digest(), world.digest(), "{} before tick {tick}", case.name);
            let commands = case.commands_at(tick);
            assert_eq!(step(&mut copy, &commands), step(&mut world, &commands));
            assert_eq!(copy.digest(), world.digest(), "{} after tick {tick}", case.name);
            assert_eq!(
                copy.sections(),
                world.sections(),
                "{} after tick {tick}",
                case.name
            );
        }
    }
}

/// Runs a case; the error names the first difference.
fn check(case: &Case) -> Result<(), String> {
    let mut world = World::new(&case.definition);
    let mut expected = case.expected.iter();
    for tick in 0..case.ticks {
        step(&mut world, &case.commands_at(tick));
        if tick % case.every != 0 {
            continue;
        }
        let line = expected.next().expect("a line for each printed tick");
        assert_eq!(line["tick"], tick, "{}", case.name);
        let wanted = line["characters"].as_array().expect("characters");
        let found = world.characters();
        if found.len() != wanted.len() {
            let (found, wanted) = (found.len(), wanted.len());
            return Err(format!(
                "{} tick {tick}: {found} characters, not {wanted}",
                case.name
            ));
        }
        for (found, wanted) in found.iter().zip(wanted) {
            let found = serde_json::to_value(found).expect("characters become JSON");
            for (field, value) in wanted.as_object().expect("a character") {
                if !same(&found[field], value) {
                    return Err(format!(
                        "{} tick {tick} character {}: {field} is {}, not {value}",
                        case.name, wanted["id"], found[field],
                    ));
                }
            }
        }
    }
    assert!(expected.next().is_none(), "{}: lines left over", case.name);
    Ok(())
}

/// Equal, with 5 and 5.0 the same number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let found =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(found)
        }
        _ => one == other,
    }
}
