//! The lockstep wire protocol: bytes to messages and back (spec 4). Nothing in here does IO or reads a clock.
//!
//! - [`frame`]: a stream of bytes to payloads and back, with a cap for each phase of a connection.
//! - [`message`]: the messages in both directions; [`state`]: the deltas that observers get; [`packed`]: smaller ones.
//! - [`handshake`]: the first frames of a connection as state machines, one for each side.
//! - [`codes`]: the numbers that name a refusal, a close, an outcome.
//! - [`bundle`]: a location's definition as one value with one hash.
//! - [`report`]: a World at a tick with what it was made from, as a file: desync reports, snapshots.
//! - [`ticket`]: signed admissions.
//! - [`wire`]: the one place that knows the encoding library.
//!
//! Commands, events and characters are `sim`'s own types: what is played is what is sent and what is recorded.

pub mod blob;
pub mod bundle;
pub mod codes;
pub mod frame;
pub mod handshake;
pub mod message;
pub mod packed;
pub mod report;
pub mod state;
pub mod ticket;
pub mod wire;

pub use blob::Blob;
pub use bundle::Bundle;
pub use codes::Code;
pub use frame::{FrameError, FrameReader};
pub use message::{ClientMessage, Hello, Origin, ServerMessage, Turn, Welcome};
pub use report::Report;
pub use wire::WireError;

/// The protocol version spoken here; the only one so far.
pub const VERSION: u16 = 1;
/// The oldest version spoken here.
pub const VERSION_MIN: u16 = 1;
/// The feature bits offered and understood here (spec 4.7).
pub const FEATURES: u64 = FEATURE_PACKED_STATES;
/// Bit 0: a State feed consists of [`message::ServerMessage::PackedState`] instead of `State`.
pub const FEATURE_PACKED_STATES: u64 = 1 << 0;
/// What both sides of a TLS connection say that they speak (spec 4.5).
pub const ALPN: &[u8] = b"lockstepd/1";
/// The first bytes of a `Hello`, after its variant number.
pub const MAGIC: [u8; 4] = *b"LSTP";

const _: () = assert!(VERSION_MIN <= VERSION);
// A version stays one byte in a Hello for ever, so that any server can read it (spec 4.7).
const _: () = assert!(VERSION < 251);
