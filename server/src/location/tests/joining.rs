//! Coming in: who gets the World, who is told why not.

use protocol::ticket::{Claims, KeyId};
use sim::bounded::List;

use super::*;

#[test]
fn a_joiner_gets_the_world_after_its_join_and_every_turn_from_it() {
    let mut stage = Stage::new(start());
    stage.turns(3);
    stage.enter(1, hello("Ann"));
    assert!(stage.sent(1).is_empty(), "the Join waits for its turn");
    stage.turns(2);
    let sent = stage.sent(1);
    let kinds: Vec<&str> = sent
        .iter()
        .map(|parcel| match parcel {
            Parcel::Welcome { .. } => "welcome",
            Parcel::Control(_) => "clock",
            Parcel::Snapshot { tick: 4, .. } => "snapshot 4",
            Parcel::Turn { tick: 4, .. } => "turn 4",
            _ => "something else",
        })
        .collect();
    assert_eq!(kinds, ["welcome", "clock", "snapshot 4", "turn 4"]);
    assert_eq!(stage.players(), ["Ann"]);

    let kinds: Vec<&str> = stage
        .records
        .iter()
        .map(|record| match record {
            Record::Turn(turn) if turn.commands.is_empty() => "turn",
            Record::Turn(turn) => {
                let session = 3 * 1_024 + 1;
                let outcome = Code::APPLIED;
                assert_eq!(turn.origins[..], [Origin::Roster { session, outcome }]);
                "turn with the Join"
            }
            Record::Session(session) if session.state == SessionState::Open => "session",
            _ => "something else",
        })
        .collect();
    assert_eq!(
        kinds,
        ["turn", "turn", "turn", "turn with the Join", "session", "turn"]
    );
}

#[test]
fn whoever_may_not_come_in_is_told_why() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    let mut check = |hello: Hello, expected: Code| {
        let described = format!("{hello:?}");
        stage.enter(50, hello);
        stage.turns(1);
        assert_eq!(stage.end(50), Some(expected), "{described}");
        stage.forgotten.clear();
    };
    check(hello("ANN"), Code::REJECT_NAME_TAKEN);
    check(hello("guard aldo"), Code::REJECT_NAME_TAKEN);
    check(hello(""), Code::REJECT_NAME_INVALID);
    check(hello(" Bob"), Code::REJECT_NAME_INVALID);
    check(hello("Bob\u{202e}"), Code::REJECT_NAME_INVALID);
    let watcher_with_bad_name = Hello {
        role: Role::Watcher,
        ..hello("\u{1b}[2J")
    };
    check(watcher_with_bad_name, Code::REJECT_NAME_INVALID);
    let admin = Hello {
        role: Role::Admin,
        ..hello("Bob")
    };
    check(admin, Code::REJECT_ROLE_NOT_ALLOWED);
    let elsewhere = Hello {
        location: Text::cut("elsewhere"),
        ..hello("Bob")
    };
    check(elsewhere, Code::REJECT_UNKNOWN_LOCATION);
    stage.join(2, "Bob");
    stage.join(3, "Cem");
    stage.enter(4, hello("Dora"));
    assert_eq!(stage.end(4), Some(Code::REJECT_FULL));
    let watcher = Hello {
        role: Role::Watcher,
        ..hello("")
    };
    stage.enter(5, watcher);
    assert_eq!(
        stage.welcome(5).characters.len(),
        0,
        "who only watches needs no place"
    );
    stage.take(Input::Stop);
    stage.enter(6, hello("Dora"));
    assert_eq!(stage.end(6), Some(Code::REJECT_DRAINING));
}

