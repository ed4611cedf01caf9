//! From one segment to the next, whatever the disk does meanwhile.

use super::faulty::FaultyDisk;
use super::thread::check_journal;
use super::yard::{Daemon, Yard};
use crate::journal::record::{CloseReason, Record};
use crate::journal::rotation::{Rotation, SegmentLimits};
use crate::journal::writer::Failure;

/// A daemon that has played eight ticks, on a disk with no faults yet.
fn played(yard: &Yard) -> (Daemon, FaultyDisk) {
    let mut daemon = yard.start();
    let disk = FaultyDisk::sound();
    disk.take_over(&mut daemon.writer);
    daemon.play(8);
    (daemon, disk)
}

fn rotate(daemon: &mut Daemon) -> Result<Rotation, Failure> {
    let (Record::Keyframe(keyframe), Record::Sessions(sessions)) = (daemon.keyframe(), daemon.sessions())
    else {
        unreachable!("that is what they make")
    };
    daemon.writer.rotate(&keyframe, &sessions)
}

/// Goes on to tick 12 and stops; the journal is sound and has so many segments.
fn check_goes_on(yard: &Yard, mut daemon: Daemon, segments: usize) {
    daemon.play(4);
    daemon.close(CloseReason::Stopped);
    assert_eq!(yard.segments().len(), segments);
    check_journal(yard, 12);
    assert_eq!(yard.start().world.tick(), 12);
}

#[test]
fn a_segment_is_full_by_bytes_or_ticks_but_never_at_once() {
    let yard = Yard::new();
    let (daemon, _) = played(&yard);
    let check = |bytes_max: u64, ticks_max: u64, tick: u64, full: bool| {
        let limits = SegmentLimits { bytes_max, ticks_max };
        assert_eq!(daemon.writer.is_full(tick, limits), full, "{limits:?} at {tick}");
    };
    check(u64::MAX, 8, 8, true);
    check(u64::MAX, 9, 8, false);
    check(1, u64::MAX, 8, true);
    check(1_000_000, u64::MAX, 8, false);
    check(0, 0, 0, false);
}

#[test]
fn the_next_segment_goes_on_where_the_last_was_closed() {
    let yard = Yard::new();
    let (mut daemon, _) = played(&yard);
    assert!(matches!(rotate(&mut daemon), Ok(Rotation::Done { .. })));
    let names: Vec<String> = yard
        .segments()
        .iter()
        .map(|path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(names, ["000000-t000000000000.lsj", "000001-t000000000008.lsj"]);
    check_goes_on(&yard, daemon, 2);
}

#[test]
fn without_room_for_the_next_the_last_goes_on() {
    // Room for a whole segment and the Close of the last one is known once there was enough.
    for room in (0..).step_by(7) {
        let yard = Yard::new();
        let (mut daemon, disk) = played(&yard);
        disk.faults().room = room;
        let rotation = rotate(&mut daemon).expect("it heals");
        disk.faults().room = u64::MAX;
        if matches!(rotation, Rotation::Done { .. }) {
            assert!(room > 500, "{room}");
            check_goes_on(&yard, daemon, 2);
            return;
        }
        assert_eq!(yard.segments().len(), 1, "{room}");
        let (keyframe, sessions) = (daemon.keyframe(), daemon.sessions());
        daemon.record(&[keyframe, sessions]);
        check_goes_on(&yard, daemon, 1);
    }
}

#[test]
fn without_a_name_for_the_next_the_last_goes_on() {
    let yard = Yard::new();
    let (mut daemon, disk) = played(&yard);
    disk.faults().renames_fail = true;
    assert!(matches!(rotate(&mut daemon), Ok(Rotation::Stayed(_))));
    disk.faults().renames_fail = false;
    daemon.play(1);
    assert!(matches!(rotate(&mut daemon), Ok(Rotation::Done { .. })));
    daemon.play(3);
    daemon.close(CloseReason::Stopped);
    check_journal(&yard, 12);
}

#[test]
fn a_failed_sync_ends_it() {
    // Of the last segment before its Close, of the next, of the last behind its Close.
    for syncs_left in 0..3 {
        let yard = Yard::new();
        let (mut daemon, disk) = played(&yard);
        disk.faults().syncs_left = syncs_left;
        assert!(matches!(rotate(&mut daemon), Err(Failure::Sync { .. })));
    }
}

#[test]
fn a_stop_at_any_operation_leaves_a_sound_journal() {
    for operations in 0.. {
        let yard = Yard::new();
        let (mut daemon, disk) = played(&yard);
        disk.faults().operations_left = operations;
        let done = matches!(rotate(&mut daemon), Ok(Rotation::Done { .. }));
        drop(daemon);
        let daemon = yard.start();
        assert_eq!(daemon.world.tick(), 8, "after {operations} operations");
        // The start itself has begun another.
        let segments = yard.segments().len();
        assert!(segments == 2 || segments == 3, "{segments} after {operations}");
        check_goes_on(&yard, daemon, segments);
        if done {
            assert!(operations > 6);
            return;
        }
    }
}
