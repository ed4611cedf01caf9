//! The disk table of spec 9.3 on the real daemon: kills, power loss, full, failing and slow disks, two daemons.
//!
//! ```text
//! yard (a small location, players who walk) ── daemon under strace ──▶ calls ── volume ──▶ what was written, synced, sent
//!                                                                                 └──▶ the folder after a crash there
//! the folder ── the real daemon starts ──▶ journal (read here as docs/JOURNAL.md has it) ──▶ what must be in it
//! ```
//!
//! - [`trace`]: a daemon under `strace`, and its system calls one by one; [`volume`]: the file system those calls made.
//! - [`told`]: what clients were told, as they saw it or as the calls have it.
//! - [`journal`]: a reader of segments written from the documentation alone; [`yard`]: the location and its players.
//! - [`mount`]: file systems of a test's own.
//! - One module for each row of the table: [`order`], [`kill`], [`power_loss`] (and under a real file system, where there
//!   may be one: [`loop_image`]), [`full`], [`trouble`].
//!
//! Every kill of a run is tried. `LOCKSTEPD_EXHAUSTIVE=1` tries every kill of the start that follows, and every power cut
//! too; otherwise a part that is spread over all of them.

mod full;
mod journal;
mod kill;
mod loop_image;
mod mount;
mod order;
mod power_loss;
mod told;
mod trace;
mod trouble;
mod volume;
mod yard;

/// Whether all cases are asked for.
fn is_exhaustive() -> bool {
    std::env::var_os("LOCKSTEPD_EXHAUSTIVE").is_some()
}

/// So many of them, from the first to the last.
fn spread<T>(all: &[T], count: usize) -> impl Iterator<Item = &T> {
    let count = count.min(all.len());
    (0..count).map(move |at| &all[at * all.len() / count])
}
