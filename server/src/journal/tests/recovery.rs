//! Starts: after a clean stop, after kills, with another definition, and what is restored.

use std::fs;

use protocol::Code;
use sim::CharacterId;

use super::yard::{self, Yard, digest_at, everything_in};
use super::{memory_folder, session, stop};
use crate::exit::Status;
use crate::journal::offline::Recorder;
use crate::journal::reader::{self, JournalReader};
use crate::journal::record::{Answer, CloseReason, Record, SessionState};
use crate::journal::recovery::OpenError;

/// The ticks and digests of a whole run, read across its segments.
fn turns(reader: &mut JournalReader) -> Vec<(u64, u64)> {
    let mut turns = Vec::new();
    while let Some(record) = reader.next().expect("a sound run") {
        if let Record::Turn(turn) = record {
            turns.push((turn.tick, turn.digest));
        }
    }
    turns
}

/// The first run has exactly these ticks, each with the digest of the uninterrupted run.
fn check_run(yard: &Yard, ticks: u64) {
    let journals = reader::find(yard.data.path(), Some("yard"), Some(1)).expect("readable");
    let mut reader = journals[0].read().expect("a first segment");
    let expected: Vec<(u64, u64)> = (0..ticks).map(|tick| (tick, yard::digest_after(tick))).collect();
    assert_eq!(turns(&mut reader), expected);
    assert_eq!(reader.torn(), None);
}

#[test]
fn a_first_start_begins_a_run_and_a_restart_goes_on_in_it() {
    let yard = Yard::new();
    let opened = yard.open().expect("a fresh folder");
    assert!(opened.fresh);
    assert_eq!((opened.run_number, opened.world.tick()), (1, 0));
    let run = opened.run;
    drop(opened);
    let opened = yard.open().expect("a sound journal");
    assert!(!opened.fresh);
    assert_eq!((opened.run_number, opened.world.tick(), opened.run), (1, 0, run));
}

#[test]
fn a_kill_at_any_tick_restarts_at_its_digest() {
    for ticks in 0..16 {
        let yard = Yard::played(ticks);
        let mut daemon = yard.start();
        assert_eq!(daemon.world.tick(), ticks);
        daemon.play(20 - ticks);
        drop(daemon);
        assert_eq!(yard.start().world.tick(), 20);
        check_run(&yard, 20);
    }
}

#[test]
fn kills_in_a_row_lose_nothing() {
    let yard = Yard::new();
    for ticks in [0, 0, 1, 0, 2, 5, 0, 0, 9] {
        yard.start().play(ticks);
    }
    check_run(&yard, 17);
    assert_eq!(yard.segments().len(), 9);
}

#[test]
fn a_clean_stop_ends_its_segment_with_a_close_record() {
    let yard = Yard::new();
    for _ in 0..3 {
        let mut daemon = yard.start();
        daemon.play(4);
        daemon.close(CloseReason::Stopped);
    }
    check_run(&yard, 12);
}

#[test]
fn a_run_goes_on_from_its_last_whole_keyframe() {
    for with_sessions in [true, false] {
        let yard = Yard::new();
        let mut daemon = yard.start();
        daemon.play(6);
        let keyframe = daemon.keyframe();
        daemon.record(&[keyframe]);
        if with_sessions {
            let sessions = daemon.sessions();
            daemon.record(&[sessions]);
            daemon.play(5);
        }
        let tick = daemon.world.tick();
        drop(daemon);
        let opened = yard.open().expect("a sound journal");
        assert_eq!(
            (opened.world.tick(), opened.world.digest()),
            (tick, digest_at(tick))
        );
        // The Sessions record says that nobody is there, so the players leave; without it both are known.
        let expected = if with_sessions { (0, 2) } else { (2, 0) };
        assert_eq!((opened.sessions.len(), opened.leave.len()), expected);
    }
}

#[test]
fn sessions_and_answers_are_restored() {
    // (ticks, sessions, answers as (session, sequence, tick, index, outcome))
    let ada = [(1, 1, 2, 0, 0), (1, 2, 3, 1, 0)];
    let bob = [(2, 1, 4, 0, 1), (2, 5, 4, 1, 0)];
    let late = (1, 3, 9, 0, 0);
    check_sessions(0, &[], &[]);
    check_sessions(2, &[1], &[]);
    check_sessions(4, &[1, 2], &ada);
    check_sessions(5, &[1, 2], &[ada.as_slice(), &bob].concat());
    check_sessions(10, &[1, 2], &[ada.as_slice(), &[late], &bob].concat());
    check_sessions(14, &[1], &[ada.as_slice(), &[late]].concat());
}

fn check_sessions(ticks: u64, sessions: &[u64], answers: &[(u64, u64, u64, u32, u16)]) {
    let yard = Yard::played(ticks);
    // Twice: from the records, then from the Sessions record of the start before.
    for _ in 0..2 {
        let opened = yard.open().expect("a sound journal");
        let expected: Vec<_> = sessions
            .iter()
            .map(|&number| session(number, &[number as u32], SessionState::Open))
            .collect();
        assert_eq!(opened.sessions, expected, "{ticks} ticks");
        let expected: Vec<Answer> = answers
            .iter()
            .map(|&(session, sequence, tick, index, outcome)| Answer {
                session,
                sequence,
                tick,
                index,
                outcome: Code(outcome),
            })
            .collect();
        assert_eq!(opened.answers, expected, "{ticks} ticks");
        assert!(opened.leave.is_empty());
    }
}

