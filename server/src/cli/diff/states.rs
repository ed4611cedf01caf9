//! Files of states: the lines that `simulate --json` and `replay --print state --json` print.

use std::path::Path;

use serde_json::Value;

use super::{Comparison, Parting, one_sided};
use crate::cli::input;
use crate::exit::bad_input;
use crate::fields;

/// Compares the lines of two files tick by tick, from the first tick that both have.
pub(super) fn compare(old: &Path, new: &Path) -> anyhow::Result<Comparison> {
    let (old_states, new_states) = (read_states(old)?, read_states(new)?);
    let is_common =
        |(tick, _): &&(u64, Value)| new_states.binary_search_by_key(tick, |(tick, _)| *tick).is_ok();
    let Some(&(first_tick, _)) = old_states.iter().find(is_common) else {
        return Err(bad_input("the files have no tick in common"));
    };
    let from_first = |states: Vec<(u64, Value)>| {
        let states = states.into_iter();
        states.skip_while(|(tick, _)| *tick < first_tick).peekable()
    };
    let (mut old, mut new) = (from_first(old_states), from_first(new_states));
    let mut same_ticks = 0;
    let first = loop {
        let (old_tick, new_tick) = (old.peek().map(|state| state.0), new.peek().map(|state| state.0));
        match (old_tick, new_tick) {
            (None, None) => break None,
            (Some(tick), None) => break Some(one_sided("state", "a line", tick, true)),
            (None, Some(tick)) => break Some(one_sided("state", "a line", tick, false)),
            (Some(a), Some(b)) if a != b => break Some(one_sided("state", "a line", a.min(b), a < b)),
            (Some(tick), Some(_)) => {
                let states = old.next().zip(new.next());
                let fields = states.map(|(old, new)| fields::differences(&old.1, &new.1));
                match fields {
                    Some(fields) if !fields.is_empty() => break Some(Parting::new(tick, fields)),
                    _ => same_ticks += 1,
                }
            }
        }
    };
    Ok(Comparison {
        same_ticks,
        definition: Vec::new(),
        first,
    })
}

/// The states of a file, in the order of their ticks.
fn read_states(path: &Path) -> anyhow::Result<Vec<(u64, Value)>> {
    let mut states = Vec::new();
    input::for_each_line(path, |line, text| {
        let state: Value = serde_json::from_slice(text).unwrap_or(Value::Null);
        let Some(tick) = state.get("tick").and_then(Value::as_u64) else {
            let path = path.display();
            return Err(bad_input(format_args!(
                "{path}: line {line}: not an object with a tick"
            )));
        };
        if states.last().is_some_and(|(before, _)| *before >= tick) {
            let path = path.display();
            return Err(bad_input(format_args!(
                "{path}: line {line}: tick {tick} does not come after the line before it"
            )));
        }
        states.push((tick, state));
        Ok(())
    })?;
    Ok(states)
}
