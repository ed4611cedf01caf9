//! The command line (spec 6): one file a subcommand, each with its arguments and a `run`.

mod admission;
mod bake;
mod bench;
mod bot;
mod check;
mod completions;
mod diff;
mod input;
mod journal;
mod man;
mod map;
mod output;
mod path;
mod question;
mod recorded;
mod replay;
mod serve;
mod simulate;
mod ticket;

use std::io::Write;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit::{Failure, Status};
use crate::journal::segment::FORMAT_VERSION;

/// Authoritative lockstep game server: players, bots and NPCs walk around each other, every client computes the same
/// world, every journal replays to the same digests.
#[derive(Parser)]
#[command(name = "lockstepd", version, long_version = VERSIONS.as_str(), max_term_width = 100, after_help = EXAMPLES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd serve                                  the demo location on 127.0.0.1:7777
  lockstepd bot --count 50 --seconds 30            fifty clients that check every tick
  lockstepd replay data --verify                   the recorded journal, digest by digest
  lockstepd simulate location.json --ticks 600     a location without a network

`lockstepd COMMAND --help` shows the options and examples of each command.
Exit status: 0 done, 1 the check or run failed, 2 bad usage or bad input,
65 damaged data, 74 input or output failed, 78 configuration or location refused.";

/// Release, and the versions that have to agree between machines.
static VERSIONS: LazyLock<String> = LazyLock::new(|| {
    let (protocol, journal, ruleset) = (protocol::VERSION, FORMAT_VERSION, sim::RULESET);
    let release = env!("CARGO_PKG_VERSION");
    format!("{release}\nprotocol {protocol}\njournal {journal}\nruleset {ruleset}")
});

#[derive(Subcommand)]
enum Command {
    Serve(Box<serve::ServeArguments>),
    Bot(bot::BotArguments),
    Replay(replay::ReplayArguments),
    Diff(diff::DiffArguments),
    Journal(journal::JournalArguments),
    Simulate(simulate::SimulateArguments),
    Ticket(ticket::TicketArguments),
    Path(path::PathArguments),
    Bake(bake::BakeArguments),
    Check(check::CheckArguments),
    Bench(bench::BenchArguments),
    Completions(completions::CompletionsArguments),
    Man(man::ManArguments),
}

/// Parses the command line, runs the command, reports its error.
pub fn main() -> ExitCode {
    let parsed = description()
        .try_get_matches()
        .and_then(|matches| CommandLine::from_arg_matches(&matches));
    let command_line = match parsed {
        Ok(command_line) => command_line,
        Err(message) => {
            // Help and version go to stdout with status 0, errors to stderr with 2; a closed pipe is nobody's failure.
            let _ = message.print();
            return u8::try_from(message.exit_code()).map_or(Status::BadInput.into(), ExitCode::from);
        }
    };
    match run(command_line.command) {
        Ok(code) => code,
        Err(error) => report(&error),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Bot(arguments) => bot::run(arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Journal(arguments) => journal::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Ticket(arguments) => ticket::run(&arguments),
        Command::Path(arguments) => path::run(&arguments),
        Command::Bake(arguments) => bake::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}

/// Prints `error: …` lines and gives the status to end with.
fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<output::ReaderGone>().is_some() {
        return ExitCode::SUCCESS;
    }
    let (mut status, mut innermost) = (None, error);
    while let Some(failure) = innermost.downcast_ref::<Failure>() {
        status = status.or(Some(failure.status));
        innermost = &failure.error;
    }
    let mut stderr = std::io::stderr().lock();
    if let Some(problems) = innermost.downcast_ref::<nav::Problems>() {
        for line in problems.to_string().lines() {
            let _ = writeln!(stderr, "error: {line}");
        }
        return status.unwrap_or(Status::BadInput).into();
    }
    let _ = writeln!(stderr, "error: {error:#}");
    status.unwrap_or(Status::Failed).into()
}

/// The whole command as clap knows it: for completions and manual pages.
fn description() -> clap::Command {
    take_negative_numbers(CommandLine::command())
}

/// `--ticks -1` is a number out of its range, and no unknown flag `-1`.
fn take_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let takes_value = argument.get_long().is_some() && argument.get_action().takes_values();
        argument.allow_negative_numbers(takes_value)
    });
    command.mut_subcommands(take_negative_numbers)
}
