//! What each fuzz target does with an input: not only that nothing panics, but what must hold of whatever was accepted.
//!
//! Plain functions of bytes, so that libFuzzer (`fuzz_targets/`), and an ordinary test (`tests/fuzz_inputs.rs`) run the same.
//! An input that was written by hand or by `seeds` has a first byte that says how the rest is meant; random bytes alone would
//! never get past a length or a checksum. The eighth target, journal, is `server/src/journal/fuzzing.rs`, since it needs the inside.

mod frame;
mod handshake;
mod input;
mod location;
mod map;
mod memory;
mod message;
mod snapshot;
mod ticket;

pub use frame::frame;
pub use handshake::handshake;
pub use location::location;
pub use map::map;
pub use memory::check;
pub use message::message;
pub use snapshot::snapshot;
pub use ticket::ticket;
