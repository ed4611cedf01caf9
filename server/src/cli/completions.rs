//! `lockstepd completions SHELL`.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use super::output::Output;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd completions bash > ~/.local/share/bash-completion/completions/lockstepd
  lockstepd completions zsh > ~/.zfunc/_lockstepd
  lockstepd completions fish > ~/.config/fish/completions/lockstepd.fish";

/// Writes the script to stdout.
///
/// # Errors
/// IO.
pub(crate) fn run(arguments: &CompletionsArguments) -> anyhow::Result<ExitCode> {
    // Into memory first: the generator panics where a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut super::description(),
        "lockstepd",
        &mut script,
    );
    let mut output = Output::stdout();
    output.bytes(&script)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
