//! lockstepd: an authoritative lockstep game server.
//!
//! No library for other programs: it is here for the binary, which is [`main`] and nothing else, and for the fuzz targets.
#![warn(clippy::print_stdout, clippy::print_stderr)] // both panic when nobody reads any more; see `cli::output`

mod admission;
mod cli;
mod config;
mod daemon;
mod descriptors;
mod exit;
mod fields;
mod http;
mod journal;
mod listener;
mod location;
mod location_files;
mod session;
mod tls;

pub use cli::main;

/// What the fuzz targets (`fuzz/`) need of the inside.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::journal::fuzzing::journal;
}
