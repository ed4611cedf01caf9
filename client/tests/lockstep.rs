//! Definition, snapshot and turns in every order that a server may send them, and in some that it may not.

#[allow(dead_code)] // other tests use the rest
mod common;

use client::lockstep::{Difference, Progress, TURNS_KEPT_MAX};
use client::{Download, Downloaded, Lockstep, LockstepError, Simulation};
use common::Authority;
use protocol::ClientMessage;
use protocol::message::{Desync, Turn, Welcome};
use sim::bounded::List;
use sim::{CharacterId, Command, World};

/// All that can be done now, in short: `L5` loaded, `S5` stepped, `D5` desynced, `O5<7` turn 7 where 5 is next.
fn progress(lockstep: &mut Lockstep) -> String {
    let mut words = Vec::new();
    while let Some(progress) = lockstep.poll().expect("nothing is wrong") {
        words.push(match progress {
            Progress::Loaded { tick } => format!("L{tick}"),
            Progress::Stepped { tick, .. } => format!("S{tick}"),
            Progress::Desynced { tick, .. } => format!("D{tick}"),
            Progress::OutOfOrder { expected, found } => format!("O{expected}<{found}"),
        });
    }
    words.join(" ")
}

/// A client that was just welcomed and knows the definition.
fn welcomed(authority: &Authority) -> Lockstep {
    let known = (authority.bundle.hash(), authority.definition.clone());
    let mut lockstep =
        Lockstep::new(&authority.welcome(), Simulation::Run, Some(known)).expect("our ruleset");
    lockstep.set_bundle(authority.bundle.encode().into());
    lockstep
}

/// A client that is in step at the authority's tick.
fn following(authority: &Authority) -> Lockstep {
    let mut lockstep = welcomed(authority);
    give_snapshot(&mut lockstep, authority);
    assert_eq!(progress(&mut lockstep), format!("L{}", authority.world.tick()));
    lockstep
}

fn give_snapshot(lockstep: &mut Lockstep, authority: &Authority) {
    for (part, parts, bytes) in authority.snapshot_parts() {
        lockstep
            .snapshot_part(authority.world.tick(), part, parts, &bytes)
            .expect("in order");
    }
}

fn download(lockstep: &mut Lockstep, authority: &Authority) {
    let mut download = Download::new(&authority.welcome());
    let mut whole = None;
    for (part, parts, bytes) in authority.definition_parts() {
        assert!(whole.is_none(), "the last one makes it whole");
        whole = download.part(part, parts, &bytes).expect("in order");
    }
    let Downloaded {
        hash,
        definition,
        bundle,
    } = whole.expect("the last one makes it whole");
    assert_eq!(bundle, authority.bundle.encode());
    lockstep.define(hash, definition).expect("our rules");
}

fn walk() -> Vec<Command> {
    vec![Command::MoveTo {
        character: CharacterId(1),
        x: nav::Fixed::from_int(7),
        z: nav::Fixed::from_int(3),
    }]
}

#[test]
fn turns_between_the_parts_of_a_snapshot_are_kept() {
    let mut authority = Authority::with_player();
    let mut lockstep = Lockstep::new(&authority.welcome(), Simulation::Run, None).expect("our ruleset");
    download(&mut lockstep, &authority);
    let snapshot = authority.snapshot_parts();
    assert!(snapshot.len() > 2, "several parts");
    let tick = authority.world.tick();
    for (part, parts, bytes) in snapshot {
        lockstep.turn(authority.turn(walk())).expect("few");
        assert_eq!(progress(&mut lockstep), "");
        lockstep
            .snapshot_part(tick, part, parts, &bytes)
            .expect("in order");
    }
    let steps: Vec<String> = (tick..authority.world.tick())
        .map(|tick| format!("S{tick}"))
        .collect();
    assert_eq!(progress(&mut lockstep), format!("L{tick} {}", steps.join(" ")));
    assert_eq!(
        lockstep.world().map(World::digest),
        Some(authority.world.digest())
    );
    let position = lockstep.position().expect("in step");
    assert_eq!(position, (authority.world.tick(), Some(authority.world.digest())));
}

#[test]
fn turns_before_the_definition_wait_for_it() {
    let mut authority = Authority::new();
    let mut lockstep = Lockstep::new(&authority.welcome(), Simulation::Run, None).expect("our ruleset");
    give_snapshot(&mut lockstep, &authority);
    lockstep.turn(authority.turn(vec![])).expect("few");
    assert_eq!(progress(&mut lockstep), "");
    download(&mut lockstep, &authority);
    assert_eq!(progress(&mut lockstep), "L0 S0");
}

