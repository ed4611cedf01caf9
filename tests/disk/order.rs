//! The order in which things are written, synced and sent, checked from the log of the system calls: no turn before its
//! write (`tick`: its fsync), no acceptance and no Welcome before the fsync that covers it (`os`: its write).

use std::collections::BTreeMap;

use protocol::ServerMessage;

use super::journal::{Record, Segment};
use super::told::{self, Sent};
use super::trace::Call;
use super::volume::{Change, Disk, Image, Operation, look};
use super::yard::{Yard, undisturbed};

/// Lines at which something was kept: entirely written, and covered by an fsync (never: `usize::MAX`).
#[derive(Clone, Copy, Debug)]
struct Kept {
    written: usize,
    synced: usize,
}

/// When what was kept, by what a message can be about.
#[derive(Debug, Default)]
struct Keeping {
    /// By tick.
    turns: BTreeMap<u64, Kept>,
    /// By number and hash of the token.
    sessions: BTreeMap<(u64, [u8; 32]), Kept>,
}

impl Keeping {
    fn of(disk: &Disk) -> Self {
        let mut keeping = Self::default();
        for (node, operations) in disk.files() {
            let Some(segment) = Segment::read(disk.bytes(node)) else {
                continue;
            };
            for placed in segment.records {
                let kept = kept(&operations, placed.start, placed.end);
                match placed.record {
                    Record::Turn(turn) => drop(keeping.turns.insert(turn.tick, kept)),
                    Record::Session(session) => {
                        keeping
                            .sessions
                            .insert((session.session, session.token_hash), kept);
                    }
                    _ => {}
                }
            }
        }
        keeping
    }

    /// Asserts that a message left after what it tells was kept.
    fn check(&self, sent: &Sent, flag: &str) {
        let turn = |tick: u64| {
            self.turns
                .get(&tick)
                .unwrap_or_else(|| panic!("tick {tick} is nowhere"))
        };
        let before = |what: &str, line: usize| {
            assert!(
                line < sent.start,
                "{flag}: {what} comes too late for line {}: {:?}",
                sent.start,
                sent.message
            );
        };
        let turn_is_kept = |tick: u64| match flag {
            "tick" => before("the sync of the turn", turn(tick).synced),
            _ => before("the write of the turn", turn(tick).written),
        };
        let answer_is_kept = |kept: &Kept| match flag {
            "os" => before("the write of the record", kept.written),
            _ => before("the sync of the record", kept.synced),
        };
        match &sent.message {
            ServerMessage::Turn(told) => turn_is_kept(told.tick),
            ServerMessage::State(told) => turn_is_kept(told.tick),
            ServerMessage::PackedState(told) => turn_is_kept(told.tick),
            // The World after the turn before.
            ServerMessage::Snapshot { tick, .. } if *tick > 0 => turn_is_kept(tick - 1),
            ServerMessage::Accepted { tick, .. } => answer_is_kept(turn(*tick)),
            ServerMessage::Welcome(welcome) => {
                let hash = *blake3::hash(&welcome.token).as_bytes();
                let session = self.sessions.get(&(welcome.session, hash));
                answer_is_kept(session.expect("a Welcome's session is recorded"));
                if welcome.next_tick > 0 {
                    answer_is_kept(turn(welcome.next_tick - 1));
                }
            }
            _ => {}
        }
    }
}

/// When the bytes from `start` to `end` of a file were kept.
fn kept(operations: &[&Operation], start: usize, end: usize) -> Kept {
    let overlaps = |operation: &&&Operation| match &operation.change {
        Change::Write { offset, bytes } => *offset < end && start < offset + bytes.len(),
        _ => false,
    };
    let written = operations
        .iter()
        .filter(overlaps)
        .map(|operation| operation.end)
        .max();
    let written = written.expect("whatever is in a file was written");
    let syncs = operations
        .iter()
        .filter(|operation| matches!(operation.change, Change::Sync));
    let synced = syncs
        .filter(|sync| sync.start > written)
        .map(|sync| sync.end)
        .min();
    Kept {
        written,
        synced: synced.unwrap_or(usize::MAX),
    }
}

/// Every message that was sent left after what it tells was kept; all of them.
pub(crate) fn check_sent(durability: &str, calls: &[Call], yard: &Yard) -> Vec<Sent> {
    let disk = Disk::new(&yard.data(), &Image::new(), calls);
    assert!(
        disk.image() == look(&yard.data()),
        "the simulated disk is the real one"
    );
    let keeping = Keeping::of(&disk);
    let sent = told::sent(calls);
    for message in &sent {
        keeping.check(message, durability);
    }
    sent
}

/// The same, of messages of all kinds that promise something.
fn check(durability: &str, calls: &[Call], yard: &Yard) {
    let sent = check_sent(durability, calls, yard);
    let count = |wanted: fn(&ServerMessage) -> bool| sent.iter().filter(|sent| wanted(&sent.message)).count();
    let counts = [
        count(|message| matches!(message, ServerMessage::Welcome(_))),
        count(|message| matches!(message, ServerMessage::Turn(_))),
        count(|message| matches!(message, ServerMessage::PackedState(_))),
        count(|message| matches!(message, ServerMessage::Snapshot { .. })),
        count(|message| matches!(message, ServerMessage::Accepted { .. })),
    ];
    assert!(
        counts[0] == 3 && counts.iter().all(|count| *count > 0),
        "something of everything: {counts:?}"
    );
}

fn check_durability(durability: &str) {
    let yard = Yard::new(&["--durability", durability]);
    let (_, calls) = undisturbed(&yard, 64);
    check(durability, &calls, &yard);
}

#[test]
fn with_tick_nothing_is_sent_before_its_fsync() {
    check_durability("tick");
}

#[test]
fn with_interval_no_answer_is_sent_before_its_fsync() {
    check_durability("interval");
}

#[test]
fn with_os_nothing_is_sent_before_its_write() {
    check_durability("os");
}
