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
both states are computed and compared field by field. Exit status 1: they differ, or one ends before the other.";

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
    let parting = match (is_journal(old), is_journal(new)) {
        (true, true) => compare_journals(old, new)?,
        (false, false) => compare_states(old, new)?,
        _ => return Err(bad_input("a journal and a file of states cannot be compared")),
    };
    let mut output = Output::stdout();
    match (&parting, arguments.json) {
        (parting, true) => {
            output.json(&serde_json::json!({ "equal": parting.is_none(), "first": parting }))?
        }
        (None, false) => output.line("no difference")?,
        (Some(parting), false) => {
            for field in &parting.fields {
                output.line(format_args!("tick {}: {field}", parting.tick))?;
            }
        }
    }
    output.finish()?;
    Ok(match parting {
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

fn compare_journals(old: &Path, new: &Path) -> anyhow::Result<Option<Parting>> {
    let (mut old, mut new) = (Side::open(old)?, Side::open(new)?);
    while old.tick != new.tick {
        let behind = if old.tick < new.tick { &mut old } else { &mut new };
        if !behind.advance()? {
            let path = behind.path.display();
            return Err(bad_input(format_args!("{path}: ends before the other begins")));
        }
    }
    if old.digest != new.digest {
        let tick = old.tick.saturating_sub(1);
        return Ok(Some(parting(tick, &old, &new)?));
    }
    loop {
        let tick = old.tick;
        match (old.advance()?, new.advance()?) {
            (true, true) => {}
            (false, false) => return Ok(None),
            (goes_on, _) => {
                let side = |goes_on| Value::from(if goes_on { "a turn" } else { "the end" });
                let field = Difference {
                    field: "journal".to_owned(),
                    old: side(goes_on),
                    new: side(!goes_on),
                };
                return Ok(Some(Parting {
                    tick,
                    fields: vec![field],
                }));
            }
        }
        let differs = match (old.since.last_turn(), new.since.last_turn()) {
            (Some(a), Some(b)) => a.digest != b.digest || a.commands != b.commands,
            _ => old.digest != new.digest,
        };
        if differs {
            return Ok(Some(parting(tick, &old, &new)?));
        }
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

/// Compares the lines of two files tick by tick; ticks that only one of them has are left out if both have others.
fn compare_states(old: &Path, new: &Path) -> anyhow::Result<Option<Parting>> {
    let (old_states, new_states) = (read_states(old)?, read_states(new)?);
    let mut common = 0;
    for (tick, old) in &old_states {
        let Ok(index) = new_states.binary_search_by_key(tick, |(tick, _)| *tick) else {
            continue;
        };
        common += 1;
        let fields = fields::differences(old, &new_states[index].1);
        if !fields.is_empty() {
            return Ok(Some(Parting { tick: *tick, fields }));
        }
    }
    if common == 0 {
        return Err(bad_input("the files have no tick in common"));
    }
    Ok(None)
}

/// The states of a file by tick.
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
        states.push((tick, state));
        Ok(())
    })?;
    states.sort_by_key(|(tick, _)| *tick);
    Ok(states)
}
