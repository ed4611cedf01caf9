//! lockstepd: an authoritative lockstep game server.
#![warn(clippy::print_stdout, clippy::print_stderr)] // both panic when nobody reads any more; see `cli::output`

mod admission;
mod cli;
mod config;
mod daemon;
mod descriptors;
mod exit;
mod http;
mod journal;
mod listener;
mod location;
mod location_files;
mod session;
mod tls;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
