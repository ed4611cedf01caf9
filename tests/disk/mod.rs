//! The disk table of spec 9.3 on the real daemon: kills, power loss, full, failing and slow disks, two daemons.
//!
//! ```text
//! yard (a small location, players who walk) ── daemon under strace ──▶ calls ── disk ──▶ what was written, synced, sent
//!                                                                                 └──▶ the folder after a crash there
//! the folder ── the real daemon starts ──▶ journal (read here as docs/JOURNAL.md has it) ──▶ what must be in it
//! ```
//!
//! - [`trace`]: a daemon under `strace`, and its system calls one by one; [`disk`]: the file system those calls made.
//! - [`told`]: what clients were told, as they saw it or as the calls have it.
//! - [`journal`]: a reader of segments written from the documentation alone; [`yard`]: the location and its players.
//! - One module for each row of the table: [`order`], [`kill`], [`power_loss`], [`trouble`], [`slow`], [`start`].

mod disk;
mod journal;
mod order;
mod told;
mod trace;
mod yard;
