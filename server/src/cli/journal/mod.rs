//! `lockstepd journal`: what is in the journals, whether it is right, and taking care of them.

mod export;
mod info;
mod prune;
mod repair;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::recorded;
use crate::exit::{Status, WithStatus, bad_input};
use crate::journal::reader::Journal;
use crate::journal::run::{self, RunFolder};

/// Look into journals, verify, repair, export and prune them
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JournalArguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd journal info data
  lockstepd journal verify data --run 3
  lockstepd journal repair data                      what the next start would do, without starting
  lockstepd journal repair data --recover            after damage, if you must go on
  lockstepd journal export data --location town | jq 'select(.record == \"note\")'
  lockstepd journal prune data --keep-hours 720 --dry-run

A path is a segment, the folder of a run or of a location, or a data directory: then of each location the last run.
`replay` runs journals again and prints commands, events and states; `diff` compares them.
Exit status 1: a digest differs; 65: damaged; 74: IO; 78: a daemon is writing there (repair and prune).";

#[derive(Subcommand)]
enum Command {
    Info(info::InfoArguments),
    Verify(verify::VerifyArguments),
    Repair(repair::RepairArguments),
    Export(export::ExportArguments),
    Prune(prune::PruneArguments),
}

/// Which journals.
#[derive(Args)]
struct Which {
    /// Segment (.lsj, .lsj.zst), folder of a run or of a location, or data directory
    path: PathBuf,
    /// Only this location of a data directory
    #[arg(long, value_name = "NAME")]
    location: Option<String>,
    /// This run instead of the last
    #[arg(long, value_name = "N")]
    run: Option<u64>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// See each.
pub(crate) fn run(arguments: &JournalArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Info(arguments) => info::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Repair(arguments) => repair::run(arguments),
        Command::Export(arguments) => export::run(arguments),
        Command::Prune(arguments) => prune::run(arguments),
    }
}

impl Which {
    fn journals(&self) -> anyhow::Result<Vec<Journal>> {
        recorded::find(&self.path, self.location.as_deref(), self.run)
    }

    /// The runs' folders, whatever state they are in.
    fn runs(&self) -> anyhow::Result<Vec<RunFolder>> {
        if run::is_run_folder(&self.path) {
            let folder = aside_of(&self.path);
            let runs = run::runs(folder).map_err(|error| failed(folder, &error))?;
            return Ok(runs.into_iter().filter(|run| run.path == self.path).collect());
        }
        let mut found = Vec::new();
        for location in locations(&self.path, self.location.as_deref())? {
            let mut runs = run::runs(&location).map_err(|error| failed(&location, &error))?;
            runs.retain(|run| self.run.is_none_or(|number| run.number == number));
            found.extend(runs.pop());
        }
        if found.is_empty() {
            return Err(none(&self.path));
        }
        Ok(found)
    }
}

/// The folders of locations that a path names; at least one.
fn locations(path: &Path, location: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        let rule = "not the folder of a location or of journals";
        return Err(bad_input(format_args!("{}: {rule}", path.display())));
    }
    let has_runs = |folder: &Path| run::runs(folder).map(|runs| !runs.is_empty());
    if has_runs(path).map_err(|error| failed(path, &error))? {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for folder in run::folders(path).map_err(|error| failed(path, &error))? {
        let is_wanted = location.is_none_or(|name| folder.file_name() == Some(name.as_ref()));
        if is_wanted && has_runs(&folder).map_err(|error| failed(&folder, &error))? {
            found.push(folder);
        }
    }
    if found.is_empty() {
        return Err(none(path));
    }
    Ok(found)
}

fn aside_of(run: &Path) -> &Path {
    let above = run.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}

fn none(path: &Path) -> anyhow::Error {
    bad_input(format_args!("{}: no journal of that name here", path.display()))
}

fn failed(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let error = anyhow::anyhow!("{}: {error}", path.display());
    match Err::<(), _>(error).with_status(Status::Io) {
        Err(error) => error,
        Ok(()) => unreachable!("an error stays one"),
    }
}
