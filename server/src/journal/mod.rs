//! The journal: initial state + every turn's commands = every state ever reached (spec 5).
//!
//! ```text
//! open ── lock, last run, last segment, check, cut a torn tail, replay ──▶ World, sessions, answers
//!   └──▶ Writer ── JournalThread::spawn ──▶ append(records, waiting) … close
//! ```
//!
//! - [`segment`]: bytes and their framing, which [`frames`] reads; [`seekable`]: packed ones; [`record`]: what is in
//!   them; [`run`]: folders and names.
//! - [`writer`]: the open segment; [`rotation`]: from one to the next; [`thread`]: whoever waits for writes and syncs;
//!   [`policy`]: how long; [`disk`]: what is asked of the system.
//! - [`recovery`]: from what is on the disk to a World that goes on; [`give_up`]: after damage, if it must be;
//!   [`repair`]: all but the going on.
//! - [`sessions`]: who is there, as the records tell it; [`borrowed`]: what their characters did before.
//! - [`offline`]: recording without a network; [`playback`]: Worlds from records.
//! - [`segment_reader`]: the records of a segment in their order; [`reader`]: a whole run, or a part of it, for the
//!   commands that look into journals; [`index`]: where its keyframes stand.
//! - [`compress`]: packs what is closed; [`retention`]: removes what need not stay; [`upkeep`]: the thread that does both.
//! - [`fuzzing`]: any bytes as a segment.

mod aside;
pub(crate) mod borrowed;
pub(crate) mod compress;
pub(crate) mod disk;
mod frames;
pub(crate) mod fuzzing;
pub(crate) mod give_up;
pub(crate) mod index;
pub(crate) mod offline;
pub(crate) mod playback;
pub(crate) mod policy;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod repair;
pub(crate) mod retention;
pub(crate) mod rotation;
pub(crate) mod run;
pub(crate) mod seekable;
pub(crate) mod segment;
pub(crate) mod segment_reader;
pub(crate) mod sessions;
pub(crate) mod statistics;
mod syncer;
pub(crate) mod thread;
pub(crate) mod upkeep;
pub(crate) mod writer;

pub(crate) use policy::{Durability, Policy};
pub(crate) use recovery::{OpenError, OpenOptions, Opened, open};
pub(crate) use thread::{JournalThread, Waiting};
pub(crate) use writer::{Failure, Writer};

#[cfg(test)]
mod tests;
