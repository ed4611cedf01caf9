//! Desync reports and snapshots: two states, or one and the journal it belongs to.

use std::path::Path;

use protocol::Report;
use protocol::report::{REPORT_FILE_BYTES_MAX, is_report};
use serde_json::Value;

use super::journals::{Side, definition_differences};
use super::{Comparison, Parting};
use crate::cli::input;
use crate::exit::{Status, WithStatus, bad_input};
use crate::fields::{self, Difference};

/// A state and, unless the file has only its bytes, what it was made from.
struct State {
    fields: Value,
    report: Option<Report>,
}

impl State {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = input::read(path, REPORT_FILE_BYTES_MAX)?;
        let named = |error: &dyn std::fmt::Display| anyhow::anyhow!("{}: {error}", path.display());
        let report = if is_report(&bytes) {
            let report = Report::decode(&bytes).map_err(|error| named(&error));
            Some(report.with_status(Status::DamagedData)?)
        } else {
            None
        };
        let snapshot = report.as_ref().map_or(&bytes[..], |report| &report.snapshot[..]);
        let fields = fields::of_snapshot(snapshot).map_err(|error| named(&error));
        let status = if report.is_some() {
            Status::DamagedData
        } else {
            Status::BadInput
        };
        Ok(Self {
            fields: fields.with_status(status)?,
            report,
        })
    }

    /// The step after which it is.
    fn tick(&self) -> u64 {
        let next = self.fields["clock"]["tick"].as_u64().unwrap_or_default();
        next.saturating_sub(1)
    }
}

/// Compares two states.
pub(super) fn compare(old: &Path, new: &Path) -> anyhow::Result<Comparison> {
    let (old, new) = (State::read(old)?, State::read(new)?);
    let definition = match (&old.report, &new.report) {
        (Some(old), Some(new)) => definitions(old, new),
        _ => Vec::new(),
    };
    let fields = fields::differences(&old.fields, &new.fields);
    Ok(comparison(old.tick(), definition, fields))
}

/// Compares a state with that of the journal at the same tick.
pub(super) fn compare_with_journal(
    journal: &Path,
    state: &Path,
    state_is_old: bool,
) -> anyhow::Result<Comparison> {
    let name = state.display();
    let state = State::read(state)?;
    let next_tick = state.fields["clock"]["tick"].as_u64().unwrap_or_default();
    let mut side = Side::open(journal, next_tick)?;
    let header = side.reader().header();
    if state
        .report
        .as_ref()
        .is_some_and(|report| report.run != header.run)
    {
        let rule = "of another run than the journal";
        return Err(bad_input(format_args!("{name}: {rule}")));
    }
    while side.tick() < next_tick && side.advance()? {}
    if side.tick() != next_tick {
        let rule = format!("the journal has no state at tick {next_tick}");
        return Err(bad_input(format_args!("{name}: {rule}")));
    }
    let recorded = side.fields()?;
    let Some(recorded) = recorded else {
        let rule = "the journal's commands do not lead to its own digest there; replay --verify names the first tick";
        return Err(anyhow::anyhow!("{}: {rule}", journal.display())).with_status(Status::Failed);
    };
    let definition = match state.report.as_ref().map(|report| report.definition) {
        Some(hash) if hash != side.reader().header().definition => vec![Difference::of(
            "definition",
            hex(&side.reader().header().definition),
            hex(&hash),
        )],
        _ => Vec::new(),
    };
    let fields = if state_is_old {
        fields::differences(&state.fields, &recorded)
    } else {
        fields::differences(&recorded, &state.fields)
    };
    Ok(comparison(state.tick(), definition, fields))
}

fn comparison(tick: u64, definition: Vec<Difference>, fields: Vec<Difference>) -> Comparison {
    Comparison {
        same_ticks: u64::from(fields.is_empty()),
        definition,
        first: (!fields.is_empty()).then(|| Parting::new(tick, fields)),
    }
}

/// What is not the same of that from which two reports were made.
fn definitions(old: &Report, new: &Report) -> Vec<Difference> {
    let mut found = Vec::new();
    let ruleset = |report: &Report| format!("{} ({:016x})", report.ruleset, report.ruleset_hash);
    if ruleset(old) != ruleset(new) {
        found.push(Difference::of("ruleset", ruleset(old), ruleset(new)));
    }
    if old.definition != new.definition {
        match (old.bundle(), new.bundle()) {
            (Ok(Some(old)), Ok(Some(new))) => found.extend(definition_differences(&old, &new)),
            _ => found.push(Difference::of(
                "definition",
                hex(&old.definition),
                hex(&new.definition),
            )),
        }
    }
    found
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
