//! `lockstepd journal repair`: what the next start would do to a journal, without starting.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::Which;
use crate::cli::output::Output;
use crate::exit::Failure;
use crate::journal::repair::{Repaired, repair};

/// Repair what a start would repair: cut a torn tail; with --recover give up what is damaged
#[derive(Args)]
#[command(after_help = "\
Examples:
  lockstepd journal repair data
  lockstepd journal repair data --location town --recover

Nothing is deleted: what is cut off or given up is saved beside the journal, as ….torn or ….given-up, and with --recover
a report is written. A daemon that is running there is not disturbed: exit status 78. Damage without --recover: 65.")]
pub(super) struct RepairArguments {
    #[command(flatten)]
    which: Which,
    /// After damage: go back to the last state that can be proved
    #[arg(long)]
    recover: bool,
}

/// Repairs each.
///
/// # Errors
/// As `repair`.
pub(super) fn run(arguments: &RepairArguments) -> anyhow::Result<ExitCode> {
    let mut output = Output::stdout();
    for run in arguments.which.runs()? {
        let repaired = repair(&run, arguments.recover).map_err(|error| Failure {
            status: error.status(),
            error: error.into(),
        })?;
        let journal = run.path.display().to_string();
        if arguments.which.json {
            output.json(&json!({"journal": journal, "repaired": repaired}))?;
        } else {
            output.line(text(&journal, &repaired))?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn text(journal: &str, repaired: &Repaired) -> String {
    let mut text = match (&repaired.torn, &repaired.given_up) {
        (None, None) => format!("{journal}: nothing to repair"),
        _ => format!("{journal}: repaired"),
    };
    text += &format!(", the next tick is {}", repaired.next_tick);
    if let Some(given_up) = &repaired.given_up {
        text += &format!("\n{}\n  report: {}", given_up.text(), given_up.report.display());
    }
    if let Some(torn) = &repaired.torn {
        text += &format!("\n{torn}");
    }
    text
}
