//! `--recover`: the last state that can be proved, and everything else saved.

use std::fs;
use std::path::Path;

use super::session;
use super::yard::{Yard, digest_at, everything_in};
use crate::exit::Status;
use crate::journal::compress::compress;
use crate::journal::record::{Nonce, Record, SessionState};

/// Three segments of four ticks each; all of the last one is durable, and a keyframe stands at tick 10.
fn yard() -> Yard {
    let yard = Yard::new();
    for _ in 0..2 {
        yard.start().play(4);
    }
    let mut daemon = yard.start();
    daemon.play(2);
    let (keyframe, sessions) = (daemon.keyframe(), daemon.sessions());
    daemon.record(&[keyframe, sessions]);
    daemon.play(2);
    daemon.writer.sync().expect("a disk");
    daemon.play(1);
    yard
}

/// With this done to the yard it is refused, untouched; `--recover` goes on at `tick`, and so does the next start.
/// Nothing of what was there is lost: it is where it was or saved, byte for byte.
fn check(tick: u64, saved: usize, spoil: impl Fn(&Yard)) {
    let yard = yard();
    spoil(&yard);
    let before = everything_in(yard.data.path());
    let refused = yard.open().err().expect("refused");
    assert_eq!(refused.status(), Status::DamagedData, "{refused}");
    assert_eq!(everything_in(yard.data.path()), before);
    let opened = yard
        .recover()
        .unwrap_or_else(|error| panic!("tick {tick}: {error}"));
    assert_eq!(
        (opened.world.tick(), opened.world.digest()),
        (tick, digest_at(tick))
    );
    assert!(opened.notes[0].contains("given up"), "{:?}", opened.notes);
    let mut daemon = super::yard::Daemon {
        world: opened.world,
        writer: opened.journal,
    };
    daemon.play(2);
    drop(daemon);
    assert_eq!(yard.start().world.tick(), tick + 2);
    let after = everything_in(yard.data.path());
    let is_saved = |path: &Path| path.to_string_lossy().contains(".given-up");
    assert_eq!(after.iter().filter(|(path, _)| is_saved(path)).count(), saved);
    assert!(
        after
            .iter()
            .any(|(path, _)| path.ends_with("recovered-000001.txt"))
    );
    let files = before.into_iter().filter(|(_, bytes)| !bytes.is_empty());
    for (path, bytes) in files {
        // Where it was, beside it, or in two parts; a new segment may have got the name of one that was given up.
        let name = path.to_string_lossy();
        let (mut here, mut beside) = (Vec::new(), Vec::new());
        for (other, part) in &after {
            if *other == path {
                here = part.clone();
            } else if is_saved(other) && other.to_string_lossy().starts_with(&*name) {
                beside = part.clone();
            }
        }
        let is_kept = here == bytes || beside == bytes || [here, beside].concat() == bytes;
        assert!(is_kept, "{name}");
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("readable");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("room");
}

/// Where the record of each kind and tick begins in the last segment.
fn turn_at(yard: &Yard, tick: u64) -> usize {
    let path = yard.last_segment();
    let mut reader = crate::journal::segment_reader::SegmentReader::open_path(&path).expect("a header");
    loop {
        let at = reader.offset() as usize;
        match reader.next().expect("sound").expect("it is there") {
            Record::Turn(turn) if turn.tick == tick => return at,
            _ => {}
        }
    }
}

#[test]
fn damage_in_the_last_segment_costs_what_is_behind_it() {
    check(9, 1, |yard| flip(&yard.last_segment(), turn_at(yard, 9) + 33));
    check(8, 1, |yard| flip(&yard.last_segment(), turn_at(yard, 8)));
    check(10, 1, |yard| flip(&yard.last_segment(), turn_at(yard, 10) + 40));
}

#[test]
fn a_segment_that_proves_nothing_is_given_up_as_a_whole() {
    check(8, 1, |yard| flip(&yard.last_segment(), 10));
    check(8, 1, |yard| flip(&yard.last_segment(), 200));
    check(4, 2, |yard| {
        flip(&yard.segments()[2], 10);
        flip(&yard.segments()[1], 300);
    });
}

#[test]
fn a_gap_costs_the_history_before_it_and_no_tick() {
    check(13, 1, |yard| fs::remove_file(&yard.segments()[1]).expect("there"));
    check(13, 2, |yard| flip(&yard.segments()[1], 20));
    check(13, 1, |yard| flip(&yard.segments()[0], 20));
}

#[test]
fn a_turn_that_leads_elsewhere_is_given_up() {
    let yard = yard();
    let mut daemon = yard.start();
    daemon.play(1);
    let mut turn = daemon.step();
    turn.digest ^= 1;
    daemon.record(&[Record::Turn(turn)]);
    drop(daemon);
    assert_eq!(yard.open().err().expect("refused").status(), Status::DamagedData);
    let opened = yard.recover().expect("a state is proved");
    assert_eq!((opened.world.tick(), opened.world.digest()), (14, digest_at(14)));
}

#[test]
fn what_can_be_proved_of_a_packed_segment_is_unpacked() {
    let yard = Yard::new();
    let mut daemon = yard.start();
    daemon.play(6);
    let (keyframe, sessions) = (daemon.keyframe(), daemon.sessions());
    daemon.record(&[keyframe, sessions]);
    daemon.play(6);
    drop(daemon);
    let packed = compress(&yard.last_segment()).expect("whole");
    // The last byte before the seek table: of the second frame.
    let bytes = fs::read(&packed).expect("readable");
    flip(&packed, bytes.len() - 8 - 16 - 9 - 3);
    let spoilt = fs::read(&packed).expect("readable");
    assert_eq!(yard.open().err().expect("refused").status(), Status::DamagedData);
    let opened = yard.recover().expect("a state is proved");
    assert_eq!((opened.world.tick(), opened.world.digest()), (6, digest_at(6)));
    drop(opened);
    assert!(yard.segments()[0].extension() == Some("lsj".as_ref()));
    let saved = packed.with_extension("zst.given-up");
    assert_eq!(fs::read(saved).expect("saved"), spoilt);
    yard.start().play(2);
}

#[test]
fn where_nothing_can_be_proved_nothing_is_touched() {
    let yard = yard();
    for path in yard.segments() {
        flip(&path, 200);
    }
    let before = everything_in(yard.data.path());
    let error = yard.recover().err().expect("refused");
    assert_eq!(error.status(), Status::DamagedData);
    assert!(error.to_string().contains("--new-run"), "{error}");
    assert_eq!(everything_in(yard.data.path()), before);
    assert!(yard.open_with(None, true).expect("a new run").fresh);
}

#[test]
fn a_sound_journal_is_not_recovered() {
    let yard = yard();
    let opened = yard.recover().expect("sound");
    assert_eq!(opened.world.tick(), 13);
    assert!(!yard.run().join("recovered-000001.txt").exists());
}

#[test]
fn numbers_and_tickets_of_what_was_given_up_are_not_used_again() {
    let yard = yard();
    let mut daemon = yard.start();
    let at = daemon.writer.length() as usize;
    daemon.play(1);
    let mut late = session(7, &[], SessionState::Open);
    let ticket = Nonce {
        nonce: [9; 16],
        expires: u64::MAX,
    };
    late.nonce = Some(ticket);
    daemon.record(&[Record::Session(late)]);
    daemon.writer.sync().expect("a disk");
    daemon.play(1);
    drop(daemon);
    flip(&yard.last_segment(), at + 33);
    assert!(yard.open().is_err());
    let opened = yard.recover().expect("a state is proved");
    assert_eq!((opened.world.tick(), opened.last_session), (13, 7));
    assert_eq!(opened.nonces, [ticket]);
    drop(opened);
    let opened = yard.open_with(None, true).expect("a new run");
    assert_eq!(opened.nonces, [ticket]);
}

#[test]
fn tickets_are_handed_on_until_they_expire() {
    let yard = Yard::played(3);
    let mut daemon = yard.start();
    let tickets = [(1, 1), (2, u64::MAX)].map(|(nonce, expires)| Nonce {
        nonce: [nonce; 16],
        expires,
    });
    for (number, ticket) in (5..).zip(tickets) {
        let mut came = session(number, &[], SessionState::Open);
        came.nonce = Some(ticket);
        daemon.record(&[Record::Session(came)]);
    }
    drop(daemon);
    for (rate, new_run) in [
        (None, false),
        (None, false),
        (None, true),
        (Some(20), false),
        (Some(20), false),
    ] {
        let opened = yard.open_with(rate, new_run).expect("sound");
        assert_eq!(opened.nonces, tickets[1..]);
    }
}
