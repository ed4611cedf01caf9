//! `lockstepd diff A B`: the first tick and every field in which two recordings, states or reports differ.

mod journals;
mod reports;
mod states;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::output::Output;
use crate::exit::{Status, bad_input};
use crate::fields::{self, Difference};

/// Find the first tick, and every field there, in which two journals, snapshots, desync reports or files of states differ
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArguments {
    /// A journal (as for replay), a desync report or snapshot (.lsd), the bare bytes of a snapshot, or a file of states:
    /// the lines of `simulate --json` or `replay --print state --json`
    old: PathBuf,
    /// What to compare with it: of the same sort; a report or snapshot can be compared with a journal too
    new: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd diff data/town/run-000001 data/town/run-000002
  lockstepd diff data/town/run-000001/desyncs/desync-town-9a3f01c2-t000000036000-{server,session-10241}.lsd
  lockstepd diff data/town/run-000001 reports/desync-town-9a3f01c2-t000000036000-session-10241.lsd
  lockstepd replay data --until 600 --snapshot a.lsd && lockstepd diff a.lsd b.lsd
  lockstepd diff before.jsonl after.jsonl

Two journals are compared as they were recorded, turn by turn, from the first tick that both have; nothing is stepped for
that. Where they part, both states are made from the keyframe before and compared field by field: the lines are
`tick 600: character 12 position.x: 3.25 → 3.26`, old → new. Where a recording does not give its own digests, the fields
are those of its next keyframe. Two files of states are compared line by line, from the first tick that both have; both
must have every tick from there on (print both with the same --every).
Exit status 0: no difference; 1: they differ, or one ends before the other.";

/// Fields that are printed for people; with --json all are.
const FIELDS_SHOWN_MAX: usize = 1_000;

/// What was compared.
struct Comparison {
    /// Ticks that are the same.
    same_ticks: u64,
    /// What is not the same though no tick tells it: the definitions.
    definition: Vec<Difference>,
    first: Option<Parting>,
}

/// Where they part.
#[derive(Debug, Serialize)]
struct Parting {
    /// The step after which the states differ, or in which the commands do.
    tick: u64,
    /// The keyframe of which the fields are, if they cannot be told of the tick itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    keyframe: Option<u64>,
    /// Parts of the state that differ: `clock`, `map`, `planner`, `characters`.
    sections: Vec<&'static str>,
    fields: Vec<Difference>,
}

/// Parts of a state by the beginning of their fields' names (spec 5.4).
const SECTIONS: [&str; 3] = ["clock", "map", "planner"];

impl Parting {
    fn new(tick: u64, fields: Vec<Difference>) -> Self {
        let is_of = |field: &Difference, section: &str| {
            let rest = field.field.strip_prefix(section);
            field.character.is_none()
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let differs = |section: &&str| fields.iter().any(|field| is_of(field, section));
        let mut sections: Vec<&str> = SECTIONS.into_iter().filter(|section| differs(section)).collect();
        if fields.iter().any(|field| field.character.is_some()) {
            sections.push("characters");
        }
        Self {
            tick,
            keyframe: None,
            sections,
            fields,
        }
    }
}

/// Compares and prints.
///
/// # Errors
/// Not two that can be compared; damage; IO.
pub(crate) fn run(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let comparison = compare(&arguments.old, &arguments.new)?;
    let mut output = Output::stdout();
    if arguments.json {
        output.json(&serde_json::json!({
            "equal": comparison.is_equal(),
            "same_ticks": comparison.same_ticks,
            "definition": comparison.definition,
            "first": comparison.first,
        }))?;
    } else {
        for line in comparison.lines() {
            output.line(line)?;
        }
    }
    output.finish()?;
    Ok(if comparison.is_equal() {
        ExitCode::SUCCESS
    } else {
        Status::Failed.into()
    })
}

fn compare(old: &Path, new: &Path) -> anyhow::Result<Comparison> {
    use Sort::{Journal, Snapshot, States};
    match (sort(old)?, sort(new)?) {
        (Journal, Journal) => journals::compare(old, new),
        (Snapshot, Snapshot) => reports::compare(old, new),
        (Journal, Snapshot) => reports::compare_with_journal(old, new, false),
        (Snapshot, Journal) => reports::compare_with_journal(new, old, true),
        (States, States) => states::compare(old, new),
        (Journal, States) | (States, Journal) => {
            Err(bad_input("a journal and a file of states cannot be compared"))
        }
        (Snapshot, States) | (States, Snapshot) => {
            Err(bad_input("a snapshot and a file of states cannot be compared"))
        }
    }
}

impl Comparison {
    fn is_equal(&self) -> bool {
        self.first.is_none() && self.definition.is_empty()
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = fields::lines(&self.definition, FIELDS_SHOWN_MAX);
        match &self.first {
            None => lines.push(format!("no difference; ticks compared: {}", self.same_ticks)),
            Some(parting) => {
                let fields = fields::lines(&parting.fields, FIELDS_SHOWN_MAX);
                let tick = parting.tick;
                lines.extend(fields.into_iter().map(|field| format!("tick {tick}: {field}")));
                if let Some(keyframe) = parting.keyframe {
                    lines.push(format!(
                        "the commands do not lead to the recorded digest of tick {tick}; the fields are those at the keyframe of tick {keyframe}"
                    ));
                }
            }
        }
        lines
    }
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Journal,
    /// With its definition or bare.
    Snapshot,
    States,
}

fn sort(path: &Path) -> anyhow::Result<Sort> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if path.is_dir() || name.ends_with(".lsj") || name.ends_with(".lsj.zst") {
        return Ok(Sort::Journal);
    }
    if path == Path::new("-") || !path.is_file() {
        return Ok(Sort::States);
    }
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64).read_to_end(&mut beginning));
    read.map_err(|error| bad_input(format_args!("{}: cannot be read: {error}", path.display())))?;
    let is_text = beginning
        .trim_ascii_start()
        .first()
        .is_none_or(|byte| *byte == b'{');
    Ok(if is_text { Sort::States } else { Sort::Snapshot })
}

/// A tick that only one has: the old one, or else the new one.
fn one_sided(field: &str, what: &str, tick: u64, is_old: bool) -> Parting {
    let side = |has_it| if has_it { what } else { "none" };
    Parting::new(tick, vec![Difference::of(field, side(is_old), side(!is_old))])
}