#[test]
fn missing_turns_stop_it_and_repeated_ones_do_not() {
    let mut authority = Authority::with_player();
    let mut lockstep = following(&authority);
    let third = authority.turn(walk());
    lockstep.turn(third.clone()).expect("few");
    lockstep.turn(third).expect("few");
    lockstep.turn(authority.turn(vec![])).expect("few");
    assert_eq!(progress(&mut lockstep), "S3 O4<3 S4");
    authority.turn(vec![]);
    lockstep.turn(authority.turn(vec![])).expect("few");
    lockstep.turn(authority.turn(vec![])).expect("few");
    assert_eq!(progress(&mut lockstep), "O5<6");
    assert!(lockstep.needs_resync() && lockstep.position().is_none());

    give_snapshot(&mut lockstep, &authority);
    assert!(!lockstep.needs_resync());
    lockstep.turn(authority.turn(vec![])).expect("few");
    assert_eq!(progress(&mut lockstep), "L8 S8");
}

#[test]
fn a_differing_digest_stops_it_and_the_difference_has_a_name() {
    let mut authority = Authority::with_player();
    let mut lockstep = following(&authority);
    let mut turn = authority.turn(walk());
    // What this client does not see: the player was sent somewhere else.
    turn.commands = List::new(vec![]).expect("none");
    lockstep.turn(turn).expect("few");
    lockstep.turn(authority.turn(vec![])).expect("few");
    assert_eq!(progress(&mut lockstep), "D3");
    assert!(lockstep.needs_resync());

    let mut server = Authority::with_player();
    server.turn(walk());
    let sections = server.world.sections();
    let characters = sections
        .characters
        .iter()
        .map(|&(id, digest)| (CharacterId(id), digest));
    let mut desync = Desync {
        tick: 3,
        expected: server.world.digest(),
        clock: sections.clock,
        map: sections.map,
        planner: sections.planner,
        characters: List::new(characters.collect()).expect("few"),
        want_report: false,
    };
    let expected = Difference {
        tick: 3,
        clock: false,
        map: false,
        planner: false,
        characters: vec![CharacterId(1)],
    };
    assert_eq!(lockstep.desynced(&desync), Some(expected));
    desync.characters = List::new(vec![(CharacterId(50), 1)]).expect("few");
    desync.map ^= 1;
    let difference = lockstep.desynced(&desync).expect("at this tick");
    assert!(difference.map && !difference.clock);
    assert_eq!(difference.characters, [1, 50, 100].map(CharacterId));
    let kept = lockstep.world().expect("it stopped there").snapshot();
    // All of them zero: the server does not know them any more, and what it said before holds.
    let unknown = Desync {
        clock: 0,
        map: 0,
        planner: 0,
        characters: List::default(),
        ..desync.clone()
    };
    assert_eq!(lockstep.desynced(&unknown), None);
    desync.tick = 4;
    assert_eq!(lockstep.desynced(&desync), None);
    assert!(lockstep.report_messages(4).is_empty(), "of another step");

    give_snapshot(&mut lockstep, &authority);
    assert_eq!(progress(&mut lockstep), "L5");
    // The server's word may come after its snapshot: what differed is still known.
    desync.tick = 3;
    assert!(lockstep.desynced(&desync).is_some());
    let report = lockstep.report().expect("of the step that differed");
    assert_eq!((report.next_tick, report.session), (4, 7));
    assert_eq!(
        (report.expected, &report.snapshot[..]),
        (server.world.digest(), &kept[..])
    );
    assert_eq!(
        report.sections.as_ref().map(|sections| sections.map),
        Some(desync.map)
    );
    let bundle = report.bundle().expect("a good one").expect("it was downloaded");
    assert_eq!(bundle.hash(), authority.bundle.hash());
    let [
        ClientMessage::DesyncReport {
            tick,
            part,
            parts,
            bytes,
        },
    ] = &lockstep.report_messages(3)[..]
    else {
        panic!("a small World goes in one part");
    };
    assert_eq!((*tick, *part, *parts, &bytes[..]), (3, 0, 1, &kept[..]));
}

