//! Digests that differ: who is told what, who is asked for its World, and what it may answer.

use protocol::message::Desync;
use sim::{Sections, World};

use super::super::investigator::recompute;
use super::*;

#[test]
fn a_wrong_digest_is_named_once_and_healed_on_request() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    stage.turns(25);
    let mut worlds = World::new(&definition());
    let digest = |stage: &mut Stage, tick: u64, digest: u64| {
        stage.take(Input::Digest {
            connection: connection(1),
            tick,
            digest,
        });
    };
    let right = stage.location.history.digest_to_compare(25).expect("recent");
    digest(&mut stage, 25, right);
    digest(&mut stage, 0, 1);
    digest(&mut stage, 26, 1);
    assert!(
        stage.recomputations.is_empty(),
        "right, before its snapshot, from the future"
    );
    digest(&mut stage, 24, 1);
    digest(&mut stage, 25, 2);
    let recomputation = stage.recomputations.pop().expect("one, for the first");
    let sections = recompute(&definition(), &recomputation)
        .expect("turns that lead there")
        .sections();
    for record in &stage.records {
        if let Record::Turn(turn) = record
            && turn.tick <= 24
        {
            worlds.step_into(&turn.commands, &mut Vec::new());
        }
    }
    assert_eq!(sections, worlds.sections());

    stage.messages(1);
    stage.take(Input::Sections {
        tick: 24,
        sections: Some(Box::new(sections)),
    });
    let messages = stage.messages(1);
    let [ServerMessage::Desync(desync)] = messages.as_slice() else {
        panic!("{messages:?}");
    };
    let Desync {
        tick, expected, map, ..
    } = **desync;
    assert_eq!(
        (tick, expected, map),
        (24, worlds.digest(), worlds.sections().map)
    );

    let snapshots = |stage: &mut Stage| stage.snapshots(1).len();
    stage.take(Input::Resync(connection(1)));
    assert_eq!(snapshots(&mut stage), 0, "with the next turn");
    stage.turns(1);
    assert_eq!(snapshots(&mut stage), 1);
    stage.take(Input::Resync(connection(1)));
    stage.turns(19);
    assert_eq!(snapshots(&mut stage), 0, "one in two seconds");
    stage.turns(2);
    assert_eq!(snapshots(&mut stage), 1);
    let counters = stage.location.counters();
    assert_eq!((counters.desyncs, counters.resyncs, counters.digests), (1, 2, 3));
}

/// Whoever does not step the World learns nothing by a digest, and takes no report from those who do.
#[test]
fn a_digest_of_somebody_who_does_not_simulate_says_nothing() {
    let mut stage = Stage::new(start());
    for (number, feed) in [(1, message::Feed::State), (2, message::Feed::Answers)] {
        let watching = Hello {
            feed,
            ..hello(&format!("Ann {number}"))
        };
        stage.enter(number, watching);
    }
    stage.turns(25);
    for number in [1, 2] {
        stage.messages(number);
        let connection = connection(number);
        stage.take(Input::Digest {
            connection,
            tick: 25,
            digest: 1,
        });
        assert_eq!(stage.messages(number), []);
    }
    assert!(stage.recomputations.is_empty());
    let counters = stage.location.counters();
    assert_eq!((counters.desyncs, counters.digests_ignored), (0, 2));
}

#[test]
fn while_the_clock_stands_a_snapshot_does_not_wait_for_a_turn() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    stage.sent(1);
    stage
        .location
        .pause(stage.now_us, &mut stage.outputs)
        .expect("it runs");
    let mut check = |after_us: u64, expected: usize| {
        stage.now_us += after_us;
        for _ in 0..100 {
            stage.take(Input::Resync(connection(1)));
        }
        stage.location.stand_still(stage.now_us, &mut stage.outputs);
        stage.sort();
        assert_eq!(stage.snapshots(1).len(), expected, "{after_us} µs later");
    };
    check(0, 1);
    check(1_999_999, 0);
    check(1, 1);
}

fn digest(stage: &mut Stage, number: u64, tick: u64) {
    stage.take(Input::Digest {
        connection: connection(number),
        tick,
        digest: 1,
    });
}

fn report(stage: &mut Stage, number: u64, tick: u64, part: (u32, u32)) {
    stage.take(Input::Report {
        connection: connection(number),
        tick,
        part,
        bytes: Bytes::from_static(b"World"),
    });
}

/// Whether this connection was asked for its World in what it was sent last.
fn asked(stage: &mut Stage, number: u64) -> bool {
    let messages = stage.messages(number);
    let desync = messages.into_iter().find_map(|message| match message {
        ServerMessage::Desync(desync) => Some(desync),
        _ => None,
    });
    desync.expect("it was told").want_report
}

#[test]
fn a_client_is_asked_for_its_world_and_what_it_sends_is_kept() {
    let mut stage = Stage::new(start());
    for (number, name) in [(1, "Ann"), (2, "Bob"), (3, "Cat")] {
        stage.join(number, name);
    }
    stage.turns(25);
    for number in 1..=3 {
        stage.messages(number);
        digest(&mut stage, number, 24);
    }
    let [recomputation] = &stage.recomputations[..] else {
        panic!("one for all");
    };
    assert!(recomputation.keep, "the server's World of that tick too");
    let sections = Sections::default();
    stage.take(Input::Sections {
        tick: 24,
        sections: Some(Box::new(sections.clone())),
    });
    let asked: Vec<bool> = (1..=3).map(|number| asked(&mut stage, number)).collect();
    assert_eq!(asked, [true, true, false], "two in this run");

    report(&mut stage, 1, 24, (0, 2));
    assert!(stage.kept.is_empty());
    report(&mut stage, 1, 24, (1, 2));
    let kept = stage.kept.pop().expect("it is whole");
    assert_eq!((kept.tick, &kept.bytes[..]), (24, &b"WorldWorld"[..]));
    assert_eq!(kept.sections.as_deref(), Some(&sections));

    report(&mut stage, 2, 24, (1, 2));
    report(&mut stage, 3, 24, (0, 1));
    for (number, expected) in [(2, Code::CLOSE_BAD_FRAME), (3, Code::CLOSE_UNEXPECTED)] {
        let sent = stage.sent(number);
        let Some(Parcel::Close { code, .. }) = sent.last() else {
            panic!("{number} is not closed: {sent:?}");
        };
        assert_eq!(*code, expected, "connection {number}");
    }
}

#[test]
fn whoever_is_told_late_is_told_the_digest_all_the_same() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    stage.turns(25);
    let right = stage.location.history.digest_to_compare(24).expect("recent");
    digest(&mut stage, 1, 24);
    // Until its parts are computed the tick becomes too old to be compared.
    stage.turns(150);
    assert_eq!(stage.location.history.digest_to_compare(24), None);
    stage.messages(1);
    stage.take(Input::Sections {
        tick: 24,
        sections: None,
    });
    match stage.messages(1).as_slice() {
        [ServerMessage::Desync(desync)] => assert_eq!((desync.tick, desync.expected), (24, right)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_is_asked_where_the_servers_world_cannot_be_had() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    stage.turns(25);
    stage.messages(1);
    digest(&mut stage, 1, 24);
    stage.take(Input::Sections {
        tick: 24,
        sections: None,
    });
    assert!(!asked(&mut stage, 1));
    report(&mut stage, 1, 24, (0, 1));
    assert!(stage.kept.is_empty());
}
