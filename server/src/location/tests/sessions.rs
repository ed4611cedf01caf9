//! Sessions that come back, and those that end.

use super::*;

#[test]
fn a_dropped_session_comes_back() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.turns(5);
    let (tick, digest) = (stage.location.next_tick(), stage.location.digest());
    stage.take(Input::Gone(connection(1)));
    stage.turns(3);
    assert_eq!(stage.players(), ["Ann"], "it stands there during its grace");

    let good = Resume {
        session: ann.session,
        token: ann.token,
        run: ann.run,
        next_tick: tick,
        digest,
    };
    let mut number = 1;
    let mut check = |resume: Resume, expected: Result<Option<usize>, Code>| {
        number += 1;
        stage.resume(number, resume);
        let sent = stage.sent(number);
        let outcome = sent.iter().find_map(|parcel| match parcel {
            Parcel::Reject { code, .. } => Some(Err(*code)),
            Parcel::Follow { missed } => Some(Ok(Some(missed.len()))),
            Parcel::Snapshot { .. } => Some(Ok(None)),
            _ => None,
        });
        assert_eq!(outcome, Some(expected), "{resume:?}");
        let known = stage.recognised.contains(&connection(number));
        assert_eq!(known, expected.is_ok(), "{resume:?}");
        if expected.is_ok() {
            // It hangs up before it says anything, so the token stays as it was.
            assert!(matches!(sent[0], Parcel::Welcome { .. }));
            stage.take(Input::Gone(connection(number)));
        }
    };
    let invalid = Err(Code::REJECT_RESUME_INVALID);
    check(good, Ok(Some(3)));
    check(good, Ok(Some(3)));
    check(
        Resume {
            digest: !digest,
            ..good
        },
        Ok(None),
    );
    check(Resume { run: [8; 16], ..good }, Ok(None));
    check(
        Resume {
            next_tick: tick + 4,
            ..good
        },
        Ok(None),
    );
    check(
        Resume {
            next_tick: u64::MAX,
            ..good
        },
        Ok(None),
    );
    check(Resume { next_tick: 0, ..good }, Ok(None));
    check(
        Resume {
            token: [99; 16],
            ..good
        },
        invalid,
    );
    check(Resume { session: 99, ..good }, invalid);

    let mut check = |hello: Hello, expected: Code| {
        let described = format!("{hello:?}");
        stage.enter(50, hello);
        assert_eq!(stage.end(50), Some(expected), "{described}");
        stage.forgotten.clear();
    };
    let back = || Hello {
        resume: Some(good),
        ..hello("")
    };
    let elsewhere = Hello {
        location: Text::cut("elsewhere"),
        ..back()
    };
    check(elsewhere, Code::REJECT_UNKNOWN_LOCATION);
    let role = Hello {
        role: Role::Bot,
        ..back()
    };
    check(role, Code::REJECT_RESUME_INVALID);
}

#[test]
fn whoever_hangs_up_before_a_second_welcome_may_come_back() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    for number in 2..=5 {
        // As many snapshots as may be alive at once.
        let watcher = Hello {
            role: Role::Watcher,
            ..hello("")
        };
        stage.enter(number, watcher);
        stage.turns(1);
    }
    stage.take(Input::Gone(connection(1)));
    let resume = resume_of(&ann);
    stage.resume(60, resume);
    assert!(stage.sent(60).is_empty(), "it waits for a snapshot");
    assert!(stage.recognised.contains(&connection(60)), "but is known");
    stage.resume(6, resume);
    assert_eq!(
        stage.end(60),
        Some(Code::REJECT_ALREADY_CONNECTED),
        "replaced, but a Close is nothing to begin with"
    );
    assert!(stage.sent(6).is_empty());
    stage.take(Input::Gone(connection(6)));
    stage.turns(1);
    assert_eq!(stage.players(), ["Ann"]);
    stage.take(Input::Downloaded {
        connection: connection(2),
        tick: 1,
    });
    stage.turns(10);
    stage.resume(7, resume);
    assert_eq!(stage.welcome(7).session, ann.session, "the old token is good");
}

#[test]
fn tokens_change_and_the_newer_connection_wins() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    let resume = |stage: &Stage, token: [u8; 16]| Resume {
        session: ann.session,
        token,
        run: ann.run,
        next_tick: stage.location.next_tick(),
        digest: stage.location.digest(),
    };
    stage.resume(2, resume(&stage, ann.token));
    assert_eq!(stage.end(1), Some(Code::CLOSE_REPLACED));
    assert_eq!(stage.welcome(2).token, [2; 16]);
    stage.take(Input::Confirmed(connection(2)));
    stage.take(Input::Gone(connection(1)));
    stage.turns(1);
    assert_eq!(stage.sent(2).len(), 1, "the late end of the old one harms nobody");

    stage.resume(3, resume(&stage, ann.token));
    assert_eq!(
        stage.end(3),
        Some(Code::REJECT_RESUME_INVALID),
        "the old token is over"
    );
    stage.resume(4, resume(&stage, [2; 16]));
    assert_eq!(stage.welcome(4).session, ann.session);
    let hashes: Vec<bool> = stage
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Session(session) => Some(session.old_token_hash.is_some()),
            _ => None,
        })
        .collect();
    assert_eq!(hashes, [false, true, false, true], "each step is in the journal");
}

