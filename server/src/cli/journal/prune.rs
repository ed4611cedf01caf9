//! `lockstepd journal prune`: removes what need not stay.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::{Which, locations};
use crate::cli::output::Output;
use crate::exit::{Failure, Status, WithStatus, bad_input};
use crate::journal::record::unix_ms;
use crate::journal::retention::{Removed, Retention, lock_and_prune, would_prune};
use crate::journal::run;

/// Remove the oldest segments: by age, by size, or both
#[derive(Args)]
#[command(after_help = "\
Examples:
  lockstepd journal prune data --keep-hours 720 --dry-run
  lockstepd journal prune data --location town --keep-mib 4096

Whole segments, the oldest first, those of earlier runs before those of the last; never the last segment of the last run
nor the last two keyframes. With a segment goes what was saved beside it. While a daemon runs there, its own --keep-hours
and --keep-mib do this; here it is refused with exit status 78.")]
pub(super) struct PruneArguments {
    #[command(flatten)]
    which: Which,
    /// Remove what is so many hours old
    #[arg(long, value_name = "H", required_unless_present = "keep_mib")]
    keep_hours: Option<u64>,
    /// Remove the oldest while a location's journal is larger
    #[arg(long, value_name = "MIB")]
    keep_mib: Option<u64>,
    /// Say what would go, remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// Prunes each location.
///
/// # Errors
/// Nothing there; a daemon runs; IO.
pub(super) fn run(arguments: &PruneArguments) -> anyhow::Result<ExitCode> {
    let which = &arguments.which;
    if which.run.is_some() || run::is_run_folder(&which.path) {
        let rule = "the oldest segments of a whole location are removed, not of a run";
        return Err(bad_input(format_args!("{}: {rule}", which.path.display())));
    }
    let mut output = Output::stdout();
    for location in locations(&which.path, which.location.as_deref())? {
        let removed = prune(arguments, &location)?;
        for segment in &removed {
            if which.json {
                output
                    .json(&json!({"segment": segment.path.display().to_string(), "bytes": segment.bytes}))?;
            } else {
                output.line(format_args!(
                    "{} ({} bytes)",
                    segment.path.display(),
                    segment.bytes
                ))?;
            }
        }
        if !which.json {
            let bytes: u64 = removed.iter().map(|segment| segment.bytes).sum();
            let done = if arguments.dry_run {
                "would be removed"
            } else {
                "removed"
            };
            let (count, location) = (removed.len(), location.display());
            output.line(format_args!("{location}: {count} segments, {bytes} bytes {done}"))?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn prune(arguments: &PruneArguments, location: &Path) -> anyhow::Result<Vec<Removed>> {
    let retention = Retention::of_flags(arguments.keep_hours, arguments.keep_mib);
    if arguments.dry_run {
        return would_prune(location, &retention, unix_ms())
            .with_context(|| location.display().to_string())
            .with_status(Status::Io);
    }
    let removed = lock_and_prune(location, &retention, unix_ms());
    removed.map_err(|error| {
        anyhow::Error::new(Failure {
            status: error.status(),
            error: error.into(),
        })
    })
}
