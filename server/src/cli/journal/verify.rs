//! `lockstepd journal verify`: whether a journal is what was written, and leads where it says.

use std::process::ExitCode;
use std::thread;

use clap::Args;
use serde::Serialize;

use super::Which;
use crate::cli::output::{self, Output};
use crate::cli::recorded::{check_ruleset, definition, open_at, read_failed};
use crate::cli::replay::verify::{self, Found};
use crate::exit::Status;
use crate::journal::reader::{Journal, JournalReader};
use crate::journal::record::Record;

/// Verify journals: checksums, chain and order of every record, and every digest
#[derive(Args)]
#[command(after_help = "\
Examples:
  lockstepd journal verify data
  lockstepd journal verify data/town/run-000001/000004-t000000036000.lsj.zst --quick

Exit status 0: all right (a torn end is named; the next start cuts it); 1: a digest differs; 65: damaged; 74: IO.")]
pub(super) struct VerifyArguments {
    #[command(flatten)]
    which: Which,
    /// Only the records; step no World
    #[arg(long)]
    quick: bool,
}

#[derive(Serialize)]
struct Verdict {
    journal: String,
    ok: bool,
    first_tick: u64,
    next_tick: u64,
    segments: usize,
    /// Whether digests were compared.
    digests: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    torn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Found>,
}

/// Verifies each.
///
/// # Errors
/// Nothing there; damage; IO.
pub(super) fn run(arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let mut output = Output::stdout();
    let mut code = ExitCode::SUCCESS;
    for journal in arguments.which.journals()? {
        let verdict = if arguments.quick {
            records(&journal)?
        } else {
            digests(&journal)?
        };
        if !verdict.ok {
            code = Status::Failed.into();
        }
        if arguments.which.json {
            output.json(&verdict)?;
        } else {
            output.line(verdict.text())?;
        }
    }
    output.finish()?;
    Ok(code)
}

fn records(journal: &Journal) -> anyhow::Result<Verdict> {
    let mut reader = journal.read().map_err(read_failed)?;
    let first_tick = reader.header().first_tick;
    let mut next_tick = first_tick;
    while let Some(record) = reader.next().map_err(read_failed)? {
        if let Record::Turn(turn) = record {
            next_tick = turn.tick + 1;
        }
    }
    Ok(verdict(journal, &reader, (first_tick, next_tick), false, None))
}

fn digests(journal: &Journal) -> anyhow::Result<Verdict> {
    let (mut reader, first) = open_at(journal, 0)?;
    let definition = definition(&reader)?;
    check_ruleset(&reader, &definition)?;
    let first_tick = first.tick;
    let last = journal.keyframes().map_err(read_failed)?.pop();
    let mut progress = output::progress(last.map_or(0, |last| last.tick), "ticks");
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let verified = verify::verify(&mut reader, first, u64::MAX, &definition, threads, &mut progress)?;
    let ticks = (first_tick, verified.last.0);
    Ok(verdict(journal, &reader, ticks, true, verified.found))
}

fn verdict(
    journal: &Journal,
    reader: &JournalReader,
    ticks: (u64, u64),
    digests: bool,
    difference: Option<Found>,
) -> Verdict {
    let torn = reader.torn().map(|torn| {
        let (bytes, offset, what) = (torn.bytes, torn.at.offset, &torn.at.what);
        format!("{bytes} bytes from offset {offset} on ({what})")
    });
    Verdict {
        journal: journal.path.display().to_string(),
        ok: difference.is_none(),
        first_tick: ticks.0,
        next_tick: ticks.1,
        segments: journal.files().len(),
        digests,
        torn,
        difference,
    }
}

impl Verdict {
    fn text(&self) -> String {
        let mut text = format!(
            "{}: {} segments, {} ticks from {} on",
            self.journal,
            self.segments,
            self.next_tick.saturating_sub(self.first_tick),
            self.first_tick
        );
        text += if self.digests {
            ": every record and digest"
        } else {
            ": every record"
        };
        text += if self.ok { " is right" } else { " up to here" };
        if let Some(torn) = &self.torn {
            text += &format!("\ntorn end: {torn}; the next start cuts it off");
        }
        if let Some(found) = &self.difference {
            text += &format!("\n{}", found.text());
        }
        text
    }
}