#[test]
fn a_name_is_free_when_its_npc_is_gone_and_taken_when_another_has_it() {
    let mut stage = Stage::new(start());
    let guard = stage.location.world.character(CharacterId(100));
    let guard = guard.expect("an NPC of the demo").clone();
    let check = |stage: &mut Stage, name: &str, taken: bool| {
        // In a turn of its own.
        stage.turns(1);
        stage.enter(50, hello(name));
        let expected = taken.then_some(Code::REJECT_NAME_TAKEN);
        assert_eq!(stage.end(50), expected, "{name}");
        stage.take(Input::Gone(connection(50)));
        stage.forgotten.clear();
    };
    check(&mut stage, "Guard Aldo", true);
    check(&mut stage, "Guard Bea", false);
    let despawn = Command::Despawn { character: guard.id };
    stage.location.inbox.push_operator(0, despawn);
    check(&mut stage, "Guard Aldo", false);
    let another = sim::CharacterSpec {
        id: guard.id,
        name: Text::cut("Guard Bea"),
        x: guard.position.x,
        z: guard.position.z,
        speed_per_tick: nav::Fixed::ONE,
        rotation_per_tick: nav::Fixed::ONE,
        collision_radius: nav::Fixed::ONE,
        movement_contact_radius: nav::Fixed::ONE,
        cooldown_ticks: None,
        enabled: true,
        alive: true,
        behaviour: sim::Behaviour::Idle,
    };
    stage.location.inbox.push_operator(0, Command::SpawnNpc(another));
    check(&mut stage, "guard bea", true);
    check(&mut stage, "Guard Aldo", false);
}

/// A ticket is forgotten when it has expired: at the next keyframe, and decided as if at once.
#[test]
fn a_used_ticket_is_remembered_until_it_expires() {
    let mut stage = Stage::new(start());
    let location = stage.location.definition.name().to_owned();
    let mut check = |(nonce, expires): (u8, u64), unix_seconds: u64, expected: Option<Code>, kept: &[u8]| {
        let claims = Claims {
            key: KeyId([0; 8]),
            audience: Text::default(),
            location: Text::cut(&location),
            subject: Text::cut(&format!("subject {nonce}")),
            name: Text::default(),
            role: Role::Watcher,
            characters: List::default(),
            not_before: 0,
            expires,
            nonce: [nonce; 16],
        };
        let answers = Hello {
            role: Role::Watcher,
            feed: message::Feed::Answers,
            ..hello("")
        };
        stage.take(Input::Enter {
            connection: connection(50),
            hello: Box::new(answers),
            visitor: Visitor {
                claims: Some(Box::new(claims)),
                unix_seconds,
                ..Visitor::default()
            },
            token: [nonce; 16],
        });
        assert_eq!(stage.end(50), expected, "{nonce} at {unix_seconds}");
        stage.take(Input::Goodbye(connection(50)));
        stage.parcels.clear();
        stage.forgotten.clear();
        let mut keyframe = Vec::new();
        stage.location.keyframe(&mut keyframe);
        let Some(Output::Keyframe { sessions, .. }) = keyframe.first() else {
            panic!("a keyframe");
        };
        let there: Vec<u8> = sessions.nonces.iter().map(|used| used.nonce[0]).collect();
        assert_eq!(there, kept, "at {unix_seconds}");
    };
    let used = Some(Code::REJECT_TICKET_USED);
    check((1, 100), 50, None, &[1]);
    check((1, 100), 99, used, &[1]);
    check((2, 200), 99, None, &[1, 2]);
    check((1, 100), 50, used, &[1, 2]);
    check((3, 200), 100, None, &[2, 3]);
    check((2, 200), 199, used, &[2, 3]);
    check((4, 300), 250, None, &[4]);
}

#[test]
fn whoever_hangs_up_while_joining_never_was_there() {
    let mut stage = Stage::new(start());
    stage.enter(1, hello("Ann"));
    stage.take(Input::Gone(connection(1)));
    stage.turns(1);
    assert!(stage.players().is_empty());
    stage.join(2, "Ann");
}

#[test]
fn those_who_watch_answers_alone_get_them() {
    let mut stage = Stage::new(start());
    let answers = Hello {
        feed: message::Feed::Answers,
        ..hello("Ann")
    };
    stage.enter(1, answers);
    stage.turns(1);
    let welcome = stage.welcome(1);
    stage.command(1, 1, stop(&welcome));
    stage.turns(1);
    assert_eq!(stage.answers(1), [(1, Ok(1))]);
}