#[test]
fn a_kill_between_a_join_and_its_session_leaves_nobody_behind() {
    let yard = Yard::played(1);
    let mut daemon = yard.start();
    let turn = daemon.step();
    daemon.record(&[Record::Turn(turn)]);
    drop(daemon);
    let opened = yard.open().expect("a sound journal");
    assert_eq!(opened.leave, [CharacterId(1)]);
    assert!(opened.sessions.is_empty());
}

#[test]
fn a_kill_between_a_leave_and_its_session_ends_the_session() {
    let yard = Yard::played(12);
    let mut daemon = yard.start();
    let turn = daemon.step();
    daemon.record(&[Record::Turn(turn)]);
    drop(daemon);
    let opened = yard.open().expect("a sound journal");
    assert!(opened.leave.is_empty());
    assert_eq!(opened.sessions, [session(1, &[1], SessionState::Open)]);
    assert_eq!(opened.last_session, 2);
}

#[test]
fn no_session_number_is_given_twice_in_a_run() {
    let yard = Yard::played(14);
    let mut daemon = yard.start();
    daemon.record(&[Record::Session(session(1, &[1], SessionState::Ended))]);
    daemon.record(&[Record::Session(session(9, &[1], SessionState::Ended))]);
    let (keyframe, sessions) = (daemon.keyframe(), daemon.sessions());
    daemon.record(&[keyframe, sessions]);
    drop(daemon);
    for _ in 0..3 {
        let opened = yard.open().expect("a sound journal");
        assert_eq!((opened.last_session, opened.sessions.len()), (9, 0));
    }
}

#[test]
fn a_new_run_begins_when_it_must_and_nothing_is_deleted() {
    check_new_run("the definition is another than the last run's", |yard| {
        yard.open_with(Some(20), false)
    });
    check_new_run("a new run was asked for", |yard| yard.open_with(None, true));
    check_new_run("the last run was ended", |yard| {
        yard.start().close(CloseReason::RunEnded);
        yard.open()
    });
}

fn check_new_run(why: &str, open: impl Fn(&Yard) -> Result<crate::journal::Opened, OpenError>) {
    let yard = Yard::played(5);
    let before = everything_in(&yard.run());
    let opened = open(&yard).expect("a new run");
    assert_eq!(
        (opened.run_number, opened.fresh, opened.world.tick()),
        (2, true, 0)
    );
    assert!(opened.notes[0].contains(why), "{:?}", opened.notes);
    let after = everything_in(&yard.run());
    assert!(before.iter().all(|file| after.contains(file)));
}

#[test]
fn only_one_daemon_writes_a_location() {
    let yard = Yard::new();
    let first = yard.start();
    let before = everything_in(yard.data.path());
    let second = yard.open().err().expect("refused");
    assert!(matches!(second, OpenError::Locked(_)));
    assert_eq!(second.status(), Status::Refused);
    assert_eq!(everything_in(yard.data.path()), before);
    drop(first);
    assert!(yard.open().is_ok());
}

#[test]
fn what_an_earlier_start_did_not_get_to_name_is_in_nobodys_way() {
    let yard = Yard::played(3);
    fs::write(yard.run().join(".000001-t000000000003.lsj.tmp"), b"half").expect("room");
    fs::write(yard.run().join(".000000-t000000000000.lsj.torn.tmp"), b"half").expect("room");
    fs::create_dir(yard.folder().join(".run-000002.tmp")).expect("room");
    fs::write(
        yard.folder().join(".run-000002.tmp/000000-t000000000000.lsj"),
        b"half",
    )
    .expect("room");
    yard.start().play(2);
    check_run(&yard, 5);
    assert_eq!(yard.open_with(None, true).expect("a new run").run_number, 2);
    let files = everything_in(yard.data.path());
    assert!(
        files
            .iter()
            .all(|(path, _)| !path.to_string_lossy().ends_with(".tmp"))
    );
}

#[test]
fn a_recording_without_a_network_is_a_journal_too() {
    let folder = memory_folder();
    for out in [folder.path().join("one.lsj"), folder.path().join("data")] {
        let recorder = Recorder::create(&out, &yard::bundle(None), yard::definition(), "test");
        let (mut recorder, mut world) = recorder.expect("room");
        let mut events = Vec::new();
        for tick in 0..1_300 {
            let commands = if tick % 100 == 0 {
                vec![stop(100), stop(7)]
            } else {
                Vec::new()
            };
            recorder.step(&mut world, commands, &mut events).expect("room");
        }
        recorder.close(&world).expect("room");
        let journals = reader::find(&out, None, None).expect("readable");
        let turns = turns(&mut journals[0].read().expect("a segment"));
        assert_eq!(turns.len(), 1_300);
        assert_eq!(turns.last(), Some(&(1_299, world.digest())));
        assert_eq!(
            Recorder::create(&out, &yard::bundle(None), yard::definition(), "test").is_ok(),
            out.is_dir()
        );
    }
}
