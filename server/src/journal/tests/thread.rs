//! What is let go of, when, and what happens when the disk does not take it.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use sim::World;

use super::faulty::FaultyDisk;
use super::yard::{self, Daemon, Yard};
use crate::journal::policy::{Durability, Policy};
use crate::journal::reader::Journal;
use crate::journal::record::{CloseReason, Record};
use crate::journal::rotation::SegmentLimits;
use crate::journal::thread::{JournalThread, Waiting};
use crate::journal::writer::Failure;

const EVERY: [Durability; 3] = [Durability::Tick, Durability::Interval, Durability::Os];
/// Ticks between two keyframes here.
const KEYFRAME: u64 = 8;

/// What waited and may leave: of a tick, for the write or for the sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Shown(u64),
    Answered(u64),
}

/// A yard that is played through a journal's thread.
struct Stage {
    yard: Yard,
    world: World,
    journal: JournalThread<Left>,
    left: Receiver<Left>,
}

impl Stage {
    fn new(disk: &FaultyDisk, durability: Durability, segment_ticks_max: u64) -> Self {
        let yard = Yard::new();
        let Daemon { world, mut writer } = yard.start();
        disk.take_over(&mut writer);
        let (sender, left) = mpsc::channel();
        let policy = Policy {
            durability,
            interval: Duration::from_millis(1),
            retry: Duration::from_millis(1),
            segment: SegmentLimits {
                bytes_max: u64::MAX,
                ticks_max: segment_ticks_max,
            },
        };
        // The test may have seen enough.
        let release = move |left| {
            let _ = sender.send(left);
        };
        let journal = JournalThread::spawn(writer, policy, release, |_| {}).expect("a thread");
        Self {
            yard,
            world,
            journal,
            left,
        }
    }

    fn play(&mut self, ticks: u64) -> Result<(), Failure> {
        for _ in 0..ticks {
            let turn = yard::step(&mut self.world);
            let tick = turn.tick;
            let mut records = vec![Record::Turn(turn)];
            records.extend(yard::session_records(tick));
            if (tick + 1).is_multiple_of(KEYFRAME) {
                records.extend([yard::keyframe(&self.world), yard::sessions(&self.world)]);
            }
            let (written, synced) = (Left::Shown(tick), Left::Answered(tick));
            self.journal.append(records, Waiting { written, synced })?;
        }
        Ok(())
    }

    fn next(&self) -> Left {
        self.left
            .recv_timeout(Duration::from_secs(60))
            .expect("it leaves")
    }

    /// Ends in order; the journal then holds what was played, and all that waited has left.
    fn check_all_kept(self, mut seen: Vec<Left>, segments: Option<usize>) {
        let ticks = self.world.tick();
        let closed = self
            .journal
            .close(ticks, self.world.digest(), CloseReason::Stopped);
        closed.expect("kept");
        seen.extend(self.left.iter());
        check_order(&seen, ticks);
        if let Some(segments) = segments {
            assert_eq!(self.yard.segments().len(), segments);
        }
        check_journal(&self.yard, ticks);
        assert_eq!(self.yard.start().world.tick(), ticks);
    }
}

/// Everything once, in order, and no answer before its turn.
fn check_order(left: &[Left], ticks: u64) {
    let (mut shown, mut answered) = (0, 0);
    for left in left {
        match *left {
            Left::Shown(tick) => {
                assert_eq!(tick, shown);
                shown += 1;
            }
            Left::Answered(tick) => {
                assert_eq!(tick, answered);
                answered += 1;
            }
        }
        assert!(answered <= shown, "{left:?}");
    }
    assert_eq!((shown, answered), (ticks, ticks));
}

/// The journal holds exactly the turns of so many ticks of the uninterrupted run.
pub(super) fn check_journal(yard: &Yard, ticks: u64) {
    let journal = Journal::of_run(&yard.run()).expect("segments");
    let mut reader = journal.read().expect("a run");
    let mut next = 0;
    while let Some(record) = reader.next().expect("sound") {
        if let Record::Turn(turn) = record {
            assert_eq!((turn.tick, turn.digest), (next, yard::digest_after(next)));
            next += 1;
        }
    }
    assert_eq!(next, ticks);
    assert!(reader.torn().is_none());
}

#[test]
fn everything_leaves_in_order_whatever_it_waits_for() {
    for durability in EVERY {
        for segment_ticks_max in [1, 20, u64::MAX] {
            let disk = FaultyDisk::sound();
            let mut stage = Stage::new(&disk, durability, segment_ticks_max);
            stage.play(50).expect("kept");
            let segments = match segment_ticks_max {
                1 => 7,  // keyframes at 8, 16, … 48
                20 => 3, // at 24 and 48
                _ => 1,
            };
            stage.check_all_kept(Vec::new(), Some(segments));
        }
    }
}