#[test]
fn without_a_world_turns_are_counted() {
    let mut authority = Authority::with_player();
    let welcome = Welcome {
        ruleset: 99,
        ..authority.welcome()
    };
    let mut lockstep = Lockstep::new(&welcome, Simulation::Skip, None).expect("no World, no rules");
    give_snapshot(&mut lockstep, &authority);
    assert_eq!(progress(&mut lockstep), "L3");
    assert_eq!(lockstep.position(), Some((3, None)));
    let mut turn = authority.turn(vec![]);
    turn.digest = 5;
    lockstep.turn(turn).expect("few");
    assert_eq!(progress(&mut lockstep), "S3");
    assert_eq!(lockstep.position(), Some((4, Some(5))));
    authority.turn(vec![]);
    lockstep.turn(authority.turn(vec![])).expect("few");
    assert_eq!(progress(&mut lockstep), "O4<5");
}

#[test]
fn a_resume_goes_on_and_another_run_begins_anew() {
    let mut authority = Authority::with_player();
    let mut lockstep = following(&authority);
    // Half a snapshot and a turn of a connection that is lost.
    let (part, parts, bytes) = authority.snapshot_parts().remove(0);
    lockstep.snapshot_part(3, part, parts, &bytes).expect("the first");
    lockstep.turn(authority.turn(walk())).expect("few");
    let mut missed = Authority::with_player();
    lockstep.resumed(&authority.welcome()).expect("our ruleset");
    lockstep.turn(missed.turn(walk())).expect("few");
    assert_eq!(progress(&mut lockstep), "S3");

    let welcome = Welcome {
        run: [9; 16],
        ..authority.welcome()
    };
    lockstep.resumed(&welcome).expect("our ruleset");
    assert_eq!((lockstep.position(), lockstep.world().is_some()), (None, false));
    assert!(lockstep.definition().is_some());
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let authority = Authority::new();
    let known = || Some((authority.bundle.hash(), authority.definition.clone()));
    let strange = [
        Welcome {
            ruleset: 2,
            ..authority.welcome()
        },
        Welcome {
            ruleset_hash: 2,
            ..authority.welcome()
        },
    ];
    for welcome in strange {
        let refused = Lockstep::new(&welcome, Simulation::Run, known());
        assert!(matches!(refused, Err(LockstepError::Ruleset { .. })));
    }

    let welcome = Welcome {
        definition: [0; 32],
        ..authority.welcome()
    };
    let mut lockstep = Lockstep::new(&welcome, Simulation::Run, known()).expect("our ruleset");
    assert!(lockstep.definition().is_none(), "what is known is another one");
    lockstep
        .define(authority.bundle.hash(), authority.definition.clone())
        .expect("passed over");
    assert!(lockstep.definition().is_none(), "still");

    let mut lockstep = welcomed(&authority);
    let (_, parts, bytes) = authority.snapshot_parts().remove(0);
    assert!(matches!(
        lockstep.snapshot_part(0, 1, parts, &bytes),
        Err(LockstepError::Parts(_))
    ));
    lockstep.snapshot_part(0, 0, 1, &bytes).expect("it could be all");
    assert!(matches!(
        lockstep.poll(),
        Err(LockstepError::Snapshot { tick: 0, .. })
    ));

    let mut lockstep = welcomed(&authority);
    for (part, parts, bytes) in authority.snapshot_parts() {
        lockstep.snapshot_part(5, part, parts, &bytes).expect("in order");
    }
    assert!(matches!(
        lockstep.poll(),
        Err(LockstepError::SnapshotTick { named: 5, found: 0 })
    ));

    let mut lockstep = welcomed(&authority);
    let turn = Turn {
        tick: 0,
        commands: List::new(vec![]).expect("none"),
        digest: 0,
    };
    for _ in 0..TURNS_KEPT_MAX {
        lockstep.turn(turn.clone()).expect("kept");
    }
    assert!(matches!(lockstep.turn(turn), Err(LockstepError::TooManyTurns)));
}

#[test]
fn turns_before_a_snapshot_count_no_more() {
    let mut authority = Authority::with_player();
    let mut lockstep = welcomed(&authority);
    let turn = authority.turn(vec![]);
    for _ in 0..TURNS_KEPT_MAX {
        lockstep.turn(turn.clone()).expect("kept");
    }
    give_snapshot(&mut lockstep, &authority);
    let next = authority.turn(vec![]);
    let tick = next.tick;
    lockstep.turn(next).expect("there is room again");
    assert_eq!(progress(&mut lockstep), format!("L{tick} S{tick}"));
}
