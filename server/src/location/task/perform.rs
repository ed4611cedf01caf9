//! Doing what a location has put out: into the journal, and out with it.

use std::sync::{Arc, LazyLock, PoisonError};
use std::time::Instant;

use sim::Command;

use super::Task;
use super::delivery::{Delivery, Leaves, Mark, Release, leaves};
use crate::journal::record::{Keyframe, Note, Record, unix_ms};
use crate::journal::{Failure, Waiting};
use crate::location::Output;
use crate::location::outbox::Parcel;

impl Task<'_> {
    /// Does what the location has put out: records and what waits for them go to the journal together.
    pub(super) fn perform(&mut self, turn: Option<(u64, Instant)>) -> Result<(), Failure> {
        let mut records = Vec::new();
        let (mut with_write, mut with_sync) = (Vec::new(), Vec::new());
        let now = Instant::now();
        for output in std::mem::take(&mut self.outputs) {
            match output {
                Output::Record(record) => {
                    fail_if_asked(&record);
                    records.push(record);
                }
                Output::Keyframe {
                    tick,
                    digest,
                    snapshot,
                    sessions,
                } => match Keyframe::new(tick, digest, snapshot) {
                    Ok(keyframe) => records.extend([Record::Keyframe(keyframe), Record::Sessions(sessions)]),
                    // The journal goes on from an earlier keyframe.
                    Err(error) => tracing::error!(tick, %error, "no keyframe"),
                },
                Output::Note { tick, actor, text } => records.push(Record::Note(Note {
                    tick,
                    unix_ms: unix_ms(),
                    actor,
                    text,
                })),
                Output::Reply(reply_to, reply) => with_sync.push(Delivery::Reply(reply_to, reply)),
                Output::Follow(connection) => {
                    if let Some(outbox) = self.outboxes.get(&connection) {
                        Arc::make_mut(&mut self.followers).push((connection, Arc::clone(outbox)));
                    }
                }
                Output::Recognise(connection) => {
                    if let Some(outbox) = self.outboxes.get(&connection) {
                        outbox.recognise();
                    }
                }
                Output::Broadcast { tick, frame } => {
                    if let Some(shadow) = &mut self.shadow {
                        shadow.turn_ran(tick, &frame, &self.location.world);
                    }
                    let to = Arc::clone(&self.followers);
                    with_write.push(Delivery::All { to, tick, frame });
                }
                Output::Send(connection, parcel) => {
                    let Some(outbox) = self.outboxes.get(&connection) else {
                        continue;
                    };
                    let wait = match leaves(&parcel) {
                        Leaves::AtOnce => {
                            outbox.push(parcel, now);
                            continue;
                        }
                        Leaves::WithWrite => &mut with_write,
                        Leaves::WithSync => &mut with_sync,
                    };
                    wait.push(Delivery::One(Arc::clone(outbox), parcel));
                }
                Output::Clock(frame) => {
                    for outbox in self.outboxes.values() {
                        outbox.push(Parcel::Clock(frame.clone()), now);
                    }
                    *self.clock_frame.lock().unwrap_or_else(PoisonError::into_inner) = frame;
                }
                Output::Forget(connection) => {
                    if self.outboxes.remove(&connection).is_some() {
                        let follows = self.followers.iter().any(|(follower, _)| *follower == connection);
                        if follows {
                            Arc::make_mut(&mut self.followers)
                                .retain(|(follower, _)| *follower != connection);
                        }
                    }
                }
                Output::Investigate(question) => {
                    // It ends only with this thread.
                    let _ = self.investigator.send(question);
                }
            }
        }
        if records.is_empty() && with_write.is_empty() && with_sync.is_empty() {
            return Ok(());
        }
        let (mut shown, mut answered) = (Mark::None, Mark::None);
        if let Some((tick, started)) = turn {
            let took = started.elapsed();
            shown = Mark::Shown { tick, took };
            answered = Mark::Answered { tick };
        }
        let release = |deliveries, mark| Release { deliveries, mark };
        self.journal.append(
            records,
            Waiting {
                written: release(with_write, shown),
                synced: release(with_sync, answered),
            },
        )
    }
}

/// What tests send to see what a defect does: an Application with this payload, to a debug build that was started with
/// LOCKSTEPD_TEST_PANIC set.
const TEST_PANIC: &[u8] = b"panic";

/// A turn that panics before it is recorded, if a test asks for it; never in a release build.
fn fail_if_asked(record: &Record) {
    static ASKED: LazyLock<bool> =
        LazyLock::new(|| cfg!(debug_assertions) && std::env::var_os("LOCKSTEPD_TEST_PANIC").is_some());
    let fails = |command: &Command| matches!(command, Command::Application { payload, .. } if **payload == *TEST_PANIC);
    if *ASKED
        && let Record::Turn(turn) = record
        && turn.commands.iter().any(fails)
    {
        panic!("a test asked for it at tick {}", turn.tick);
    }
}
