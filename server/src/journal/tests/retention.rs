//! What is removed, and what never is.

use std::fs;
use std::time::Duration;

use super::yard::{Daemon, Yard};
use crate::journal::compress::compress_closed;
use crate::journal::reader;
use crate::journal::record::{CloseReason, Record};
use crate::journal::retention::{Retention, prune, would_prune};

const HOUR_MS: u64 = 3_600_000;

/// A run of five segments of two ticks, each begun an hour after the one before; the last one is open.
fn hours() -> Yard {
    let yard = Yard::new();
    let mut daemon = yard.start();
    for hour in 1..=4 {
        play_hour(&mut daemon, hour);
        daemon.close(CloseReason::Stopped);
        daemon = yard.start();
    }
    play_hour(&mut daemon, 5);
    yard
}

/// Two ticks, then a keyframe of that hour.
fn play_hour(daemon: &mut Daemon, hour: u64) {
    daemon.play(2);
    let (mut keyframe, sessions) = (daemon.keyframe(), daemon.sessions());
    if let Record::Keyframe(keyframe) = &mut keyframe {
        keyframe.unix_ms = hour * HOUR_MS;
    }
    daemon.record(&[keyframe, sessions]);
}

fn bytes(yard: &Yard) -> u64 {
    let segments = yard.segments();
    let lengths = segments
        .iter()
        .map(|path| fs::metadata(path).expect("there").len());
    lengths.sum()
}

/// Prunes at hour 6: so many of the five segments go.
fn check(retention: Retention, removed: usize) {
    for packed in [false, true] {
        let yard = hours();
        if packed {
            compress_closed(&yard.run(), &[]).expect("room");
        }
        let before = yard.segments();
        let planned = would_prune(&yard.folder(), &retention, 6 * HOUR_MS).expect("readable");
        assert_eq!(yard.segments(), before);
        let pruned = prune(&yard.folder(), &retention, 6 * HOUR_MS).expect("readable");
        assert_eq!(pruned, planned);
        assert_eq!(
            yard.segments(),
            before[removed..],
            "{retention:?}, packed {packed}"
        );
        // Verification begins at the first that is left, and a start does not mind.
        let journals = reader::find(yard.data.path(), None, None).expect("a run");
        let mut reader = journals[0].read().expect("a first segment");
        let mut turns = 0;
        while let Some(record) = reader.next().expect("sound") {
            turns += usize::from(matches!(record, Record::Turn(_)));
        }
        assert_eq!(turns, 10 - 2 * removed);
        assert_eq!(yard.start().world.tick(), 10);
    }
}

#[test]
fn old_segments_go() {
    let age = |hours| Retention {
        age_max: Some(Duration::from_millis(hours * HOUR_MS)),
        bytes_max: None,
    };
    check(Retention::default(), 0);
    check(age(6), 0);
    check(age(5), 0);
    check(age(4), 1);
    check(age(3), 2);
    check(age(0), 4);
}

#[test]
fn the_oldest_segments_go_while_there_is_too_much() {
    let size = |bytes| Retention {
        age_max: None,
        bytes_max: Some(bytes),
    };
    check(size(u64::MAX), 0);
    check(size(0), 4);
    let yard = hours();
    let all = bytes(&yard);
    let first = fs::metadata(&yard.segments()[0]).expect("there").len();
    for (limit, removed) in [(all, 0), (all - 1, 1), (all - first, 1), (all - first - 1, 2)] {
        let yard = hours();
        prune(&yard.folder(), &size(limit), 0).expect("readable");
        assert_eq!(yard.segments().len(), 5 - removed);
    }
}

#[test]
fn two_keyframes_are_left_whatever_is_asked_for() {
    let nothing = Retention {
        age_max: Some(Duration::ZERO),
        bytes_max: Some(0),
    };
    // The open segment has one keyframe, so the one before it stays too.
    let yard = hours();
    drop(yard.start());
    prune(&yard.folder(), &nothing, u64::MAX).expect("readable");
    assert_eq!(yard.segments().len(), 2);
    // The same where the last run has just begun.
    let yard = hours();
    drop(yard.open_with(None, true).expect("a new run"));
    prune(&yard.folder(), &nothing, u64::MAX).expect("readable");
    assert_eq!(yard.segments().len(), 1);
}

#[test]
fn an_earlier_run_goes_with_its_folder() {
    let nothing = Retention {
        age_max: None,
        bytes_max: Some(0),
    };
    let yard = hours();
    fs::write(yard.run().join("000002-t000000000004.lsj.torn"), b"tail").expect("room");
    for _ in 0..2 {
        let opened = yard.open_with(None, true).expect("a new run");
        let mut daemon = Daemon {
            world: opened.world,
            writer: opened.journal,
        };
        play_hour(&mut daemon, 9);
    }
    let removed = prune(&yard.folder(), &nothing, 0).expect("readable");
    assert_eq!(removed.len(), 6);
    let runs = crate::journal::run::runs(&yard.folder()).expect("readable");
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].number, 3);
}

#[test]
fn what_was_saved_beside_a_segment_goes_with_it() {
    let yard = hours();
    let saved = [
        "000000-t000000000000.lsj.torn",
        "000001-t000000000001.lsj.given-up",
        "000004-t000000000008.lsj.torn",
    ];
    for name in saved {
        fs::write(yard.run().join(name), b"tail").expect("room");
    }
    let age_max = Some(Duration::from_millis(3 * HOUR_MS));
    let retention = Retention {
        age_max,
        bytes_max: None,
    };
    prune(&yard.folder(), &retention, 6 * HOUR_MS).expect("readable");
    let left = saved.map(|name| yard.run().join(name).exists());
    assert_eq!(left, [false, false, true]);
}

#[test]
fn a_segment_whose_age_cannot_be_told_stays_and_all_behind_it() {
    let yard = hours();
    let path = yard.segments()[1].clone();
    let mut bytes = fs::read(&path).expect("readable");
    bytes[0] ^= 1;
    fs::write(&path, &bytes).expect("room");
    let age_max = Some(Duration::ZERO);
    let retention = Retention {
        age_max,
        bytes_max: None,
    };
    prune(&yard.folder(), &retention, u64::MAX).expect("readable");
    assert_eq!(yard.segments().len(), 4);
}