#[test]
fn a_slow_sync_holds_back_what_it_covers_and_no_write() {
    use Left::{Answered, Shown};
    let check = |durability: Durability, before: &[Left], after_one: &[Left]| {
        let disk = FaultyDisk::sound();
        let (open, gate) = mpsc::channel();
        disk.faults().sync_gate = Some(gate);
        let mut stage = Stage::new(&disk, durability, u64::MAX);
        let written = |writes: u64, stage: &Stage| {
            while disk.faults().writes < writes {
                stage.journal.check().expect("kept");
                std::thread::yield_now();
            }
        };
        stage.play(1).expect("kept");
        written(1, &stage);
        while durability != Durability::Os && disk.faults().sync_gate.is_some() {
            std::thread::yield_now(); // until the first sync waits
        }
        // The next ones are stepped and written meanwhile.
        stage.play(1).expect("kept");
        written(2, &stage);
        let mut seen: Vec<Left> = before.iter().map(|_| stage.next()).collect();
        assert_eq!(seen, before, "{durability:?}: before any sync");
        assert_eq!(stage.left.try_recv(), Err(TryRecvError::Empty), "{durability:?}");
        if durability != Durability::Os {
            open.send(()).expect("it waits");
        }
        let after: Vec<Left> = after_one.iter().map(|_| stage.next()).collect();
        assert_eq!(after, after_one, "{durability:?}: after the first sync");
        assert_eq!(stage.left.try_recv(), Err(TryRecvError::Empty), "{durability:?}");
        seen.extend(after);
        drop(open);
        stage.check_all_kept(seen, Some(1));
    };
    check(Durability::Tick, &[], &[Shown(0), Answered(0)]);
    check(Durability::Interval, &[Shown(0), Shown(1)], &[Answered(0)]);
    let all = [Shown(0), Answered(0), Shown(1), Answered(1)];
    check(Durability::Os, &all, &[]);
}

#[test]
fn a_full_disk_heals_without_a_gap() {
    for durability in EVERY {
        for (room, cuts_fail) in [(0, false), (0, true), (1, false), (40, true), (1_000, true)] {
            for segment_ticks_max in [1, u64::MAX] {
                let disk = FaultyDisk::sound();
                let mut stage = Stage::new(&disk, durability, segment_ticks_max);
                stage.play(5).expect("kept");
                disk.faults().cuts_fail = cuts_fail;
                disk.faults().room = room;
                stage.play(25).expect("kept so far");
                while !stage.journal.is_failing() {
                    stage.journal.check().expect("it will heal");
                    std::thread::yield_now();
                }
                // It tries again and again, with the same bytes.
                let tries = stage.journal.statistics().failed_writes;
                while stage.journal.statistics().failed_writes < tries + 3 {
                    std::thread::yield_now();
                }
                disk.faults().cuts_fail = false;
                disk.faults().room = u64::MAX;
                while stage.journal.is_failing() {
                    std::thread::yield_now();
                }
                stage.play(12).expect("kept");
                let journal = stage.journal.statistics();
                assert!(journal.failed_writes >= 3);
                stage.check_all_kept(Vec::new(), None);
            }
        }
    }
}

#[test]
fn a_stop_on_a_full_disk_says_so_and_sends_nothing_more() {
    for durability in EVERY {
        let disk = FaultyDisk::sound();
        let mut stage = Stage::new(&disk, durability, u64::MAX);
        stage.play(3).expect("kept");
        let seen: Vec<Left> = (0..6).map(|_| stage.next()).collect();
        check_order(&seen, 3);
        disk.faults().room = 20;
        stage.play(2).expect("kept so far");
        let closed = stage.journal.close(5, 0, CloseReason::Stopped);
        assert!(matches!(closed, Err(Failure::Write { .. })), "{closed:?}");
        assert_eq!(stage.left.iter().count(), 0);
        check_journal(&stage.yard, 3);
        assert_eq!(stage.yard.start().world.tick(), 3);
    }
}

#[test]
fn after_a_failed_sync_nothing_is_let_go_and_nothing_is_tried_again() {
    for durability in [Durability::Tick, Durability::Interval] {
        let disk = FaultyDisk::sound();
        disk.faults().syncs_left = 0;
        let mut stage = Stage::new(&disk, durability, u64::MAX);
        stage.play(1).expect("kept so far");
        while stage.journal.check().is_ok() {
            std::thread::yield_now();
        }
        assert!(matches!(stage.play(1), Err(Failure::Sync { .. })));
        let left: Vec<Left> = stage.left.iter().collect();
        let shown = match durability {
            Durability::Interval => vec![Left::Shown(0)],
            _ => Vec::new(),
        };
        assert_eq!(left, shown, "{durability:?}");
        let closed = stage.journal.close(2, 0, CloseReason::Stopped);
        assert!(matches!(closed, Err(Failure::Sync { .. })), "{closed:?}");
        assert_eq!(disk.faults().syncs, 1);
    }
}

#[test]
fn dropping_the_handle_leaves_no_close_record() {
    let disk = FaultyDisk::sound();
    let mut stage = Stage::new(&disk, Durability::Interval, u64::MAX);
    stage.play(4).expect("kept");
    drop(stage.journal);
    check_journal(&stage.yard, 4);
    let mut daemon = stage.yard.start();
    assert_eq!(daemon.world.tick(), 4);
    daemon.play(1);
}
