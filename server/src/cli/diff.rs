//! `lockstepd diff A B`: the first tick and field in which two recordings differ.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use sim::Definition;

use super::fields::{self, Difference};
use super::input;
use super::output::Output;
use super::replay::{check_ruleset, definition, find, read_failed};
use crate::exit::{Status, WithStatus, bad_input};
use crate::journal::playback::Since;
use crate::journal::reader::JournalReader;
use crate::journal::record::{Record, Turn};

/// Find the first tick and field in which two journals, or two files of states, differ
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArguments {
    /// A journal (as for replay), or a file of states: the lines of `simulate --json` or `replay --print state --json`
    old: PathBuf,
    /// What to compare with it: of the same sort
    new: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd diff data/town/run-000001 data/town/run-000002
  lockstepd diff before.jsonl after.jsonl

Two journals are compared as they were recorded, turn by turn, from the first tick that both have; where they part,
both states are computed and compared field by field. Two files of states are compared line by line, from the first
tick that both have; both must have every tick from there on (print both with the same --every).
Exit status 1: they differ, or one ends before the other.";

/// What was compared.
struct Comparison {
    /// Ticks that are the same.
    same_ticks: u64,
    first: Option<Parting>,
}

/// Where they part.
#[derive(Serialize)]
struct Parting {
    tick: u64,
    fields: Vec<Difference>,
}

/// Compares and prints.
///
/// # Errors
/// Not two of one sort; damage; IO.
pub(crate) fn run(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let (old, new) = (&arguments.old, &arguments.new);
    let comparison = match (is_journal(old), is_journal(new)) {
        (true, true) => compare_journals(old, new)?,
        (false, false) => compare_states(old, new)?,
        _ => return Err(bad_input("a journal and a file of states cannot be compared")),
    };
    let mut output = Output::stdout();
    let Comparison { same_ticks, first } = comparison;
    match (&first, arguments.json) {
        (first, true) => output.json(&serde_json::json!({
            "equal": first.is_none(),
            "same_ticks": same_ticks,
            "first": first,
        }))?,
        (None, false) => output.line(format_args!("no difference; ticks compared: {same_ticks}"))?,
        (Some(parting), false) => {
            for field in &parting.fields {
                output.line(format_args!("tick {}: {field}", parting.tick))?;
            }
        }
    }
    output.finish()?;
    Ok(match first {
        None => ExitCode::SUCCESS,
        Some(_) => Status::Failed.into(),
    })
}

fn is_journal(path: &Path) -> bool {
    path.is_dir()
        || path
            .extension()
            .is_some_and(|extension| extension == crate::journal::run::SEGMENT_EXTENSION)
}

/// One of two journals, read turn by turn.
struct Side {
    path: PathBuf,
    reader: JournalReader,
    definition: Definition,
    since: Since,
    /// The tick of the next turn.
    tick: u64,
    /// D_(tick − 1).
    digest: u64,
}

impl Side {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let mut journals = find(path, None, None)?;
        if journals.len() > 1 {
            let rule = "several locations; name the folder of one";
            return Err(bad_input(format_args!("{}: {rule}", path.display())));
        }
        let journal = journals.remove(0);
        let mut reader = journal.read().map_err(read_failed)?;
        let definition = definition(&reader)?;
        check_ruleset(&reader, &definition)?;
        let Some(Record::Keyframe(keyframe)) = reader.next().map_err(read_failed)? else {
            unreachable!("a segment's second record is a keyframe, or it is refused");
        };
        Ok(Self {
            path: path.to_owned(),
            reader,
            definition,
            tick: keyframe.tick,
            digest: keyframe.digest,
            since: Since::new(keyframe),
        })
    }

    /// Reads the next turn; `false` at the end.
    fn advance(&mut self) -> anyhow::Result<bool> {
        while let Some(record) = self.reader.next().map_err(read_failed)? {
            let turn = match &record {
                Record::Turn(turn) => Some((turn.tick + 1, turn.digest)),
                _ => None,
            };
            self.since.follow(record);
            if let Some((tick, digest)) = turn {
                (self.tick, self.digest) = (tick, digest);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The state after the last turn that was read.
    fn fields(&self) -> anyhow::Result<Value> {
        let (world, _) = self
            .since
            .world(&self.definition)
            .with_status(Status::DamagedData)?;
        fields::of_world(&world)
    }
}

fn compare_journals(old: &Path, new: &Path) -> anyhow::Result<Comparison> {
    let (mut old, mut new) = (Side::open(old)?, Side::open(new)?);
    while old.tick != new.tick {
        let behind = if old.tick < new.tick { &mut old } else { &mut new };
        if !behind.advance()? {
            let path = behind.path.display();
            return Err(bad_input(format_args!("{path}: ends before the other begins")));
        }
    }
    let first_tick = old.tick;
    let comparison = |tick, first| {
        Ok(Comparison {
            same_ticks: tick - first_tick,
            first,
        })
    };
    if old.digest != new.digest {
        let tick = old.tick.saturating_sub(1);
        return comparison(first_tick, Some(parting(tick, &old, &new)?));
    }
    loop {
        let tick = old.tick;
        match (old.advance()?, new.advance()?) {
            (true, true) => {}
            (false, false) => return comparison(tick, None),
            (goes_on, _) => return comparison(tick, Some(one_sided("journal", "a turn", tick, goes_on))),
        }
        let differs = match (old.since.last_turn(), new.since.last_turn()) {
            (Some(a), Some(b)) => a.digest != b.digest || a.commands != b.commands,
            _ => old.digest != new.digest,
        };
        if differs {
            return comparison(tick, Some(parting(tick, &old, &new)?));
        }
    }
}

/// A tick that only one has: the old one, or else the new one.
fn one_sided(field: &str, what: &str, tick: u64, is_old: bool) -> Parting {
    let side = |has_it| Value::from(if has_it { what } else { "none" });
    let field = Difference {
        field: field.to_owned(),
        old: side(is_old),
        new: side(!is_old),
    };
    Parting {
        tick,
        fields: vec![field],
    }
}

/// What differs after the last turn of both: their commands, their states, and at least their digests.
fn parting(tick: u64, old: &Side, new: &Side) -> anyhow::Result<Parting> {
    let commands =
        |side: &Side| serde_json::to_value(side.since.last_turn().map(|turn: &Turn| &turn.commands[..]));
    let mut fields = Vec::new();
    if let (Value::Array(old), Value::Array(new)) = (commands(old)?, commands(new)?) {
        let at = (0..old.len().max(new.len())).find(|&index| old.get(index) != new.get(index));
        fields.extend(at.map(|index| Difference {
            field: format!("commands[{index}]"),
            old: old.get(index).cloned().unwrap_or(Value::Null),
            new: new.get(index).cloned().unwrap_or(Value::Null),
        }));
    }
    fields.extend(fields::differences(&old.fields()?, &new.fields()?));
    if old.digest != new.digest {
        fields.push(Difference {
            field: "digest".to_owned(),
            old: format!("{:016x}", old.digest).into(),
            new: format!("{:016x}", new.digest).into(),
        });
    }
    Ok(Parting { tick, fields })
}

/// Compares the lines of two files tick by tick, from the first tick that both have.
fn compare_states(old: &Path, new: &Path) -> anyhow::Result<Comparison> {
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
                    Some(fields) if !fields.is_empty() => break Some(Parting { tick, fields }),
                    _ => same_ticks += 1,
                }
            }
        }
    };
    Ok(Comparison { same_ticks, first })
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
