//! `lockstepd man [--out DIR]`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use clap_mangen::Man;

use super::output::Output;
use crate::exit::{Status, WithStatus};

/// Print the manual page, or write one page for each command
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArguments {
    /// Folder for lockstepd.1 and a page for each command; created if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd man | man -l -
  lockstepd man --out /usr/local/share/man/man1";

/// Writes the page to stdout or the pages into the folder.
///
/// # Errors
/// IO.
pub(crate) fn run(arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    let mut command = super::description().disable_help_subcommand(true);
    command.build();
    match &arguments.out {
        None => {
            let mut output = Output::stdout();
            output.bytes(&page(command)?)?;
            output.finish()?;
        }
        Some(folder) => write_pages(folder, command)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `lockstepd.1`, `lockstepd-serve.1`, `lockstepd-bench-nav.1`, …
fn write_pages(folder: &Path, command: clap::Command) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| folder.display().to_string())
        .with_status(Status::Io)?;
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().cloned());
        let name = command
            .get_display_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, page(command)?)
            .with_context(|| path.display().to_string())
            .with_status(Status::Io)?;
    }
    Ok(())
}

fn page(command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).context("manual page")?;
    Ok(page)
}