#[test]
fn a_session_comes_back_so_often_and_no_more() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    let resume = resume_of(&ann);
    for number in 2..22 {
        stage.resume(number, resume);
    }
    let recorded = stage.records.len();
    for number in 22..50 {
        stage.resume(number, resume);
        assert_eq!(stage.end(number), Some(Code::REJECT_BUSY));
    }
    assert_eq!(stage.records.len(), recorded);
    assert_eq!(stage.end(21), None, "the last one stays");
    stage.turns(100);
    stage.resume(50, resume);
    assert_eq!(stage.end(50), Some(Code::REJECT_BUSY));
    stage.turns(1);
    stage.resume(51, resume);
    assert_eq!(stage.end(51), None);
}

#[test]
fn after_its_grace_a_session_leaves() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.take(Input::Gone(connection(1)));
    stage.command(1, 1, stop(&ann));
    stage.turns(299);
    assert_eq!(stage.players(), ["Ann"]);
    stage.enter(2, hello("Ann"));
    assert_eq!(stage.end(2), Some(Code::REJECT_NAME_TAKEN));
    stage.turns(1);
    assert!(stage.players().is_empty());
    assert!(matches!(
        stage.records.as_slice(),
        [.., Record::Session(session), Record::Turn(turn)]
            if turn.commands.len() == 1 && session.state == SessionState::Ended
    ));
    let again = stage.join(3, "Ann");
    assert_ne!(again.characters, ann.characters, "an id never means two people");
}

#[test]
fn whoever_says_goodbye_leaves_at_once() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    stage.take(Input::Goodbye(connection(1)));
    assert_eq!(stage.end(1), Some(Code::CLOSE_GOODBYE));
    let Some(Record::Session(session)) = stage.records.last() else {
        panic!("the end is recorded before the Close may leave");
    };
    assert_eq!(session.state, SessionState::Ended);
    assert!(
        stage.recorded().sessions.is_empty(),
        "who is leaving is not there any more"
    );
    stage.take(Input::Gone(connection(1)));
    stage.enter(2, hello("Ann"));
    stage.turns(1);
    assert_eq!(stage.players(), ["Ann"]);
    assert_eq!(stage.welcome(2).last_sequence, 0);
}

#[test]
fn a_restart_knows_its_sessions_and_their_answers() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.command(1, 7, stop(&ann));
    stage.turns(1);
    stage.turns(598);
    assert_eq!(stage.location.next_tick(), 600);
    let Some(Record::Sessions(sessions)) = stage.records.last() else {
        panic!("before turn 600 there is a keyframe and who is there");
    };
    assert_eq!(
        (sessions.tick, sessions.sessions.len(), sessions.answers.len()),
        (600, 1, 1)
    );

    let snapshot = stage.location.world.snapshot();
    let mut after = Stage::new(Start {
        world: World::load(&definition(), &snapshot).expect("a snapshot"),
        sessions: sessions.sessions.to_vec(),
        answers: sessions.answers.to_vec(),
        last_session: ann.session,
        ..start()
    });
    let (next_tick, digest) = (600, after.location.digest());
    let resume = Resume {
        session: ann.session,
        token: ann.token,
        run: ann.run,
        next_tick,
        digest,
    };
    after.resume(1, resume);
    let welcome = after.welcome(1);
    assert_eq!(
        (welcome.characters, welcome.next_tick),
        (ann.characters.clone(), 600)
    );
    assert_eq!(welcome.last_sequence, 7);
    after.command(1, 7, stop(&ann));
    assert_eq!(after.answers(1), [(7, Ok(1))], "the answer from before");
    after.command(1, 8, stop(&ann));
    after.turns(1);
    assert_eq!(after.answers(1), [(8, Ok(600))]);
}

#[test]
fn a_player_without_a_session_leaves_in_the_first_turn() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    let mut after = Stage::new(Start {
        world: World::load(&definition(), &stage.location.world.snapshot()).expect("a snapshot"),
        leave: ann.characters.to_vec(),
        ..start()
    });
    assert_eq!(after.players(), ["Ann"]);
    after.turns(1);
    assert!(after.players().is_empty());
}
